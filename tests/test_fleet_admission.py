"""Admission policies, the token bucket, the page pool of the prefix store, and the routers' choices."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.cluster import Budget, ClusterSpec, RequestClass, check_budgets
from k3core.fleet.prefix_store import PrefixStore
from k3core.fleet.results import report
from k3core.fleet.routing import ROUTERS, CacheCost, LeastLoaded
from k3core.fleet.simulate import Fleet, run
from k3core.fleet.statistics import mean_interval, percentile, percentile_interval
from k3core.fleet.token_bucket import TokenBucket
from k3core.fleet.traffic import (
    Phase,
    Requests,
    Traffic,
    make_requests,
    poisson_times,
    sum_before,
    warm_prefixes,
)

few = settings(max_examples=60, deadline=None, derandomize=True)


# --- token bucket -------------------------------------------------------------------------------------------


def test_token_bucket_example():
    """BLIS: capacity 10,000, refill 1,000/s, 512 tokens a request -> a burst of 19, then 1.95 requests/s."""
    bucket = TokenBucket(1000, 10_000)
    assert sum(bucket.take(512, 0.0) for _ in range(100)) == 19
    passed = sum(bucket.take(512, t / 100) for t in range(1, 100_001))
    assert passed / 1000 == pytest.approx(1.95, abs=0.01)


@few
@given(
    st.lists(st.tuples(st.floats(0, 3), st.integers(1, 900)), max_size=60),
    st.floats(1, 200),
    st.floats(1, 900),
)
def test_token_bucket_never_passes_more_than_burst_and_rate(calls, rate, burst):
    """In every interval of length t at most burst + rate t tokens pass."""
    bucket, now, passed = TokenBucket(rate, burst), 0.0, []
    for gap, tokens in calls:
        now += gap
        passed.append((now, tokens if bucket.take(tokens, now) else 0))
    for i, (begin, _) in enumerate(passed):
        total = 0
        for end, tokens in passed[i:]:
            total += tokens
            assert total <= burst + rate * (end - begin) + 1e-6


def test_full_burst_lasts_b_over_p_minus_r():
    """A flow at peak p > r passes whole for b / (p - r) seconds."""
    bucket = TokenBucket(100, 1000)
    first_refused = next(t for t in range(10_000) if not bucket.take(3, t / 100))
    assert first_refused / 100 == pytest.approx(1000 / (300 - 100), abs=0.05)


# --- policies -----------------------------------------------------------------------------------------------


def burst(classes, prompts, outputs, decode=1.0):
    n = len(classes)
    zeros = np.zeros(n)
    ints = [np.array(values, dtype=np.int64) for values in (classes, [-1] * n, prompts, outputs)]
    return Requests(zeros, ints[0], ints[1], ints[2], ints[3], zeros + decode)


def served_order(result):
    return np.lexsort((np.arange(len(result.start)), result.start)).tolist()


PAIR = (RequestClass("patient", 1), RequestClass("urgent", 0))


def one_slot(policy, classes=PAIR):
    return Fleet(1, ClusterSpec(1), classes, policy, prefill=lambda new, cached: 0.0)


def test_who_goes_next():
    requests = burst([0, 0, 1, 1, 0], [0] * 5, [100] * 5)
    assert served_order(run(requests, one_slot("shared"))) == [0, 1, 2, 3, 4]
    assert served_order(run(requests, one_slot("priority"))) == [0, 2, 3, 1, 4]
    assert served_order(run(requests, one_slot("vtc"))) == [0, 1, 2, 4, 3]


def test_virtual_counter_lifts_a_class_that_was_idle():
    """Idle time earns no credit: after 50 requests of one class, a newcomer shares evenly from now on."""
    n = 100
    requests = Requests(
        np.array([0.0] * 50 + [49.5] * 50),
        np.array([0] * 50 + [1, 0] * 25),
        np.full(n, -1),
        np.zeros(n, dtype=np.int64),
        np.full(n, 10),
        np.ones(n),
    )
    order = served_order(run(requests, one_slot("vtc")))
    assert [int(requests.klass[i]) for i in order[50:70]] == [0, 1] * 10


@few
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_virtual_counter_bounds_the_difference_in_service(seed, slots):
    """While both classes have work waiting, |W_0 - W_1| <= 2 max charge (OSDI 2024, backlogged clients)."""
    rng = np.random.default_rng(seed)
    n = 120
    prompts, outputs = rng.integers(0, 400, n), rng.integers(1, 300, n)
    requests = burst(rng.integers(0, 2, n), prompts, outputs, rng.exponential(1, n))
    result = run(requests, replace(one_slot("vtc"), spec=ClusterSpec(slots)))
    charge, service = prompts + 2 * outputs, [0, 0]
    later = [i for i in served_order(result) if result.start[i] > 0]
    waiting = [int((requests.klass[later] == k).sum()) for k in (0, 1)]
    for i in later:
        if min(waiting) == 0:
            break
        waiting[requests.klass[i]] -= 1
        service[requests.klass[i]] += int(charge[i])
        assert abs(service[0] - service[1]) <= 2 * charge.max()


def test_queue_limit_rejects_clearly():
    requests = burst([0] * 5, [0] * 5, [1] * 5)
    result = run(requests, one_slot("shared", (RequestClass("a", queue_limit=2),)))
    assert result.rejected == {3: "queue full", 4: "queue full"}
    assert report(result)[0].rejected == {"queue full": 2}


def test_a_request_larger_than_its_budget_is_rejected_and_does_not_block():
    classes = RequestClass("a", budget=Budget(1, 10, 50)), RequestClass("b", budget=Budget(1, 30, 50))
    requests = burst([0, 0, 1], [20_000, 100, 20_000], [10] * 3)
    fleet = Fleet(1, ClusterSpec(2, 40, 1536, 3), classes, "strict")
    result = run(requests, fleet)
    assert result.rejected == {0: "larger than its budget"}
    assert result.start[1:].tolist() == [0, 0]


def test_pages_bind_before_slots():
    """Three requests of 14 + 3 pages in 40 pages: two run, the third waits for one to finish."""
    requests = burst([0] * 3, [0] * 3, [14 * 1536] * 3)
    result = run(requests, Fleet(1, ClusterSpec(8, 40, 1536, 3), (RequestClass("a"),)))
    assert result.start.tolist() == [0, 0, 1]


def test_prefill_is_one_at_a_time_at_the_pools_share():
    requests = burst([0, 0, 1], [1000, 1000, 1000], [1] * 3)
    classes = RequestClass("a", budget=Budget(2, None, 25)), RequestClass("b", budget=Budget(2, None, 75))
    fleet = Fleet(1, ClusterSpec(4), classes, "strict", prefill=lambda new, cached: new / 1000)
    assert run(requests, fleet).first_token.tolist() == pytest.approx([4, 8, 4 / 3])
    assert run(requests, replace(fleet, policy="shared")).first_token.tolist() == [1, 2, 3]


# --- prefix store -------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_pages_are_conserved_and_hits_are_what_was_left(data):
    """Free + idle + active = all, nothing is negative, and a hit never exceeds what was computed."""
    store, running, longest = PrefixStore(60, 100, 2), [], {}
    for _ in range(data.draw(st.integers(1, 40))):
        if running and data.draw(st.booleans()):
            session, prompt, output, hit = running.pop(data.draw(st.integers(0, len(running) - 1)))
            store.close(session, prompt + output, store.need(prompt + output), hit)
            longest[session] = max(longest.get(session, 0), prompt + output)
        else:
            session, prompt = data.draw(st.integers(-1, 3)), data.draw(st.integers(0, 1500))
            output = data.draw(st.integers(0, 500))
            hit = store.open(session, prompt, store.need(prompt + output))
            if hit is None:
                assert store.need(prompt + output) - prompt // 100 > store.free or running
                continue
            assert hit % 100 == 0 and hit <= max(0, prompt - 1) and hit <= longest.get(session, 0)
            assert session >= 0 or hit == 0
            running.append((session, prompt, output, hit))
        assert min(store.free, store.idle_pages, store.active_pages) >= 0
        assert store.free + store.idle_pages + store.active_pages == 60
        private = sum(store.need(p + o) - h // 100 for _, p, o, h in running)
        assert store.active_pages >= private
        if not running:
            assert store.active_pages == 0


def test_oldest_idle_prefix_goes_first():
    store = PrefixStore(30, 100, 1)
    for session in (0, 1, 2):
        store.close(session, 500, 6, store.open(session, 400, 6))
    store.close(0, 600, 7, store.open(0, 500, 7))  # session 0 used again
    assert [store.hit(s, 10_000) for s in (0, 1, 2)] == [600, 500, 500]
    assert store.open(9, 1200, 13) == 0
    assert [store.hit(s, 10_000) for s in (0, 1, 2)] == [600, 0, 500]


def test_a_prefix_from_before_the_start_must_fit():
    store = PrefixStore(10, 100, 1)
    store.seed(0, 500)
    store.seed(1, 500)  # 6 pages more than the 4 that are left
    assert [store.hit(s, 1000) for s in (0, 1)] == [500, 0]
    assert (store.free, store.idle_pages) == (4, 6)


def test_a_refused_request_evicts_nothing():
    store = PrefixStore(10, 100, 1)
    store.close(0, 500, 6, store.open(0, 500, 6))
    assert store.open(1, 5000, 51) is None
    assert store.hit(0, 1000) == 500


# --- routers ------------------------------------------------------------------------------------------------


class FakeCluster:
    def __init__(self, cost):
        self.cost = cost

    def cache_cost(self, i):
        return self.cost

    def load(self, klass):
        return self.cost


def route(router, costs, i=0):
    requests = burst([0] * 8, [0] * 8, [0] * 8)
    chosen = router(requests, None)
    chosen.topology([FakeCluster(cost) for cost in costs], range(len(costs)))
    return chosen.route(i)


def test_cache_cost_of_the_documented_example():
    """NVIDIA Dynamo docs: 8 + 10 = 18, 5 + 5 = 10, 2 + 9 = 11; the second worker is chosen."""
    assert route(CacheCost, [8 + 10, 5 + 5, 2 + 9]) == 1


def test_ties_go_round():
    """The lowest index on every tie sends a burst to one place (inference-sim #565, llm-d-router #2709)."""
    assert [route(LeastLoaded, [3, 3, 3, 3], i) for i in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert route(LeastLoaded, [3, 1, 1], 2) == 2


def test_bounded_affinity_leaves_a_hot_primary():
    """A hot session stays on one cluster under affinity, spills over under bounded loads (prime-rl #3255)."""
    n = 400
    requests = Requests(
        np.arange(n) / 100,
        np.zeros(n, dtype=np.int64),
        np.full(n, 5),
        np.full(n, 100),
        np.ones(n, dtype=np.int64),
        np.ones(n),
    )
    peak = {}
    for router in ("affinity", "bounded_affinity", "least_loaded"):
        result = run(requests, Fleet(4, ClusterSpec(32), (RequestClass("a"),), router=router))
        peak[router] = int(np.bincount(result.cluster, minlength=4).max())
    assert peak["affinity"] == n
    assert peak["bounded_affinity"] < 0.4 * n
    assert peak["least_loaded"] < 0.3 * n


@pytest.mark.parametrize("name", ROUTERS)
def test_every_cluster_is_used(name):
    rng = np.random.default_rng(0)
    requests = Requests.plain(np.cumsum(rng.exponential(0.1, 400)), rng.exponential(1, 400))
    result = run(requests, Fleet(4, ClusterSpec(8), (RequestClass("a"),), router=name))
    assert np.bincount(result.cluster, minlength=4).min() > 50


# --- traffic ------------------------------------------------------------------------------------------------


def test_poisson_times_follow_the_phases():
    phases = [Phase(50, 20), Phase(0, 99), Phase(10, 0), Phase(5, 400)]
    times = poisson_times(phases, np.random.default_rng(1))
    counts = [((times >= a) & (times < b)).sum() for a, b in ((0, 50), (50, 60), (60, 65))]
    assert counts[0] == pytest.approx(1000, abs=130) and counts[1] == 0
    assert counts[2] == pytest.approx(2000, abs=180)
    assert (np.diff(times) >= 0).all() and times.max() < 65
    assert poisson_times([], np.random.default_rng(1)).tolist() == []
    assert poisson_times([Phase(5, 0)], np.random.default_rng(1)).tolist() == []


def test_conversations_grow_and_are_replaced():
    stream = Traffic(
        (Phase(100, 5),), 1.0, prompt_tokens=1000, output_tokens=50, conversations=4, turn_tokens=200, turns=3
    )
    requests = make_requests([stream], np.random.default_rng(2))
    for session in np.unique(requests.session).tolist():
        prompts = requests.prompt[requests.session == session].tolist()
        assert prompts == [1000, 1250, 1500][: len(prompts)]
    assert len(np.unique(requests.session)) >= len(requests) / 3


def test_a_prompt_holds_what_its_conversation_said_before():
    stream = Traffic(
        (Phase(100, 5),), 1.0, True, 1000, 50, conversations=4, turn_tokens=200, turns=30, steady=True
    )
    requests = make_requests([stream], np.random.default_rng(2))
    warm = dict(warm_prefixes(requests, [stream]))
    for session in np.unique(requests.session).tolist():
        mine = np.flatnonzero(requests.session == session)
        prompts, outputs = requests.prompt[mine], requests.output[mine]
        assert (np.diff(prompts) == outputs[:-1] + 200).all()
        assert warm.get(int(mine[0]), 800) == prompts[0] - 200
    assert 1 <= len(warm) <= 4
    fleet = Fleet(2, ClusterSpec(8, page_tokens=1), (RequestClass("a"),))
    result = run(requests, fleet, list(warm.items()))
    for i, tokens in warm.items():
        assert result.hit[i] == tokens
    assert report(run(requests, fleet))[0].hit_tokens < report(result)[0].hit_tokens


@few
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30))
def test_sum_before_equals_the_loop(pairs):
    groups, values = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    sums, expected = {}, []
    for group, value in pairs:
        expected.append(sums.get(group, 0))
        sums[group] = expected[-1] + value
    assert sum_before(groups, values).tolist() == expected


def test_changing_one_class_leaves_the_other_alone():
    calm, wild = Traffic((Phase(20, 3),), 1.0, True, output_tokens=30), Traffic((Phase(20, 50),), 0.1)
    one = make_requests([calm, calm], np.random.default_rng(4))
    two = make_requests([calm, wild], np.random.default_rng(4))
    for name, values in vars(one).items():
        assert values[one.klass == 0].tolist() == getattr(two, name)[two.klass == 0].tolist()


# --- statistics ---------------------------------------------------------------------------------------------


def test_percentiles_are_values_that_occurred():
    values = np.arange(1.0, 101)
    assert [percentile(values, p) for p in (0.01, 0.5, 0.99, 1)] == [1, 50, 99, 100]
    assert percentile(np.array([7.0]), 0.99) == 7
    assert percentile_interval(values, 0.5) == (41, 61)
    low, high = percentile_interval(values, 0.99)
    assert low <= 99 <= high == 100


def test_interval_of_means():
    """Textbook: 5 samples, t = 2.776."""
    mean, half = mean_interval([1, 2, 3, 4, 5])
    assert mean == 3 and half == pytest.approx(2.776 * (2.5 / 5) ** 0.5)
    _, wide = mean_interval([0.0, 1.0] * 30)
    assert wide == pytest.approx(2.001 * (0.25 * 60 / 59 / 60) ** 0.5, rel=1e-3)


# --- bad input ----------------------------------------------------------------------------------------------


def budgets(*pairs, spec=None):
    spec = spec or ClusterSpec(8, 100)
    return check_budgets([RequestClass(f"c{i}", budget=b) for i, b in enumerate(pairs)], spec)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: budgets(Budget(6, 50, 50), Budget(3, 50, 50)), "reserve 9 slots of 8"),
        (lambda: budgets(Budget(4, 60, 50), Budget(4, 50, 50)), "reserve 110 pages of 100"),
        (lambda: budgets(Budget(4, 50, 60), Budget(4, 50, 50)), "reserve 110 prefill percent of 100"),
        (lambda: budgets(Budget(4, None, 50)), "None pages of a cluster with 100"),
        (lambda: budgets(Budget(0, 50, 50)), "reserves 0 slots"),
        (lambda: budgets(Budget(4, 50, 0)), "0 % of the prefill"),
        (lambda: budgets(None), "class c0 has no budget"),
        (lambda: ClusterSpec(0), "slots is 0"),
        (lambda: ClusterSpec(1, 0), "pages is 0"),
        (lambda: ClusterSpec(1, page_tokens=0), "page_tokens is 0"),
        (lambda: ClusterSpec(1, lend_percent=101), "lend_percent is 101"),
        (lambda: TokenBucket(0, 1), "token_rate is 0"),
        (lambda: TokenBucket(1, float("inf")), "token_burst inf"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

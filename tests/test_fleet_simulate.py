"""The simulation against queueing theory, its own second path, and its own books."""

import random
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.cluster import Budget, ClusterSpec, RequestClass
from k3core.fleet.queueing import (
    MMc,
    ServiceClass,
    burst_peak_wait,
    mg1_wait,
    mmc_priority_waits,
    priority_waits,
    supermarket_time,
)
from k3core.fleet.results import checks, offered_load, report, timeline
from k3core.fleet.routing import ROUTERS
from k3core.fleet.simulate import Fleet, FleetEvent, recursion_applies, run, simulate
from k3core.fleet.statistics import mean_interval, percentile
from k3core.fleet.traffic import Phase, Requests, Traffic, make_requests

ONE = (RequestClass("all"),)
BY_EVENTS = (RequestClass("all", queue_limit=10**9),)  # a limit that never binds rules the recursion out


def customers(rng, n, rate, service="exponential", classes=1):
    arrival = np.cumsum(rng.exponential(1 / rate, n))
    decode = rng.exponential(1.0, n) if service == "exponential" else np.ones(n)
    return Requests.plain(arrival, decode, rng.integers(0, classes, n, dtype=np.int64))


def queue(slots, classes=ONE, policy="shared", clusters=1, router="round_robin"):
    return Fleet(clusters, ClusterSpec(slots), classes, policy, router)


def assert_books(result):
    failed = [check for check in checks(result) if not check.passed]
    assert not failed


# --- closed forms: inside the simulation's own 95 % interval over seeds -------------------------------------


def over_seeds(seeds, measure):
    rows = [measure(np.random.default_rng(seed)) for seed in range(seeds)]
    return [mean_interval(column) for column in zip(*rows, strict=True)]


def assert_inside(intervals, expected, precision):
    """The interval contains the theory, and is narrow enough for that to mean something."""
    for (mean, half), value in zip(intervals, expected, strict=True):
        assert abs(mean - value) <= half, (mean, half, value)
        assert half <= precision * value


@pytest.mark.parametrize("rate, servers, precision", [(8, 10, 0.05), (0.8, 1, 0.05)])
def test_mmc(rate, servers, precision):
    def measure(rng):
        wait = run(customers(rng, 150_000, rate), queue(servers)).wait
        return wait.mean(), percentile(wait, 0.99), (wait > 0).mean()

    mmc = MMc(rate, 1.0, servers)
    expected = mmc.mean_wait, mmc.wait_percentile(0.99), mmc.wait_probability
    assert_inside(over_seeds(8, measure), expected, precision)


def test_mmc_by_events():
    intervals = over_seeds(8, lambda rng: [run(customers(rng, 60_000, 8), queue(10, BY_EVENTS)).wait.mean()])
    assert_inside(intervals, [MMc(8, 1, 10).mean_wait], 0.1)


def test_mmc_of_ciws_readme():
    """CiwPython/Ciw README: M/M/3, arrivals .2, service .1, seed 1, 1440 time units: mean wait 4.2305."""
    draw, now, busy, waiting, rows = random.Random(1).expovariate, 0.0, [], [], []
    arrival = draw(0.2)
    while min([arrival, *busy]) < 1440:  # Ciw draws a service time when the service begins
        now = min([arrival, *busy])
        if now in busy:
            busy.remove(now)
        else:
            waiting.append(now)
        if waiting and len(busy) < 3:
            rows.append((waiting.pop(0), draw(0.1)))
            busy.append(now + rows[-1][1])
        if now == arrival:
            arrival = now + draw(0.2)
    result = run(Requests.plain(*map(np.array, zip(*rows, strict=True))), queue(3))
    assert result.wait[result.end < 1440].mean() == pytest.approx(4.230543089827278, rel=1e-12)


def test_md1():
    intervals = over_seeds(8, lambda rng: [run(customers(rng, 150_000, 0.8, "fixed"), queue(1)).wait.mean()])
    assert_inside(intervals, [mg1_wait(0.8, 1, 1)], 0.03)


TWO = (RequestClass("urgent", 0), RequestClass("patient", 1))


def class_waits(result):
    return [result.wait[result.requests.klass == k].mean() for k in range(len(result.fleet.classes))]


def test_priorities_on_one_server():
    """Cobham: 1.3333 and 6.6667 for two classes of .4 each."""
    fleet = queue(1, TWO, "priority")
    intervals = over_seeds(8, lambda rng: class_waits(run(customers(rng, 60_000, 0.8, classes=2), fleet)))
    expected = priority_waits([ServiceClass.exponential(0.4, 1)] * 2)
    assert_inside(intervals, expected, 0.1)


def test_priorities_on_many_servers():
    fleet = queue(10, TWO, "priority")
    intervals = over_seeds(8, lambda rng: class_waits(run(customers(rng, 50_000, 8, classes=2), fleet)))
    assert_inside(intervals, mmc_priority_waits([4, 4], 1, 10), 0.1)


def test_two_choices_come_near_the_supermarket_model():
    """The model is the limit of many servers; 40 of them are a few per cent slower."""
    fleet = queue(1, clusters=40, router="two_choices")
    result = run(customers(np.random.default_rng(5), 60_000, 0.9 * 40), fleet)
    assert result.response.mean() == pytest.approx(supermarket_time(0.9, 2), rel=0.08)
    alone = run(customers(np.random.default_rng(5), 60_000, 0.9 * 40), replace(fleet, router="round_robin"))
    assert alone.response.mean() > 1.5 * result.response.mean()


@pytest.mark.parametrize("policy", ["priority", "vtc"])
def test_conservation_law_on_every_path(policy):
    """On one server the sum of S W is the same for every work-conserving order, path by path (Kleinrock)."""
    requests = customers(np.random.default_rng(2), 4_000, 0.9, classes=2)
    requests = replace(requests, output=(requests.decode * 100).astype(np.int64))
    fifo = run(requests, queue(1, TWO))
    other = run(requests, queue(1, TWO, policy))
    assert (other.start != fifo.start).any()
    assert (requests.decode * other.wait).sum() == pytest.approx(
        (requests.decode * fifo.wait).sum(), rel=1e-9
    )


# --- VIP and ordinary traffic under a burst -----------------------------------------------------------------

TOY = [  # service s, exponential, vip/s, ordinary/s, burst/s, burst s, vip slots; P99s of 5 seeds in ms
    (0.100, False, 128, 320, 1280, 2, 16, (2337, 2586), 2400, (137, 150), (3275, 3558)),
    (0.060, False, 160, 500, 2000, 2, 16, (2009, 2193), 2050, (65, 70), (2926, 3169)),
    (0.040, True, 200, 800, 2600, 2, 16, (1376, 1491), 1500, (176, 185), (2194, 2365)),
    (0.100, True, 128, 320, 1280, 2, 24, (2356, 2618), 2400, (433, 462), (4459, 4728)),
]


@pytest.mark.parametrize("case", TOY, ids=lambda case: f"{case[0] * 1000:.0f}ms{'exp' if case[1] else ''}")
def test_vip_isolation_toy(case):
    """An independent simulation of 64 slots, 10 s of base load, a burst, 8 s of base load."""
    service, exponential, vip, ordinary, burst, seconds, slots, shared, fluid, alone, price = case
    streams = [
        Traffic((Phase(18 + seconds, vip),), service, exponential),
        Traffic((Phase(10, ordinary), Phase(seconds, burst), Phase(8, ordinary)), service, exponential),
    ]
    budgets = Budget(slots, None, 25), Budget(64 - slots, None, 75)
    classes = RequestClass("vip", 0, budgets[0]), RequestClass("ordinary", 1, budgets[1])
    p99 = []
    for seed in range(5):
        requests = make_requests(streams, np.random.default_rng(seed))
        row = []
        for policy in ("shared", "strict"):
            result = run(requests, queue(64, classes, policy))
            assert_books(result)
            row += [1000 * one.response.p99 for one in report(result)]
        p99.append(row)
    shared_vip, _, alone_vip, alone_ordinary = np.mean(p99, axis=0)
    for measured, (low, high) in ((shared_vip, shared), (alone_vip, alone), (alone_ordinary, price)):
        assert 0.96 * low <= measured <= 1.04 * high
    assert burst_peak_wait(seconds, (vip + burst) * service / 64) * 1000 == pytest.approx(fluid, rel=0.01)
    assert shared_vip == pytest.approx(fluid, rel=0.1)


def test_overload_is_called_unstable_and_ends():
    requests = customers(np.random.default_rng(0), 5_000, 20)
    fleet = queue(10)
    result = run(requests, fleet)
    load = offered_load(result, (0, float(requests.arrival[-1])))
    assert load[0].unstable and load[0].slots == pytest.approx(2, rel=0.05)
    assert_books(result)
    assert result.wait[-1] > 100


# --- the two paths ------------------------------------------------------------------------------------------


@st.composite
def traffic(draw, sessions=False):
    """Small random traffic of two classes with ties in arrival time and in service time."""
    n = draw(st.integers(1, 40))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(0, 30, n) / 4.0)
    lone = np.full(n, -1, dtype=np.int64)
    return Requests(
        arrival,
        rng.integers(0, 2, n, dtype=np.int64),
        rng.integers(0, 4, n, dtype=np.int64) if sessions else lone,
        rng.integers(0, 3, n, dtype=np.int64) * 4000,
        rng.integers(0, 3, n, dtype=np.int64) * 500,
        rng.integers(0, 8, n) / 4.0,
    )


def halves(slots, pages=None):
    one = Budget(slots // 2, None if pages is None else pages // 2, 50)
    return RequestClass("a", 0, one), RequestClass("b", 1, one)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(traffic(), st.integers(2, 6), st.integers(1, 3), st.sampled_from(["shared", "strict"]), st.booleans())
def test_recursion_equals_events_to_the_bit(requests, slots, clusters, policy, hashed):
    router = "affinity" if hashed else "round_robin"
    fast = Fleet(clusters, ClusterSpec(slots), halves(slots), policy, router)
    classes = tuple(replace(one, queue_limit=10**9) for one in fast.classes)
    slow = replace(fast, classes=classes)
    assert recursion_applies(requests, fast) and not recursion_applies(requests, slow)
    with patch("k3core.fleet.simulate.CHUNK", 7):
        left, right = run(requests, fast), run(requests, slow)
    for name in ("cluster", "pool", "start", "first_token", "end"):
        assert getattr(left, name).tolist() == getattr(right, name).tolist()
    assert_books(left)
    assert_books(right)


# --- isolation ----------------------------------------------------------------------------------------------

EVENTS = (FleetEvent(3.0, "fail", 1), FleetEvent(4.0, "add", 3), FleetEvent(5.5, "recover", 1))


def only(requests, klass, shift=0.0):
    """The requests of one class, as columns."""
    mine = requests.klass == klass
    columns = {name: values[mine] for name, values in vars(requests).items()}
    columns["arrival"] = columns["arrival"] + shift
    return columns


@pytest.mark.parametrize("router", ROUTERS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(traffic(sessions=True), traffic(sessions=True), st.booleans())
def test_strict_reservation_hides_the_other_class(router, first, second, with_events):
    """Same arrivals of A, any arrivals of B: A's timeline is the same to the bit, failures included."""
    ours, others = only(first, 0), [only(first, 1), only(second, 1)]
    for column in (ours, *others):  # sessions of different classes are different sessions
        column["session"] = column["session"] * 2 + column["klass"]
    fleet = Fleet(
        3, ClusterSpec(4, 40, 1536, 3), halves(4, 40), "strict", router, EVENTS if with_events else ()
    )
    timelines = []
    for theirs in others:
        order = np.lexsort(
            (
                np.repeat([0, 1], [len(ours["arrival"]), len(theirs["arrival"])]),
                np.concatenate([ours["arrival"], theirs["arrival"]]),
            )
        )
        merged = Requests(**{name: np.concatenate([ours[name], theirs[name]])[order] for name in ours})
        result = run(merged, fleet)
        assert_books(result)
        mine = np.flatnonzero(merged.klass == 0)
        rejected = [result.rejected.get(i) for i in mine.tolist()]
        columns = [getattr(result, name)[mine] for name in ("cluster", "hit", "start", "first_token", "end")]
        timelines.append([np.nan_to_num(c, nan=-1).tolist() for c in columns] + [rejected])
    assert timelines[0] == timelines[1]


def test_borrowing_helps_the_borrower_and_leaks_to_the_lender():
    """A borrower's long request occupies the lender's slot when the lender comes back."""
    arrival, klass = np.array([0.0, 0.0, 1.0]), np.array([1, 1, 0])
    requests = Requests.plain(arrival, np.full(3, 10.0), klass)
    strict = run(requests, queue(2, halves(2), "strict"))
    borrow = run(requests, queue(2, halves(2), "borrow"))
    assert strict.wait.tolist() == [0, 10, 0]
    assert borrow.wait.tolist() == [0, 0, 9]
    assert strict.pool.tolist() == [1, 1, 0] and borrow.pool.tolist() == [1, 0, 1]
    nothing = replace(queue(2, halves(2), "borrow"), spec=ClusterSpec(2, lend_percent=0))
    assert run(requests, nothing).wait.tolist() == [0, 10, 0]


def test_nothing_is_lent_while_its_owner_waits():
    """The owner's second prompt waits for its prefill lane, so its free slot is not given away."""
    arrival, klass = np.array([0.0, 0, 0, 0, 1]), np.array([1, 1, 0, 0, 1])
    requests = replace(
        Requests.plain(arrival, np.full(5, 10.0), klass), prompt=np.array([0, 0, 1000, 1000, 0])
    )
    fleet = replace(queue(4, halves(4), "borrow"), prefill=lambda new, cached: 2.0)
    assert run(requests, fleet).start.tolist() == [0, 0, 0, 4, 10]


def test_lending_stops_at_its_limit_and_what_comes_back_is_lent_again():
    """Two slots each, half of them lendable: of four requests three run at once, twice."""
    requests = Requests.plain(np.repeat([0.0, 5.0], 4), np.ones(8), np.ones(8, dtype=np.int64))
    fleet = replace(queue(4, halves(4), "borrow"), spec=ClusterSpec(4, lend_percent=50))
    assert run(requests, fleet).wait.tolist() == [0, 0, 0, 1] * 2


# --- books and incidents ------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    traffic(sessions=True),
    st.sampled_from(["shared", "priority", "vtc", "token_bucket", "strict", "borrow"]),
    st.sampled_from(sorted(ROUTERS)),
    st.booleans(),
    st.sampled_from([None, 0, 2]),
)
def test_books_balance_whatever_happens(requests, policy, router, with_events, limit):
    classes = tuple(replace(one, queue_limit=limit, token_rate=2000.0) for one in halves(4, 40))
    fleet = Fleet(3, ClusterSpec(4, 40, 1536, 3), classes, policy, router, EVENTS if with_events else ())
    result = run(requests, fleet)
    assert_books(result)
    total = sum(one.arrived for one in report(result))
    assert total == len(requests) == sum(one.completed + sum(one.rejected.values()) for one in report(result))
    assert run(requests, fleet).end.tolist() == result.end.tolist()


def test_a_failure_restarts_the_request_elsewhere_without_its_prefix():
    first, second = 3 * 1536, 3 * 1536 + 600
    requests = Requests(
        np.array([0.0, 20.0]),
        np.zeros(2, dtype=np.int64),
        np.array([7, 7]),
        np.array([first, second]),
        np.array([500, 500]),
        np.array([1.0, 10.0]),
    )
    calm = run(requests, Fleet(4, ClusterSpec(4), ONE))
    home = int(calm.cluster[0])
    assert calm.hit.tolist() == [0, 3 * 1536]
    broken = run(requests, Fleet(4, ClusterSpec(4), ONE, events=(FleetEvent(22.0, "fail", home),)))
    assert_books(broken)
    assert broken.hit.tolist() == [0, 0]
    assert broken.cluster[1] != home
    assert broken.start[1] == 22.0 and len(broken.lost) == 1
    assert broken.computed_tokens().sum() == first + (second - 3 * 1536) + second
    gone = run(requests, Fleet(1, ClusterSpec(4), ONE, events=(FleetEvent(5.0, "fail", 0),)))
    assert gone.rejected == {1: "no cluster is up"}
    assert_books(gone)


def test_affinity_finds_the_prefix_that_round_robin_misses():
    stream = Traffic(
        (Phase(200, 4),),
        0.5,
        prompt_tokens=6000,
        output_tokens=200,
        conversations=30,
        turn_tokens=800,
        turns=12,
    )
    requests = make_requests([stream], np.random.default_rng(3))
    rates = {}
    for router in ROUTERS:
        result = run(requests, Fleet(4, ClusterSpec(16), ONE, router=router))
        assert_books(result)
        rates[router] = result.hit.sum() / requests.prompt.sum()
    assert rates["affinity"] > 0.7
    assert rates["affinity"] > 1.5 * rates["round_robin"]
    assert rates["cache_cost"] > rates["round_robin"]


def test_timeline_counts_what_is_there():
    requests = Requests.plain(np.array([0.0, 0.0, 1.0]), np.array([2.0, 4.0, 1.0]))
    result = run(requests, queue(1))
    assert result.end.tolist() == [2, 6, 7]
    line = timeline(result, 8)
    assert line["time"].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert line["waiting"].tolist() == [[1, 2, 1, 1, 1, 1, 0, 0]]
    assert line["running"].tolist() == line["cluster"].tolist() == [[1, 1, 1, 1, 1, 1, 1, 0]]


def test_report_of_a_window():
    requests = Requests.plain(np.array([0.0, 0.0, 1.0]), np.array([2.0, 4.0, 1.0]))
    result = run(requests, queue(1))
    (late,) = report(result, window=(0.5, 2))
    assert (late.arrived, late.wait.mean, late.response.maximum) == (1, 5.0, 6.0)
    (none,) = report(result, window=(50, 60))
    assert none.arrived == 0 and np.isnan(none.wait.p99)


def test_no_requests_at_all():
    for classes in (ONE, BY_EVENTS):
        result = run(Requests.plain(np.zeros(0), np.zeros(0)), queue(2, classes))
        assert_books(result)
        assert report(result)[0].completed == 0
        assert timeline(result, 3)["running"].tolist() == [[0, 0, 0]]


def test_progress_is_reported():
    steps = simulate(customers(np.random.default_rng(1), 5000, 8), queue(10, BY_EVENTS))
    seen = list(steps)
    assert len(seen) >= 5 and all(0 <= done <= total == 5000 for done, total in seen)
    assert seen == sorted(seen)


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Fleet(0, ClusterSpec(1), ONE), "clusters is 0"),
        (lambda: Fleet(1, ClusterSpec(1), ()), "classes is empty"),
        (lambda: Fleet(1, ClusterSpec(1), ONE, policy="fair"), "policy is 'fair'"),
        (lambda: Fleet(1, ClusterSpec(1), ONE, router="best"), "router is 'best'"),
        (lambda: Fleet(1, ClusterSpec(1), ONE, policy="token_bucket"), "needs a class with a token_rate"),
        (lambda: Fleet(1, ClusterSpec(1), ONE, events=(FleetEvent(1, "fail", 3),)), "cluster 3 cannot fail"),
        (lambda: Fleet(1, ClusterSpec(1), ONE, events=(FleetEvent(1, "add", 0),)), "next to add is 1"),
        (lambda: Fleet(1, ClusterSpec(1), ONE, events=(FleetEvent(1, "recover", 0),)), "cannot recover"),
        (lambda: Fleet(1, ClusterSpec(1), ONE, events=(FleetEvent(-1, "fail", 0),)), "event time is -1"),
        (
            lambda: run(Requests.plain(np.zeros(1), np.ones(1), np.array([2])), queue(1)),
            "klass must lie in 0 .. 0",
        ),
        (lambda: Requests.plain(np.array([1.0, 0.0]), np.ones(2)), "never decrease"),
        (lambda: Requests.plain(np.array([np.inf]), np.ones(1)), "must be finite"),
        (lambda: Requests.plain(np.zeros(1), np.array([-1.0])), "at least 0"),
        (lambda: Requests.plain(np.zeros(2), np.zeros(1)), "different lengths"),
        (lambda: Traffic((Phase(-1, 1),), 1), "finite seconds and rate"),
        (lambda: Traffic((Phase(1, 1),), 1, turns=0), "turns is 0"),
        (lambda: Traffic((Phase(1, 1),), 1, prompt_tokens=-5), "prompt_tokens is -5"),
        (lambda: Traffic((Phase(1, 1),), np.nan), "decode_seconds is nan"),
        (lambda: mean_interval([1.0]), "at least 2 independent runs"),
        (lambda: percentile(np.ones(3), 99), "p is 99"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

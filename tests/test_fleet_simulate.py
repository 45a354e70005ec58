"""The simulation against its own second path and its own books, isolation, incidents, bad input."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from fleets import BY_EVENTS, ONE, assert_books, customers, queue
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.cluster import Budget, ClusterSpec, RequestClass
from k3core.fleet.results import report, timeline
from k3core.fleet.routing import ROUTERS
from k3core.fleet.simulate import Fleet, FleetEvent, recursion_applies, run, simulate
from k3core.fleet.statistics import mean_interval, percentile
from k3core.fleet.traffic import Phase, Requests, Traffic, make_requests

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

"""Closed forms against published and independently computed values."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.queueing import (
    MMc,
    ServiceClass,
    Unstable,
    burst_drain_time,
    burst_peak_wait,
    conserved_wait,
    erlang_b,
    erlang_c,
    jain_index,
    max_min_shares,
    mg1_wait,
    mgc_wait,
    mmc_priority_waits,
    preemptive_responses,
    priority_waits,
    squished_probability,
    supermarket_time,
)

few = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    "servers, load, blocking",
    [(10, 8, 0.121661), (1, 5, 0.8333333), (10, 20, 0.5379631686320729), (200, 180, 0.0103)],
)
def test_erlang_b(servers, load, blocking):
    """B(10, 20) is a published unit test; others print B(200, 180) as 0.012, which the recursion refutes."""
    digits = {0.5379631686320729: 1e-15, 0.0103: 5e-5}.get(blocking, 5e-7)
    assert erlang_b(servers, load) == pytest.approx(blocking, abs=digits)


@pytest.mark.parametrize(
    "servers, load, waiting",
    [(3, 2, 4 / 9), (10, 6, 0.101299), (10, 8, 0.409180), (16, 12.8, 0.304884), (25, 20, 0.209103)],
)
def test_erlang_c(servers, load, waiting):
    assert erlang_c(servers, load) == pytest.approx(waiting, abs=5e-7)


def test_mmc_values():
    ten, one = MMc(8, 1, 10), MMc(0.8, 1, 1)
    assert ten.mean_wait == pytest.approx(0.204590, abs=5e-7)
    assert ten.wait_percentile(0.99) == pytest.approx(1.8558, abs=5e-5)
    assert one.mean_wait == pytest.approx(4)
    assert one.wait_percentile(0.99) == pytest.approx(21.910, abs=5e-4)
    assert one.mean_response == pytest.approx(5)
    assert one.mean_queue == pytest.approx(3.2)
    assert ten.wait_exceeds(ten.wait_percentile(0.99)) == pytest.approx(0.01)
    assert MMc(1, 1, 10).wait_percentile(0.99) == 0  # fewer than 1 % wait at all


@few
@given(st.integers(1, 40), st.floats(0.05, 0.97))
def test_mmc_against_the_balance_equations(servers, rho):
    """The birth-death chain solved term by term: pi_n = pi_{n-1} a / min(n, c)."""
    load = rho * servers
    weights, total, waiting, queue = 1.0, 1.0, 0.0, 0.0
    for n in range(1, servers + 3000):
        weights *= load / min(n, servers)
        total += weights
        if n >= servers:
            waiting += weights
            queue += (n - servers) * weights
    mmc = MMc(load, 1.0, servers)
    assert mmc.wait_probability == pytest.approx(waiting / total, rel=1e-9)
    assert mmc.mean_queue == pytest.approx(queue / total, rel=1e-9)


def test_pollaczek_khinchine():
    assert mg1_wait(0.8, 1, 1) == pytest.approx(2.0)  # M/D/1
    assert mg1_wait(0.8, 1, 2) == pytest.approx(MMc(0.8, 1, 1).mean_wait)
    assert mgc_wait(0.8, 1, 0, 1) == pytest.approx(2.0)
    assert mgc_wait(8, 1, 1, 10) == pytest.approx(0.204590, abs=5e-7)


def test_non_preemptive_priorities():
    """Two classes of .4 each, mu = 1; sum rho_i W_i = 3.2 whatever the order."""
    classes = [ServiceClass.exponential(0.4, 1)] * 2
    assert priority_waits(classes) == pytest.approx([4 / 3, 20 / 3])
    assert conserved_wait(classes) == pytest.approx(3.2)
    assert mmc_priority_waits([0.4, 0.4], 1, 1) == pytest.approx([4 / 3, 20 / 3])


@few
@given(
    st.lists(st.tuples(st.floats(0.01, 0.3), st.floats(0.05, 1.0), st.floats(1, 4)), min_size=1, max_size=3)
)
def test_conservation_law(drawn):
    classes = [ServiceClass(rate, mean, square * mean * mean) for rate, mean, square in drawn]
    waits = priority_waits(classes)
    total = sum(c.arrival_rate * c.mean * w for c, w in zip(classes, waits, strict=True))
    assert total == pytest.approx(conserved_wait(classes))
    assert waits == sorted(waits)


def test_preemptive_priorities():
    urgent, patient = preemptive_responses([ServiceClass.exponential(0.4, 1)] * 2)
    assert urgent == pytest.approx(MMc(0.4, 1, 1).mean_response)  # never sees the other class
    assert patient == pytest.approx(1 / 0.6 + 0.8 / (0.6 * 0.2))


def test_priorities_on_many_servers_keep_the_mean():
    rates, mmc = [2, 3, 3], MMc(8, 1, 10)
    waits = mmc_priority_waits(rates, 1, 10)
    assert np.average(waits, weights=rates) == pytest.approx(mmc.mean_wait)


@pytest.mark.parametrize(
    "load, times",
    [
        (0.5, (2.0, 1.2657, 1.1252)),
        (0.7, (3.333, 1.6145, 1.3568)),
        (0.9, (10, 2.6141, 2.0279)),
        (0.95, (20, 3.3830, 2.5351)),
        (0.99, (100, 5.4320, 3.8578)),
    ],
)
def test_supermarket_model(load, times):
    assert [supermarket_time(load, d) for d in (1, 2, 3)] == pytest.approx(times, abs=5e-4)
    assert supermarket_time(load, 2) == pytest.approx(times[1], abs=5e-5)


def test_fluid_limit_of_a_burst():
    assert burst_peak_wait(2, 2.2) == pytest.approx(2.4)
    assert burst_peak_wait(2, 1.75) == pytest.approx(1.5)
    assert burst_drain_time(2, 2.2, 0.7) == pytest.approx(8)
    assert burst_peak_wait(2, 0.9) == 0


def test_fairness():
    assert jain_index([3, 3, 3]) == pytest.approx(1)
    assert jain_index([1, 0, 0, 0]) == pytest.approx(0.25)
    assert max_min_shares([2, 10, 4], 12) == pytest.approx([2, 6, 4])
    assert max_min_shares([1, 1], 12) == pytest.approx([1, 1])


@few
@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.floats(0, 300))
def test_max_min_is_feasible_and_wastes_nothing(demands, capacity):
    shares = max_min_shares(demands, capacity)
    assert all(s <= d for s, d in zip(shares, demands, strict=True))
    assert sum(shares) == pytest.approx(min(capacity, sum(demands)), abs=1e-9)
    cut = [s for s, d in zip(shares, demands, strict=True) if s < d]
    assert not cut or min(cut) >= max(shares) - 1e-9


@pytest.mark.parametrize(
    "hand, queues, one, four, sixteen",
    [
        (12, 32, 4.428838398950118e-09, 0.11431348830099144, 0.9935089607656024),
        (10, 64, 6.601827268370426e-12, 0.00045571320990370776, 0.49999929150089345),
        (8, 64, 2.25929199850899e-10, 0.0004886697053040446, 0.35935114681123076),
        (6, 1024, 6.337324016514285e-16, 8.09060164312957e-11, 4.517408062903668e-07),
    ],
)
def test_shuffle_sharding(hand, queues, one, four, sixteen):
    """The table of the Kubernetes documentation on API priority and fairness."""
    measured = [squished_probability(queues, hand, elephants) for elephants in (1, 4, 16)]
    assert measured == pytest.approx([one, four, sixteen], rel=1e-9)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: erlang_b(0, 1), ValueError, "servers is 0"),
        (lambda: erlang_b(True, 1), ValueError, "servers is True"),
        (lambda: erlang_b(2, 0), ValueError, "load is 0"),
        (lambda: erlang_b(2, nan), ValueError, "load is nan"),
        (lambda: erlang_c(10, 10), Unstable, "utilisation is 1;"),
        (lambda: MMc(12, 1, 10), Unstable, "utilisation is 1.2; .*unstable"),
        (lambda: MMc(inf, 1, 10), ValueError, "arrival_rate is inf"),
        (lambda: MMc(1, -1, 10), ValueError, "service_rate is -1"),
        (lambda: MMc(1, 2, 1).wait_percentile(99), ValueError, "p is 99"),
        (lambda: mg1_wait(1, 1, 1), Unstable, "unstable"),
        (lambda: mgc_wait(1, 0.1, -1, 1), ValueError, "scv is -1"),
        (lambda: priority_waits([ServiceClass.fixed(0.6, 1)] * 2), Unstable, "utilisation is 1.2"),
        (lambda: supermarket_time(1.0, 2), Unstable, "unstable"),
        (lambda: burst_drain_time(2, 2, 1), Unstable, "unstable"),
        (lambda: jain_index([0, 0]), ValueError, "all zero"),
        (lambda: squished_probability(8, 9, 1), ValueError, "hand is 9 of 8 queues"),
    ],
)
def test_bad_input_and_overload_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()

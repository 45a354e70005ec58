"""The simulation against queueing theory and independent simulations."""

import random
from dataclasses import replace

import numpy as np
import pytest
from fleets import BY_EVENTS, assert_books, customers, queue

from k3core.fleet.cluster import Budget, RequestClass
from k3core.fleet.queueing import (
    MMc,
    ServiceClass,
    burst_peak_wait,
    mg1_wait,
    mmc_priority_waits,
    priority_waits,
    supermarket_time,
)
from k3core.fleet.results import offered_load, report
from k3core.fleet.simulate import run
from k3core.fleet.statistics import mean_interval, percentile
from k3core.fleet.traffic import Phase, Requests, Traffic, make_requests

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

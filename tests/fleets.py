"""Customers for one queue, the queue as a fleet, and its books."""

import numpy as np

from k3core.fleet.cluster import ClusterSpec, RequestClass
from k3core.fleet.results import checks
from k3core.fleet.simulate import Fleet
from k3core.fleet.traffic import Requests

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

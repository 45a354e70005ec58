"""Which cluster a request goes to.

Every router is deterministic. Where it draws lots or breaks a tie it uses the request's ordinal within its
own class, so that under strict reservations one class's traffic cannot change where another's requests go.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from .admission import Admission
from .hashing import Scheme, mix64
from .traffic import Requests, count_before

Build = Callable[[list[str]], Scheme]
"""Makes the hash scheme for a list of cluster names."""


def _own_key(requests: Requests) -> np.ndarray:
    """A key of each request by its class and its ordinal in it, unlike any session number -> uint64 [N]."""
    ordinal = count_before(requests.klass).astype(np.uint64)
    return (requests.klass.astype(np.uint64) << np.uint64(48)) + ordinal + np.uint64(2**63)


class Router:
    """Base: knows the clusters, which of them are up, and each request's ordinal within its class.

    A static router's answer depends on nothing but the request and the topology.
    """

    static = False

    def __init__(self, requests: Requests, build: Build):
        self.requests, self.build = requests, build
        self.clusters: list[Admission] = []
        self.up: list[int] = []

    @cached_property
    def ordinal(self) -> list[int]:
        return count_before(self.requests.klass).tolist()

    @cached_property
    def klass(self) -> list[int]:
        return self.requests.klass.tolist()

    def topology(self, clusters: Sequence[Admission], up: Sequence[int]) -> None:
        """Called at the start and whenever a cluster joins, fails or recovers; `up` is in ascending order."""
        self.clusters, self.up = list(clusters), list(up)

    def route(self, i: int) -> int:
        """Index of the cluster for request i; only called while some cluster is up."""
        raise NotImplementedError

    def route_all(self) -> np.ndarray:
        """Cluster of every request, for static routers and a topology that does not change -> int64 [N]."""
        raise NotImplementedError

    def _least(self, candidates: Sequence[int], cost: Callable[[int], float], turn: int) -> int:
        """The cheapest candidate; ties go round by turn, since the lowest index would draw a whole burst."""
        n = len(candidates)
        return min(range(n), key=lambda j: (cost(candidates[j]), (j - turn) % n))

    def _loads(self, klass: int) -> Callable[[int], float]:
        return lambda c: self.clusters[c].load(klass)


class RoundRobin(Router):
    """Each class goes round the clusters on its own."""

    static = True

    def route(self, i):
        return self.up[self.ordinal[i] % len(self.up)]

    def route_all(self):
        return np.array(self.up, dtype=np.int64)[count_before(self.requests.klass) % len(self.up)]


class LeastLoaded(Router):
    """Least 4 waiting + running, as vLLM's internal data-parallel balancer (vllm PR #33172)."""

    def route(self, i):
        return self.up[self._least(self.up, self._loads(self.klass[i]), self.ordinal[i])]


class TwoChoices(Router):
    """The less loaded of two clusters drawn at random (power of two choices)."""

    def __init__(self, requests, build):
        super().__init__(requests, build)
        self.lots = mix64(_own_key(requests)).tolist()

    def route(self, i):
        n, lot = len(self.up), self.lots[i]
        if n == 1:
            return self.up[0]
        first = lot % n
        second = (first + 1 + lot // n % (n - 1)) % n
        pair = [self.up[first], self.up[second]]
        return pair[self._least(pair, self._loads(self.klass[i]), self.ordinal[i])]


class Affinity(Router):
    """A session's primary cluster by consistent hashing; its secondary, and so on, while those are down."""

    static = True

    def __init__(self, requests, build):
        super().__init__(requests, build)
        # a request without a session hashes by its own (class, ordinal)
        session = np.where(requests.session < 0, _own_key(requests), requests.session.astype(np.uint64))
        self.keys, which = np.unique(mix64(session), return_inverse=True)
        self.which = which.astype(np.int64)
        self.members = 0

    def topology(self, clusters, up):
        super().topology(clusters, up)
        if len(clusters) != self.members:
            self.members = len(clusters)
            scheme = self.build([f"cluster{c}" for c in range(self.members)])
            self.rank = scheme.rank(self.keys, self.members)
        is_up = np.isin(np.arange(self.members), self.up)
        first_up = is_up[self.rank].argmax(axis=1)
        self.all_routes = self.rank[np.arange(len(self.rank)), first_up][self.which]
        self.routes = self.all_routes.tolist()

    def route(self, i):
        return self.routes[i]

    def route_all(self):
        return self.all_routes


class BoundedAffinity(Affinity):
    """Affinity with bounded loads: walk the preference past clusters above 1.25 times the mean in flight.

    Source: arXiv 1608.01350; KubeAI's PrefixHash. A cluster may hold ceil(1.25 (m + 1) / n) of m in flight.
    """

    static = False
    NUMERATOR, DENOMINATOR = 5, 4

    def topology(self, clusters, up):
        super().topology(clusters, up)
        self.orders, self.order_of = self.rank.tolist(), self.which.tolist()

    def route(self, i):
        klass = self.klass[i]
        inside = {c: self.clusters[c].in_flight(klass) for c in self.up}
        cap = -(-self.NUMERATOR * (sum(inside.values()) + 1) // (self.DENOMINATOR * len(self.up)))
        return next(c for c in self.orders[self.order_of[i]] if inside.get(c, cap) < cap)


class CacheCost(Router):
    """Least blocks still to prefill plus blocks being decoded (NVIDIA Dynamo's classic cost function).

    Source: ai-dynamo/dynamo docs/architecture/kv_cache_routing.md, overlap weight 1, temperature 0.
    """

    def route(self, i):
        return self.up[self._least(self.up, lambda c: self.clusters[c].cache_cost(i), self.ordinal[i])]


ROUTERS = {
    "round_robin": RoundRobin,
    "least_loaded": LeastLoaded,
    "two_choices": TwoChoices,
    "affinity": Affinity,
    "bounded_affinity": BoundedAffinity,
    "cache_cost": CacheCost,
}
"""Routers by name."""

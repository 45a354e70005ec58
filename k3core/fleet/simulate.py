"""An event simulation of a fleet: arrivals, routing, admission, prefill, decode, failures, scale-out.

A request waits in its cluster's queue until admission starts it; it then holds a slot and pages, its uncached
prompt tokens are computed in the pool's prefill lane (first token), it decodes for its own decode time, and
leaves its prefix behind. Events are ordered by (time, kind, id), so a run is the same everywhere.

What is simplified: decoding takes the time given with the traffic, whatever the batch; a prompt is computed
whole, one at a time per pool; routers see the present, not a report some milliseconds old.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from math import isfinite, nan

import numpy as np

from . import latency
from .admission import POLICIES, Admission
from .cluster import ClusterSpec, Pool, RequestClass, RequestColumns
from .hashing import make_scheme
from .results import Run
from .routing import ROUTERS, Build
from .token_bucket import TokenBucket
from .traffic import Requests

FINISH, PREFILLED, TOPOLOGY, ARRIVAL = 0, 1, 2, 3  # in this order at equal times
STEP = 500  # events between two reports of progress, some milliseconds of work
CHUNK = 20_000  # requests between two reports of progress of the recursion

PrefillTime = Callable[[int, int], float]
"""Seconds to compute (new tokens, cached tokens) at a cluster's full speed."""

Warm = Sequence[tuple[int, int]]
"""(request, tokens): what the cluster of that request holds of its session's prefix at time 0."""


@dataclass(frozen=True)
class FleetEvent:
    """At `time`, cluster `cluster` fails (what it ran and held is lost), recovers empty, or joins ("add")."""

    time: float
    kind: str
    cluster: int


@dataclass(frozen=True)
class Fleet:
    """A fleet of equal clusters and the rules on it; see ROUTERS and POLICIES for the names."""

    clusters: int
    spec: ClusterSpec
    classes: tuple[RequestClass, ...]
    policy: str = "shared"
    router: str = "affinity"
    events: tuple[FleetEvent, ...] = ()
    build: Build = field(default=lambda names: make_scheme("rendezvous", names))
    prefill: PrefillTime = field(default=latency.prefill_time)

    def __post_init__(self):
        if self.clusters < 1:
            raise ValueError(f"clusters is {self.clusters}; a fleet needs at least 1")
        if not self.classes:
            raise ValueError("classes is empty; at least one class of requests is needed")
        for name, value, known in (("policy", self.policy, POLICIES), ("router", self.router, ROUTERS)):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
        POLICIES[self.policy].budgets(self.classes, self.spec)
        if self.policy == "token_bucket" and not any(self.token_buckets()):
            raise ValueError("policy token_bucket needs a class with a token_rate")
        self._check_events()

    def token_buckets(self) -> list[TokenBucket | None]:
        """A full bucket per class that has one; without token_burst it holds one second's tokens."""
        if self.policy != "token_bucket":
            return [None] * len(self.classes)
        return [
            None
            if one.token_rate is None
            else TokenBucket(one.token_rate, one.token_rate if one.token_burst is None else one.token_burst)
            for one in self.classes
        ]

    @property
    def clusters_ever(self) -> int:
        """Clusters at the start and those that join later."""
        return self.clusters + sum(event.kind == "add" for event in self.events)

    def _check_events(self) -> None:
        count, down = self.clusters, set()
        for event in sorted(self.events, key=lambda e: e.time):
            if not (isfinite(event.time) and event.time >= 0):
                raise ValueError(f"event time is {event.time}; it must be finite and at least 0")
            fits = {
                "add": event.cluster == count,
                "fail": 0 <= event.cluster < count and event.cluster not in down,
                "recover": event.cluster in down,
            }
            if not fits.get(event.kind):
                raise ValueError(
                    f"cluster {event.cluster} cannot {event.kind} at {event.time} s; one that is up can "
                    f"fail, one that is down can recover, and the next to add is {count}"
                )
            count += event.kind == "add"
            (down.add if event.kind == "fail" else down.discard)(event.cluster)


def simulate(requests: Requests, fleet: Fleet, warm: Warm = ()) -> Generator[tuple[int, int], None, Run]:
    """Run the fleet on the requests; yields (requests dealt with, requests) and returns the Run.

    A prefix in `warm` lies on the cluster to which its request would go at time 0.
    """
    classes = len(fleet.classes)
    if len(requests) and not 0 <= int(requests.klass.min()) <= int(requests.klass.max()) < classes:
        raise ValueError(f"klass must lie in 0 .. {classes - 1}, the classes of the fleet")
    if recursion_applies(requests, fleet):
        return (yield from _recursion(requests, fleet))
    return (yield from _Events(requests, fleet, warm).run())


def run(requests: Requests, fleet: Fleet, warm: Warm = ()) -> Run:
    """The Run of `simulate`, without reports of progress."""
    return finish(simulate(requests, fleet, warm))


def finish(steps: Generator):
    """What a generator returns, without what it yields."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


class _Events:
    """The state of one run by events."""

    def __init__(self, requests: Requests, fleet: Fleet, warm: Warm):
        self.requests, self.fleet = requests, fleet
        self.columns = RequestColumns(requests, fleet.spec)
        self.clusters = [self._cluster() for _ in range(fleet.clusters)]
        self.up = list(range(fleet.clusters))
        self.router = ROUTERS[fleet.router](requests, fleet.build)
        self.router.topology(self.clusters, self.up)
        for i, tokens in warm:
            self.clusters[self.router.route(i)].seed(i, tokens)
        self.buckets = fleet.token_buckets()
        self.heap: list[tuple[float, int, int, int]] = []
        for place, event in enumerate(fleet.events):
            heappush(self.heap, (event.time, TOPOLOGY, place, 0))
        n = len(requests)
        self.cluster, self.attempt, self.hit = [-1] * n, [0] * n, [0] * n
        self.entered, self.start, self.first, self.end = [nan] * n, [nan] * n, [nan] * n, [nan] * n
        self.pool: list[Pool | None] = [None] * n
        self.rejected: dict[int, str] = {}
        self.lost: list[tuple[int, int, float, float, float, int]] = []
        self.inside, self.busy = 0, 0
        self.inside_area, self.busy_area, self.now = 0.0, 0.0, 0.0
        self.done = 0

    def _cluster(self) -> Admission:
        return POLICIES[self.fleet.policy](self.fleet.classes, self.fleet.spec, self.columns)

    def run(self) -> Generator[tuple[int, int], None, Run]:
        arrivals, heap, n = self.columns.arrival, self.heap, len(self.requests)
        handlers = (self._on_finish, self._on_prefilled, self._on_topology, self._enter)
        steps = i = 0
        while i < n or self.inside:
            if steps % STEP == 0:
                yield self.done, n
            steps += 1
            if heap and (i == n or heap[0][0] <= arrivals[i]):
                time, kind, who, attempt = heappop(heap)
            elif i < n:
                time, kind, who, attempt = arrivals[i], ARRIVAL, i, 0
                i += 1
            else:
                raise RuntimeError(f"{self.inside} requests are stuck at {self.now} s")
            passed = time - self.now
            self.inside_area += self.inside * passed
            self.busy_area += self.busy * passed
            self.now = time
            if kind >= TOPOLOGY or attempt == self.attempt[who]:
                handlers[kind](who)
        return self._result()

    def _enter(self, i: int) -> None:
        bucket = self.buckets[self.columns.klass[i]]
        if bucket is not None and not bucket.take(self.columns.tokens[i], self.now):
            self._reject(i, "over its token rate")
            return
        self.inside += 1
        self._place(i)

    def _place(self, i: int) -> None:
        """Route the request to a cluster that is up and offer it there."""
        self.entered[i] = self.now
        if not self.up:
            self.inside -= 1
            self._reject(i, "no cluster is up")
            return
        c = self.cluster[i] = self.router.route(i)
        reason = self.clusters[c].offer(i)
        if reason is None:
            self._start_all(c)
        else:
            self.inside -= 1
            self._reject(i, reason)

    def _reject(self, i: int, reason: str) -> None:
        self.rejected[i] = reason
        self.end[i] = self.now
        self.done += 1

    def _start_all(self, c: int) -> None:
        """Start what the cluster's admission lets start now."""
        columns, admission = self.columns, self.clusters[c]
        while admission.waiting_total:
            started = admission.next()
            if started is None:
                return
            i, pool, hit = started
            self.busy += 1
            self.start[i], self.pool[i], self.hit[i] = self.now, pool, hit
            prompt = columns.prompt[i]
            if prompt:
                seconds = self.fleet.prefill(prompt - hit, hit) / pool.share
                heappush(self.heap, (self.now + seconds, PREFILLED, i, self.attempt[i]))
            else:
                self._decode(i)

    def _decode(self, i: int) -> None:
        self.first[i] = self.now
        heappush(self.heap, (self.now + self.columns.decode[i], FINISH, i, self.attempt[i]))

    def _on_prefilled(self, i: int) -> None:
        self.pool[i].lane_busy = False
        self._decode(i)
        self._start_all(self.cluster[i])

    def _on_finish(self, i: int) -> None:
        c = self.cluster[i]
        self.clusters[c].finish(i, self.pool[i], self.hit[i])
        self.end[i] = self.now
        self.busy -= 1
        self.inside -= 1
        self.done += 1
        self._start_all(c)

    def _on_topology(self, place: int) -> None:
        event = self.fleet.events[place]
        homeless: list[int] = []
        if event.kind == "fail":
            self.up.remove(event.cluster)
            homeless = self._evacuate(event.cluster)
        else:
            self.up = sorted([*self.up, event.cluster])
        if event.kind == "add":
            self.clusters.append(self._cluster())
        self.router.topology(self.clusters, self.up)
        for i in homeless:
            self._place(i)

    def _evacuate(self, c: int) -> list[int]:
        """Take every unfinished request off a failed cluster, in order of arrival; its attempt is lost."""
        homeless = [
            i
            for i in range(len(self.end))
            if self.cluster[i] == c and self.end[i] != self.end[i]  # NaN: not ended
        ]
        for i in homeless:
            self.lost.append((i, c, self.entered[i], self.start[i], self.now, self.hit[i]))
            self.busy -= self.start[i] == self.start[i]
            self.attempt[i] += 1
            self.start[i] = self.first[i] = nan
            self.hit[i], self.pool[i] = 0, None
        self.clusters[c] = self._cluster()
        return homeless

    def _result(self) -> Run:
        return Run(
            requests=self.requests,
            fleet=self.fleet,
            cluster=np.array(self.cluster, dtype=np.int64),
            pool=np.array([-1 if pool is None else pool.index for pool in self.pool], dtype=np.int64),
            entered=np.array(self.entered),
            start=np.array(self.start),
            first_token=np.array(self.first),
            end=np.array(self.end),
            hit=np.array(self.hit, dtype=np.int64),
            rejected=self.rejected,
            lost=tuple(self.lost),
            inside_area=self.inside_area,
            busy_area=self.busy_area,
        )


def recursion_applies(requests: Requests, fleet: Fleet) -> bool:
    """Whether start times follow from a recursion over slots: first come first served and nothing else."""
    return (
        fleet.policy in ("shared", "strict")
        and ROUTERS[fleet.router].static
        and not fleet.events
        and fleet.spec.pages is None
        and all(one.queue_limit is None for one in fleet.classes)
        and bool((requests.session < 0).all())
    )


class FifoPool:
    """Slots and a prefill lane that serve requests in order, by Kiefer and Wolfowitz's recursion.

    A request starts at the latest of its arrival, the earliest time a slot is free, and, if it has a
    prompt, the time the lane is free; never before the request ahead of it.
    """

    def __init__(self, slots: int):
        self.free = [0.0] * slots
        self.ahead = self.lane = 0.0

    def serve(self, arrival: list[float], prefill: list[float] | None, decode: list[float]):
        """Start, first token and end of the next requests, as lists; prefill None: none has a prompt."""
        free, start, first, end = self.free, [], [], []
        if prefill is None:
            for at, decoding in zip(arrival, decode, strict=True):
                begin = free[0]
                if begin < at:
                    begin = at
                start.append(begin)
                begin += decoding
                end.append(begin)
                heapreplace(free, begin)
            return start, start, end
        for at, computing, decoding in zip(arrival, prefill, decode, strict=True):
            self.ahead = max(at, free[0], self.ahead, self.lane if computing else 0.0)
            token = self.ahead + computing
            if computing:
                self.lane = token
            start.append(self.ahead)
            first.append(token)
            end.append(token + decoding)
            heapreplace(free, end[-1])
        return start, first, end


def _recursion(requests: Requests, fleet: Fleet) -> Generator[tuple[int, int], None, Run]:
    """The same run as by events, bit for bit, where recursion_applies."""
    n = len(requests)
    router = ROUTERS[fleet.router](requests, fleet.build)
    router.topology([None] * fleet.clusters, range(fleet.clusters))
    cluster = router.route_all()
    budgets = POLICIES[fleet.policy].budgets(fleet.classes, fleet.spec)
    pool = requests.klass if fleet.policy == "strict" else np.zeros(n, dtype=np.int64)
    start, first, end = np.empty(n), np.empty(n), np.empty(n)
    done = 0
    for c in range(fleet.clusters):
        for p, budget in enumerate(budgets):
            mine = np.flatnonzero((cluster == c) & (pool == p))
            prompts, which = np.unique(requests.prompt[mine], return_inverse=True)
            share = budget.prefill_percent / 100
            seconds = np.array([fleet.prefill(t, 0) / share if t else 0.0 for t in prompts.tolist()])
            prefill, fifo = seconds[which] if prompts.any() else None, FifoPool(budget.slots)
            for begin in range(0, len(mine), CHUNK):
                part, here = mine[begin : begin + CHUNK], slice(begin, begin + CHUNK)
                computing = None if prefill is None else prefill[here].tolist()
                times = fifo.serve(requests.arrival[part].tolist(), computing, requests.decode[part].tolist())
                start[part], first[part], end[part] = times
                done += len(part)
                yield done, n
    return Run(
        requests=requests,
        fleet=fleet,
        cluster=cluster,
        pool=pool,
        entered=requests.arrival.copy(),
        start=start,
        first_token=first,
        end=end,
        hit=np.zeros(n, dtype=np.int64),
        rejected={},
        lost=(),
        inside_area=None,
        busy_area=None,
    )

"""What a simulated run says: distributions per class, timelines, offered load, checks on the run itself."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .admission import POLICIES
from .statistics import percentile, percentile_interval
from .traffic import Requests

if TYPE_CHECKING:
    from .simulate import Fleet

QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Run:
    """One simulated run, an entry per request in every array; times in seconds, NaN where it never happened.

    cluster, and pool, which of its pools served it (-1: none); entered: when the request joined the queue of
    that cluster (later than arrival after a failure); start, first_token, end; hit int64 prompt tokens not
    computed; rejected: request -> reason; lost: attempts that a failure ended, as (request, cluster, entered,
    start or NaN, end, hit). inside_area and busy_area are the integrals over time of requests inside and of
    slots busy, added up event by event; None after a recursion.
    """

    requests: Requests
    fleet: "Fleet"
    cluster: np.ndarray
    pool: np.ndarray
    entered: np.ndarray
    start: np.ndarray
    first_token: np.ndarray
    end: np.ndarray
    hit: np.ndarray
    rejected: dict[int, str]
    lost: tuple[tuple[int, int, float, float, float, int], ...]
    inside_area: float | None
    busy_area: float | None

    @property
    def completed(self) -> np.ndarray:
        """Which requests were served -> bool [N]."""
        return ~np.isnan(self.start)

    @property
    def wait(self) -> np.ndarray:
        """Arrival to the start of its own computation, earlier lost attempts included."""
        return self.start - self.requests.arrival

    @property
    def ttft(self) -> np.ndarray:
        """Arrival to first token."""
        return self.first_token - self.requests.arrival

    @property
    def response(self) -> np.ndarray:
        """Arrival to last token."""
        return self.end - self.requests.arrival

    @property
    def horizon(self) -> float:
        """Time of the last completion or rejection."""
        return float(self.end.max()) if len(self.end) else 0.0

    def waiting_intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(request, cluster, from, to) of every stay in a queue, lost attempts included."""
        done = np.flatnonzero(self.completed)
        rows = [
            (i, c, entered, end if start != start else start) for i, c, entered, start, end, _ in self.lost
        ]
        return _with_lost((done, self.cluster[done], self.entered[done], self.start[done]), rows)

    def busy_intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(request, cluster, from, to) of every stay in a slot, lost attempts included."""
        done = np.flatnonzero(self.completed)
        rows = [(i, c, start, end) for i, c, _, start, end, _ in self.lost if start == start]
        return _with_lost((done, self.cluster[done], self.start[done], self.end[done]), rows)

    def computed_tokens(self) -> np.ndarray:
        """Prompt tokens computed on each cluster, lost attempts included -> int64 [clusters]."""
        done = np.flatnonzero(self.completed)
        tokens = np.zeros(self.fleet.clusters_ever, dtype=np.int64)
        np.add.at(tokens, self.cluster[done], self.requests.prompt[done] - self.hit[done])
        for i, c, _, start, _, hit in self.lost:
            tokens[c] += (self.requests.prompt[i] - hit) if start == start else 0
        return tokens


def _with_lost(columns, rows):
    extra = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 4
    joined = [np.concatenate([column, more]) for column, more in zip(columns, extra, strict=True)]
    return joined[0].astype(np.int64), joined[1].astype(np.int64), joined[2], joined[3]


@dataclass(frozen=True)
class Distribution:
    """Mean, percentiles (nearest rank) and maximum in seconds; p99_interval by percentile_interval."""

    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    maximum: float
    p99_interval: tuple[float, float]

    @classmethod
    def of(cls, values: np.ndarray) -> "Distribution":
        quantiles = [percentile(values, q) for q in QUANTILES]
        mean, top = (float(values.mean()), float(values.max())) if len(values) else (np.nan, np.nan)
        return cls(len(values), mean, *quantiles, top, percentile_interval(values, 0.99))


@dataclass(frozen=True)
class ClassReport:
    """One class over a run, or over the requests that arrived in a window of it."""

    name: str
    arrived: int
    completed: int
    rejected: dict[str, int]
    lost_attempts: int
    wait: Distribution
    ttft: Distribution
    response: Distribution
    prompt_tokens: int
    hit_tokens: int
    output_tokens: int


def report(run: Run, window: tuple[float, float] | None = None) -> list[ClassReport]:
    """Per class: counts, wait, TTFT and response of completed requests, tokens."""
    requests, reports = run.requests, []
    inside = np.ones(len(requests), dtype=bool)
    if window is not None:
        inside = (requests.arrival >= window[0]) & (requests.arrival < window[1])
    for k, one in enumerate(run.fleet.classes):
        mine = inside & (requests.klass == k)
        done = mine & run.completed
        reasons = Counter(reason for i, reason in run.rejected.items() if mine[i])
        reports.append(
            ClassReport(
                name=one.name,
                arrived=int(mine.sum()),
                completed=int(done.sum()),
                rejected=dict(sorted(reasons.items())),
                lost_attempts=sum(bool(mine[row[0]]) for row in run.lost),
                wait=Distribution.of(run.wait[done]),
                ttft=Distribution.of(run.ttft[done]),
                response=Distribution.of(run.response[done]),
                prompt_tokens=int(requests.prompt[done].sum()),
                hit_tokens=int(run.hit[done].sum()),
                output_tokens=int(requests.output[done].sum()),
            )
        )
    return reports


def timeline(run: Run, points: int) -> dict[str, np.ndarray]:
    """Requests waiting and running, per class and per cluster, at `points` times over the run.

    -> {"time": [T], "waiting": [classes, T], "running": [classes, T], "cluster": [clusters, T] running}.
    """
    time = np.linspace(0.0, run.horizon, points)
    klass = run.requests.klass
    waiting, running = run.waiting_intervals(), run.busy_intervals()
    classes = range(len(run.fleet.classes))
    clusters = range(run.fleet.clusters_ever)
    return {
        "time": time,
        "waiting": np.stack([_level(waiting, klass[waiting[0]] == k, time) for k in classes]),
        "running": np.stack([_level(running, klass[running[0]] == k, time) for k in classes]),
        "cluster": np.stack([_level(running, running[1] == c, time) for c in clusters]),
    }


def _level(intervals, chosen: np.ndarray, time: np.ndarray) -> np.ndarray:
    """How many of the chosen intervals [from, to) contain each time -> int64 [T]."""
    begun = np.searchsorted(np.sort(intervals[2][chosen]), time, side="right")
    over = np.searchsorted(np.sort(intervals[3][chosen]), time, side="right")
    return (begun - over).astype(np.int64)


@dataclass(frozen=True)
class Load:
    """Offered load of a pool: shares of its slots and of its prefill lane; from 1 on it is unstable."""

    name: str
    slots: float
    prefill: float

    @property
    def unstable(self) -> bool:
        return max(self.slots, self.prefill) >= 1


def offered_load(run: Run, window: tuple[float, float]) -> list[Load]:
    """Load of every pool from the requests that arrived in the window, with the hits they had, spread evenly.

    Rejected requests count as if nothing of them had been cached. An empty window has no loads.
    """
    if window[1] <= window[0]:
        return []
    requests, fleet = run.requests, run.fleet
    budgets = POLICIES[fleet.policy].budgets(fleet.classes, fleet.spec)
    inside = (requests.arrival >= window[0]) & (requests.arrival < window[1])
    time, loads = (window[1] - window[0]) * fleet.clusters, []
    for k, budget in enumerate(budgets):
        mine = inside & (requests.klass == k) if len(budgets) > 1 else inside
        hits = run.hit[mine].tolist()
        new = (requests.prompt[mine] - run.hit[mine]).tolist()
        lane = sum(fleet.prefill(n, hit) for n, hit in zip(new, hits, strict=True) if n)
        lane /= budget.prefill_percent / 100
        slots = (lane + float(requests.decode[mine].sum())) / (time * budget.slots)
        loads.append(Load(fleet.classes[k].name if len(budgets) > 1 else "all", slots, lane / time))
    return loads


@dataclass(frozen=True)
class Check:
    """An assertion about a run, with what was measured and the bound it must keep."""

    key: str
    passed: bool
    measured: float
    bound: float


def checks(run: Run) -> list[Check]:
    """Requests are conserved, Little's law holds for system and slots, slots suffice, time runs forward."""
    done = run.completed
    missing = len(run.requests) - int(done.sum()) - len(run.rejected)
    inside = float((run.end[done] - run.requests.arrival[done]).sum())
    inside += sum(float(run.end[i] - run.requests.arrival[i]) for i in run.rejected)
    _, cluster, begin, end = run.busy_intervals()
    busy = float((end - begin).sum())
    inside_area, busy_area = run.inside_area, run.busy_area
    if inside_area is None:
        inside_area, busy_area = area_between(run.requests.arrival, run.end), area_between(begin, end)
    peak = max((_peak(begin[cluster == c], end[cluster == c]) for c in np.unique(cluster)), default=0)
    steps = (run.requests.arrival, run.entered, run.start, run.first_token, run.end)
    backwards = sum(int((a[done] > b[done]).sum()) for a, b in zip(steps, steps[1:], strict=False))
    return [
        Check("requests_conserved", missing == 0, missing, 0),
        _close("littles_law_system", inside_area, inside),
        _close("littles_law_slots", busy_area, busy),
        Check("slots_within_capacity", peak <= run.fleet.spec.slots, peak, run.fleet.spec.slots),
        Check("time_runs_forward", backwards == 0, backwards, 0),
    ]


def _close(key: str, area: float, total: float) -> Check:
    error = abs(area - total) / max(abs(total), 1e-300) if area != total else 0.0
    return Check(key, error <= 1e-9, error, 1e-9)


def _peak(begin: np.ndarray, end: np.ndarray) -> int:
    """Most intervals [from, to) that overlap; one that ends where another begins makes room for it."""
    times = np.concatenate([end, begin])
    steps = np.concatenate([np.full(len(end), -1), np.ones(len(begin), dtype=np.int64)])
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max(initial=0))


def area_between(begin: np.ndarray, end: np.ndarray) -> float:
    """Integral over time of the number of intervals [from, to) open, summed from event to event."""
    times = np.concatenate([begin, end])
    steps = np.concatenate([np.ones(len(begin)), np.full(len(end), -1.0)])
    order = np.argsort(times, kind="stable")
    return float((np.cumsum(steps[order])[:-1] * np.diff(times[order])).sum())

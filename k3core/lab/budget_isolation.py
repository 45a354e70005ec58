"""Tab `budget-isolation`: VIP and ordinary traffic on the same machines under six admission policies."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan

import numpy as np

from k3core.fleet.admission import (
    BorrowingReservation,
    SharedFifo,
    SharedPriority,
    StrictReservation,
    VirtualTokenCounter,
)
from k3core.fleet.cluster import Budget, ClusterSpec, RequestClass
from k3core.fleet.queueing import burst_peak_wait
from k3core.fleet.results import Run, checks, offered_load
from k3core.fleet.simulate import Fleet
from k3core.fleet.simulate import run as simulated
from k3core.fleet.statistics import percentile
from k3core.fleet.token_bucket import TokenBucket
from k3core.fleet.traffic import Phase, Requests, Traffic, make_requests
from k3core.lab import budget_isolation_view as view
from k3core.lab.contract import Check, Column, Experiment, Metric, Prediction, Preset, Progress, Result, Scene, Table
from k3core.lab.display import number
from k3core.lab.fleet_time import KINDS, POLICY_NAMES, verdict
from k3core.lab.params import Param
from k3core.lab.text import Text

SLOTS, PAGES, PAGE_TOKENS, STATE_PAGES = 32, 200, 1536, 3
BEFORE, BURST, AFTER = 10.0, 10.0, 20.0  # seconds of arrivals
VIP_RATE, VIP_PROMPT, VIP_OUTPUT = 4.0, 600, 40
ORDINARY_RATE, ORDINARY_OUTPUT = 4.0, 150
TOKEN_SECONDS = 0.025  # per output token, whatever the batch
BUCKET_SHARE, BUCKET_SECONDS = 1.25, 1.0  # the bucket fills at 1.25 times the usual rate and holds one second of it
VIP, ORDINARY, EXTRA = 0, 1, 2  # what a request is: EXTRA are those that only the burst brings
NOTICED = 1e-6  # seconds by which a request must move to count as changed
PRICES = (0.5, 1.0, 1.7, 4.0)  # the options of the prediction


def run(p, seed: int):
    """Every policy serves the same requests twice, with the burst and without it."""
    arrivals, cases = Arrivals.make(p, seed), {}
    for policy in POLICY_NAMES:
        fleet = make_fleet(p, policy)
        crowded = simulated(arrivals.requests, fleet)
        yield Progress(2 * len(cases) + 1, 2 * len(POLICY_NAMES))
        cases[policy] = Case(arrivals, crowded, simulated(arrivals.calm, fleet))
        yield Progress(2 * len(cases), 2 * len(POLICY_NAMES))
    own, price = cases[p.policy], price_of_isolation(cases)
    log = view.events(p, own, SLOTS, PAGES, (BEFORE, BURST, AFTER), cases)
    spread, lending = spread_table(cases), lending_table(cases)
    return Result(
        metrics=_metrics(own, cases["shared"]),
        checks=_checks(p, cases),
        tables={"policies": policies_table(cases), "load": load_table(own), "spread": spread, "lending": lending},
        figures=[view.spread_figure(), view.lending_figure()],
        scenes=[Scene("cluster", Text("One cluster, two classes: drag the borders between their budgets"), log,
                      view.captions(log), poster=view.POSTER)],
        answer=min(range(len(PRICES)), key=lambda i: (max(PRICES[i] / price, price / PRICES[i]), i)),
        answer_text=Text("Their P99 is {price} times that of the shared queue.", price=number(price, 3)),
    )


@dataclass(frozen=True)
class Arrivals:
    """All requests, and what each of them is; under the mistake `label` some call themselves VIP and are not."""

    requests: Requests
    kind: np.ndarray

    @classmethod
    def make(cls, p, seed: int) -> "Arrivals":
        """VIP and ordinary requests at steady rates, and the burst's extra ones."""
        steady = BEFORE + BURST + AFTER
        extra = (Phase(BEFORE, 0.0), Phase(BURST, ORDINARY_RATE * (p.burst - 1)), Phase(AFTER, 0.0))
        vip = Traffic((Phase(steady, VIP_RATE),), VIP_OUTPUT * TOKEN_SECONDS, prompt_tokens=VIP_PROMPT,
                      output_tokens=VIP_OUTPUT)
        ordinary = Traffic((Phase(steady, ORDINARY_RATE),), ORDINARY_OUTPUT * TOKEN_SECONDS, prompt_tokens=p.prompt,
                           output_tokens=ORDINARY_OUTPUT)
        requests = make_requests([vip, ordinary, replace(ordinary, phases=extra)], np.random.default_rng(seed))
        kind, klass = requests.klass, np.minimum(requests.klass, ORDINARY)
        if p.mistake == "label":
            klass[np.flatnonzero(kind != VIP)[::10]] = VIP
        return cls(replace(requests, klass=klass), kind)

    @cached_property
    def calm(self) -> Requests:
        """The same without the burst."""
        return Requests(*(values[self.kind != EXTRA] for values in vars(self.requests).values()))


def make_fleet(p, policy: str) -> Fleet:
    """One cluster, its budgets, and the rule for who goes next; under the mistake `lend`, strict is so in name only."""
    if p.mistake == "lend" and policy == "strict":
        policy = "borrow"
    pages, limit = PAGES * p.vip_pages // 100, p.limit or None
    own = Budget(p.vip_slots, pages, p.vip_compute)
    rest = Budget(SLOTS - p.vip_slots, PAGES - pages, 100 - p.vip_compute)
    rate = bucket_rate(p)
    classes = (RequestClass("vip", 0, own, limit),
               RequestClass("ordinary", 1, rest, limit, rate, rate * BUCKET_SECONDS))
    return Fleet(1, ClusterSpec(SLOTS, PAGES, PAGE_TOKENS, STATE_PAGES, p.lend), classes, policy)


def bucket_rate(p) -> float:
    """Tokens per second that the token bucket lets the ordinary class send."""
    return BUCKET_SHARE * ORDINARY_RATE * (p.prompt + ORDINARY_OUTPUT)


@dataclass(frozen=True)
class Case:
    """One policy's two runs. P99 is of the time to first token, over all requests of a kind that were served."""

    arrivals: Arrivals
    run: Run
    calm: Run

    def ttft(self, vip: bool, calm: bool = False) -> np.ndarray:
        """Seconds from arrival to first token of the requests that were served."""
        run, kind = (self.calm, self.calm_kind) if calm else (self.run, self.arrivals.kind)
        return run.ttft[((kind == VIP) == vip) & run.completed]

    def p99_ms(self, vip: bool, calm: bool = False) -> float | None:
        value = 1000 * percentile(self.ttft(vip, calm), 0.99)
        return None if isnan(value) else value

    @cached_property
    def calm_kind(self) -> np.ndarray:
        return self.arrivals.kind[self.arrivals.kind != EXTRA]

    @cached_property
    def changed(self) -> int:
        """VIP requests whose course the burst changes."""
        return changed_by_burst(self.run, self.arrivals.kind == VIP, self.calm, self.calm_kind == VIP)

    @cached_property
    def idle(self) -> float:
        """Of the time in which someone waits: the share of slots that are free all the same."""
        return idle_while_waiting(self.run)


def changed_by_burst(crowded: Run, mine: np.ndarray, calm: Run, mine_calm: np.ndarray) -> int:
    """Requests of a class that start, answer or end at another time, or are refused, because others came."""
    moved = np.zeros(int(mine.sum()), dtype=bool)
    for name in ("start", "first_token", "end"):
        here, there = getattr(crowded, name)[mine], getattr(calm, name)[mine_calm]
        moved |= (np.abs(here - there) > NOTICED) | (np.isnan(here) != np.isnan(there))
    return int(moved.sum())


def idle_while_waiting(run: Run) -> float:
    """Integral of free slots over the time in which at least one request waits, over all slots in that time."""
    _, _, begin, end = run.busy_intervals()
    _, _, joined, started = run.waiting_intervals()
    times = np.concatenate([begin, end, joined, started])
    order = np.argsort(times, kind="stable")
    spans = np.diff(times[order])
    busy, waiting = np.zeros(len(times), dtype=np.int64), np.zeros(len(times), dtype=np.int64)
    busy[: len(begin)], busy[len(begin) : 2 * len(begin)] = 1, -1
    waiting[2 * len(begin) : 2 * len(begin) + len(joined)], waiting[2 * len(begin) + len(joined) :] = 1, -1
    queued = (np.cumsum(waiting[order])[:-1] > 0) * spans
    total = float(queued.sum()) * run.fleet.spec.slots
    return float((queued * (run.fleet.spec.slots - np.cumsum(busy[order])[:-1])).sum()) / total if total else 0.0


def price_of_isolation(cases: dict) -> float:
    """The ordinary class's P99 under strict reservation over that of the shared queue; 1 where no one was served."""
    strict, shared = (cases[policy].p99_ms(vip=False) for policy in ("strict", "shared"))
    return strict / shared if strict and shared else 1.0


def most_over_bucket(p, run: Run) -> float:
    """The most tokens that passed the bucket in any stretch of time, less what flowed in during it."""
    passed = (run.requests.klass == ORDINARY) & np.array([run.rejected.get(i) != "over its token rate"
                                                          for i in range(len(run.requests))], dtype=bool)
    tokens = (run.requests.prompt + run.requests.output)[passed]
    surplus = np.cumsum(tokens) - bucket_rate(p) * run.requests.arrival[passed]
    before = np.minimum.accumulate(surplus - tokens) if len(tokens) else surplus
    return float((surplus - before).max(initial=0.0))


def peaks(run: Run) -> list:
    """The most slots that each class holds at any time."""
    request, _, begin, end = run.busy_intervals()
    held = []
    for klass in range(len(run.fleet.classes)):
        mine = run.requests.klass[request] == klass
        times = np.concatenate([end[mine], begin[mine]])
        change = np.repeat([-1, 1], int(mine.sum()))
        held.append(int(np.cumsum(change[np.lexsort((change, times))]).max(initial=0)))
    return held


def _checks(p, cases: dict) -> list:
    strict = cases["strict"]
    held, slots = peaks(strict.run), (p.vip_slots, SLOTS - p.vip_slots)
    books = [check for case in cases.values() for check in checks(case.run)]
    error = max(check.measured for check in books if check.key.startswith("littles_law"))
    passed, most = most_over_bucket(p, cases["token_bucket"].run), bucket_rate(p) * BUCKET_SECONDS
    return [
        Check("strict_isolates", Text("strict reservation: the burst changes no VIP request"), strict.changed == 0,
              strict.changed, 0),
        Check("within_budget", Text("strict reservation: no class holds more slots than its own"),
              all(h <= s for h, s in zip(held, slots)),
              Text("VIP {vip}, ordinary {ordinary}", vip=held[0], ordinary=held[1]),
              Text("at most {vip} and {ordinary}", vip=slots[0], ordinary=slots[1])),
        Check("bucket_holds", Text("token bucket: in no stretch of time does more pass than the bucket holds and what "
                                   "flows in"),
              passed <= most * (1 + 1e-9), passed, Text("at most {bound} tokens above the inflow", bound=number(most))),
        Check("books_balance", Text("every policy: each request served or refused, and Little's law L = λW"),
              all(check.passed for check in books), error, Text("an error of at most {bound}", bound=number(1e-9))),
    ]


def _metrics(own: Case, shared: Case) -> list:
    ms = {"unit": "ms", "kind": "float", "scale": 1.0}
    mine, all_shared = own.p99_ms(vip=False), shared.p99_ms(vip=False)
    load = max(max(pool.slots, pool.prefill) for pool in offered_load(own.run, (BEFORE, BEFORE + BURST)))
    fluid = burst_peak_wait(BURST, load)
    return [
        Metric("vip_p99_ms", Text("VIP, P99 of the time to first token"), own.p99_ms(vip=True), **ms),
        Metric("ordinary_p99_ms", Text("ordinary, P99 of the time to first token"), mine, **ms, how=(
            Text("peak wait of a fluid = burst × (load − 1) = {seconds} s × ({load} − 1) = {wait} s",
                 seconds=number(BURST),
                 load=number(load, 3), wait=number(fluid, 3)),)),
        Metric("vip_changed_by_burst", Text("VIP requests that the burst changes"), own.changed,
               text=Text("{changed} of {all}", changed=own.changed, all=int((own.arrivals.kind == VIP).sum()))),
        Metric("vip_p99_calm_ms", Text("VIP, P99 without the burst"), own.p99_ms(vip=True, calm=True), **ms),
        Metric("ordinary_price", Text("ordinary P99, against the shared queue"),
               mine / all_shared if mine and all_shared else None, "×", kind="float", scale=1.0),
        Metric("idle_while_waiting", Text("slots idle while someone waits"), own.idle, "share", kind="float",
               scale=1.0),
        Metric("burst_load", Text("offered to the fullest budget in the burst: {verdict}", verdict=verdict(load)),
               load, "×", kind="float", scale=1.0),
        Metric("rejected", Text("requests refused"), len(own.run.rejected)),
    ]


def policies_table(cases: dict) -> Table:
    """The six policies side by side."""
    rows = [(f"policy:{policy}", POLICY_NAMES[policy], case.p99_ms(True), case.p99_ms(True, calm=True), case.changed,
             case.p99_ms(False), case.p99_ms(False, calm=True), case.idle, len(case.run.rejected))
            for policy, case in cases.items()]
    ms = ("float", "ms", 1.0)
    return Table((Column("id", Text("id")), Column("policy", Text("policy")), Column("vip", Text("VIP P99"), *ms),
                  Column("vip_calm", Text("VIP P99, no burst"), *ms), Column("changed", Text("VIP changed")),
                  Column("ordinary", Text("ordinary P99"), *ms),
                  Column("ordinary_calm", Text("ordinary P99, no burst"), *ms),
                  Column("idle", Text("idle while someone waits"), "float", "share", 1.0),
                  Column("rejected", Text("refused"))), rows, Text("Six policies, the same requests"))


def load_table(own: Case) -> Table:
    """What is offered to each budget of the chosen policy, before and in the burst."""
    rows = []
    windows = ((Text("before the burst"), (0.0, BEFORE)), (Text("in the burst"), (BEFORE, BEFORE + BURST)))
    for when, window in windows:
        for pool in offered_load(own.run, window):
            rows.append((KINDS.get(pool.name, Text("both")), when, pool.slots, pool.prefill,
                         verdict(max(pool.slots, pool.prefill))))
    return Table((Column("budget", Text("budget of")), Column("when", Text("when")),
                  Column("slots", Text("slots"), "float", scale=1.0),
                  Column("prefill", Text("prefill compute"), "float", scale=1.0),
                  Column("verdict", Text("verdict"))), rows, Text("Offered load, as a share of the budget"))


def spread_table(cases: dict) -> Table:
    """Median and P99 per policy and class, for the first chart."""
    rows = []
    for policy, case in cases.items():
        for vip, kind in ((True, "vip"), (False, "ordinary")):
            times = case.ttft(vip)
            if len(times):
                rows.append((POLICY_NAMES[policy], kind, 1000 * percentile(times, 0.5), 1000 * percentile(times, 0.99)))
    return Table((Column("policy", Text("policy")), Column("kind", Text("class")),
                  Column("median", Text("median"), "float", "ms", 1.0), Column("p99", Text("P99"), "float", "ms", 1.0)),
                 rows)


def lending_table(cases: dict) -> Table:
    """Per request, its time to first token under lending less that under strict reservation, for the second chart."""
    lends, strict = cases["borrow"].run, cases["strict"].run
    both = lends.completed & strict.completed
    change = np.where(both, lends.ttft - strict.ttft, 0.0)
    kind = cases["strict"].arrivals.kind
    rows = [(float(strict.requests.arrival[i]), "vip" if kind[i] == VIP else "ordinary", float(change[i]))
            for i in np.flatnonzero(both).tolist()]
    return Table((Column("arrival", Text("arrival"), "float", "s", 1.0), Column("kind", Text("class")),
                  Column("change", Text("later under lending"), "float", "s", 1.0)), rows)


EXPERIMENT = Experiment(
    slug="budget-isolation", tab=13, family="fleet",
    name=Text("Budget isolation"),
    title=Text("Budget isolation: whose burst is it?"),
    question=Text("VIP and ordinary requests share a cluster's state slots, prefill compute and pages. Ordinary "
                  "traffic bursts. Which admission policy keeps VIP out of it, and what do the others pay?"),
    params=(
        Param("policy", Text("Admission policy"), "choice", "strict", choices=tuple(POLICY_NAMES.items())),
        Param("burst", Text("Ordinary traffic in the burst"), "int", 3, 1, 8, 1, unit="×"),
        Param("vip_slots", Text("State slots for VIP"), "int", 8, 1, SLOTS - 1, 1, unit=f"/ {SLOTS}"),
        Param("vip_compute", Text("Prefill compute for VIP"), "int", 40, 5, 95, 5, unit="%"),
        Param("vip_pages", Text("Pages for VIP"), "int", 25, 5, 95, 5, unit="%"),
        Param("prompt", Text("Ordinary prompt, tokens"), "int", 1500, 500, 12000, 500),
        Param("lend", Text("Slots that may be lent"), "int", 100, 0, 100, 10, unit="%",
              help=Text("Of each budget, under the policy that lends.")),
        Param("limit", Text("Longest queue of a class"), "int", 0, 0, 60, 1,
              help=Text("What comes when it is full is refused. 0: no limit.")),
        Param("mistake", Text("Mistake"), "choice", "none", breaker=True, choices=(
            ("none", Text("none")), ("lend", Text("strict lends what lies idle")),
            ("label", Text("one ordinary request in ten calls itself VIP")))),
    ),
    presets=(
        Preset("shared", Text("One queue for all"), Text(
            "No budgets: VIP waits in the same line and its P99 rises from 150 ms to 5 seconds. Ordinary requests "
            "fare better than under any reservation."), {"policy": "shared"}),
        Preset("priority", Text("Plain priority"), Text(
            "VIP goes first but reserves nothing: a running request is not evicted, so VIP still waits for a slot. "
            "Its P99 is 365 ms, and most VIP requests feel the burst."), {"policy": "priority"}),
        Preset("lends", Text("Lending leaks"), Text(
            "Idle VIP slots go to the burst and come back only when the borrower has finished. Ordinary P99 falls by "
            "a quarter, VIP's rises to over 2 seconds."), {"policy": "borrow"}),
        Preset("lend-half", Text("Lend half"), Text(
            "At most half of a budget is lent: VIP always finds four slots that nobody borrowed, and its P99 stays "
            "below a second."), {"policy": "borrow", "lend": 50}),
        Preset("bucket", Text("Limit at the door"), Text(
            "A token bucket cuts the burst off: those who get in are served in 200 ms, and 69 requests are refused."),
            {"policy": "token_bucket"}),
        Preset("tight", Text("A budget too small"), Text(
            "VIP owns 4 slots and needs more than 4 on average: isolated from the burst, and slow by itself. "
            "Isolation does not make a budget large enough."), {"vip_slots": 4}),
        Preset("in-name-only", Text("Strict in name only"), Text(
            "Strict reservation that lends what lies idle: the burst moves VIP requests, and ordinary traffic holds "
            "more slots than it owns."), {"mistake": "lend"}, breaks=("strict_isolates", "within_budget")),
        Preset("self-named", Text("VIP by its own word"), Text(
            "One ordinary request in ten carries the VIP label. The budgets are kept, and the burst is inside VIP's."),
            {"mistake": "label"}, breaks=("strict_isolates",)),
    ),
    prediction=Prediction(Text("Budgets kept strictly apart leave VIP untouched. How does the P99 of ordinary requests "
                               "compare with that of one shared queue?"),
                          tuple(Text("about {times} times as long", times=number(price)) for price in PRICES)),
    function=run,
    draw={"cluster": view.draw_cluster},
    code=(StrictReservation, BorrowingReservation, SharedPriority, SharedFifo, VirtualTokenCounter, TokenBucket,
          changed_by_burst),
)

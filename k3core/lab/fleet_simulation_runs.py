"""The runs behind the tab `fleet-simulation`: the reader's parameters as a scenario, and what is measured on it."""

from collections.abc import Generator
from dataclasses import asdict, dataclass, replace
from math import isnan, nan

import numpy as np

from k3core.fleet.cluster import ClusterSpec, RequestClass
from k3core.fleet.latency import PRICES
from k3core.fleet.results import Run
from k3core.fleet.scenario import PRESETS, Outcome, Scenario, play
from k3core.fleet.simulate import Fleet, FleetEvent, simulate
from k3core.fleet.simulate import run as simulated
from k3core.fleet.traffic import Requests, make_requests, warm_prefixes
from k3core.lab.contract import Progress

TRAFFIC = {"chat": PRESETS["burst"], "fixed": PRESETS["claim"], "exponential": PRESETS["claim-exponential"],
           "agents": PRESETS["agentic-day"], "short": PRESETS["one-cent"]}
BUCKET_SHARE, BUCKET_SECONDS = 1.25, 2.0  # the bucket fills at 1.25 times the usual rate and holds two seconds of it
LAW_REQUESTS = 300  # requests on which the conservation law is tried
CENT = 10_000_000  # in nano-dollars, the unit of PRICES
NOTICED = 1e-6  # seconds by which a request must move to count as changed
VIP, ORDINARY = 0, 1


@dataclass(frozen=True)
class Situation(Scenario):
    """A scenario with any number of incidents; under the mistake `lend` strict reservation is so in name only."""

    incidents: tuple[FleetEvent, ...] = ()
    mistake: str = "none"

    def fleet(self, policy: str) -> Fleet:
        if self.mistake == "lend" and policy == "strict":
            policy = "borrow"
        return replace(super().fleet(policy), events=self.incidents)


def situation(p) -> Situation:
    """The reader's parameters; `size` times the clusters get `size` times the requests and conversations."""
    base = asdict(TRAFFIC[p.traffic])
    for name in ("vip", "ordinary"):
        base[f"{name}_rate"] *= p.size
        base[f"{name}_conversations"] *= p.size
    usual = base["ordinary_rate"] * _mean_tokens(TRAFFIC[p.traffic])
    clusters = p.clusters * p.size
    own = {"clusters": clusters, "vip_percent": p.vip_percent, "policy": p.policy, "router": p.router,
           "burst_factor": p.burst, "token_rate": BUCKET_SHARE * usual,
           "token_burst": BUCKET_SHARE * usual * BUCKET_SECONDS}
    return Situation(**base | own, incidents=incidents(p, clusters), mistake=p.mistake)


def _mean_tokens(scenario: Scenario) -> float:
    """Prompt and output tokens of an ordinary request in the middle of its conversation."""
    grown = (scenario.ordinary_turn + scenario.ordinary_output) * (scenario.ordinary_turns - 1) / 2
    whole = scenario.ordinary_prompt + scenario.ordinary_output
    return whole + (grown if scenario.ordinary_conversations else 0)


def incidents(p, clusters: int) -> tuple[FleetEvent, ...]:
    """Deaths and returns of the first clusters, and new ones that join; 0 seconds: never."""
    events = []
    for cluster, time in enumerate(p.deaths[: p.clusters]):
        if time:
            events.append(FleetEvent(float(time), "fail", cluster))
        if time and p.repair:
            events.append(FleetEvent(float(time + p.repair), "recover", cluster))
    for place, time in enumerate(sorted(time for time in p.joins if time)):
        events.append(FleetEvent(float(time), "add", clusters + place))
    return tuple(events)


@dataclass(frozen=True)
class Runs:
    """Everything that was simulated: outcomes by policy, and how VIP's course changes when it is alone."""

    situation: Situation
    outcomes: dict[str, Outcome]
    changed: int
    law_error: float

    @property
    def own(self) -> Outcome:
        """The outcome of the reader's own policy."""
        return self.outcomes[self.situation.policy]


def run_all(p, seed: int) -> Generator[Progress, None, Runs]:
    """Strict, shared and the reader's policy on the same requests; VIP alone; the conservation law."""
    chosen = situation(p)
    streams = chosen.streams()
    requests = make_requests(streams, np.random.default_rng(seed))
    alone = only_vip(requests)
    policies = len({"strict", "shared", p.policy})
    total = policies * len(requests) + len(alone)
    lonely = yield from _counted(simulate(alone, chosen.fleet("strict"), warm_prefixes(alone, streams)), 0, total)
    outcomes = yield from _counted(play(chosen, seed), len(alone), total)
    for outcome in outcomes.values():
        for part in ("classes", "in_burst", "load", "load_in_burst", "checks"):
            getattr(outcome, part)  # worked out when first asked for: here, so that progress can be told between them
            yield Progress(total, total)
    if p.mistake == "forget":
        outcomes = {name: replace(one, run=forget_lost(one.run)) for name, one in outcomes.items()}
        lonely = forget_lost(lonely)
    changed = changed_by_company(outcomes["strict"].run, lonely)
    return Runs(chosen, outcomes, changed, conservation_error(requests, chosen.slots * chosen.clusters))


def _counted(steps: Generator, before: int, total: int) -> Generator:
    """The same generator, its progress as the experiment's own."""
    while True:
        try:
            done, _ = next(steps)
        except StopIteration as stop:
            return stop.value
        yield Progress(before + done, total)


def only_vip(requests: Requests) -> Requests:
    """The requests of the VIP class."""
    return Requests(*(values[requests.klass == VIP] for values in vars(requests).values()))


def changed_by_company(crowded: Run, alone: Run) -> int:
    """VIP requests that start, answer or end at another time, or elsewhere, because there are others."""
    mine = crowded.requests.klass == VIP
    moved = crowded.cluster[mine] != alone.cluster
    for name in ("start", "first_token", "end"):
        here, there = getattr(crowded, name)[mine], getattr(alone, name)
        moved |= (np.abs(here - there) > NOTICED) | (np.isnan(here) != np.isnan(there))
    return int(moved.sum())


def forget_lost(run: Run) -> Run:
    """The run as a router would tell it that forgets what a dead cluster had: neither served nor refused."""
    lost = sorted({row[0] for row in run.lost})
    start, first = run.start.copy(), run.first_token.copy()
    start[lost] = first[lost] = nan
    return replace(run, start=start, first_token=first)


def conservation_error(requests: Requests, slots: int) -> float:
    """On one server as fast as all slots: how far priority changes the sum of service times wait (it must not).

    Kleinrock's conservation law holds path by path: whoever goes first, the unfinished work is the same.
    """
    some = slice(0, LAW_REQUESTS)
    one = Requests.plain(requests.arrival[some], requests.decode[some] / slots, requests.klass[some])
    classes = RequestClass("vip", 0), RequestClass("ordinary", 1)
    sums = []
    for policy in ("shared", "priority"):
        run = simulated(one, Fleet(1, ClusterSpec(1), classes, policy, "round_robin"))
        sums.append(float((one.decode * (run.wait + one.decode / 2)).sum()))
    return abs(sums[0] - sums[1]) / max(sums[0], 1e-300)


def inside_on_average(run: Run) -> tuple[float, float, float]:
    """(L, lambda, W): mean number of requests inside until the last has left, arrivals per second, mean time inside."""
    done = run.completed
    seconds = float((run.end[done] - run.requests.arrival[done]).sum())
    count, horizon = int(done.sum()), run.horizon
    if not count or not horizon:
        return 0.0, 0.0, 0.0
    area = seconds if run.inside_area is None else run.inside_area
    return area / horizon, count / horizon, seconds / count


def mean_tokens(outcome: Outcome) -> tuple[float, float]:
    """Mean prompt and output tokens of a completed request."""
    completed = sum(one.completed for one in outcome.classes)
    if not completed:
        return 0.0, 0.0
    prompt = sum(one.prompt_tokens for one in outcome.classes)
    return prompt / completed, sum(one.output_tokens for one in outcome.classes) / completed


def price(prompt: float, output: float, hit_rate: float) -> float:
    """Dollars for a request of K3 at published prices."""
    k3 = PRICES["kimi-k3"]
    return (prompt * (k3.miss * (1 - hit_rate) + k3.hit * hit_rate) + output * k3.output) / 1e9


def one_cent_hit_rate(prompt: float, output: float) -> float | None:
    """The hit rate from which a request costs at most a cent; None where even a full hit costs more."""
    k3 = PRICES["kimi-k3"]
    if price(prompt, output, 1.0) > 0.01:
        return None
    whole = prompt * k3.miss + output * k3.output
    return max(0.0, (whole - CENT) / (prompt * (k3.miss - k3.hit))) if prompt else 0.0


def finite(value: float) -> float | None:
    """None in place of NaN: no one was served."""
    return None if isnan(value) else value

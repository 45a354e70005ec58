"""A fleet under a burst, as one flat set of parameters: VIP and ordinary traffic, with and without isolation.

Every scenario runs the same requests under strict reservation, under the shared queue, and under the policy
it names; what isolation gives VIP and what it costs the ordinary class is the difference between those runs.
"""

from collections.abc import Generator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from math import isfinite

import numpy as np

from .admission import POLICIES
from .cluster import Budget, ClusterSpec, RequestClass
from .hashing import SCHEMES, make_scheme
from .latency import PRICES, decode_step
from .results import Check, ClassReport, Load, Run, checks, offered_load, report
from .routing import ROUTERS
from .simulate import Fleet, FleetEvent, simulate
from .traffic import Phase, Traffic, make_requests, warm_prefixes

MEASURES = ("response", "ttft", "wait")
SERVICES = ("fixed", "exponential")
HASHES = tuple(name for name in SCHEMES if name != "bounded")  # bounded loads are a router here


@dataclass(frozen=True)
class Scenario:
    """Rates are per second for the whole fleet, times in seconds, budgets per cluster.

    blocks of 1,536 tokens hold MLA rows or, three of them, a KDA state; 0 blocks: no limit. A prefix is found
    at multiples of `grain` tokens.

    vip_percent of every budget is VIP's, the rest ordinary. A class with 0 conversations sends requests that
    stand alone. A time below 0 means: never. token_ms: milliseconds per output token. token_rate and
    token_burst: the ordinary class's token bucket under the policy token_bucket.
    """

    clusters: int = 4
    slots: int = 64
    blocks: int = 12000
    grain: int = 128
    vip_percent: int = 25
    lend_percent: int = 100
    queue_limit: int = -1
    policy: str = "strict"
    router: str = "affinity"
    scheme: str = "rendezvous"
    measure: str = "ttft"
    service: str = "fixed"
    token_ms: float = 25.0
    vip_rate: float = 6.0
    vip_prompt: int = 500
    vip_turn: int = 200
    vip_output: int = 150
    vip_conversations: int = 120
    vip_turns: int = 20
    ordinary_rate: float = 20.0
    ordinary_prompt: int = 6000
    ordinary_turn: int = 800
    ordinary_output: int = 200
    ordinary_conversations: int = 400
    ordinary_turns: int = 20
    token_rate: float = -1.0
    token_burst: float = -1.0
    before: float = 30.0
    burst: float = 20.0
    after: float = 40.0
    burst_factor: float = 3.0
    fail_at: float = -1.0
    recover_at: float = -1.0
    add_at: float = -1.0

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(f"{field.name} is {value}; it must be a finite number")
            most = MOST.get(field.name, MOST_OF_ANY)
            if isinstance(value, int) and value > most:
                raise ValueError(f"{field.name} is {value}; it must be at most {most:,}")
        for name, known in (
            ("policy", POLICIES),
            ("router", ROUTERS),
            ("scheme", HASHES),
            ("measure", MEASURES),
            ("service", SERVICES),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        if self.grain < 1 or BLOCK % self.grain:
            raise ValueError(f"grain is {self.grain}; it must divide {BLOCK}, the tokens of a block")
        if not 1 <= self.vip_percent <= 99:
            raise ValueError(f"vip_percent is {self.vip_percent}; it must lie in 1 .. 99")
        if self.burst_factor < 0 or min(self.before, self.burst, self.after) < 0:
            raise ValueError("before, burst, after and burst_factor must be at least 0")
        if self.expected_requests > LARGEST:
            raise ValueError(
                f"that makes about {self.expected_requests:,.0f} requests; the limit is {LARGEST:,}"
            )
        for policy in ("strict", self.policy):  # finds what is wrong with clusters, budgets, events, buckets
            self.fleet(policy)

    @property
    def window(self) -> tuple[float, float]:
        """From the start of the burst until its end."""
        return self.before, self.before + self.burst

    @property
    def length(self) -> float:
        """Seconds during which requests arrive."""
        return self.before + self.burst + self.after

    @property
    def expected_requests(self) -> float:
        ordinary = self.before + self.burst * self.burst_factor + self.after
        return self.vip_rate * self.length + self.ordinary_rate * ordinary

    def streams(self) -> list[Traffic]:
        """VIP at a steady rate, ordinary with the burst."""
        calm = (Phase(self.length, self.vip_rate),)
        wave = (
            Phase(self.before, self.ordinary_rate),
            Phase(self.burst, self.ordinary_rate * self.burst_factor),
            Phase(self.after, self.ordinary_rate),
        )
        return [self._stream("vip", calm), self._stream("ordinary", wave)]

    def _stream(self, name: str, phases: tuple[Phase, ...]) -> Traffic:
        prompt, turn, output, conversations, turns = (
            getattr(self, f"{name}_{part}") for part in ("prompt", "turn", "output", "conversations", "turns")
        )
        seconds = output * self.token_ms / 1000
        exponential = self.service == "exponential"
        return Traffic(phases, seconds, exponential, prompt, output, conversations, turn, turns, steady=True)

    def fleet(self, policy: str) -> Fleet:
        limit = None if self.queue_limit < 0 else self.queue_limit
        scale = BLOCK // self.grain
        pages = self.blocks * scale or None
        slots = self.slots * self.vip_percent // 100
        reserved = None if pages is None else pages * self.vip_percent // 100
        vip = Budget(slots, reserved, self.vip_percent)
        rest = Budget(self.slots - slots, None if pages is None else pages - reserved, 100 - self.vip_percent)
        rate, tokens = (None if value < 0 else value for value in (self.token_rate, self.token_burst))
        classes = RequestClass("vip", 0, vip, limit), RequestClass("ordinary", 1, rest, limit, rate, tokens)
        spec = ClusterSpec(self.slots, pages, self.grain, STATE_BLOCKS * scale, self.lend_percent)
        events = (
            (self.fail_at, "fail", 0),
            (self.recover_at, "recover", 0),
            (self.add_at, "add", self.clusters),
        )
        planned = tuple(FleetEvent(*event) for event in events if event[0] >= 0)
        build = partial(make_scheme, self.scheme)
        return Fleet(self.clusters, spec, classes, policy, self.router, planned, build)


LARGEST = 2_000_000  # requests
MOST = {"clusters": 1_000, "vip_conversations": 100_000, "ordinary_conversations": 100_000}
MOST_OF_ANY = 2**24  # slots, blocks, tokens, turns
BLOCK = 1536  # tokens of MLA rows in a K3 block at TP8 with fp8 rows
STATE_BLOCKS = 3  # one per group of KDA layers

ALONE = {"prompt": 0, "turn": 0, "output": 100, "conversations": 0}  # 100 ms at 1 ms a token, nothing else
TOY = Scenario(
    clusters=1,
    blocks=0,
    measure="response",
    token_ms=1.0,
    vip_rate=128.0,
    ordinary_rate=320.0,
    before=10.0,
    burst=2.0,
    after=8.0,
    burst_factor=4.0,
    **{f"{name}_{part}": value for name in ("vip", "ordinary") for part, value in ALONE.items()},
)

AGENT = {"prompt": 12_000, "turn": 4_000, "output": 600, "turns": 170}  # prefixes of 400K tokens on average

PRESETS = {
    "burst": Scenario(),
    "claim": TOY,
    "claim-exponential": replace(TOY, service="exponential", vip_percent=38),
    "cluster-loss": Scenario(burst=40.0, after=30.0, burst_factor=1.0, fail_at=30.0, recover_at=70.0),
    "scale-out": Scenario(burst_factor=2.5, add_at=35.0),
    "agentic-day": Scenario(
        slots=32,
        vip_percent=40,
        token_ms=round(decode_step(32, 400_000) * 1000, 1),
        vip_rate=0.4,
        vip_conversations=16,
        ordinary_rate=0.8,
        ordinary_conversations=32,
        before=300.0,
        burst=60.0,
        after=240.0,
        burst_factor=2.0,
        **{f"{name}_{part}": value for name in ("vip", "ordinary") for part, value in AGENT.items()},
    ),
    "one-cent": Scenario(
        burst_factor=1.0,
        vip_prompt=3000,
        vip_output=250,
        ordinary_prompt=3000,
        ordinary_turn=200,
        ordinary_output=250,
    ),
}
"""Named situations."""


@dataclass(frozen=True)
class Outcome:
    """One policy's run and what to read from it; each figure is worked out when it is first asked for."""

    policy: str
    run: Run
    scenario: Scenario

    @cached_property
    def classes(self) -> list[ClassReport]:
        """VIP and ordinary over the whole run."""
        return report(self.run)

    @cached_property
    def in_burst(self) -> list[ClassReport]:
        """VIP and ordinary among the requests that arrived in the burst."""
        return report(self.run, self.scenario.window)

    @cached_property
    def load(self) -> list[Load]:
        return offered_load(self.run, (0.0, self.scenario.length))

    @cached_property
    def load_in_burst(self) -> list[Load]:
        return offered_load(self.run, self.scenario.window)

    @cached_property
    def checks(self) -> list[Check]:
        return checks(self.run)

    def _total(self, name: str) -> int:
        return sum(getattr(one, name) for one in self.classes)

    @property
    def hit_rate(self) -> float:
        """Prompt tokens found in the cache over all prompt tokens of completed requests."""
        prompt = self._total("prompt_tokens")
        return self._total("hit_tokens") / prompt if prompt else 0.0

    @property
    def cost_usd(self) -> float:
        """Mean price of a completed request at K3's published prices."""
        prompt, hit, completed = (self._total(name) for name in ("prompt_tokens", "hit_tokens", "completed"))
        cost = PRICES["kimi-k3"].cost(prompt - hit, hit, self._total("output_tokens"))
        return cost / 1e9 / completed if completed else 0.0

    @property
    def rejected(self) -> int:
        return sum(sum(one.rejected.values()) for one in self.classes)

    def p99_ms(self, klass: int, measure: str) -> float:
        """P99 over the whole run of wait, ttft or response, in milliseconds; NaN if no one was served."""
        return 1000 * getattr(self.classes[klass], measure).p99


def play(scenario: Scenario, seed: int) -> Generator[tuple[int, int], None, dict[str, Outcome]]:
    """Run under strict, shared and the scenario's own policy; yields (done, total), returns by policy."""
    policies = list(dict.fromkeys(["strict", "shared", scenario.policy]))
    streams, outcomes = scenario.streams(), {}
    requests = make_requests(streams, np.random.default_rng(seed))
    total = len(requests) * len(policies)
    yield 0, total
    warm = warm_prefixes(requests, streams)
    for place, policy in enumerate(policies):
        steps = simulate(requests, scenario.fleet(policy), warm)
        run = yield from _onward(steps, place * len(requests), total)
        outcomes[policy] = Outcome(policy, run, scenario)
        yield (place + 1) * len(requests), total
    return outcomes


def _onward(steps: Generator, before: int, total: int) -> Generator:
    """The same generator, with its progress counted on from `before`."""
    while True:
        try:
            done, _ = next(steps)
        except StopIteration as stop:
            return stop.value
        yield before + done, total

"""Traces made up from a few averages: conversations, a shared system prompt, agents."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .reading import Request


@dataclass(frozen=True)
class Workload:
    """Averages of a made-up trace; what varies is drawn exponentially around them. All in tokens or seconds.

    A session starts with the system prompt that all sessions share and a first message; every later turn
    reads all before it, the answer included, and adds a message. With chance `branch` a turn first goes back
    to an earlier one of its session: a retry, or a sub-agent. A session ends after about `turns` turns, or
    when it would pass max_tokens.
    """

    sessions_per_second: float
    turns: float
    system_tokens: int
    first_tokens: int
    message_tokens: int
    output_tokens: int
    pause_seconds: float
    branch: float = 0.0
    max_tokens: int = 131_072

    def __post_init__(self):
        least = {"sessions_per_second": 1e-6, "turns": 1, "system_tokens": 0, "first_tokens": 1,
                 "message_tokens": 1, "output_tokens": 1, "pause_seconds": 0, "branch": 0}
        for name, minimum in least.items():
            if not minimum <= getattr(self, name) < 1e9:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be {minimum} to 1e9")
        if self.branch > 1:
            raise ValueError(f"branch is {self.branch}; it is a chance, 0 to 1")
        if not self.system_tokens < self.max_tokens <= 2**24:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must exceed system_tokens and be at most "
                             "2**24")


WORKLOADS = {
    "multi-turn": Workload(1.0, 5, 0, 4_000, 400, 350, 60),
    "shared-system-prompt": Workload(4.0, 1.5, 6_000, 600, 300, 300, 30),
    "agentic": Workload(0.2, 30, 12_000, 3_000, 1_500, 250, 6, branch=0.08, max_tokens=200_000),
}


def generate_trace(workload: Workload, requests: int, rng: np.random.Generator,
                   hash_block: int = 512) -> Iterator[Request]:
    """`requests` requests in order of time, with whole milliseconds; endless in principle, made as needed."""
    if requests < 0 or hash_block < 1:
        raise ValueError(f"requests is {requests} and hash_block {hash_block}; they must be at least 0 and 1")
    new_ids = _Counter(workload.system_tokens // hash_block)
    coming = [(0.0, 0)]  # (seconds, number of the session)
    open_sessions: dict[int, _Session] = {}
    started = 0
    for _ in range(requests):
        now, number = heapq.heappop(coming)
        if number == started:
            open_sessions[number] = _Session(workload, hash_block, new_ids)
            started += 1
            heapq.heappush(coming, (now + rng.exponential(1 / workload.sessions_per_second), started))
        session = open_sessions[number]
        request = session.turn(int(1000 * now), rng)
        if session.is_over(rng):
            del open_sessions[number]
        else:
            heapq.heappush(coming, (now + rng.exponential(workload.pause_seconds), number))
        yield request


@dataclass
class _Counter:
    """Block numbers not used before; the system prompt has those below `next` at the start."""

    next: int

    def take(self, count: int) -> list[int]:
        self.next += count
        return list(range(self.next - count, self.next))


@dataclass
class _Session:
    """One conversation: its length, and the numbers of its full blocks."""

    workload: Workload
    hash_block: int
    new_ids: _Counter
    ids: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # at the start, then after each answer

    def __post_init__(self):
        self.ids = list(range(self.workload.system_tokens // self.hash_block))
        self.lengths = [self.workload.system_tokens]

    def turn(self, timestamp: int, rng: np.random.Generator) -> Request:
        """Read everything so far and a new message, and answer."""
        w, block = self.workload, self.hash_block
        if len(self.lengths) > 2 and w.branch and rng.random() < w.branch:
            del self.lengths[int(rng.integers(2, len(self.lengths))) :]
            del self.ids[self.lengths[-1] // block :]
        message = w.message_tokens if len(self.lengths) > 1 else w.first_tokens
        length = min(self.lengths[-1] + _draw(message, rng), w.max_tokens)
        output = _draw(w.output_tokens, rng)
        self.ids += self.new_ids.take(length // block - len(self.ids))
        partial = self.new_ids.take(1) if length % block else []
        request = Request(timestamp, length, output, self.ids + partial)
        self.lengths.append(length + output)
        self.ids += self.new_ids.take((length + output) // block - len(self.ids))
        return request

    def is_over(self, rng: np.random.Generator) -> bool:
        return self.lengths[-1] >= self.workload.max_tokens or rng.random() < 1 / self.workload.turns


def _draw(mean: float, rng: np.random.Generator) -> int:
    """At least 1, about `mean` on average."""
    return 1 + int(rng.exponential(mean))

"""Requests in time: Poisson arrivals with bursts, conversations whose context grows turn by turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival, one entry per request in every array.

    arrival float64 seconds, klass int64 index of the class, session int64 (-1: none), prompt and output int64
    tokens, decode float64 seconds from the first token to the last.
    """

    arrival: np.ndarray
    klass: np.ndarray
    session: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    decode: np.ndarray

    def __post_init__(self):
        lengths = {name: len(values) for name, values in vars(self).items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"the columns have different lengths: {lengths}")
        if not (np.isfinite(self.arrival).all() and np.isfinite(self.decode).all()):
            raise ValueError("arrival and decode must be finite")
        if len(self) and (self.arrival[0] < 0 or (np.diff(self.arrival) < 0).any()):
            raise ValueError("arrival must start at 0 or later and never decrease")
        if len(self) and min(self.prompt.min(), self.output.min(), self.decode.min()) < 0:
            raise ValueError("prompt, output and decode must be at least 0")

    def __len__(self) -> int:
        return len(self.arrival)

    @classmethod
    def plain(cls, arrival: np.ndarray, decode: np.ndarray, klass: np.ndarray | None = None) -> "Requests":
        """Requests without prompt or session: queueing customers that hold a slot for `decode` seconds."""
        zeros = np.zeros(len(arrival), dtype=np.int64)
        return cls(arrival, zeros if klass is None else klass, zeros - 1, zeros, zeros, decode)


@dataclass(frozen=True)
class Phase:
    """A stretch of time with a constant arrival rate."""

    seconds: float
    rate: float


@dataclass(frozen=True)
class Traffic:
    """How the requests of one class come about.

    Arrivals are Poisson with the phases' rates. With `conversations` > 0 each arrival is the next turn of one
    of that many conversations, chosen at random: the prompt starts at prompt_tokens and grows by turn_tokens
    and the output at every turn; after `turns` turns a new conversation takes its place. With 0 conversations
    every request stands alone. `output_tokens` take `decode_seconds` on average, exactly so or exponentially.
    steady: at time 0 the conversations are anywhere in their course, instead of all at their first turn.
    """

    phases: tuple[Phase, ...]
    decode_seconds: float
    exponential: bool = False
    prompt_tokens: int = 0
    output_tokens: int = 0
    conversations: int = 0
    turn_tokens: int = 0
    turns: int = 1
    steady: bool = False

    def __post_init__(self):
        for phase in self.phases:
            if not (
                isfinite(phase.seconds) and phase.seconds >= 0 and isfinite(phase.rate) and phase.rate >= 0
            ):
                raise ValueError(f"{phase} needs finite seconds and rate of at least 0")
        if not (isfinite(self.decode_seconds) and self.decode_seconds >= 0):
            raise ValueError(f"decode_seconds is {self.decode_seconds}; it must be finite and at least 0")
        for name in ("prompt_tokens", "output_tokens", "conversations", "turn_tokens"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 0")
        if self.turns < 1:
            raise ValueError(f"turns is {self.turns}; a conversation has at least 1")


def poisson_times(phases: Sequence[Phase], rng: np.random.Generator) -> np.ndarray:
    """Arrival times of a Poisson process whose rate is constant within each phase -> float64 [N].

    Unit-rate arrivals, mapped through the inverse of the cumulative rate.
    """
    ends = np.cumsum([phase.seconds * phase.rate for phase in phases])
    total = float(ends[-1]) if len(ends) else 0.0
    units = np.zeros(0)
    while not units.size or units[-1] < total:
        gaps = rng.standard_exponential(max(16, int(total * 1.1)))
        units = np.concatenate([units, (units[-1] if units.size else 0.0) + np.cumsum(gaps)])
    units = units[units < total]
    phase = np.searchsorted(ends, units, side="right")
    rates = np.array([p.rate for p in phases])
    begins = np.concatenate([[0.0], np.cumsum([p.seconds for p in phases])])
    before = np.concatenate([[0.0], ends])
    return begins[phase] + (units - before[phase]) / rates[phase]


def count_before(groups: np.ndarray) -> np.ndarray:
    """How often each entry's value occurred earlier in the array -> int64 [N]."""
    return sum_before(groups, np.ones(len(groups), dtype=np.int64))


def sum_before(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum of the values of earlier entries of the same group -> int64 [N]; groups int64 >= 0."""
    order = np.argsort(groups, kind="stable")
    before = np.cumsum(values[order]) - values[order]
    counts = np.bincount(groups)
    first = (np.cumsum(counts) - counts)[groups[order]]
    sums = np.empty(len(groups), dtype=np.int64)
    sums[order] = before - before[first]
    return sums


def make_requests(streams: Sequence[Traffic], rng: np.random.Generator) -> Requests:
    """Requests of all classes, merged by (arrival, class); class k is streams[k].

    Each class draws from a generator of its own, so changing one class leaves the others' requests alone.
    """
    columns = []
    for klass, (stream, own) in enumerate(zip(streams, rng.spawn(len(streams)), strict=True)):
        arrival = poisson_times(stream.phases, own)
        factor = own.standard_exponential(len(arrival)) if stream.exponential else np.ones(len(arrival))
        output = (stream.output_tokens * factor).astype(np.int64)
        session, prompt = _conversations(stream, output, own)
        session = np.where(session < 0, session, session * len(streams) + klass)
        decode = stream.decode_seconds * factor
        columns.append((arrival, np.full(len(arrival), klass), session, prompt, output, decode))
    arrival, klass, *rest = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    order = np.lexsort((klass, arrival))
    return Requests(*(values[order] for values in (arrival, klass.astype(np.int64), *rest)))


def _conversations(
    stream: Traffic, output: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Session (-1: none) and prompt tokens of each of a stream's requests -> int64 [N], int64 [N]."""
    n, many = len(output), stream.conversations
    if not many:
        return np.full(n, -1, dtype=np.int64), np.full(n, stream.prompt_tokens, dtype=np.int64)
    offset = np.zeros(many, dtype=np.int64)
    if stream.steady:
        offset = rng.integers(0, stream.turns, many, dtype=np.int64)
    place = rng.integers(0, many, n, dtype=np.int64)
    turn = count_before(place) + offset[place]
    generation = turn // stream.turns
    session = place + generation * many
    unseen = np.where(generation == 0, offset[place], 0)  # turns before time 0, of average length
    grown = unseen * (stream.turn_tokens + stream.output_tokens) + sum_before(
        session, stream.turn_tokens + output
    )
    return session, stream.prompt_tokens + grown


def warm_prefixes(requests: Requests, streams: Sequence[Traffic]) -> list[tuple[int, int]]:
    """For steady streams: (request, tokens) of every session with turns before its first request here.

    The tokens are what those turns left behind: the prompt without the new turn.
    """
    sessions, first = np.unique(requests.session, return_index=True)
    warm = []
    for i in np.sort(first[sessions >= 0]).tolist():
        stream = streams[int(requests.klass[i])]
        prompt = int(requests.prompt[i])
        if stream.steady and prompt > stream.prompt_tokens:
            warm.append((i, prompt - stream.turn_tokens))
    return warm

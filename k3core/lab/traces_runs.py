"""Traces and their replays for the workbench `traces`: read or made once, then served under every policy."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from k3core.fleet import latency
from k3core.lab.contract import Progress
from k3core.lab.display import number
from k3core.lab.params import ParamError
from k3core.lab.text import Text
from k3core.lab.traces_problems import lines_in_words, problem_in_words
from k3core.prefix_cache.policy import Policy
from k3core.traces import (
    WORKLOADS,
    Counts,
    Request,
    TraceCache,
    TraceError,
    generate_trace,
    read_trace,
)

RECOUNTED, RECOUNTED_BLOCKS = 48, 6000  # at most so many requests, of so many blocks, are counted again, slowly
BINS = 24  # parts of the trace in the figure of its course
MOST_BAD_LINES = 1000
CHUNK = 4000  # blocks between two progress reports
HASH_BLOCK = 512  # of the traces made here, in tokens


@dataclass
class Trace:
    """Requests in order, the lines that are none, and the replays so far."""

    requests: list
    hash_block: int
    bad: list = field(default_factory=list)  # TraceError
    lines: int | None = None  # lines with something on them, the header of a CSV left out; None: not from a file
    json: bool = True
    runs: dict = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        return sum(blocks_of(request, self.hash_block) for request in self.requests)


@dataclass
class Run:
    """One replay: what was counted, time and tokens that are paid for, and how it went."""

    counts: Counts
    hit_tokens: int = 0
    hit_requests: int = 0
    output_tokens: int = 0
    seconds: float = 0.0  # time to first token, summed over the requests
    cold_seconds: float = 0.0  # the same with nothing cached
    least_computed: int = 2**62  # the fewest prompt tokens that any request had to compute
    hits: array = field(default_factory=lambda: array("i"))  # tokens by request, from a checkpoint
    rows: array = field(default_factory=lambda: array("i"))  # the same if rows were enough
    course: list = field(default_factory=lambda: [[0, 0] for _ in range(BINS)])  # hit and input tokens per part

    @property
    def hit_rate(self) -> float:
        return self.hit_tokens / self.counts.input_tokens


@dataclass(frozen=True)
class Setup:
    """What a replay depends on beside the trace."""

    policy: Policy
    grain: int
    capacity: int | None
    eviction: str
    bytes_per_token: float
    checkpoint_bytes: int
    forget_states: bool = False  # count the rows as hits, checkpoint or not

    @property
    def block_bytes(self) -> int:
        return round(self.grain * self.bytes_per_token)

    def cache(self, hash_block: int) -> TraceCache:
        return TraceCache(self.policy, self.grain, hash_block, self.capacity, self.block_bytes, self.checkpoint_bytes,
                          self.eviction)


_last: dict = {}  # the trace of the last run, so that a change of settings reads no file and replays nothing twice


def trace_steps(p, seed: int, text: str | None) -> Iterator:
    """Yields Progress and returns the Trace: the file's, or the one that is made. Raises ParamError."""
    key = (p.workload, p.requests, seed) if text is None else (text, p.hash_block)
    if _last.get("key") != key:
        if text is None:
            made = generate_trace(WORKLOADS[p.workload], p.requests, np.random.default_rng(seed), HASH_BLOCK)
            trace = Trace(list(made), HASH_BLOCK)
        else:
            trace = yield from _read(text, p.hash_block)
        _last.update(key=key, trace=trace)
    return _last["trace"]


class _Lines:
    """The lines of a text, one at a time; `position` characters are behind, `filled` lines were not blank."""

    def __init__(self, text: str):
        self.text, self.position, self.filled = text, 0, 0

    def __iter__(self):
        while self.position < len(self.text):
            end = self.text.find("\n", self.position)
            end = len(self.text) if end < 0 else end
            line, self.position = self.text[self.position:end], end + 1
            self.filled += bool(_bare(line))
            yield line


def _bare(line: str) -> str:
    return line.strip("\ufeff \t\r\n")


class _TooManyBadLines(Exception):
    pass


def _read(text: str, hash_block: int) -> Iterator:
    lines, bad, requests, work = _Lines(text), [], [], 0

    def skip(error: TraceError) -> None:
        bad.append(error)
        if len(bad) > MOST_BAD_LINES:
            raise _TooManyBadLines

    try:
        for request in read_trace(lines, hash_block, skip):
            requests.append(request)
            work += 4 + blocks_of(request, hash_block)
            if work >= CHUNK:
                work = 0
                yield Progress(min(lines.position, len(text)), len(text), Text("reading the trace"))
    except _TooManyBadLines:
        raise ParamError("trace", Text("more than {count} lines are not requests: {lines}",
                                       count=number(MOST_BAD_LINES), lines=lines_in_words(bad))) from None
    except TraceError as error:  # the header of a CSV
        raise ParamError("trace", lines_in_words([error])) from None
    except ValueError as error:
        problem = problem_in_words(str(error))
        if bad:
            problem = Text("{problem}: {lines}", problem=problem, lines=lines_in_words(bad))
        raise ParamError("trace", problem) from None
    first = next(line for line in map(_bare, _Lines(text)) if line and "\0" not in line)
    json = first.startswith("{")
    return Trace(requests, hash_block, bad, lines.filled - (not json), json)


def blocks_of(request: Request, hash_block: int) -> int:
    """Hash blocks of a prompt, the last one perhaps not full."""
    return -(-request.input_length // hash_block)


def run_steps(trace: Trace, setup: Setup, done: int, total: int, note: Text) -> Iterator:
    """Replay a trace, or take the replay from before -> Run. Yields Progress: `done` of `total` replays are over."""
    if setup not in trace.runs:
        cache, work = setup.cache(trace.hash_block), 0
        run = Run(cache.counts)
        for index, request in enumerate(trace.requests):
            _serve(run, cache, request, setup.forget_states, index * BINS // len(trace.requests))
            work += 4 + blocks_of(request, trace.hash_block)
            if work >= CHUNK:
                work, share = 0, index / len(trace.requests)
                yield Progress(int(1000 * (done + share)), 1000 * total, note)
        trace.runs[setup] = run
    return trace.runs[setup]


def _serve(run: Run, cache: TraceCache, request: Request, forget_states: bool, part: int) -> None:
    before = cache.counts.rows_hit_tokens
    hit = cache.serve(request)
    rows = cache.counts.rows_hit_tokens - before
    run.hits.append(hit)
    run.rows.append(rows)
    if forget_states:
        hit = rows
    run.hit_tokens += hit
    run.hit_requests += hit > 0
    run.output_tokens += request.output_length
    run.seconds += latency.ttft(request.input_length, hit)
    run.cold_seconds += latency.ttft(request.input_length)
    run.least_computed = min(run.least_computed, request.input_length - hit)
    run.course[part][0] += hit
    run.course[part][1] += request.input_length


def source_of(trace: Trace, setup: Setup, run: Run, index: int) -> int | None:
    """The latest request before `index` that left the checkpoint it resumed from; None without a hit."""
    count = run.hits[index] // trace.hash_block
    if not count:
        return None
    ids = trace.requests[index].hash_ids[:count]
    for earlier in range(index - 1, -1, -1):
        other = trace.requests[earlier]
        if not other.hash_ids or len(other.hash_ids) < count or other.hash_ids[count - 1] != ids[-1]:
            continue
        if other.hash_ids[:count] == ids and run.hits[index] in written_by(trace, setup, run, earlier):
            return earlier
    raise AssertionError(f"request {index} hit what none left")


def written_by(trace: Trace, setup: Setup, run: Run, index: int) -> list:
    """Where a request left checkpoints."""
    return setup.policy.boundaries(trace.requests[index].input_length, run.hits[index], run.rows[index], setup.grain)


def sample(trace: Trace) -> list:
    """The first requests, as many as `recount` manages at once; at least one."""
    chosen, blocks = [], 0
    for request in trace.requests[:RECOUNTED]:
        blocks += blocks_of(request, trace.hash_block)
        if chosen and blocks > RECOUNTED_BLOCKS:
            break
        chosen.append(request)
    return chosen


def recount(requests: list, policy: Policy, grain: int, hash_block: int) -> list:
    """Hits without limit, by comparing each prompt with every earlier one, block by block -> (hit, rows).

    Slow and plain on purpose.
    """
    found, left = [], []
    for index, request in enumerate(requests):
        limit, hit, rows = (request.input_length - 1) // grain * grain, 0, 0
        for earlier in range(index if request.hash_ids else 0):
            shared = min(limit, _shared(request, requests[earlier], hash_block) // grain * grain)
            rows = max(rows, shared)
            for position in left[earlier]:
                if hit < position <= shared:
                    hit = position
        found.append((hit, rows))
        left.append(policy.boundaries(request.input_length, hit, rows, grain))
    return found


def _shared(request: Request, earlier: Request, hash_block: int) -> int:
    """Tokens of the full blocks that two prompts begin with alike."""
    count = 0
    for one, other in zip(request.hash_ids or (), earlier.hash_ids or ()):
        if one != other:
            break
        count += 1
    return min(count * hash_block, earlier.input_length // hash_block * hash_block)

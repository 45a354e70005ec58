"""Replaying a trace against a prefix cache of attention rows and KDA checkpoints, by block number alone.

Requests are served one after another, in file order; each leaves its rows and checkpoints behind. With room
for all it hits what `k3core.prefix_cache` hits. With a capacity it counts what is left behind, not the blocks
that running requests hold, and keeps recomputed rows once.
"""

from collections import OrderedDict
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from ..prefix_cache.policy import Policy
from .reading import Request

EVICTIONS = ("lru", "fifo", "checkpoints-first")
STRIDE = 8_000  # blocks between two progress reports


@dataclass
class Counts:
    """What a replay counted. Blocks are hash blocks in blocks_*, blocks of the grain in evicted_blocks."""

    requests: int = 0
    input_tokens: int = 0
    hit_tokens: int = 0
    rows_hit_tokens: int = 0  # hits if a checkpoint were everywhere: what attention alone could reuse
    requests_with_hit: int = 0
    blocks_total: int = 0
    blocks_distinct: int = 0
    checkpoints: int = 0  # distinct positions ever stored
    checkpoints_written: int = 0  # with those written again after eviction
    evicted_checkpoints: int = 0
    evicted_blocks: int = 0
    peak_bytes: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the input tokens that came from the cache."""
        return self.hit_tokens / self.input_tokens if self.input_tokens else 0.0


class TraceCache:
    """A prefix cache for requests whose blocks are known by number.

    grain: tokens of a cached block, and the grid of checkpoints; a multiple of hash_block. Rows of a block
    are kept under the number of its chain, the checkpoint at its end under minus that. capacity: bytes, None
    without limit; a block of rows weighs block_bytes, a checkpoint (all KDA layers) checkpoint_bytes. Every
    operation costs the same however much is cached.

    eviction: lru, over rows and checkpoints together; fifo; or checkpoints-first, lru within each kind. A hit
    refreshes all rows of the request, the end of the chain as the oldest, but of the checkpoints only the one
    it resumes from (sglang #31643), and that as older than what the request adds.
    """

    def __init__(self, policy: Policy, grain: int, hash_block: int = 512, capacity: int | None = None,
                 block_bytes: int = 0, checkpoint_bytes: int = 0, eviction: str = "lru"):
        if hash_block < 1 or grain < 1 or grain % hash_block:
            raise ValueError(f"grain is {grain}; it must be a multiple of the hash block of {hash_block} tokens")
        if eviction not in EVICTIONS:
            raise ValueError(f"eviction {eviction!r} is not known; choose {', '.join(EVICTIONS)}")
        for name, value in (("block_bytes", block_bytes), ("checkpoint_bytes", checkpoint_bytes),
                            ("capacity", capacity or 0)):
            if value < 0:
                raise ValueError(f"{name} is {value}; it cannot be negative")
        policy.check(grain)
        self.policy, self.grain, self.hash_block, self.capacity = policy, grain, hash_block, capacity
        self.block_bytes, self.checkpoint_bytes = block_bytes, checkpoint_bytes
        self.counts, self.bytes = Counts(), 0
        self._refresh = capacity is not None and eviction != "fifo"
        self._numbers: dict[int, int] = {}  # number of the parent << 64 | hash id -> number, from 1
        self._unnamed = 0
        self._stored: set[int] = set()  # positions that ever had a checkpoint
        self._rows: OrderedDict[int, None] = OrderedDict()  # first out first
        self._checkpoints = OrderedDict() if eviction == "checkpoints-first" else self._rows

    def serve(self, request: Request) -> int:
        """Look a request up, then leave behind what it computed -> the hit in tokens."""
        counts, grain, tokens = self.counts, self.grain, request.input_length
        numbers = self._chain(request)
        rows = self._cached_rows(numbers, (tokens - 1) // grain)
        hit = rows
        while hit and -numbers[hit - 1] not in self._checkpoints:
            hit -= 1
        counts.requests += 1
        counts.input_tokens += tokens
        counts.hit_tokens += hit * grain
        counts.rows_hit_tokens += rows * grain
        counts.requests_with_hit += hit > 0
        written = self.policy.boundaries(tokens, hit * grain, rows * grain, grain)
        self._keep(numbers, hit, [-numbers[position // grain - 1] for position in written])
        return hit * grain

    def _chain(self, request: Request) -> list[int]:
        """Numbers of a request's full blocks of `grain` tokens: equal where everything up to there is."""
        counts, stride = self.counts, self.grain // self.hash_block
        if request.hash_ids is None:
            blocks = -(-request.input_length // self.hash_block)
            start = self._unnamed = self._unnamed + blocks
            chain = [start - i << 40 for i in range(blocks)]  # apart from the numbers given below
        else:
            parent, chain, numbers = 0, [], self._numbers
            for hash_id in request.hash_ids:
                parent = numbers.setdefault(parent << 64 | hash_id, len(numbers) + 1)
                chain.append(parent)
        counts.blocks_total += len(chain)
        counts.blocks_distinct = len(self._numbers) + self._unnamed
        return chain[stride - 1 : request.input_length // self.grain * stride : stride]

    def _cached_rows(self, numbers: list[int], limit: int) -> int:
        """How many of the first `limit` blocks have their rows cached without a gap."""
        cached = self._rows
        for count, number in enumerate(numbers[:limit]):
            if number not in cached:
                return count
        return limit

    def _keep(self, numbers: list[int], hit: int, written: list[int]) -> None:
        """Store or refresh; what comes later stays longer: the tail of a chain leaves before its head."""
        counts, checkpoints = self.counts, self._checkpoints
        if hit and self._refresh:
            checkpoints.move_to_end(-numbers[hit - 1])
        before = counts.checkpoints_written
        counts.checkpoints_written += self._store(checkpoints, written)
        self._stored.update(written)
        counts.checkpoints = len(self._stored)
        added = self._store(self._rows, reversed(numbers))
        self.bytes += added * self.block_bytes
        self.bytes += (counts.checkpoints_written - before) * self.checkpoint_bytes
        if self.capacity is not None:
            self._evict()
        counts.peak_bytes = max(counts.peak_bytes, self.bytes)

    def _store(self, queue: OrderedDict, keys: Iterable[int]) -> int:
        """Put keys at the end of a queue -> how many are new in it."""
        added, refresh = 0, self._refresh
        for key in keys:
            if key not in queue:
                queue[key] = None
                added += 1
            elif refresh:
                queue.move_to_end(key)
        return added

    def _evict(self) -> None:
        counts = self.counts
        while self.bytes > self.capacity:
            key, _ = (self._checkpoints or self._rows).popitem(last=False)
            if key > 0:
                self.bytes -= self.block_bytes
                counts.evicted_blocks += 1
            else:
                self.bytes -= self.checkpoint_bytes
                counts.evicted_checkpoints += 1


def replay(requests: Iterable[Request], cache: TraceCache) -> Generator[int, None, Counts]:
    """Serve all requests; yields how many are done, at least every 50 ms of work, and returns the counts."""
    work = 0
    for request in requests:
        cache.serve(request)
        work += 1 + request.input_length // cache.hash_block
        if work >= STRIDE:
            work = 0
            yield cache.counts.requests
    return cache.counts


def finish(steps: Generator):
    """Run a generator to its end -> what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value

"""Page tables: which blocks a request holds in each group of layers, in order."""

from collections.abc import Hashable, Sequence

from .blocks import NULL, BlockPool, PoolExhausted


class PageTables:
    """Page tables of all requests over one pool: request -> one list of blocks per group.

    Every operation happens as a whole or, when it raises, not at all.
    """

    def __init__(self, pool: BlockPool, groups: int):
        if groups < 1:
            raise ValueError(f"groups is {groups}; there must be at least 1")
        self.pool, self.groups = pool, groups
        self.tables: dict[Hashable, list[list[int]]] = {}

    def allocate(self, request: Hashable, counts: Sequence[int],
                 hits: Sequence[Sequence[int]] = ()) -> list[list[int]]:
        """Append `counts[group]` fresh blocks to each of a request's tables, after the blocks it hit.

        hits: for a new request, blocks to share per group (NULL for positions it does not need). All
        groups' hits are pinned before any block is taken, so that one group's need cannot evict another
        group's hit (vllm #33775). Returns the fresh blocks per group. Raises PoolExhausted, or ValueError
        for a hit that is gone.
        """
        tables = self.tables.get(request)
        if len(counts) != self.groups or (hits and len(hits) != self.groups):
            raise ValueError(f"counts and hits must have one entry for each of the {self.groups} groups")
        if tables is not None and hits:
            raise ValueError(f"request {request!r} is already running; hits are for a new request")
        if min(counts) < 0:
            raise ValueError(f"counts is {list(counts)}; a group cannot be given fewer than 0 blocks")
        pinned = [block for group in hits for block in group if block != NULL]
        self._check_room(sum(counts), pinned)
        self.pool.touch(pinned)
        blocks = iter(self.pool.allocate(sum(counts)))
        fresh = [[next(blocks) for _ in range(count)] for count in counts]
        if tables is None:
            tables = self.tables[request] = [list(group) for group in hits] or [[] for _ in counts]
        for table, added in zip(tables, fresh, strict=True):
            table += added
        return fresh

    def _check_room(self, count: int, pinned: list[int]) -> None:
        """Raise PoolExhausted unless `count` blocks are free besides the hit ones, which get pinned."""
        references = self.pool.references
        idle = sum(not references[block] for block in set(pinned) if 0 < block < len(references))
        if count > self.pool.free_blocks - idle:
            raise PoolExhausted(f"{count} blocks asked for, {self.pool.free_blocks - idle} are free besides "
                                f"the {idle} that the request hit")

    def fork(self, request: Hashable, new_request: Hashable) -> None:
        """Let a new request share every block of a running one; see `writable`."""
        if new_request in self.tables:
            raise ValueError(f"request {new_request!r} is already running")
        tables = self._of(request)
        self.pool.touch([block for table in tables for block in table if block != NULL])
        self.tables[new_request] = [list(table) for table in tables]

    def writable(self, request: Hashable, group: int, index: int) -> tuple[int, int | None]:
        """Make the block at a position the request's own: (block, block to copy from or None).

        A block that others hold too, or that is findable, must not change under them: it is replaced by a
        fresh one, into which the caller copies.
        """
        table = self._of(request)[group]
        block = table[index]
        if block == NULL:
            raise ValueError(f"request {request!r} has no block at position {index} of group {group}")
        if self.pool.references[block] == 1 and not self.pool.is_findable(block):
            return block, None
        table[index] = self.pool.allocate(1)[0]
        self.pool.free([block])
        return table[index], block

    def truncate(self, request: Hashable, group: int, length: int) -> None:
        """Free the blocks of one group from a position on, tail first."""
        table = self._of(request)[group]
        tail = [block for block in table[length:] if block != NULL]
        self.pool.free(tail[::-1])
        del table[length:]

    def release(self, request: Hashable) -> None:
        """Free all blocks of a request (it ended, or is preempted), each group's chain tail first."""
        tables = self._of(request)
        self.pool.free([block for table in tables for block in reversed(table) if block != NULL])
        del self.tables[request]

    def _of(self, request: Hashable) -> list[list[int]]:
        if request not in self.tables:
            raise ValueError(f"request {request!r} is not running")
        return self.tables[request]

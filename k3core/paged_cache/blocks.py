"""The block pool: block numbers, reference counts, and the order in which free blocks are reused.

After vLLM v1/core/block_pool.py: block 0 is never handed out (the null block of page tables); free blocks
whose content nobody can find again are reused first, the others least recently used first (vllm #42656).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

NULL = 0  # a page table's entry for "no block here"


class PoolExhausted(Exception):
    """The pool has too few free blocks; nothing was changed."""


class BlockPool:
    """Blocks 1 to num_blocks - 1; each is free or in use by `references[block]` page tables.

    A block is findable while its content is registered under a hash (kept elsewhere). It stays so when it
    falls free, until it is reused: then `on_evict(blocks)` is told, before the blocks are handed out. All
    operations are O(1) per block, whatever the size of the pool.
    """

    def __init__(self, num_blocks: int, on_evict: Callable[[list[int]], None] | None = None):
        if num_blocks < 2:
            raise ValueError(f"num_blocks is {num_blocks}; a pool has the null block and at least one more")
        self.num_blocks = num_blocks
        self.references = [0] * num_blocks
        self.on_evict = on_evict
        self._findable = bytearray(num_blocks)
        self._unused = list(range(num_blocks - 1, 0, -1))  # stack: the last is reused first
        self._cached: OrderedDict[int, None] = OrderedDict()  # free but findable: the first is reused first

    @property
    def free_blocks(self) -> int:
        """Blocks that can be allocated now, findable ones included."""
        return len(self._unused) + len(self._cached)

    @property
    def usage(self) -> float:
        """Share of the blocks in use, the null block not counted."""
        return 1 - self.free_blocks / (self.num_blocks - 1)

    def is_findable(self, block: int) -> bool:
        """Whether the block's content is registered."""
        return bool(self._findable[block])

    def allocate(self, count: int) -> list[int]:
        """Take `count` blocks, one reference each. Raises PoolExhausted and takes none if there are fewer."""
        if count < 0:
            raise ValueError(f"count is {count}; it must be at least 0")
        if count > self.free_blocks:
            raise PoolExhausted(f"{count} blocks asked for, {self.free_blocks} of {self.num_blocks - 1} are "
                                "free")
        keep = max(0, len(self._unused) - count)
        blocks = self._unused[keep:][::-1]
        del self._unused[keep:]
        if len(blocks) < count:
            blocks += self._evict(count - len(blocks))
        for block in blocks:
            self.references[block] = 1
        return blocks

    def _evict(self, count: int) -> list[int]:
        evicted = [self._cached.popitem(last=False)[0] for _ in range(count)]
        for block in evicted:
            self._findable[block] = False
        if self.on_evict is not None:
            self.on_evict(evicted)
        return evicted

    def touch(self, blocks: Sequence[int]) -> None:
        """Add a reference to each block, in use or free but findable.

        Raises ValueError and adds none if a block is neither.
        """
        references, findable = self.references, self._findable
        for block in blocks:
            if not (0 < block < self.num_blocks and (references[block] or findable[block])):
                raise ValueError(f"block {block} is neither in use nor findable, so it cannot be shared")
        for block in blocks:
            if not references[block]:
                del self._cached[block]
            references[block] += 1

    def free(self, blocks: Sequence[int]) -> None:
        """Drop a reference to each block. Give a chain tail first: what comes first is reused first.

        Raises ValueError and drops none if a block has too few references.
        """
        self._check_held(blocks)
        references, findable, unused = self.references, self._findable, []
        for block in blocks:
            references[block] -= 1
            if not references[block]:
                if findable[block]:
                    self._cached[block] = None
                else:
                    unused.append(block)
        self._unused.extend(reversed(unused))

    def register(self, blocks: Iterable[int]) -> None:
        """Mark blocks in use as findable: their content now has a hash."""
        for block in blocks:
            if not (0 < block < self.num_blocks and self.references[block]):
                raise ValueError(f"block {block} is not in use, so its content cannot be registered")
            self._findable[block] = True

    def unregister(self, blocks: Iterable[int]) -> None:
        """Forget that blocks are findable; free ones are reused next. Others are left alone."""
        for block in blocks:
            if self._findable[block]:
                self._findable[block] = False
                if not self.references[block]:
                    del self._cached[block]
                    self._unused.append(block)

    def _check_held(self, blocks: Sequence[int]) -> None:
        references = self.references
        for block in blocks:
            if not (0 < block < self.num_blocks and references[block]):
                raise ValueError(f"block {block} is not in use, so it cannot be freed")
        if len(set(blocks)) < len(blocks):
            for block in set(blocks):
                if blocks.count(block) > references[block]:
                    raise ValueError(f"block {block} is freed {blocks.count(block)} times but has "
                                     f"{references[block]} references")

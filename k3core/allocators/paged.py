"""Memory in blocks that never move: one pool of equal blocks, or two static pools."""

from ..paged_cache import BlockPool
from .common import ROW_BLOCK, Allocator, Extent, Geometry, Work, pieces, row_extents


class UnifiedPool(Allocator):
    """One pool of equal blocks; a block holds rows, or the states of one group."""

    def __init__(self, geometry: Geometry, memory: int):
        super().__init__(geometry, memory)
        self.blocks = memory // geometry.block_bytes
        self.pool = BlockPool(self.blocks + 1)  # and the null block
        self.rows: dict[int, list[int]] = {}
        self.states: dict[int, list[int]] = {}

    def _fits(self, holders: list) -> bool:
        size, groups = self.geometry.block_tokens, self.geometry.groups
        return sum(pieces(final, size) + slots * groups for final, slots in holders) <= self.blocks

    def _take_rows(self, request: int, tokens: int) -> Work:
        return fill_table(self.pool, self.rows.setdefault(request, []), pieces(tokens, self.geometry.block_tokens))

    def _take_states(self, request: int, slots: int) -> Work:
        self.states[request] = self.pool.allocate(slots * self.geometry.groups)
        return Work(len(self.states[request]))

    def _give_back(self, request: int) -> Work:
        blocks = self.states.pop(request) + self.rows.pop(request)[::-1]
        self.pool.free(blocks)
        return Work(len(blocks))

    def free_bytes(self) -> int:
        """Bytes of free blocks."""
        return self.pool.free_blocks * self.geometry.block_bytes

    def _extents(self, request: int) -> list[Extent]:
        geometry, size = self.geometry, self.geometry.block_bytes
        full = geometry.block_tokens * geometry.row_bytes
        last = self.tokens[request] * geometry.row_bytes - (len(self.rows[request]) - 1) * full
        rows = row_extents(request, [(block - 1) * size for block in self.rows[request]], size, full, last)
        return rows + [Extent(request, "state", (block - 1) * size, size, geometry.state_bytes // geometry.groups)
                       for block in self.states[request]]


class TwoPools(Allocator):
    """Two pools of fixed size: blocks of rows at the front, slots for whole states at the back."""

    def __init__(self, geometry: Geometry, memory: int, state_memory: int):
        super().__init__(geometry, memory)
        self.row_bytes = ROW_BLOCK * geometry.row_bytes
        self.border = memory - state_memory
        self.row_blocks, self.state_slots = self.border // self.row_bytes, state_memory // geometry.state_bytes
        if min(self.row_blocks, self.state_slots) < 1:
            raise ValueError(f"state_memory is {state_memory}; each pool must hold at least one block of "
                             f"{self.row_bytes} or {geometry.state_bytes} bytes")
        self.row_pool, self.state_pool = BlockPool(self.row_blocks + 1), BlockPool(self.state_slots + 1)
        self.rows: dict[int, list[int]] = {}
        self.states: dict[int, list[int]] = {}

    def _fits(self, holders: list) -> bool:
        return (sum(pieces(final, ROW_BLOCK) for final, _ in holders) <= self.row_blocks
                and sum(slots for _, slots in holders) <= self.state_slots)

    def _take_rows(self, request: int, tokens: int) -> Work:
        return fill_table(self.row_pool, self.rows.setdefault(request, []), pieces(tokens, ROW_BLOCK))

    def _take_states(self, request: int, slots: int) -> Work:
        self.states[request] = self.state_pool.allocate(slots)
        return Work(slots)

    def _give_back(self, request: int) -> Work:
        rows, states = self.rows.pop(request), self.states.pop(request)
        self.row_pool.free(rows[::-1])
        self.state_pool.free(states)
        return Work(len(rows) + len(states))

    def _extents(self, request: int) -> list[Extent]:
        state, size = self.geometry.state_bytes, self.row_bytes
        last = self.tokens[request] * self.geometry.row_bytes - (len(self.rows[request]) - 1) * size
        rows = row_extents(request, [(block - 1) * size for block in self.rows[request]], size, size, last)
        return rows + [Extent(request, "state", self.border + (slot - 1) * state, state, state)
                       for slot in self.states[request]]

    def free_bytes(self) -> int:
        """Bytes of free blocks and free slots."""
        return self.row_pool.free_blocks * self.row_bytes + self.state_pool.free_blocks * self.geometry.state_bytes

    def stranded(self, rows_share: float) -> float:
        """What one pool has left over when requests of this shape have filled the other."""
        rows = self.row_pool.free_blocks * self.row_bytes
        states = self.free_bytes() - rows
        limits = [free / share for free, share in ((rows, rows_share), (states, 1 - rows_share)) if share > 0]
        return rows + states - min(rows + states, *limits)


def fill_table(pool: BlockPool, table: list[int], length: int) -> Work:
    """Append blocks until a page table has `length` of them."""
    fresh = pool.allocate(max(0, length - len(table)))
    table += fresh
    return Work(len(fresh))

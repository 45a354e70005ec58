"""Four ways to share one memory between attention rows, which grow, and recurrent states, which do not.

One pool of equal blocks (vLLM, Kimi K3 report section 5.4.1), two static pools (SGLang), contiguous extents by first
fit (engines before paging), and one region grown from both ends with compaction (SGLang --enable-unified-memory).
Nothing is timed: an operation reports how many entries of its bookkeeping it touched and which bytes it moved.
"""

from bisect import bisect_left
from dataclasses import dataclass

from k3core.paged_cache import BlockPool
from k3core.sizing import Layout

STEP_BYTES = 64  # a step of bookkeeping touches one cache line
ROW_BLOCK = 512  # tokens in a block of rows, where it need not hold a state too


class Refused(Exception):
    """There is no room; nothing was changed."""


@dataclass(frozen=True)
class Geometry:
    """Bytes of what requests ask for, on one rank.

    row_bytes: one token in all attention layers. state_bytes: one state in all recurrent layers. In the unified pool
    a block of block_bytes holds block_tokens tokens, or the states of one of `groups` groups of recurrent layers.
    """

    row_bytes: int
    state_bytes: int
    block_tokens: int
    block_bytes: int
    groups: int

    @classmethod
    def of(cls, layout: Layout) -> "Geometry":
        """The geometry of a sizing layout with one group of attention layers."""
        rows = sum(len(group.layers) for group in layout.groups if not group.recurrent)
        recurrent = [len(group.layers) for group in layout.groups if group.recurrent]
        if len(layout.groups) != len(recurrent) + 1:
            raise ValueError("the layout has more than one group of attention layers, or none")
        return cls(rows * layout.token_bytes, sum(recurrent) * layout.state_bytes, layout.block_size,
                   layout.block_bytes, len(recurrent))


@dataclass(frozen=True)
class Work:
    """What one operation did: entries touched, and moves (from, to, bytes) in the order they were made."""

    steps: int
    moves: tuple = ()

    @property
    def moved(self) -> int:
        """Bytes moved."""
        return sum(nbytes for _, _, nbytes in self.moves)

    @property
    def touched(self) -> int:
        """Bytes touched: a cache line per step, and each moved byte once read and once written."""
        return STEP_BYTES * self.steps + 2 * self.moved

    def __add__(self, other: "Work") -> "Work":
        return Work(self.steps + other.steps, self.moves + other.moves)


@dataclass(frozen=True)
class Extent:
    """A piece of memory that a request holds: kind is "rows" or "state", `used` the bytes that hold its data."""

    request: int
    kind: str
    start: int
    nbytes: int
    used: int


class Allocator:
    """What the four have in common. A request holds `tokens` rows and `slots` states; `final` is how many rows it
    will hold in the end. All or nothing: an operation that raises Refused has changed nothing.
    """

    def __init__(self, geometry: Geometry, memory: int):
        self.geometry, self.memory = geometry, memory
        self.tokens: dict[int, int] = {}
        self.final: dict[int, int] = {}
        self.slots: dict[int, int] = {}

    def can_ever(self, final: int, slots: int) -> bool:
        """Whether such a request fits into an empty memory."""
        return self._fits([(final, slots)])

    def admit(self, request: int, tokens: int, final: int, slots: int) -> Work:
        """Let a request in. Paged memory promises it its full length; raises Refused if it cannot."""
        self._check_new(request)
        if not self._fits([*self._holders(), (final, slots)]):
            raise Refused(f"no room for {final} tokens and {slots} states")
        return self._place(request, tokens, final, slots)

    def add_states(self, request: int, slots: int) -> Work:
        """Give a running request its states, if it was let in by its rows alone (the mistake of vllm #52520)."""
        if not self._fits([*self._holders(but=request), (self.final[request], slots)]):
            raise Refused(f"no room for {slots} states")
        work = self._take_states(request, slots)
        self.slots[request] = slots
        return work

    def grow(self, request: int, tokens: int) -> Work:
        """Let a request hold more rows. Work(0) if it already has room for them."""
        work = self._take_rows(request, tokens)
        self.tokens[request] = tokens
        return work

    def release(self, request: int) -> Work:
        """Take back all that a request holds."""
        work = self._give_back(request)
        for held in (self.tokens, self.final, self.slots):
            del held[request]
        return work

    def extents(self) -> list[Extent]:
        """Everything that is held, request by request, rows in logical order, then states."""
        return [extent for request in self.tokens for extent in self._extents(request)]

    def stranded(self, rows_share: float) -> float:
        """Free bytes that a request cannot use; rows_share: the part of its bytes that are rows."""
        return 0.0

    def _place(self, request: int, tokens: int, final: int, slots: int) -> Work:
        self.tokens[request], self.final[request], self.slots[request] = tokens, final, slots
        return self._take_rows(request, tokens) + self._take_states(request, slots)

    def _holders(self, but: int | None = None) -> list:
        """What each running request will hold in the end."""
        return [(final, self.slots[request]) for request, final in self.final.items() if request != but]

    def _check_new(self, request: int) -> None:
        if request in self.tokens:
            raise ValueError(f"request {request} is already running")


def pieces(tokens: int, size: int) -> int:
    """Blocks of `size` tokens that hold `tokens` tokens."""
    return -(-tokens // size)


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
        table = self.rows.setdefault(request, [])
        fresh = self.pool.allocate(max(0, pieces(tokens, self.geometry.block_tokens) - len(table)))
        table += fresh
        return Work(len(fresh))

    def _take_states(self, request: int, slots: int) -> Work:
        self.states[request] = self.pool.allocate(slots * self.geometry.groups)
        return Work(len(self.states[request]))

    def _give_back(self, request: int) -> Work:
        blocks = self.states.pop(request) + self.rows.pop(request)[::-1]
        self.pool.free(blocks)
        return Work(len(blocks))

    def _extents(self, request: int) -> list[Extent]:
        geometry, size = self.geometry, self.geometry.block_bytes
        rows = [Extent(request, "rows", (block - 1) * size, size, used * geometry.row_bytes) for block, used
                in zip(self.rows[request], filled(self.tokens[request], geometry.block_tokens))]
        return rows + [Extent(request, "state", (block - 1) * size, size, geometry.state_bytes // geometry.groups)
                       for block in self.states[request]]


def filled(tokens: int, size: int) -> list[int]:
    """Tokens in each block of `size` tokens."""
    return [min(size, tokens - start) for start in range(0, tokens, size)]


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
        table = self.rows.setdefault(request, [])
        fresh = self.row_pool.allocate(max(0, pieces(tokens, ROW_BLOCK) - len(table)))
        table += fresh
        return Work(len(fresh))

    def _take_states(self, request: int, slots: int) -> Work:
        self.states[request] = self.state_pool.allocate(slots)
        return Work(slots)

    def _give_back(self, request: int) -> Work:
        rows, states = self.rows.pop(request), self.states.pop(request)
        self.row_pool.free(rows[::-1])
        self.state_pool.free(states)
        return Work(len(rows) + len(states))

    def _extents(self, request: int) -> list[Extent]:
        geometry, state = self.geometry, self.geometry.state_bytes
        rows = [Extent(request, "rows", (block - 1) * self.row_bytes, self.row_bytes, used * geometry.row_bytes)
                for block, used in zip(self.rows[request], filled(self.tokens[request], ROW_BLOCK))]
        return rows + [Extent(request, "state", self.border + (slot - 1) * state, state, state)
                       for slot in self.states[request]]

    def stranded(self, rows_share: float) -> float:
        """What one pool has left over when requests of this shape have filled the other, and what no slot covers."""
        rows = self.row_pool.free_blocks * self.row_bytes
        states = self.state_pool.free_blocks * self.geometry.state_bytes
        limits = [free / share for free, share in ((rows, rows_share), (states, 1 - rows_share)) if share > 0]
        cut = self.memory - self.row_blocks * self.row_bytes - self.state_slots * self.geometry.state_bytes
        return rows + states - min(rows + states, *limits) + cut


class FirstFit(Allocator):
    """Contiguous memory: a request's rows are one extent, its states another, each in the first hole that is large
    enough. Rows that have outgrown their extent are extended in place if a hole follows, else moved to a new hole.

    reserve: take the full length at once, so that nothing ever moves.
    """

    def __init__(self, geometry: Geometry, memory: int, reserve: bool = False):
        super().__init__(geometry, memory)
        self.reserve = reserve
        self.holes: list[tuple[int, int]] = [(0, memory)]  # (start, bytes), by address, never two in a row
        self.rows: dict[int, tuple[int, int]] = {}
        self.states: dict[int, tuple[int, int]] = {}

    def _size(self, tokens: int) -> int:
        return pieces(tokens, ROW_BLOCK) * ROW_BLOCK * self.geometry.row_bytes

    def _fits(self, holders: list) -> bool:
        """Of a contiguous memory only the bytes can be promised, not that a hole will be large enough."""
        return sum(self._size(final) + slots * self.geometry.state_bytes for final, slots in holders) <= self.memory

    def _place(self, request: int, tokens: int, final: int, slots: int) -> Work:
        before = list(self.holes)
        rows, steps = self._cut(self._size(final if self.reserve else tokens))
        states, more = self._cut(slots * self.geometry.state_bytes)
        if rows is None or states is None:
            self.holes = before
            raise Refused("no hole is large enough")
        self.rows[request], self.states[request] = rows, states
        self.tokens[request], self.final[request], self.slots[request] = tokens, final, slots
        return Work(steps + more)

    def _take_rows(self, request: int, tokens: int) -> Work:
        start, held = self.rows[request]
        need = self._size(tokens)
        if need <= held:
            return Work(0)
        place = bisect_left(self.holes, (start + held, 0))
        if place < len(self.holes) and self.holes[place][0] == start + held and self.holes[place][1] >= need - held:
            self._shrink(place, need - held)
            self.rows[request] = start, need
            return Work(1)
        found, steps = self._cut(need)
        if found is None:
            raise Refused(f"no hole of {need} bytes for rows that grow")
        self._fill(start, held)
        self.rows[request] = found
        return Work(steps + 1, ((start, found[0], self.tokens[request] * self.geometry.row_bytes),))

    def _take_states(self, request: int, slots: int) -> Work:
        found, steps = self._cut(slots * self.geometry.state_bytes)
        if found is None:
            raise Refused("no hole is large enough for the states")
        self.states[request] = found
        return Work(steps)

    def _give_back(self, request: int) -> Work:
        extents = [extent for extent in (self.rows.pop(request), self.states.pop(request)) if extent[1]]
        for start, nbytes in extents:
            self._fill(start, nbytes)
        return Work(len(extents))

    def _cut(self, nbytes: int) -> tuple:
        """((start, bytes) of the front of the first hole that is large enough, or None; holes looked at)."""
        if not nbytes:
            return (0, 0), 0
        for place, (start, size) in enumerate(self.holes):
            if size >= nbytes:
                self._shrink(place, nbytes)
                return (start, nbytes), place + 1
        return None, len(self.holes)

    def _shrink(self, place: int, nbytes: int) -> None:
        start, size = self.holes[place]
        self.holes[place : place + 1] = [(start + nbytes, size - nbytes)] if size > nbytes else []

    def _fill(self, start: int, nbytes: int) -> None:
        """Make an extent a hole, one with the holes that touch it."""
        place = bisect_left(self.holes, (start, 0))
        end = start + nbytes
        after = place
        if after < len(self.holes) and self.holes[after][0] == end:
            end += self.holes[after][1]
            after += 1
        if place and sum(self.holes[place - 1]) == start:
            place -= 1
            start = self.holes[place][0]
        self.holes[place:after] = [(start, end - start)]

    def _extents(self, request: int) -> list[Extent]:
        (row_start, row_bytes), (start, nbytes) = self.rows[request], self.states[request]
        used = self.tokens[request] * self.geometry.row_bytes
        state = [Extent(request, "state", start, nbytes, nbytes)] if nbytes else []
        return [Extent(request, "rows", row_start, row_bytes, used), *state]

    def stranded(self, rows_share: float) -> float:
        """All holes but the largest."""
        return float(sum(size for _, size in self.holes) - max((size for _, size in self.holes), default=0))


class TwoEnds(Allocator):
    """One region: blocks of rows grow from the front, states from the back. A hole is filled with the object at the
    end of its side, so what is free stays in one piece."""

    def __init__(self, geometry: Geometry, memory: int):
        super().__init__(geometry, memory)
        self.row_bytes = ROW_BLOCK * geometry.row_bytes
        self.sides: dict[str, list[int]] = {"rows": [], "state": []}  # the request of each object, from the end inwards
        self.places: dict[str, dict[int, list[int]]] = {"rows": {}, "state": {}}

    def _fits(self, holders: list) -> bool:
        return sum(pieces(final, ROW_BLOCK) * self.row_bytes + slots * self.geometry.state_bytes
                   for final, slots in holders) <= self.memory

    def _take_rows(self, request: int, tokens: int) -> Work:
        held = len(self.places["rows"].get(request, ()))
        return self._append("rows", request, max(0, pieces(tokens, ROW_BLOCK) - held))

    def _take_states(self, request: int, slots: int) -> Work:
        return self._append("state", request, slots)

    def _append(self, side: str, request: int, count: int) -> Work:
        objects, places = self.sides[side], self.places[side].setdefault(request, [])
        places += range(len(objects), len(objects) + count)
        objects += [request] * count
        return Work(count)

    def _give_back(self, request: int) -> Work:
        return self._remove("rows", request) + self._remove("state", request)

    def _remove(self, side: str, request: int) -> Work:
        """Close each hole with the last object of the side; the innermost hole first."""
        objects, moves = self.sides[side], []
        places = sorted(self.places[side].pop(request, []), reverse=True)
        for place in places:
            last = len(objects) - 1
            owner = objects.pop()
            if place < last:
                objects[place] = owner
                theirs = self.places[side][owner]
                theirs[theirs.index(last)] = place
                moves.append((self._start(side, last), self._start(side, place), self._size(side)))
        return Work(len(places), tuple(moves))

    def _size(self, side: str) -> int:
        return self.row_bytes if side == "rows" else self.geometry.state_bytes

    def _start(self, side: str, place: int) -> int:
        return place * self.row_bytes if side == "rows" else self.memory - (place + 1) * self.geometry.state_bytes

    def _extents(self, request: int) -> list[Extent]:
        used = [tokens * self.geometry.row_bytes for tokens in filled(self.tokens[request], ROW_BLOCK)]
        rows = [Extent(request, "rows", self._start("rows", place), self.row_bytes, size)
                for place, size in zip(self.places["rows"][request], used)]
        state = self.geometry.state_bytes
        return rows + [Extent(request, "state", self._start("state", place), state, state)
                       for place in self.places["state"][request]]

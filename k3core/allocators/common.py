"""What requests ask of a memory, what an operation on it costs, and what all allocators have in common."""

from dataclasses import dataclass
from typing import NamedTuple

from ..sizing import Layout

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


class Extent(NamedTuple):
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
        """Free bytes that are out of reach for a request, of whose bytes `rows_share` are rows."""
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


def row_extents(request: int, starts: list[int], nbytes: int, full: int, last: int) -> list[Extent]:
    """Blocks of rows in logical order, neighbours as one extent: each holds `full` bytes, the last one `last`."""
    extents, first = [], 0
    for index in range(1, len(starts) + 1):
        end = index == len(starts)
        if end or starts[index] != starts[index - 1] + nbytes:
            used = (index - first) * full - (full - last if end else 0)
            extents.append(Extent(request, "rows", starts[first], (index - first) * nbytes, used))
            first = index
    return extents

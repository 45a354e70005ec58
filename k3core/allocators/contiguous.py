"""Contiguous memory: one extent for the rows of a request, one for its states, placed by first fit."""

from bisect import bisect_left

from .common import ROW_BLOCK, Allocator, Extent, Geometry, Refused, Work, pieces


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

    def free_bytes(self) -> int:
        """Bytes of all holes."""
        return sum(size for _, size in self.holes)

    def stranded(self, rows_share: float) -> float:
        """All holes but the largest."""
        return float(self.free_bytes() - max((size for _, size in self.holes), default=0))

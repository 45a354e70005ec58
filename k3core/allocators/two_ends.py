"""One region that rows and states fill from opposite ends, kept without holes by moving objects."""

from .common import ROW_BLOCK, Allocator, Extent, Geometry, Work, pieces, row_extents


class TwoEnds(Allocator):
    """One region: blocks of rows grow from the front, states from the back. A hole is filled with the object at the
    end of its side, so what is free stays in one piece."""

    def __init__(self, geometry: Geometry, memory: int):
        super().__init__(geometry, memory)
        self.row_bytes = ROW_BLOCK * geometry.row_bytes
        # Whose each object is, from the end of its side inwards; and where the objects of each request are.
        self.sides: dict[str, list[int]] = {"rows": [], "state": []}
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

    def free_bytes(self) -> int:
        """Bytes between the two ends."""
        return self.memory - sum(len(objects) * self._size(side) for side, objects in self.sides.items())

    def _size(self, side: str) -> int:
        return self.row_bytes if side == "rows" else self.geometry.state_bytes

    def _start(self, side: str, place: int) -> int:
        return place * self.row_bytes if side == "rows" else self.memory - (place + 1) * self.geometry.state_bytes

    def _extents(self, request: int) -> list[Extent]:
        places, size = self.places["rows"][request], self.row_bytes
        last = self.tokens[request] * self.geometry.row_bytes - (len(places) - 1) * size
        rows = row_extents(request, [place * size for place in places], size, size, last)
        state = self.geometry.state_bytes
        return rows + [Extent(request, "state", self._start("state", place), state, state)
                       for place in self.places["state"][request]]

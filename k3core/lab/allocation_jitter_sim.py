"""Requests come, grow and leave over one allocator, step by step; every operation's work is kept."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from k3core.allocators import Allocator, Geometry, Refused, Work

STEPS = 60
TOKENS_PER_STEP = 128  # that a running request decodes
SHORT, LONG, OUTPUT = (16, 2048), (8192, 65536), (128, 2048)  # tokens, uniform


@dataclass(frozen=True)
class Arrival:
    """One request: the step it comes in, its prompt, and its length in the end."""

    step: int
    prompt: int
    final: int


def arrivals(geometry: Geometry, memory: int, load: int, short: tuple, slots: int, rng: np.random.Generator) -> list:
    """A trace that offers `load` percent of the memory's bytes at all times. short: percent of short requests in
    the first and in the second half. Gaps between arrivals are exponential."""
    trace, half = [], STEPS / 2
    for part, percent in enumerate(short):
        gap = mean_bytes(geometry, percent, slots) * mean_steps() / (load / 100 * memory)
        at = part * half + float(rng.exponential(gap))
        while at < (part + 1) * half:
            low, high = SHORT if rng.integers(100) < percent else LONG
            prompt = int(rng.integers(low, high + 1))
            trace.append(Arrival(int(at), prompt, prompt + int(rng.integers(OUTPUT[0], OUTPUT[1] + 1))))
            at += float(rng.exponential(gap))
    return trace


def mean_rows(percent: float) -> float:
    """Mean tokens that a request holds, over its time, if `percent` of the requests are short."""
    return (percent * sum(SHORT) + (100 - percent) * sum(LONG)) / 200 + sum(OUTPUT) / 4


def mean_bytes(geometry: Geometry, percent: float, slots: int) -> float:
    """Mean bytes that a request needs."""
    return mean_rows(percent) * geometry.row_bytes + slots * geometry.state_bytes


def mean_steps() -> float:
    """Mean steps that a request runs."""
    return sum(OUTPUT) / 2 / TOKENS_PER_STEP + 0.5


class Simulation:
    """A trace over an allocator.

    operations: (step, kind, entries touched, bytes moved, bytes touched) of each operation that did anything.
    refused: no room when they came; never: could not even fit into an empty memory; cut_off: lost their place when
    they grew. held_idle: how many steps requests held memory without being able to run. unusable: bytes per step that
    neither hold data nor could be given to a request. frames: plain data, one per step.
    by_rows: requests are let in by their rows alone, as if states took no room.
    """

    def __init__(self, allocator: Allocator, trace: list, slots: int, rows_share: float, by_rows: bool = False):
        self.allocator, self.slots, self.rows_share, self.by_rows = allocator, slots, rows_share, by_rows
        self.coming = list(enumerate(trace))[::-1]
        self.final: dict[int, int] = {}
        self.idle: list[int] = []
        self.operations: list[tuple] = []
        self.moves: list[tuple] = []  # of the present step
        self.refused = self.never = self.cut_off = self.held_idle = self.most_running = 0
        self.unusable: list[float] = []
        self.frames: list[dict] = []
        self.whole = allocator.free_bytes()

    def steps(self) -> Iterator:
        """Play the trace; yields after every step. In the end everybody leaves."""
        for step in range(STEPS):
            first, before = len(self.operations), (self.refused, self.never, self.cut_off)
            self.moves = []
            left = self._leave(step)
            self._grow(step)
            self._start_idle(step)
            came = self._let_in(step)
            self._record(self.operations[first:], before, came, left)
            yield step
        for request in list(self.final):
            self.allocator.release(request)

    def _did(self, step: int, kind: str, work: Work) -> None:
        if work.touched:
            self.operations.append((step, kind, work.steps, work.moved, work.touched))
            self.moves += work.moves

    def _leave(self, step: int) -> int:
        done = [request for request, final in self.final.items()
                if self.allocator.tokens[request] >= final and request not in self.idle]
        for request in done:
            self._did(step, "leave", self.allocator.release(request))
            del self.final[request]
        return len(done)

    def _grow(self, step: int) -> None:
        for request, final in list(self.final.items()):
            if request in self.idle:
                continue
            tokens = min(final, self.allocator.tokens[request] + TOKENS_PER_STEP)
            try:
                self._did(step, "grow", self.allocator.grow(request, tokens))
            except Refused:
                self._did(step, "leave", self.allocator.release(request))
                del self.final[request]
                self.cut_off += 1

    def _start_idle(self, step: int) -> None:
        for request in list(self.idle):
            try:
                self._did(step, "admit", self.allocator.add_states(request, self.slots))
                self.idle.remove(request)
            except Refused:
                self.held_idle += 1

    def _let_in(self, step: int) -> int:
        came = 0
        while self.coming and self.coming[-1][1].step <= step:
            request, arrival = self.coming.pop()
            came += 1
            if not self.allocator.can_ever(arrival.final, self.slots):
                self.never += 1
                continue
            try:
                slots = 0 if self.by_rows else self.slots
                self._did(step, "admit", self.allocator.admit(request, arrival.prompt, arrival.final, slots))
            except Refused:
                self.refused += 1
                continue
            self.final[request] = arrival.final
            if self.by_rows:
                self.idle.append(request)
        return came

    def _record(self, operations: list, before: tuple, came: int, left: int) -> None:
        extents = self.allocator.extents()
        used = sum(extent.used for extent in extents)
        free = self.allocator.free_bytes()
        self.unusable.append(self.allocator.memory - used - (free - self.allocator.stranded(self.rows_share)))
        self.most_running = max(self.most_running, len(self.final) - len(self.idle))
        now = (self.refused, self.never, self.cut_off)
        self.frames.append({
            "extents": extents, "moves": self.moves,
            "came": came, "left": left, "running": len(self.final), "used": used, "free": free,
            "refused": now[0] - before[0] + now[1] - before[1], "cut_off": now[2] - before[2],
            "touched": max((operation[4] for operation in operations), default=0),
            "moved": sum(operation[3] for operation in operations)})


def overlaps(frame: dict, memory: int) -> int:
    """Extents of a frame that lie over another one, or outside the memory, or hold more than they have room for."""
    wrong, end = 0, 0
    for start, nbytes, used in sorted((start, nbytes, used) for _, _, start, nbytes, used in frame["extents"]):
        wrong += start < end or start + nbytes > memory or used > nbytes
        end = max(end, start + nbytes)
    return wrong


def quantile(values: list, percent: int) -> int:
    """The smallest value that at least `percent` of 100 values do not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)] if ordered else 0

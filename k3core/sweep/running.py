"""The points of a sweep that are not computed yet, from a pool into the journal."""

import time
from collections import deque
from typing import TextIO

from .journal import Journal
from .spec import Sweep

BATCH_SECONDS = 0.25  # of work in one batch: long beside the milliseconds that sending it costs
BATCH_POINTS = 500
DIED = "the process that computed this point died each time (was it killed for want of memory?)"


def missing(sweep: Sweep, journal: Journal, retry_failed: bool) -> list[int]:
    """Indices of the points to compute, those of the same files together."""
    seen, found = set(), []
    for index in range(len(sweep)):
        point = sweep.point(index)
        _, failed = journal.places.get(point.key, (0, True))
        if point.key not in seen and failed and (retry_failed or point.key not in journal.places):
            found.append((sorted(file.sha256 for file in point.files.values()), index))
        seen.add(point.key)
    return [index for _, index in sorted(found)]


def compute(sweep: Sweep, indices: list[int], pool, journal: Journal, progress: "Progress") -> None:
    """Compute these points. Raises OSError, ValueError, KeyboardInterrupt; what was computed is in the journal then."""
    waiting, alone, deaths = deque(indices), deque(), {}
    seconds = done = 0
    while waiting or alone or pool.running:
        width = pool.width
        while (waiting or alone) and len(pool.running) < width:
            if alone:
                pool.submit([alone.popleft()])
            else:
                mean = seconds / done if done else BATCH_SECONDS
                size = min(BATCH_POINTS, BATCH_SECONDS / max(mean, 1e-9), len(waiting) / (2 * width))
                pool.submit([sweep.point(waiting.popleft()).task for _ in range(max(1, int(size)))])
        for tasks, outcome in pool.wait():
            if outcome:
                records, took = outcome
                seconds, done = seconds + took, done + len(records)
            else:  # one of them may be to blame: each by itself, and not for ever
                for task in tasks:
                    deaths[task[0]] = deaths.get(task[0], 0) + (len(tasks) == 1)
                records = [{"key": task[0], "error": DIED} for task in tasks if deaths[task[0]] >= pool.deaths]
                alone.extend(task for task in tasks if deaths[task[0]] < pool.deaths)
            journal.append(records)
            progress.add(len(records), sum("error" in record for record in records))


class Progress:
    """One line on a terminal that is written again; elsewhere a line now and then."""

    def __init__(self, total: int, kept: int, stream: TextIO):
        self.total, self.kept, self.stream = total, kept, stream
        self.done = self.failed = 0
        self.start = self.shown = time.monotonic()
        self.every = 0.2 if stream.isatty() else 10.0

    def add(self, done: int, failed: int) -> None:
        """Points have finished, so many of them failed; it is said where the last line is old enough."""
        self.done, self.failed = self.done + done, self.failed + failed
        now = time.monotonic()
        if now - self.shown >= self.every:
            self.shown = now
            self._write(self.line(now - self.start))

    def line(self, elapsed: float) -> str:
        """What to say after so many seconds."""
        left = (self.total - self.kept - self.done) * elapsed / max(1, self.done)
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.kept + self.done:,} of {self.total:,} points{failed}, {self.done / max(elapsed, 1e-9):,.3g} a " \
               f"second, {duration(left)} left"

    def clear(self) -> None:
        """Make room for what is said next."""
        if self.stream.isatty():
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def _write(self, line: str) -> None:
        self.clear()
        self.stream.write(line if self.stream.isatty() else line + "\n")
        self.stream.flush()


def duration(seconds: float) -> str:
    """Rounded as one says it: 40 s, 12 min, 3 h 20 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

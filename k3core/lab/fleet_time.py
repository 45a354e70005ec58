"""What the tabs about fleets in time share: names of policies, and levels and latencies drawn over a time axis."""

from math import log10

import numpy as np

from k3core.lab import drawing as d
from k3core.lab.text import Text

POLICY_NAMES = {"strict": Text("strict reservation"), "borrow": Text("reservation that lends"),
                "priority": Text("plain priority"), "vtc": Text("virtual token counter"),
                "token_bucket": Text("token bucket"), "shared": Text("shared queue")}
SHORT_NAMES = {"strict": Text("strict"), "borrow": Text("lends"), "priority": Text("priority"), "vtc": Text("counter"),
               "token_bucket": Text("bucket"), "shared": Text("shared")}
KINDS = {"vip": Text("VIP"), "ordinary": Text("ordinary")}


def levels(begin: np.ndarray, end: np.ndarray, times: np.ndarray) -> list:
    """How many of the intervals [begin, end) contain each time -> list of int."""
    begun = np.searchsorted(np.sort(begin), times, side="right")
    return (begun - np.searchsorted(np.sort(end), times, side="right")).tolist()


def verdict(load: float) -> Text:
    """Whether a queue under this offered load settles."""
    return Text("unstable: the queue grows") if load >= 1 else Text("stable")


def steps(xs: list, bottoms: list, tops: list, base: float, unit: float) -> str:
    """Path commands of the area between two step curves.

    xs has one entry more than the curves: a value holds from its x to the next. unit: drawing units per one, upwards
    from base; downwards if negative.
    """
    if not any(top > bottom for bottom, top in zip(bottoms, tops)):
        return ""
    there = _staircase(xs, tops, base, unit)
    back = _staircase(xs[::-1], bottoms[::-1], base, unit)
    return f"M{d.number(xs[0])} {d.number(base - bottoms[0] * unit)}{there}{back}Z"


def _staircase(xs: list, values: list, base: float, unit: float) -> str:
    """To the height of each value, then along to the x where it changes."""
    parts = []
    for place, value in enumerate(values):
        if not place or value != values[place - 1]:
            parts.append(f"H{d.number(xs[place])}V{d.number(base - value * unit)}")
    return "".join([*parts, f"H{d.number(xs[len(values)])}"])


def dots(points: list, size: float) -> str:
    """Path commands of small squares around points."""
    half, side = size / 2, d.number(size)
    return "".join(f"M{d.number(x - half)} {d.number(y - half)}h{side}v{side}h-{side}z" for x, y in points)


def diamonds(points: list, size: float) -> str:
    """Path commands of small diamonds around points: VIP, where ordinary requests are squares."""
    half = d.number(size / 2)
    right, left = f"l{half} {half}", f"l-{half}"
    return "".join(f"M{d.number(x)} {d.number(y - size / 2)}{right}{left} {half}{left} -{half}z" for x, y in points)


class LogScale:
    """Seconds on a logarithmic axis from `low` to `high`; what lies outside sits on the edge."""

    def __init__(self, low: float, high: float, bottom: float, top: float):
        self.low, self.high, self.bottom, self.top = low, high, bottom, top

    def __call__(self, seconds: float) -> float:
        inside = min(self.high, max(self.low, seconds))
        return self.bottom + (self.top - self.bottom) * log10(inside / self.low) / log10(self.high / self.low)


def seconds_words(seconds: float) -> str:
    """A time as people say it: 0.149 s is "149 ms", 5.02 s is "5.0 s"."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:,.0f} s"


def latency_grid(scale: LogScale, left: float, right: float, ticks: tuple) -> list:
    """Thin lines with their times at the left edge, from 50 ms upwards."""
    parts = []
    for tick in ticks:
        if scale.low <= tick <= scale.high:
            y = scale(tick)
            parts += [d.line(left, y, right, y), d.text(left - 4, y + 4, seconds_words(tick), "label small", "end")]
    return parts


def clock_words(seconds: float) -> str:
    """A moment of a run, in seconds."""
    return f"{seconds:.1f}".rstrip("0").rstrip(".")

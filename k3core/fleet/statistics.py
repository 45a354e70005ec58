"""Percentiles and confidence intervals, with no interpolation: a percentile is a value that occurred."""

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

import numpy as np

Z95 = 1.959964
# Two-sided 95 % quantiles of Student's t for 1 .. 30 degrees of freedom.
T95 = (
    (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    + (2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
    + (2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
)


def _rank(p: float, count: int) -> int:
    """Nearest rank ceil(p n), 1-based, with p taken as the decimal it is written as."""
    if not 0 < p <= 1:
        raise ValueError(f"p is {p}; it must lie above 0 and at most at 1, for example 0.99")
    return -(-(Fraction(str(p)) * count) // 1)


def percentile(values: np.ndarray, p: float) -> float:
    """The smallest value that a share p of all does not exceed (nearest rank); NaN if there are none."""
    if not len(values):
        return float("nan")
    return float(np.partition(values, _rank(p, len(values)) - 1)[_rank(p, len(values)) - 1])


def percentile_interval(values: np.ndarray, p: float) -> tuple[float, float]:
    """95 % interval of a percentile from order statistics, as if the values were independent.

    Waits in one queue are not independent, so within a run this is too narrow: replicate over seeds.
    """
    if not len(values):
        return float("nan"), float("nan")
    ordered, n = np.sort(values), len(values)
    spread = Z95 * sqrt(n * p * (1 - p))
    low, high = int(n * p - spread), int(n * p + spread) + 1
    return float(ordered[max(0, low)]), float(ordered[min(n - 1, high)])


def mean_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Mean of independent samples (one per seed) and the half-width of its 95 % interval (Student's t)."""
    n = len(samples)
    if n < 2:
        raise ValueError(f"samples has {n} values; an interval needs at least 2 independent runs")
    mean = sum(samples) / n
    variance = sum((x - mean) ** 2 for x in samples) / (n - 1)
    t = T95[n - 2] if n - 1 <= len(T95) else Z95 + (Z95**3 + Z95) / (4 * (n - 1))
    return mean, t * sqrt(variance / n)

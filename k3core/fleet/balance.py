"""How evenly keys are spread, measured and in theory."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np


@dataclass(frozen=True)
class Balance:
    """Spread of a count per node: peak/mean, coefficient of variation, chi-square, degrees of freedom."""

    peak_to_mean: float
    cv: float
    chi_square: float
    degrees: int


def balance(counts: Sequence[int] | np.ndarray, weights: Sequence[int] | None = None) -> Balance:
    """Spread of counts int [n] against shares proportional to the weights (equal if none are given)."""
    counts = np.asarray(counts, dtype=np.float64)
    if counts.size == 0 or counts.sum() <= 0:
        raise ValueError("counts is empty or all zero; at least one key is needed")
    share = np.ones(len(counts)) if weights is None else np.asarray(weights, dtype=np.float64)
    expected = counts.sum() * share / share.sum()
    ratio = counts / expected
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    return Balance(float(ratio.max()), float(ratio.std()), chi_square, len(counts) - 1)


def ring_cv(nodes: int, vnodes: int) -> float:
    """Coefficient of variation of a node's share of a ring, sqrt((n-1)/(nV+1)).

    n nodes with V random points each own Beta(V, (n-1)V) shares; for many nodes this tends to 1/sqrt(V).
    """
    return sqrt((nodes - 1) / (nodes * vnodes + 1))


def sampling_cv(nodes: int, keys: int) -> float:
    """Coefficient of variation that an ideal hash leaves with this many keys, sqrt((n-1)/m)."""
    return sqrt((nodes - 1) / keys)


def sampling_peak_to_mean(nodes: int, keys: int) -> float:
    """Typical peak over mean of an ideal hash, 1 + sqrt(2 n ln n / m), for many more keys than n ln n.

    Source: Raab and Steger, "Balls into bins" (RANDOM 1998).
    """
    return 1 + sqrt(2 * nodes * log(nodes) / keys)


def one_point_peak_to_mean(nodes: int) -> float:
    """Expected peak over mean of a ring with one point per node: the harmonic number H_n."""
    return sum(1 / i for i in range(1, nodes + 1))

"""Byte traffic of the ReplaySSM ring: published figures, and the cycle of its cursor against a long run."""

from collections import Counter
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core import replayssm

S, R = 65_536, 1_024  # a KDA head of 128 x 128 in fp32; k, u in bf16 and g in fp32
HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    "window, law, kilobytes, baseline, factor, share, largest",
    [
        (4, {2: HALF, 3: HALF}, 89.82, 327.7, 3.65, 18.13, 19),
        (8, {2: HALF, 3: HALF}, 96.67, 589.8, 6.1, 25.40, 19),
        (8, {8: 1}, 118.78, 589.8, 4.97, 50.0, 24),
    ],
)
def test_ring_traffic_figures(window, law, kilobytes, baseline, factor, share, largest):
    cycle = replayssm.ring_cycle(16, window, law)
    moved, whole = replayssm.ring_bytes(S, R, window, cycle), replayssm.snapshot_bytes(S, window)
    assert round(float(moved) / 1000, 2) == kilobytes
    assert round(whole / 1000, 1) == baseline
    assert round(float(whole / moved), len(str(factor)) - 2) == factor
    assert round(float(100 * cycle.flush_share), 2) == share
    assert cycle.largest_write_pos + window == largest <= 16 + window


@pytest.mark.parametrize("window, share", [(4, 18.0), (8, 25.0)])
def test_flush_share_under_a_binomial_law(window, share):
    p = Fraction(3, 2) / (window - 1)  # 1 + binomial, mean 2.5
    law = {1 + a: comb(window - 1, a) * p**a * (1 - p) ** (window - 1 - a) for a in range(window)}
    assert round(float(100 * replayssm.ring_cycle(16, window, law).flush_share), 1) == share


def test_standard_decoding_figures():
    assert replayssm.best_length(S, R) == 11
    assert round(replayssm.best_length_approximation(S, R), 2) == 11.31
    bounds = [round(float(replayssm.standard_speedup(S, R, L)), 3) for L in (4, 8, 11, 16, 32)]
    assert bounds == [1.556, 1.676, 1.690, 1.675, 1.552]
    assert round(replayssm.best_length_approximation(S, 768), 1) == 13.1
    assert (
        round(replayssm.best_length_approximation(S, 388), 1) == 18.4
    )  # gated delta net, two value heads to a key head
    assert round(float(replayssm.standard_speedup(S, 388, 16)), 3) == 1.798
    assert replayssm.largest_stable_length(-5) == 17


@settings(max_examples=40, deadline=None, derandomize=True)
@given(state=st.integers(1, 10**6), record=st.integers(1, 10**5))
def test_best_length_is_the_best_of_all(state, record):
    best = replayssm.best_length(state, record)
    cost = partial(replayssm.standard_bytes, state, record)
    around = range(1, 2 * best + 10)  # the cost is convex in the length
    assert cost(best) == min(map(cost, around)) and all(cost(L) > cost(best) for L in range(1, best))


def test_draft_tokens():
    assert [replayssm.draft_tokens(n, 1) for n in (1, 4, 7)] == [1, 4, 7]
    assert replayssm.draft_tokens(3, 2) == 2 + 4 + 8


@settings(max_examples=15, deadline=None, derandomize=True)
@given(window=st.integers(1, 8), extra=st.integers(0, 12), seed=st.integers(0, 99))
def test_ring_cycle_is_what_a_long_run_does(window, extra, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 5, window)
    weights[rng.integers(window)] += 1
    law = {a + 1: Fraction(int(w), int(weights.sum())) for a, w in enumerate(weights)}
    cycle = replayssm.ring_cycle(window + extra, window, law)
    draws = rng.choice(np.arange(1, window + 1), 20000, p=weights / weights.sum())
    seen, w = Counter(), 0
    for a in draws:
        seen[w] += 1
        w = int(a) if w + 2 * window > 2 * window + extra else w + int(a)
    flushes = sum(n for w, n in seen.items() if w > extra)
    mean = sum(w * n for w, n in seen.items()) / 20000
    assert abs(flushes / 20000 - cycle.flush_share) < 0.02
    assert abs(mean - cycle.mean_write_pos) < 0.25
    assert max(seen) <= cycle.largest_write_pos <= extra + window


# --- bad input ---


@pytest.mark.parametrize("law", [{}, {0: 1}, {5: 1}, {1: HALF}, {1: 2, 2: -1}])
def test_bad_acceptance_law(law):
    with pytest.raises(ValueError, match="accepted must map 1 to 4"):
        replayssm.ring_cycle(16, 4, law)


def test_bad_traffic_arguments():
    with pytest.raises(ValueError, match="buffer must be at least"):
        replayssm.ring_cycle(3, 4, {1: 1})
    with pytest.raises(ValueError, match="length must be positive"):
        replayssm.standard_bytes(S, R, 0)
    with pytest.raises(ValueError, match="record must be positive"):
        replayssm.best_length(S, 0)
    with pytest.raises(ValueError, match="lower_bound must be negative"):
        replayssm.largest_stable_length(5)
    with pytest.raises(ValueError, match="branching must be positive"):
        replayssm.draft_tokens(3, 0)

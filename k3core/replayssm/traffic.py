"""Bytes that a decoding step moves, per head: state S and record r in bytes. Exact, in fractions.

The published part: a plain step reads and writes the state; replay reads it and writes it only at a flush
(sglang #28451, vllm #47572). The rest follows from the flush rule of the ring (ring.py).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt


def standard_bytes(state, record, length):
    """Bytes per token of standard decoding, buffer of L tokens: S (1 + 1/L) + r ((L-1)/2 + (L-1)/L)."""
    _positive(state=state, record=record, length=length)
    L = length
    return state * (1 + Fraction(1, L)) + record * (Fraction(L - 1, 2) + Fraction(L - 1, L))


def standard_speedup(state, record, length):
    """Bound on the speed-up of standard decoding if only bytes count: 2 S / `standard_bytes`; below 2."""
    return 2 * state / standard_bytes(state, record, length)


def best_length(state, record):
    """The buffer length with the fewest bytes per token, the smaller of equals; near sqrt(2 (S/r - 1))."""
    _positive(state=state, record=record)
    near = isqrt(max(0, 2 * (state - record) // record))
    return min(
        range(max(1, near - 1), near + 3), key=lambda length: (standard_bytes(state, record, length), length)
    )


def best_length_approximation(state, record):
    """sqrt(2 S / r), the usual approximation of the best buffer length (a float)."""
    _positive(state=state, record=record)
    return sqrt(2 * state / record)


@dataclass(frozen=True)
class RingCycle:
    """The ring's cursor in the long run."""

    flush_share: Fraction  # of the steps
    mean_write_pos: Fraction  # at the start of a step
    largest_write_pos: int


def ring_cycle(buffer, window, accepted):
    """Long-run averages of the cursor's Markov chain, exactly.

    accepted maps the tokens committed in a step, bonus included, to their probability. A step that starts at
    w flushes if w + 2 T > B + T; then the next starts at a, else at w + a. So each flush starts the cursor
    anew from a draw of a, and long-run averages are averages over one such cycle. Probabilities are taken as
    exact fractions and must sum to 1 (0.5 is exact; write a third as Fraction(1, 3)).
    """
    if buffer < window:
        raise ValueError(f"buffer must be at least the window of {window} tokens, not {buffer}")
    law = {int(a): Fraction(p) for a, p in accepted.items() if p}
    if not law or min(law) < 1 or max(law) > window or min(law.values()) < 0 or sum(law.values()) != 1:
        raise ValueError(
            f"accepted must map 1 to {window} tokens to probabilities that sum to 1, not {accepted}"
        )
    visits = dict(law)  # expected visits of each cursor position per cycle
    for w in range(1, buffer - window + 1):  # positions that do not flush
        for a, p in law.items():
            if w in visits:
                visits[w + a] = visits.get(w + a, Fraction(0)) + visits[w] * p
    steps = sum(visits.values())
    return RingCycle(1 / steps, sum(w * share for w, share in visits.items()) / steps, max(visits))


def ring_bytes(state, record, window, cycle):
    """Bytes per step of speculative decoding with the ring: S (1 + f) + r (E[write_pos] + T)."""
    _positive(state=state, record=record, window=window)
    return state * (1 + cycle.flush_share) + record * (cycle.mean_write_pos + window)


def snapshot_bytes(state, window):
    """Bytes per step of speculative decoding with a state per window position: S (1 + T)."""
    _positive(state=state, window=window)
    return state * (1 + window)


def largest_stable_length(lower_bound, limit=80):
    """The largest L with (L - 1) |g_min| <= limit, which pre-decayed keys k exp(-G) need (sglang #37739).

    K3 (-5): 17. Rings that store plain keys, as here, have no such bound.
    """
    if not lower_bound < 0:
        raise ValueError(f"lower_bound must be negative, not {lower_bound}")
    return int(limit // -lower_bound) + 1


def draft_tokens(depth, branching):
    """Tokens of a draft tree: branching + branching^2 + ... + branching^depth; a chain has branching 1."""
    _positive(depth=depth, branching=branching)
    return sum(branching**level for level in range(1, depth + 1))


def _positive(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, not {value}")

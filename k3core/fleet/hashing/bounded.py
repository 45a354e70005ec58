"""Consistent hashing with bounded loads."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .keys import Keys
from .ring import Ring


def load_cap(load_factor: float, keys: int, weights: Sequence[int]) -> np.ndarray:
    """Most keys a node may hold: ceil(load_factor * keys * weight / total weight) -> int64 [n].

    The factor counts as the decimal it is written as, so 1.1 means eleven tenths exactly.
    Source: Mirrokni, Thorup, Zadimoghaddam, arXiv 1608.01350 (factor 1 + epsilon).
    """
    factor = Fraction(str(load_factor)) if np.isfinite(load_factor) else Fraction(0)
    if not 1 <= factor <= 1_000_000:
        raise ValueError(f"load_factor is {load_factor}; it must be a number from 1 to 1,000,000")
    total = sum(weights)
    return np.array([-(-(factor * keys * weight) // total) for weight in weights], dtype=np.int64)


class Bounded:
    """Consistent hashing with bounded loads: keys come in order, and walk past nodes that are full.

    Unlike with the other schemes the result depends on the keys' order and number.
    Source: arXiv 1608.01350; as in Envoy's and HAProxy's hash balance factor and KubeAI's CHWBL.
    """

    def __init__(self, ring: Ring, load_factor: float = 1.25):
        load_cap(load_factor, 0, ring.weights)
        if len(np.unique(ring.owners)) < len(ring.nodes):
            raise ValueError("a node owns no entry, so its share has nowhere to go; use more vnodes")
        self.ring, self.load_factor, self.nodes = ring, load_factor, ring.nodes

    def assign(self, keys: Keys) -> np.ndarray:
        entry = self.ring.entry(keys)
        cap = load_cap(self.load_factor, len(entry), self.ring.weights)
        load = np.zeros(len(self.nodes), dtype=np.int64)
        result = np.empty(len(entry), dtype=np.int64)
        done = 0
        # One pass per node that fills up: everyone walks past the full nodes until the next one fills.
        while done < len(entry):
            node = self.ring.owners_without(load >= cap)[entry[done:]]
            stop = _first_refused(node, cap - load)
            result[done : done + stop] = node[:stop]
            load += np.bincount(node[:stop], minlength=len(self.nodes))
            done += stop
        return result

    def rank(self, keys: Keys, count: int) -> np.ndarray:
        """The walk itself, without loads: the order in which nodes are tried."""
        return self.ring.rank(keys, count)


def _first_refused(node: np.ndarray, room: np.ndarray) -> int:
    """Index of the first key whose node has no room left when keys come in order; len(node) if none."""
    order = np.argsort(node, kind="stable")
    counts = np.bincount(node, minlength=len(room))
    first = np.cumsum(counts) - counts
    over = counts > room
    return int(order[first[over] + room[over]].min()) if over.any() else len(node)

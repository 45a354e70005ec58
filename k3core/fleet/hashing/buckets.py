"""Schemes that only number their buckets 0 .. n-1: modulo and jump."""

from collections.abc import Sequence

import numpy as np

from .functions import U64
from .keys import Keys, check_integer, check_nodes, key_hashes
from .rendezvous import rank_behind


def jump_hash(hashes: np.ndarray, buckets: int) -> np.ndarray:
    """Jump consistent hash: uint64 [K] -> bucket int64 [K] in 0 .. buckets-1.

    Going from n to n+1 buckets moves 1/(n+1) of the keys, all of them into the new bucket.
    Source: Lamping and Veach, arXiv 1406.2294, figure 1.
    """
    check_integer("buckets", buckets, 1, 2**31)
    bucket = np.zeros(len(hashes), dtype=np.int64)
    active = np.arange(len(hashes))
    state, jump = hashes.astype(U64), bucket.copy()
    while active.size:
        bucket[active] = jump
        state = state * U64(2862933555777941757) + U64(1)
        # float64 as in the paper's C++; at most 2**62, so the cast back to int64 is safe
        jump = ((jump + 1) * (2.0**31 / ((state >> U64(33)) + U64(1)).astype(np.float64))).astype(np.int64)
        keep = jump < buckets
        active, state, jump = active[keep], state[keep], jump[keep]
    return bucket


class _Buckets:
    """Schemes that only know bucket numbers: no weights, and only the last bucket can go cheaply."""

    def __init__(self, nodes: Sequence[str]):
        self.nodes = check_nodes(nodes)

    def bucket(self, hashes: np.ndarray, buckets: int) -> np.ndarray:
        raise NotImplementedError

    def assign(self, keys: Keys) -> np.ndarray:
        return self.bucket(key_hashes(keys), len(self.nodes))

    def rank(self, keys: Keys, count: int) -> np.ndarray:
        hashes = key_hashes(keys)
        return rank_behind(self.bucket(hashes, len(self.nodes)), hashes, self.nodes, count)


class Modulo(_Buckets):
    """hash mod n: perfectly simple, and n -> n+1 moves n/(n+1) of the keys."""

    def bucket(self, hashes, buckets):
        return (hashes % U64(buckets)).astype(np.int64)


class Jump(_Buckets):
    """Jump consistent hash (arXiv 1406.2294); an integer key is taken as it is, a text through XXH64."""

    def bucket(self, hashes, buckets):
        return jump_hash(hashes, buckets)

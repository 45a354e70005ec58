"""Rendezvous hashing, also called highest random weight."""

from collections.abc import Sequence

import numpy as np

from .functions import mix64, xxh64
from .keys import Keys, check_count, check_nodes, check_weights, key_hashes

MAX_DRAWS = 65_536


class Rendezvous:
    """Highest random weight: every node draws a score for the key, the highest wins.

    A node of weight w draws w scores, which gives it its share of the keys in exact integer arithmetic.
    Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates" (ToN 1998).
    """

    def __init__(self, nodes: Sequence[str], weights: Sequence[int] | None = None):
        self.nodes = check_nodes(nodes)
        self.weights = check_weights(weights, self.nodes)
        if sum(self.weights) > MAX_DRAWS:
            raise ValueError(
                f"weights add up to {sum(self.weights)} scores per key; the limit is {MAX_DRAWS}"
            )
        self._seeds = [
            xxh64([f"{node}_{i}" for i in range(w)]) for node, w in zip(self.nodes, self.weights, strict=True)
        ]

    def _score(self, hashes: np.ndarray, node: int) -> np.ndarray:
        draws = [mix64(hashes ^ seed) for seed in self._seeds[node]]
        return np.maximum.reduce(draws)

    def assign(self, keys: Keys) -> np.ndarray:
        hashes = key_hashes(keys)
        best, winner = self._score(hashes, 0), np.zeros(len(hashes), dtype=np.int64)
        for node in range(1, len(self.nodes)):
            score = self._score(hashes, node)
            better = score > best  # a tie stays with the lower index
            best[better] = score[better]
            winner[better] = node
        return winner

    def _rank(self, hashes: np.ndarray, count: int, first: np.ndarray | None = None) -> np.ndarray:
        check_count(count, self.nodes)
        scores = np.stack([self._score(hashes, node) for node in range(len(self.nodes))], axis=1)
        order = np.argsort(~scores, axis=1, kind="stable").astype(np.int64)
        if first is not None:
            behind = order != first[:, None]
            order = np.column_stack([first, order[behind].reshape(len(order), len(self.nodes) - 1)])
        return order[:, :count]

    def rank(self, keys: Keys, count: int) -> np.ndarray:
        return self._rank(key_hashes(keys), count)


def rank_behind(first: np.ndarray, hashes: np.ndarray, nodes: Sequence[str], count: int) -> np.ndarray:
    """The given first node of each key, then the others in (unweighted) rendezvous order -> int64 [K, count].

    For schemes that name only one node: a next bucket or slot in sequence would send all keys of a
    failed node to one and the same neighbour.
    """
    return Rendezvous(nodes)._rank(hashes, count, first)

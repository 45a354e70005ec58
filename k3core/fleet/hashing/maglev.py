"""Maglev hashing: a look-up table that each node fills along its own permutation."""

from collections.abc import Sequence

import numpy as np

from .functions import U64, xxh64
from .keys import Keys, check_integer, check_nodes, check_weights, key_hashes
from .rendezvous import rank_behind

MAX_TABLE_SIZE = 5_000_011  # Envoy maglev.proto, table_size


def is_prime(number: int) -> bool:
    return number >= 2 and all(number % d for d in range(2, int(number**0.5) + 1))


class Maglev:
    """Maglev lookup table of prime size: each node fills its own permutation of the slots in turn.

    offset = XXH64(node) mod M, skip = XXH64(node, seed 1) mod (M-1) + 1, nodes take turns in sorted order, a
    node of weight w at every ceil(w_max/w)-th round. An integer key h has slot h mod M, a text its XXH64.
    Source: Eisenbud et al., "Maglev" (NSDI 2016) section 3.4; hashes and weights as in envoyproxy/envoy
    source/extensions/load_balancing_policies/maglev/maglev_lb.cc.
    """

    def __init__(self, nodes: Sequence[str], table_size: int = 65537, weights: Sequence[int] | None = None):
        self.nodes = check_nodes(nodes)
        self.weights = check_weights(weights, self.nodes)
        check_integer("table", table_size, len(self.nodes), MAX_TABLE_SIZE)
        if not is_prime(table_size):
            raise ValueError(f"table is {table_size}; its size must be a prime number")
        size = U64(table_size)
        self.offsets = (xxh64(self.nodes) % size).astype(np.int64)
        self.skips = (xxh64(self.nodes, 1) % (size - U64(1))).astype(np.int64) + 1
        order = sorted(range(len(self.nodes)), key=lambda node: self.nodes[node])
        turns = maglev_turns([self.weights[node] for node in order], table_size)
        self.table = maglev_table(self.offsets, self.skips, np.array(order, dtype=np.int64)[turns])

    def _assign(self, hashes: np.ndarray) -> np.ndarray:
        return self.table[(hashes % U64(len(self.table))).astype(np.int64)]

    def assign(self, keys: Keys) -> np.ndarray:
        return self._assign(key_hashes(keys))

    def rank(self, keys: Keys, count: int) -> np.ndarray:
        hashes = key_hashes(keys)
        return rank_behind(self._assign(hashes), hashes, self.nodes, count)


def maglev_turns(weights: Sequence[int], table_size: int) -> np.ndarray:
    """Whose turn it is, for each of the table's slots -> int64 [table_size].

    The j-th turn of a node of weight w falls in round max(j + 1, ceil(j * w_max / w)).
    """
    heaviest = max(weights)
    rounds = -(-table_size * heaviest // sum(weights))
    turn_round, turn_node = [], []
    for node, weight in enumerate(weights):
        j = np.arange(rounds * weight // heaviest + 1, dtype=np.int64)
        turn_round.append(np.maximum(j + 1, -(-j * heaviest // weight)))
        turn_node.append(np.full(len(j), node, dtype=np.int64))
    nodes, at = np.concatenate(turn_node), np.concatenate(turn_round)
    return nodes[np.lexsort((nodes, at))][:table_size]


def maglev_table(offsets: Sequence[int], skips: Sequence[int], turns: np.ndarray) -> np.ndarray:
    """At its turn each node takes its next free slot of offset, offset + skip, ... -> int64 [M]."""
    size = len(turns)
    table = [-1] * size
    cursor, skip = [int(o) for o in offsets], [int(s) for s in skips]
    for node in turns.tolist():
        slot = cursor[node]
        while table[slot] >= 0:
            slot = (slot + skip[node]) % size
        table[slot] = node
        cursor[node] = slot
    return np.array(table, dtype=np.int64)

"""Consistent hashing on a ring of virtual nodes."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from .functions import U64, md5_points, xxh64
from .keys import Keys, check_count, check_integer, check_nodes, check_weights, integer_keys

MAX_RING_SIZE = 8 * 1024 * 1024  # Envoy ring_hash.proto, maximum_ring_size


def envoy_points(weights: Sequence[int], ring_size: int) -> list[int]:
    """Points per node for a ring of at least `ring_size` points.

    The lightest node gets a whole number of points, the others follow by running sums; exact integers here.
    Source: envoyproxy/envoy source/extensions/load_balancing_policies/ring_hash/ring_hash_lb.cc.
    """
    lightest, total = min(weights), sum(weights)
    scale = -(-lightest * ring_size // total)
    ends = [-(-scale * running // lightest) for running in accumulate(weights, initial=0)]
    return [end - start for start, end in pairwise(ends)]


class _Successor:
    """Index of the first of sorted positions at or after a value, found through the value's leading bits.

    Hashed positions are spread evenly, so a table with about 4 entries per position leads to within a step or
    two of the place, several times faster than a binary search.
    """

    def __init__(self, positions: np.ndarray, bits: int):
        lead = min(bits, len(positions).bit_length() + 2)
        self.shift = U64(bits - lead)
        starts = np.arange(2**lead, dtype=U64) << self.shift
        self.first = np.searchsorted(positions, starts, side="left").astype(np.int64)
        self.positions = np.append(positions, U64(2**64 - 1))  # nothing lies beyond the end

    def of(self, values: np.ndarray) -> np.ndarray:
        index = self.first[(values >> self.shift).astype(np.int64)]
        behind = np.flatnonzero(self.positions[index] < values)
        while behind.size:
            index[behind] += 1
            behind = behind[self.positions[index[behind]] < values[behind]]
        return index


class Ring:
    """Consistent hashing on a ring of virtual nodes; the first point at or after the key's position owns it.

    style "envoy": points XXH64("<node>_<i>"), 64-bit positions; an integer key is a position, a text goes
    through XXH64. Give `vnodes` (points per unit of weight) or `ring_size` (Envoy's least size of the ring).
    style "ketama": four 32-bit points from MD5("<node>-<i>"), any key goes through MD5 as text; `vnodes` must
    be a multiple of 4, a weighted node gets its share of n * vnodes points (RJ/ketama libketama/ketama.c).
    """

    def __init__(
        self,
        nodes: Sequence[str],
        style: str = "envoy",
        vnodes: int | None = None,
        ring_size: int | None = None,
        weights: Sequence[int] | None = None,
    ):
        self.nodes = check_nodes(nodes)
        self.weights = check_weights(weights, self.nodes)
        if style not in ("envoy", "ketama"):
            raise ValueError(f"style is {style!r}; it must be 'envoy' or 'ketama'")
        self.style = style
        if ring_size is not None and (vnodes is not None or style == "ketama"):
            raise ValueError("ring_size sizes an envoy ring as a whole; give it alone, or give vnodes")
        if ring_size is None and vnodes is None:
            vnodes = 160
        points = self._points_per_node(vnodes, ring_size)
        if sum(points) > MAX_RING_SIZE:
            raise ValueError(f"the ring would have {sum(points)} points; the limit is {MAX_RING_SIZE}")
        owners = np.repeat(np.arange(len(self.nodes), dtype=np.int64), points)
        if style == "envoy":
            positions = xxh64([f"{n}_{i}" for n, p in zip(self.nodes, points, strict=True) for i in range(p)])
        else:
            texts = [f"{n}-{i}" for n, p in zip(self.nodes, points, strict=True) for i in range(p // 4)]
            positions = md5_points(texts).ravel().astype(U64)
        order = np.lexsort((owners, positions))
        self.positions, self.owners = positions[order], owners[order]
        self._index = _Successor(self.positions, 64 if style == "envoy" else 32)

    def _points_per_node(self, vnodes: int | None, ring_size: int | None) -> list[int]:
        if vnodes is None:
            return envoy_points(self.weights, check_integer("ring_size", ring_size, 1, MAX_RING_SIZE))
        vnodes = check_integer("vnodes", vnodes, 1, MAX_RING_SIZE)
        if self.style == "envoy":
            return [vnodes * weight for weight in self.weights]
        if vnodes % 4:
            raise ValueError(
                f"vnodes is {vnodes}; Ketama cuts four points from each MD5, so use a multiple of 4"
            )
        digests, total = vnodes // 4 * len(self.nodes), sum(self.weights)
        return [4 * (digests * weight // total) for weight in self.weights]

    def position(self, keys: Keys) -> np.ndarray:
        """Position of each key on the ring -> uint64 [K] (below 2**32 for ketama)."""
        integers = integer_keys(keys)
        if self.style == "envoy":
            return xxh64(keys) if integers is None else integers
        texts = keys if integers is None else [str(key) for key in integers.tolist()]
        return md5_points(texts)[:, 0].astype(U64)

    def entry(self, keys: Keys) -> np.ndarray:
        """Index of the point that owns each key -> int64 [K]."""
        return self._index.of(self.position(keys)) % len(self.positions)

    def assign(self, keys: Keys) -> np.ndarray:
        return self.owners[self.entry(keys)]

    def rank(self, keys: Keys, count: int) -> np.ndarray:
        """The first `count` distinct nodes met clockwise from each key -> int64 [K, count]."""
        check_count(count, self.nodes)
        if count > len(np.unique(self.owners)):
            raise ValueError(f"count is {count}, but fewer nodes own an entry; use more vnodes")
        entries, which = np.unique(self.entry(keys), return_inverse=True)
        found = np.full((len(entries), count), -1, dtype=np.int64)
        filled = np.zeros(len(entries), dtype=np.int64)
        active, position = np.arange(len(entries)), entries.astype(np.int64)
        while active.size:
            owner = self.owners[position[active]]
            new = active[~(found[active] == owner[:, None]).any(axis=1)]
            found[new, filled[new]] = self.owners[position[new]]
            filled[new] += 1
            active = active[filled[active] < count]
            position[active] = (position[active] + 1) % len(self.owners)
        return found[which]

    def shares(self) -> np.ndarray:
        """Share of all positions that each node owns -> float64 [n], summing to 1."""
        arcs = self.positions - np.roll(self.positions, 1)  # uint64 wraps at 2**64
        bits = 64
        if self.style == "ketama":
            arcs, bits = arcs & U64(2**32 - 1), 32
        if len(arcs) == 1:
            return np.bincount(self.owners, minlength=len(self.nodes)).astype(np.float64)
        return np.bincount(self.owners, arcs.astype(np.float64), len(self.nodes)) / 2.0**bits

    def owners_without(self, excluded: np.ndarray) -> np.ndarray:
        """Owner met from every point when excluded nodes (bool [n]) are walked past -> int64 [size]."""
        size = len(self.owners)
        open_at = np.where(excluded[self.owners], 2 * size, np.arange(size, dtype=np.int64))
        following = np.minimum.accumulate(open_at[::-1])[::-1]
        return self.owners[np.where(following < size, following, following[0])]

"""What the schemes accept: node names, integer weights, and keys that are texts or integers."""

from collections.abc import Sequence

import numpy as np

from .functions import U64, xxh64

MAX_NODES = 1_000_000
MAX_WEIGHT = 1_000_000

Keys = Sequence[str] | Sequence[bytes] | Sequence[int] | np.ndarray


def node_names(count: int) -> list[str]:
    """Names node0, node1, ... for `count` nodes."""
    check_integer("nodes", count, 1, MAX_NODES)
    return [f"node{i}" for i in range(count)]


def check_integer(name: str, value: int, low: int, high: int) -> int:
    """The value as an int; ValueError naming the argument unless it is an integer in low .. high."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; it must be an integer in {low} .. {high}")
    return int(value)


def integer_keys(keys: Keys) -> np.ndarray | None:
    """Integer keys as uint64 [K], or None where the keys are texts; ValueError below 0 or from 2**64."""
    if isinstance(keys, np.ndarray):
        if not np.issubdtype(keys.dtype, np.integer):
            raise ValueError(f"keys is an array of {keys.dtype}; use an integer array or a list of texts")
        if keys.size and keys.min() < 0:
            raise ValueError(f"keys holds {keys.min()}; integer keys must be at least 0")
        return keys.astype(U64)
    if not all(isinstance(key, int | np.integer) and not isinstance(key, bool) for key in keys):
        if all(isinstance(key, str | bytes) for key in keys):
            return None
        raise ValueError("keys must be all texts or all integers")
    for key in keys:
        if not 0 <= key < 2**64:
            raise ValueError(f"keys holds {key}; integer keys must lie in 0 .. 2**64 - 1")
    return np.array(keys, dtype=U64)


def key_hashes(keys: Keys) -> np.ndarray:
    integers = integer_keys(keys)
    return xxh64(keys) if integers is None else integers


def check_nodes(nodes: Sequence[str]) -> tuple[str, ...]:
    nodes = tuple(nodes)
    if not nodes:
        raise ValueError("nodes is empty; at least one node is needed")
    seen = set()
    for node in nodes:
        if not isinstance(node, str) or not node:
            raise ValueError(f"nodes holds {node!r}; a node is a non-empty name")
        if node in seen:
            raise ValueError(f"nodes holds {node!r} twice; names must differ")
        seen.add(node)
    return nodes


def check_weights(weights: Sequence[int] | None, nodes: tuple[str, ...]) -> list[int]:
    if weights is None:
        return [1] * len(nodes)
    if len(weights) != len(nodes):
        raise ValueError(f"weights has {len(weights)} values for {len(nodes)} nodes; give one per node")
    return [check_integer("weight", weight, 1, MAX_WEIGHT) for weight in weights]


def check_count(count: int, nodes: tuple[str, ...]) -> None:
    check_integer("count", count, 1, len(nodes))

"""Sessions and their clusters: primary and secondary, failover, and what a change of clusters costs.

A session's prefix lives on the cluster that served it. Whoever takes the session over has to prefill that
prefix again, so a change is judged by how many sessions move, how many of those moves were needless, and how
evenly the prefill falls on the clusters that remain (Kimi K3 report, arXiv 2607.24653, section 5.4.3).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from .hashing import Keys, Scheme


def fail_over(scheme: Scheme, keys: Keys, down: Collection[str], how: str = "secondary") -> np.ndarray:
    """Where sessions go while some nodes are down -> int64 [K], indices into scheme.nodes.

    how "secondary": each session's own next choice, so a failed node's sessions spread over many;
    "neighbour": the next node that is up in the order of the nodes, so one victim takes them all.
    """
    unknown = sorted(set(down) - set(scheme.nodes))
    if unknown:
        raise ValueError(f"down names {unknown[0]!r}, which is not among the nodes")
    up = np.array([node not in down for node in scheme.nodes])
    if not up.any():
        raise ValueError("down names every node; at least one must stay up")
    if how == "secondary":
        order = scheme.rank(keys, min(len(scheme.nodes), int((~up).sum()) + 1))
    elif how == "neighbour":
        steps = np.arange(len(scheme.nodes), dtype=np.int64)
        order = (scheme.assign(keys)[:, None] + steps) % len(scheme.nodes)
    else:
        raise ValueError(f"how is {how!r}; it must be 'secondary' or 'neighbour'")
    first_up = up[order].argmax(axis=1)
    return order[np.arange(len(order)), first_up]


@dataclass(frozen=True)
class Disruption:
    """What a change of nodes does to the sessions; the node lists before and after may differ.

    moved bool [K]; needless bool [K]: moved although its old node stays, and to a node that was there before;
    ideal_fraction: the least that any scheme must move to follow the nodes' shares; reprefill int64 [nodes
    after]: tokens to prefill again on each node.
    """

    nodes: tuple[str, ...]
    moved: np.ndarray
    needless: np.ndarray
    ideal_fraction: float
    reprefill: np.ndarray

    @property
    def moved_fraction(self) -> float:
        return float(self.moved.mean())

    @property
    def moved_between_survivors(self) -> float:
        return float(self.needless.mean())

    @property
    def max_share(self) -> float:
        """Share of the repeated prefill that falls on the busiest node; 0 if there is none."""
        total = int(self.reprefill.sum())
        return int(self.reprefill.max()) / total if total else 0.0


def disruption(
    before: tuple[Sequence[str], np.ndarray],
    after: tuple[Sequence[str], np.ndarray],
    prefix_tokens: np.ndarray,
    shares: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Disruption:
    """Compare two assignments of the same sessions, each given as (nodes, int64 [K] indices into them).

    prefix_tokens int64 [K]; shares: relative weights of the nodes before and after, equal if not given. Raises
    ValueError for nodes that are one string instead of a list of names.
    """
    for name, (nodes, _) in (("before", before), ("after", after)):
        if isinstance(nodes, str):
            raise ValueError(f"the nodes of {name} are {nodes!r}; they must be a list of names")
    old, new = np.array(before[0])[before[1]], np.array(after[0])[after[1]]
    moved = old != new
    needless = moved & np.isin(old, list(after[0])) & np.isin(new, list(before[0]))
    tokens = np.zeros(len(after[0]), dtype=np.int64)
    np.add.at(tokens, after[1][moved], np.asarray(prefix_tokens, dtype=np.int64)[moved])
    weights = shares or ([1.0] * len(before[0]), [1.0] * len(after[0]))
    was, now = (
        {node: w / sum(ws) for node, w in zip(side[0], ws, strict=True)}
        for side, ws in zip((before, after), weights, strict=True)
    )
    ideal = sum(max(0.0, now[node] - was.get(node, 0.0)) for node in now)
    return Disruption(tuple(after[0]), moved, needless, ideal, tokens)

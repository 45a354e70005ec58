"""Moving a KDA state between ranks that split its heads differently: ranges of bytes, never elements."""

from dataclasses import dataclass
from math import gcd

import numpy as np

from .pages import StatePage


@dataclass(frozen=True)
class Move:
    """Copy `nbytes` from an offset in one rank's page to an offset in another's."""

    source_rank: int
    source_offset: int
    target_rank: int
    target_offset: int
    nbytes: int


def relayout(page: StatePage, from_tp: int, to_tp: int) -> list[Move]:
    """The moves that turn the pages of `from_tp` ranks into those of `to_tp`; `page` is the unsplit one.

    Ordered by target rank and offset; together they cover every byte of both sides once.
    """
    source, target = page.shard(from_tp), page.shard(to_tp)
    step = gcd(source.heads, target.heads)
    moves = []
    for rank in range(to_tp):
        for region in ("state", "conv"):
            for head in range(rank * target.heads, (rank + 1) * target.heads, step):
                moves.append(Move(head // source.heads, _offset(source, region, head % source.heads), rank,
                                  _offset(target, region, head % target.heads),
                                  step * _head_bytes(page, region)))
    return moves


def apply_moves(moves: list[Move], sources: list[np.ndarray], targets: list[np.ndarray]) -> None:
    """Carry out moves between the ranks' pages [page_bytes], uint8."""
    for move in moves:
        piece = sources[move.source_rank][move.source_offset : move.source_offset + move.nbytes]
        targets[move.target_rank][move.target_offset : move.target_offset + move.nbytes] = piece


def _head_bytes(page: StatePage, region: str) -> int:
    return page.state_bytes_per_head if region == "state" else page.conv_bytes_per_head


def _offset(page: StatePage, region: str, head: int) -> int:
    start = page.heads * page.state_bytes_per_head if region == "conv" else 0
    return start + head * _head_bytes(page, region)

"""Rebuild a state from a checkpoint and records that may come late, out of order or twice, and check it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..kda import kda_update


class Record(NamedTuple):
    """The inputs of one token's update, with its place in the stream (0 for the first token)."""

    seq: int
    k: np.ndarray  # [HV, dk]
    v: np.ndarray  # [HV, dv]
    g: np.ndarray  # [HV, dk]
    beta: np.ndarray  # [HV]


class Checkpoint(NamedTuple):
    """A state [HV, dk, dv] and how many tokens it has read."""

    seq: int
    state: np.ndarray


@dataclass
class Replay:
    """Where a replay ended, and what it found wrong on the way."""

    seq: int  # tokens the state has read
    state: np.ndarray  # [HV, dk, dv]
    unused: list  # seq of records that were stale, doubled, or behind a gap
    deviations: dict = field(default_factory=dict)  # seq -> largest difference from the claimed state
    detected_at: int | None = None  # the first seq whose claim was off by more than the tolerance


def make_records(k, v, g, beta, first=0):
    """Records of T tokens, numbered from `first`: k, g [T, HV, dk], v [T, HV, dv], beta [T, HV]."""
    return [Record(first + t, k[t], v[t], g[t], beta[t]) for t in range(len(v))]


def in_order(records, seq):
    """The records from `seq` on in stream order, each number once (first to arrive), up to the first gap."""
    arrived = {}
    for record in records:
        arrived.setdefault(record.seq, record)
    ready = []
    while seq in arrived:
        ready.append(arrived[seq])
        seq += 1
    return ready


def verify_and_replay(checkpoint, records, claims=None, tolerance=0.0, arrange=in_order):
    """Replay records onto a checkpoint token by token, comparing with claimed states -> Replay.

    records: Records in any order. claims: {seq: state after seq tokens} as another run or node states it;
    where one differs by more than `tolerance` (largest absolute difference), the replay goes on from its own
    state, so what it returns is right. Equal to an uninterrupted `kda_recurrent` to the bit, as it does the
    same operations in the same order. arrange(records, seq) picks what to replay.
    """
    records, claims = list(records), claims or {}
    state, seq = checkpoint.state, checkpoint.seq
    ready = arrange(records, seq)
    unused = Counter(record.seq for record in records) - Counter(record.seq for record in ready)
    replay = Replay(seq, state, sorted(unused.elements()))
    for record in ready:
        state, _ = kda_update(record.k, record.v, record.g, record.beta, state)
        seq += 1
        if seq in claims:
            off = float(np.max(np.abs(claims[seq] - state)))
            replay.deviations[seq] = off
            if replay.detected_at is None and not off <= tolerance:  # NaN counts as off
                replay.detected_at = seq
    replay.seq, replay.state = seq, state
    return replay

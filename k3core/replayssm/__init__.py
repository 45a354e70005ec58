"""Taking recurrent state back after rejected drafts: stores, ReplaySSM ring, replay, byte traffic."""

from .replay import Checkpoint, Record, Replay, in_order, make_records, verify_and_replay
from .ring import RingStore
from .stores import CorrectedStore, ProjectionStore, SnapshotStore, StateStore, fold
from .traffic import (
    RingCycle,
    best_length,
    best_length_approximation,
    draft_tokens,
    largest_stable_length,
    ring_bytes,
    ring_cycle,
    snapshot_bytes,
    standard_bytes,
    standard_speedup,
)

__all__ = [
    "Checkpoint",
    "CorrectedStore",
    "ProjectionStore",
    "Record",
    "Replay",
    "RingCycle",
    "RingStore",
    "SnapshotStore",
    "StateStore",
    "best_length",
    "best_length_approximation",
    "draft_tokens",
    "fold",
    "in_order",
    "largest_stable_length",
    "make_records",
    "ring_bytes",
    "ring_cycle",
    "snapshot_bytes",
    "standard_bytes",
    "standard_speedup",
    "verify_and_replay",
]

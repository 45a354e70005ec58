"""Claims about the recurrent state: snapshots, records, replay, the ring."""

from k3core.lab.byte_cost import LAYOUTS
from k3core.lab.display import number
from k3core.models import Recurrent
from k3core.sizing import record_bytes, recurrent_state_bytes
from sitegen.claims.evidence import CONDITIONS, FAILS, HOLDS, Claim, cell, check, computed, metric, run

REPLAY = run("speculative-replay")
BYTES = run("byte-cost")
VERIFY = run("verify-and-replay")
RING = run("replayssm-ring")
SMALL = {"dk": 16, "dv": 16}
OBLONG = run("byte-cost", dk=16, dv=9, drafts=8)
POSITIONS = range(1, 18)  # what the tab's control for drafts can ask for
CLAIMED_SNAPSHOT, CLAIMED_RECORDS, CLAIMED_RATIO = 5000, 1500, 7.9


def near(value: float, wanted: float, tolerance: float = 0.1) -> bool:
    """Whether a value is within a tenth, or another part, of the wanted one."""
    return abs(value - wanted) <= tolerance * wanted


def square_heads_with_both() -> tuple:
    """Of all layouts and windows of the tab byte-cost for one 16 × 16 head: those within a tenth of both figures."""
    head = Recurrent("kda", heads=1, key_heads=1, dk=16, dv=16, conv_kernel=4)
    every = [(count * recurrent_state_bytes(head, dtype=dtype), count * record_bytes(head, layout.with_conv(conv)))
             for layout in LAYOUTS.values() for conv in (False, True) for dtype in ("fp32", "bf16")
             for count in POSITIONS]
    both = sum(near(state, CLAIMED_SNAPSHOT) and near(records, CLAIMED_RECORDS) for state, records in every)
    return both, "", f"{both} / {len(every)}"


def largest_gap_of_both() -> tuple:
    """The largest ratio that two figures within a tenth of 5,000 and 1,500 can have."""
    return 1.1 * CLAIMED_SNAPSHOT / (0.9 * CLAIMED_RECORDS), "×", None


def share(n) -> str:
    """Records below 0.4 of snapshots for S0 to S3, states equal to the bit; conditions where small heads need more."""
    if max(n.s0, n.s1, n.s2, n.s3) >= 0.4 or n.off != 0:
        return FAILS
    return CONDITIONS if n.eight >= 0.4 else HOLDS


def growth_of_chain_and_tree(n) -> dict:
    """How many times a window of one draft a window of eight takes."""
    return {"chain": number(n.state_chain // n.state_one), "tree": number(n.state_tree // n.state_tree_one)}


def draft_growth(n) -> str:
    """Records grow with the number of drafts, snapshots with a power of two of it."""
    linear = n.record_chain == 8 * n.record_one
    exponential = n.state_chain >= 2**7 * n.state_one
    return HOLDS if linear and exponential else FAILS


def steady_capacity(n) -> str:
    """A ring allocates nothing after its start, and never holds more than 20 records."""
    return HOLDS if n.moved == n.moved_eight == 0 and n.most <= 20 else FAILS


CLAIMS = (
    Claim("projection-share", "state", (
        cell("s0", REPLAY, "memory", ("S0",), "ratio"), cell("s1", REPLAY, "memory", ("S1",), "ratio"),
        cell("s2", REPLAY, "memory", ("S2",), "ratio"), cell("s3", REPLAY, "memory", ("S3",), "ratio"),
        check("off", REPLAY, "states_bit_equal"),
        metric("eight", run("byte-cost", dk=8, dv=8, drafts=4, conv=True), "bytes_ratio"),
    ), share),
    Claim("snapshots-with-length", "state", (
        cell("every_short", BYTES, "growth", (1024, "every"), "bytes"),
        cell("every_long", BYTES, "growth", (1048576, "every"), "bytes"),
        cell("window_short", BYTES, "growth", (1024, "snapshot"), "bytes"),
        cell("window_long", BYTES, "growth", (1048576, "snapshot"), "bytes"),
    ), lambda n: FAILS if n.every_long != 1024 * n.every_short else CONDITIONS if n.window_long == n.window_short
        else HOLDS),
    Claim("bytes-at-16", "state", (
        metric("snapshots", run("byte-cost", **SMALL, drafts=4), "snapshot_bytes", exact=True),
        metric("records", run("byte-cost", **SMALL, drafts=3, conv=True), "projection_bytes", exact=True),
        computed("both", "k3core.sizing.record_bytes", square_heads_with_both),
        metric("oblong_snapshots", OBLONG, "snapshot_bytes", exact=True),
        metric("oblong_records", OBLONG, "projection_bytes", exact=True),
    ), lambda n: FAILS if not (near(n.snapshots, CLAIMED_SNAPSHOT) and near(n.records, CLAIMED_RECORDS))
        else HOLDS if n.both else CONDITIONS),
    Claim("gap-of-7.9", "state", (
        metric("mixed", run("byte-cost", **SMALL, drafts=3, layout="mixed"), "times_smaller"),
        metric("plain", run("byte-cost", **SMALL), "times_smaller"),
        metric("with_conv", run("byte-cost", **SMALL, drafts=3, conv=True), "times_smaller"),
    ), lambda n: FAILS if not near(n.mixed, CLAIMED_RATIO, 0.01)
        else HOLDS if near(n.plain, CLAIMED_RATIO, 0.01) and near(n.with_conv, CLAIMED_RATIO, 0.01) else CONDITIONS),
    Claim("all-three-figures", "state", (
        computed("most", "1.1 · 5000 / (0.9 · 1500)", largest_gap_of_both), metric("oblong", OBLONG, "times_smaller"),
    ), lambda n: FAILS if n.most < CLAIMED_RATIO else CONDITIONS),
    Claim("growth-with-drafts", "state", (
        cell("state_chain", RING, "storage", (8, "snapshot-chain"), "bytes"),
        cell("record_chain", RING, "storage", (8, "record-chain"), "bytes"),
        cell("state_tree", RING, "storage", (8, "snapshot-tree"), "bytes"),
        cell("record_tree", RING, "storage", (8, "record-tree"), "bytes"),
        cell("state_one", RING, "storage", (1, "snapshot-chain"), "bytes"),
        cell("record_one", RING, "storage", (1, "record-chain"), "bytes"),
        cell("state_tree_one", RING, "storage", (1, "snapshot-tree"), "bytes"),
    ), draft_growth, growth_of_chain_and_tree),
    Claim("same-output", "state", (
        metric("resumed", VERIFY, "bit_equal_resumed"), metric("corrected", VERIFY, "bit_equal_corrected"),
        metric("noticed", VERIFY, "detected_at"),
        metric("loose", run("verify-and-replay", every=16, tolerance="0.01", memory=3, deviation_at=17),
               "bit_equal_corrected"),
        metric("twice", run("verify-and-replay", replay_twice=True), "bit_equal_resumed"),
    ), lambda n: FAILS if not (n.resumed and n.corrected) else HOLDS if n.loose and n.twice else CONDITIONS),
    Claim("asynchronous-nodes", "state", (
        metric("reordered", VERIFY, "bit_equal_resumed"),
        metric("late", run("verify-and-replay", delivery="late"), "bit_equal_resumed"),
        metric("repeated", run("verify-and-replay", delivery="twice"), "bit_equal_resumed"),
        metric("nodes", VERIFY, "within_bound_nodes"), cell("nodes_end", VERIFY, "ways", ("nodes",), "end"),
    ), lambda n: FAILS if not (n.reordered and n.late and n.repeated and n.nodes)
        else HOLDS if n.nodes_end.template == "in the same bits" else CONDITIONS),
    Claim("ring-capacity", "state", (
        metric("moved", RING, "allocations_after_start"), check("most", RING, "fits"),
        metric("moved_eight", run("replayssm-ring", window=8), "allocations_after_start"),
    ), steady_capacity),
    Claim("ring-rebuild", "state", (
        metric("base", RING, "rebuilt_records"), metric("window", run("replayssm-ring", window=8), "rebuilt_records"),
        metric("buffer", run("replayssm-ring", buffer=32), "rebuilt_records"),
    ), lambda n: FAILS if near(n.window, n.base) and near(n.buffer, n.base) else HOLDS),
)

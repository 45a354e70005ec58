"""What the ring of `replayssm-ring` costs: laws of acceptance, tables, charts; bytes per 128 x 128 head."""

from fractions import Fraction
from math import comb, inf

import numpy as np

from k3core.kda import l2norm
from k3core.lab import charts
from k3core.lab.contract import Column, Figure, Table
from k3core.lab.display import number
from k3core.lab.text import Text
from k3core.models import load
from k3core.replayssm import (
    best_length,
    draft_tokens,
    fold,
    largest_stable_length,
    ring_bytes,
    ring_cycle,
    snapshot_bytes,
    standard_bytes,
)
from k3core.sizing import record_bytes, recurrent_state_bytes

WINDOWS = (1, 2, 3, 4, 6, 8, 10, 12)
LENGTHS = range(1, 49)
DEPTHS = range(1, 9)
BUFFERS = (8, 16, 32)
STABILITY_LENGTHS = (4, 8, 16, 17, 18, 19, 32)
LARGEST = {"fp16": 65504.0, "fp32": 3.4028234663852886e38}
TP = 8
KB_AXIS = {"labelExpr": "format(datum.value / 1000, ',~r') + ' kB'", "title": None, "tickCount": 6}
WHOLE = {"tickMinStep": 1}
WINDOW_AXIS = charts.quantitative("window", Text("window T"), axis=WHOLE)
_SOLID, _DASHED, _DOTTED = [1, 0], [6, 4], [2, 3]


# --- laws of acceptance: {tokens accepted in a step, the certain one included: exact probability} ---


def neighbours(mean: Fraction, _window: int | None = None) -> dict:
    """The two whole numbers around the mean."""
    low = int(mean)
    return {low: 1 - (mean - low), low + 1: mean - low} if mean > low else {low: Fraction(1)}


def independent(mean: Fraction, window: int) -> dict:
    """One, and each draft with the same probability: 1 + Binomial(T - 1, p)."""
    drafts = window - 1
    p = (mean - 1) / drafts if drafts else Fraction(0)
    return {1 + n: comb(drafts, n) * p**n * (1 - p) ** (drafts - n) for n in range(drafts + 1)}


def all_or_nothing(mean: Fraction, window: int) -> dict:
    """The whole window, or the certain token alone."""
    p = (mean - 1) / (window - 1) if window > 1 else Fraction(1)
    return {1: 1 - p, window: p} if window > 1 else {1: p}


LAWS = ((Text("one of two neighbouring counts"), neighbours), (Text("each draft for itself"), independent),
        (Text("all drafts or none"), all_or_nothing))


def mean_of(accepted: float) -> Fraction:
    """The parameter as a fraction that keeps the sums below exact and short."""
    return Fraction(accepted).limit_denominator(1000)


def flush_buffer(p) -> int:
    """The buffer whose rule runs: flushing one window late is the rule of a buffer one window larger."""
    return p.buffer + (p.window if p.flush_late else 0)


# --- tables ---


def tables(p, state: int, record: int, slots: int, fields: dict) -> dict:
    """Tables of the page (with a title) and of its charts; state and record in bytes, slots of the ring."""
    return {
        "window": window_table(p, state, record),
        "length": length_table(state, record),
        "rebuild": rebuild_table(p),
        "storage": storage_table(p, state, record),
        "laws": laws_table(p, state, record),
        "model_scale": model_scale_table(p, slots, fields),
        "stability": stability_table(p.lower_bound),
    }


def window_table(p, state: int, record: int) -> Table:
    """Bytes per accepted token against the window, for three designs."""
    rows = []
    for window in WINDOWS:
        accepted = min(mean_of(p.accepted), Fraction(window))
        cycle = ring_cycle(max(p.buffer, window), window, neighbours(accepted))
        rows += [(window, "snapshot", float(snapshot_bytes(state, window) / accepted)),
                 (window, "record", float(ring_bytes(state, record, window, cycle) / accepted)),
                 (window, "plain", float(2 * state))]
    return Table((Column("window", Text("window T")), Column("design", Text("design")),
                  Column("bytes", Text("bytes per accepted token"), "float", "kB", scale=1.0)), rows)


def length_table(state: int, record: int) -> Table:
    """Bytes per token of plain decoding against the length of its buffer."""
    rows = [(length, float(standard_bytes(state, record, length)), float(2 * state)) for length in LENGTHS]
    return Table((Column("length", Text("buffer length L")),
                  Column("bytes", Text("bytes per token"), "float", "kB", scale=1.0),
                  Column("plain", Text("state read and written"), "float", "kB", scale=1.0)), rows)


def rebuild_table(p) -> Table:
    """Records folded again in every step against the window, for several buffers."""
    rows = []
    for buffer in BUFFERS:
        for window in WINDOWS:
            if window <= buffer:
                cycle = ring_cycle(buffer, window, neighbours(min(mean_of(p.accepted), Fraction(window))))
                rows.append((window, str(buffer), float(cycle.mean_write_pos), float(cycle.flush_share)))
    return Table((Column("window", Text("window T")), Column("buffer", Text("buffer B")),
                  Column("records", Text("records folded per step"), "float", scale=1.0),
                  Column("flush", Text("steps that flush"), "float", "share", scale=1.0)), rows)


def storage_table(p, state: int, record: int) -> Table:
    """Bytes to keep for all drafts of a chain and of a tree, as states and as inputs."""
    rows = []
    for shape, branching in (("chain", 1), ("tree", p.branching)):
        for depth in DEPTHS:
            tokens = draft_tokens(depth, branching)
            rows += [(depth, f"snapshot-{shape}", tokens * state),
                     (depth, f"record-{shape}", tokens * record)]
    return Table((Column("depth", Text("draft length")), Column("design", Text("design")),
                  Column("bytes", Text("bytes per head"), unit="B")), rows)


def laws_table(p, state: int, record: int) -> Table:
    """The same mean under other laws: how much of the result is the mean, and how much the spread."""
    rows = []
    for name, law in LAWS:
        cycle = ring_cycle(flush_buffer(p), p.window, law(mean_of(p.accepted), p.window))
        moved = ring_bytes(state, record, p.window, cycle)
        times = snapshot_bytes(state, p.window) / moved
        rows.append((name, float(cycle.flush_share), float(moved), float(times)))
    return Table((Column("law", Text("a step accepts")),
                  Column("flush", Text("steps that flush"), "float", "share", scale=1.0),
                  Column("bytes", Text("moved per step"), "float", "kB", scale=1.0),
                  Column("times", Text("fewer than snapshots"), "float", "×", scale=1.0)),
                 rows, Text("The same mean, other laws"))


def model_scale_table(p, slots: int, fields: dict) -> Table:
    """What one request of Kimi K3 keeps for rolling back, over all KDA layers."""
    layers = [layer for layer in load("kimi-k3").recurrent if layer.kind == "kda"]
    states = [sum(recurrent_state_bytes(layer, tp) for layer in layers) for tp in (1, TP)]
    records = [sum(record_bytes(layer, fields, tp) for layer in layers) for tp in (1, TP)]
    rows = [(Text("{count} states, one per position", count=p.window), *(p.window * n for n in states)),
            (Text("{count} records, the window alone", count=p.window), *(p.window * n for n in records)),
            (Text("{count} records, the whole ring", count=slots), *(slots * n for n in records)),
            (Text("the state itself, kept by every design"), *states)]
    title = Text("Kimi K3: {layers} layers of {heads} heads", layers=len(layers), heads=layers[0].heads)
    return Table((Column("kept", Text("kept for rolling back")),
                  Column("sequence", Text("per sequence"), unit="B"),
                  Column("rank", Text("per rank at TP{tp}", tp=TP), unit="B")), rows, title)


# --- keys stored pre-decayed ---


def stability_table(lower_bound: float) -> Table:
    """What a buffer of pre-decayed keys has to bear if every gate stands at its lower bound."""
    longest = largest_stable_length(lower_bound)
    rows = []
    for length in STABILITY_LENGTHS:
        exponent = (length - 1) * -lower_bound
        factor = np.exp(np.float64(exponent))
        folds = predecayed_error(length, lower_bound) < 1e-3
        rows.append((length, exponent, Text("e^{x} = {factor}", x=number(exponent), factor=f"{factor:.1e}"),
                     Text("yes") if length <= longest else Text("no"),
                     Text("yes") if factor <= LARGEST["fp16"] else Text("no"),
                     Text("equal within rounding") if folds else Text("not finite")))
    return Table((Column("length", Text("buffer length L")),
                  Column("exponent", Text("(L−1)·|g|"), "float", scale=1.0),
                  Column("factor", Text("largest factor on a key")), Column("stable", Text("at most 80")),
                  Column("fp16", Text("fits fp16")), Column("outcome", Text("folded here in fp32"))),
                 rows, Text("Keys stored pre-decayed: how long a buffer they bear"))


def predecayed_error(length: int, lower_bound: float) -> float:
    """Largest difference between the plain fold and one whose keys are stored as k exp(-G), in float32.

    G is the log decay since the first record, so a step may use one matrix product and no decay per pair
    (sglang #37739). inf where the factor does not fit.
    """
    rng = np.random.default_rng(length)
    k = l2norm(rng.standard_normal((length, 1, 8), np.float32))
    u, state = rng.standard_normal((length, 1, 6), np.float32), rng.standard_normal((1, 8, 6), np.float32)
    g = np.full((length, 1, 8), lower_bound, np.float32)
    G = np.cumsum(g, axis=0) - g[0]
    exponent = np.float32(np.log(np.float64(LARGEST["fp32"])))
    if -G.min() > exponent:  # the factor itself would overflow; said here, as the browser gives no warning
        return inf
    stored = k * np.exp(-G)
    written = np.einsum("nhk,nhv->hkv", stored, u)
    folded = np.exp(G[-1])[:, :, None] * (state * np.exp(g[0])[:, :, None] + written)
    return float(np.abs(folded - fold(state, k, u, g)).max())


# --- charts ---


def figures(p, state: int, record: int, data: dict) -> list:
    """Bytes against window, buffer and draft length; records folded against the window."""
    return [window_figure(p, data["window"]), rebuild_figure(p, data["rebuild"]),
            length_figure(state, record, data["length"]), storage_figure(p, data["storage"])]


def window_figure(p, table: Table) -> Figure:
    """Per accepted token, because a longer window accepts more."""
    ends = {row[1]: row for row in table.rows}
    at = WINDOWS[-1]
    labels = [(at, ends["snapshot"][2], Text("a state per position"), "snapshot"),
              (at, ends["record"][2], Text("ring"), "record"),
              (at, ends["plain"][2], Text("no drafts"), "state")]
    styles = {"snapshot": ("snapshot", _DASHED), "record": ("record", _SOLID), "plain": ("state", _DOTTED)}
    return Figure(
        "window", "window", Text("Bytes per accepted token, by window"),
        Text("With a of T tokens accepted, snapshots cost more than decoding without drafts as soon as T > "
             "2a − 1. The ring stays below it at every window."),
        {"layer": [charts.line_layer(WINDOW_AXIS, charts.quantitative("bytes", None, axis=KB_AXIS),
                                     charts.series("design", styles), ["window", "bytes"]),
                   charts.label_layer("window", "bytes", labels), charts.rule_layer(p.window)]})


def rebuild_figure(p, table: Table) -> Figure:
    """The price of not writing: records to fold again."""
    labels, styles = [], {}
    for buffer, dash in zip(BUFFERS, (_DOTTED, _DASHED, _SOLID)):
        highest = max(row[2] for row in table.rows if row[1] == str(buffer) and row[0] <= 3)
        labels.append((3, highest + 0.5, Text("B = {n}", n=buffer), "record"))
        styles[str(buffer)] = ("record", dash)
    return Figure(
        "rebuild", "rebuild", Text("Records folded again in every step"),
        Text("The cost of rebuilding: how many records stand, on average, between the written state and the "
             "present. The flush rule keeps two windows free, so a long window leaves less room for "
             "history; a larger buffer writes less often and folds more."),
        {"layer": [charts.line_layer(WINDOW_AXIS, charts.quantitative("records", None),
                                     charts.series("buffer", styles), ["window", "buffer", "records"]),
                   charts.label_layer("window", "records", labels), charts.rule_layer(p.window)]})


def length_figure(state: int, record: int, table: Table) -> Figure:
    """Plain decoding: too short a buffer writes the state, too long a one reads records."""
    best = best_length(state, record)
    x = charts.quantitative("length", Text("buffer length L"))
    line = {"mark": {"type": "line", "strokeWidth": 2, "color": charts.colour("record")},
            "encoding": {"x": x, "y": charts.quantitative("bytes", None, axis=KB_AXIS)}}
    plain = {"mark": {"type": "line", "strokeDash": _DOTTED, "color": charts.colour("state")},
             "encoding": {"x": x, "y": charts.quantitative("plain", None, axis=KB_AXIS)}}
    labels = [(LENGTHS[-1], table.rows[-1][1], Text("with a buffer"), "record"),
              (LENGTHS[-1], table.rows[-1][2], Text("state read and written"), "state")]
    return Figure(
        "length", "length", Text("Plain decoding: bytes per token, by buffer"),
        Text("Without drafts the same buffer saves writes too. The line marks the best length, {best}.",
             best=best),
        {"layer": [line, plain, charts.label_layer("length", "bytes", labels), charts.rule_layer(best)]})


def storage_figure(p, table: Table) -> Figure:
    """What grows exponentially is the tree, in both designs; what a chain needs is linear, in both."""
    at = {"snapshot-chain": 5}  # at the end, where the other names are, it meets the tree of inputs
    heights = {(row[0], row[1]): row[2] for row in table.rows}
    names = {"snapshot-chain": Text("states, chain"), "record-chain": Text("inputs, chain")}
    if p.branching > 1:
        names |= {"snapshot-tree": Text("states, tree"), "record-tree": Text("inputs, tree")}
    places = [(at.get(design, DEPTHS[-1]), design, words) for design, words in names.items()]
    labels = [(depth, heights[depth, design], words, design.split("-")[0]) for depth, design, words in places]
    styles = {"snapshot-chain": ("snapshot", _SOLID), "snapshot-tree": ("snapshot", _DASHED),
              "record-chain": ("record", _SOLID), "record-tree": ("record", _DASHED)}
    return Figure(
        "storage", "storage", Text("Storage by draft length"),
        Text("On this logarithmic axis a straight rise is exponential. Only trees do that, as states and as "
             "inputs alike; between the two lies a constant factor."),
        {"layer": [charts.line_layer(charts.quantitative("depth", Text("draft length"), axis=WHOLE),
                                     charts.quantitative("bytes", None, log=True, axis=charts.BYTES_AXIS),
                                     charts.series("design", styles), ["depth", "bytes"]),
                   charts.label_layer("depth", "bytes", labels)]})

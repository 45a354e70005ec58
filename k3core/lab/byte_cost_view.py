"""What the tab `byte-cost` shows: the scene of the window to scale, and the two charts."""

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Column, Figure, Picture, Result, Scene, Table
from k3core.lab.display import binary_bytes, number
from k3core.lab.text import Text
from k3core.models import Recurrent, load
from k3core.sizing import ELEMENT_BYTES, record_bytes, recurrent_state_bytes

CHART_SIZES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
LABEL_WIDTH = 84  # drawing units that the name and bytes of a field need
CHART_TOKENS = tuple(4**power for power in range(11))
_BYTES = charts.quantitative("bytes", None, log=True, axis=charts.BYTES_AXIS)
_STYLES = {"every": ("miss", [2, 3]), "snapshot": ("snapshot", [6, 4]), "record": ("record", [1, 0])}
# field -> (class, words)
FIELD_STYLES = {
    "k": ("key", Text("key k")), "v": ("value", Text("value v")), "u": ("value", Text("corrected value u")),
    "g": ("gate", Text("gate g")), "beta": ("beta", Text("rate β")), "conv": ("conv", Text("conv inputs q, k, v")),
}


def field_elements(name: str, dk: int, dv: int) -> int:
    """Elements of one field of one head's record."""
    return {"k": dk, "v": dv, "u": dv, "g": dk, "beta": 1, "conv": 2 * dk + dv}[name]


def events(p, kept: dict, window: int, state: int, record: int) -> dict:
    """The log of the scene: sizes, and each field of a record with its bytes."""
    parts = [(name, field_elements(name, p.dk, p.dv) * ELEMENT_BYTES[dtype]) for name, dtype in kept.items()]
    return {"dk": p.dk, "dv": p.dv, "window": window, "state": state, "record": record, "parts": parts}


def captions(window: int, state: int, record: int) -> list:
    """One sentence per frame: before the window, then after each position."""
    first = Text("Before the window. Both designs keep the committed state, {state}; only what comes on top is "
                 "counted.", state=binary_bytes(state))
    rest = [Text("Position {n} of {window}. The snapshot design has copied the whole state {n} times, {states}. "
                 "The records of the same positions are {records}.", n=n, window=window,
                 states=binary_bytes(n * state), records=binary_bytes(n * record)) for n in range(1, window + 1)]
    return [first, *rest]


def draw_window(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The committed state, `frame` snapshots and `frame` records, one unit of area per byte; below, one record
    spread out."""
    log = scene.events
    columns = 4 if narrow else 9
    width, cell = (340, 78) if narrow else (720, 74)
    # As wide as a record, which is wider than a tiny state.
    strip = log["dv"] * sum(size for _, size in log["parts"]) / log["state"]
    unit = min(cell / max(log["dk"], log["dv"], strip), 4.0)
    tall, wide = log["dk"] * unit, log["dv"] * unit
    row_height = tall + 18
    drawn, bottom = _snapshots(log, frame, columns, cell, unit, row_height)
    name = d.text(0, bottom + 12 + tall / 2, Text("records").render(lang), "label strong")
    records, bottom = _records(log, frame, columns, cell, unit, bottom + 8, row_height)
    lens, bottom = _lens(log, bottom + 30, width, lang)
    grip = d.handle(wide, 22 + tall, "dv", "dk", unit, unit, Text("drag to set dk and dv").render(lang))
    label = scene.captions[frame].render(lang)
    return Picture(d.svg(width, bottom, [*drawn, name, *records, *lens, grip], label), _legend(log, frame, width))


def _place(index: int, columns: int, cell: float, row_height: float) -> tuple:
    return (index % columns) * (cell + 6), (index // columns) * row_height


def _snapshots(log: dict, frame: int, columns: int, cell: float, unit: float, row_height: float) -> tuple:
    """The committed state first, then one copy per position; positions still to come are outlines."""
    top, tall, wide = 22, log["dk"] * unit, log["dv"] * unit
    parts = [d.text(0, 12, f"S {log['dk']} × {log['dv']}", "label strong state-ink")]
    for index in range(log["window"] + 1):
        x, y = _place(index, columns, cell, row_height)
        style = "state" if index == 0 else "snapshot" if index <= frame else "ghost"
        mark = "state:committed" if index == 0 else f"token:{index}"
        parts.append(d.rect(x, top + y, wide, tall, style, mark, f"{log['state']} B"))
        if index:
            parts.append(d.text(x, top + y + tall + 12, str(index), "label small"))
    rows = log["window"] // columns + 1
    return parts, top + rows * row_height


def _records(log: dict, frame: int, columns: int, cell: float, unit: float, top: float, row_height: float) -> tuple:
    """One strip per position under the snapshots: as tall as the state, as wide as its bytes require."""
    tall, per_byte = log["dk"] * unit, unit * unit * log["dk"] * log["dv"] / log["state"]
    parts = []
    for index in range(1, log["window"] + 1):
        x, y = _place(index, columns, cell, row_height)
        strips, left = [], x
        for name, size in log["parts"]:
            wide = size * per_byte / tall
            strips.append(d.rect(left, top + y, wide, tall, FIELD_STYLES[name][0] if index <= frame else "ghost"))
            left += wide
        parts.append(d.group(strips, f"token:{index}", f"{log['record']} B"))
        parts.append(d.text(x, top + y + tall + 12, str(index), "label small"))
    rows = log["window"] // columns + 1
    return parts, top + rows * row_height


def _lens(log: dict, top: float, width: float, lang: str) -> tuple:
    """One record, stretched over the whole width, with the bytes of each field."""
    total = sum(size for _, size in log["parts"])
    heading = Text("one record, {bytes} B, spread out", bytes=number(total)).render(lang)
    parts, left = [d.text(0, top - 6, heading, "label strong")], 0.0
    for name, size in log["parts"]:
        wide = width * size / total
        parts.append(d.rect(left, top, wide, 26, FIELD_STYLES[name][0], f"field:{name}", f"{name}: {size} B"))
        if wide > LABEL_WIDTH:
            words = Text("{field}, {bytes} B", field=FIELD_STYLES[name][1], bytes=number(size)).render(lang)
            parts.append(d.text(left + wide / 2, top + 43, words, "label", "middle"))
        left += wide
    return parts, top + 50


def _legend(log: dict, frame: int, width: float) -> list:
    """What is held so far, and the fields of a record that are too thin to be labelled in the lens."""
    total = sum(size for _, size in log["parts"])
    lines = [
        ("state", Text("committed state, kept by both: {bytes}", bytes=binary_bytes(log["state"]))),
        ("snapshot", Text("snapshots, {n} of {window}: {bytes}", n=frame, window=log["window"],
                          bytes=binary_bytes(frame * log["state"]))),
        ("record", Text("records, {n} of {window}: {bytes}", n=frame, window=log["window"],
                        bytes=binary_bytes(frame * log["record"]))),
    ]
    lines += [(FIELD_STYLES[name][0], Text("{field}, {bytes} B", field=FIELD_STYLES[name][1], bytes=number(size)))
              for name, size in log["parts"] if width * size / total <= LABEL_WIDTH]
    return [*lines, ("ghost", Text("positions still to come: {n}", n=log["window"] - frame))]


def sizes_table(p, layout, window: int) -> Table:
    """Bytes of a window against the head size, for the first chart."""
    rows = []
    for size in CHART_SIZES:
        head = Recurrent("kda", heads=1, key_heads=1, dk=size, dv=size, conv_kernel=4)
        rows.append((size, "snapshot", window * recurrent_state_bytes(head, dtype=p.state_dtype)))
        rows.append((size, "record", window * record_bytes(head, layout.with_conv(p.conv))))
    return Table((Column("size", Text("dk = dv")), Column("design", Text("design")),
                  Column("bytes", Text("bytes per window"), unit="B")), rows)


def growth_table(p, layout, window: int) -> Table:
    """Bytes of a sequence against its length at model scale, for the second chart."""
    layers = [layer for layer in load(p.model).recurrent if layer.kind == "kda"]
    state = sum(recurrent_state_bytes(layer, dtype=p.state_dtype) for layer in layers)
    record = sum(record_bytes(layer, layout.with_conv(p.conv)) for layer in layers)
    rows = []
    for tokens in CHART_TOKENS:
        rows += [(tokens, "every", tokens * state), (tokens, "snapshot", min(tokens, window) * state),
                 (tokens, "record", min(tokens, window) * record)]
    return Table((Column("tokens", Text("tokens")), Column("design", Text("design")),
                  Column("bytes", Text("bytes per sequence"), unit="B")), rows)


def sizes_figure(table: Table, p) -> Figure:
    """A snapshot grows with d squared, a record with d."""
    last = {row[1]: row for row in table.rows}
    labels = [(CHART_SIZES[-1], last["snapshot"][2], Text("snapshots"), "snapshot"),
              (CHART_SIZES[-1], last["record"][2], Text("records"), "record")]
    x = charts.quantitative("size", Text("dk = dv"), log=True)
    return Figure(
        "sizes", "sizes", Text("Bytes of the window as the head grows"),
        Text("A snapshot grows with dk × dv, a record with 2 dk + dv: the gap widens with the head."),
        {"layer": [charts.line_layer(x, _BYTES, charts.series("design", _STYLES), ["size", "bytes"]),
                   charts.label_layer("size", "bytes", labels), charts.rule_layer((p.dk * p.dv) ** 0.5)]})


def growth_figure(table: Table) -> Figure:
    """One snapshot per token grows without end; a window does not."""
    last = {row[1]: row for row in table.rows}
    labels = [(CHART_TOKENS[-1], last["every"][2], Text("a snapshot per token"), "miss"),
              (CHART_TOKENS[-1], last["snapshot"][2], Text("snapshots of the window"), "snapshot"),
              (CHART_TOKENS[-1], last["record"][2], Text("records of the window"), "record")]
    x = charts.quantitative("tokens", Text("tokens of the sequence"), log=True)
    return Figure(
        "growth", "growth", Text("Bytes of a sequence as it grows"),
        Text("Kept for every token, snapshots grow with the sequence. Kept for a window, neither design does."),
        {"layer": [charts.line_layer(x, _BYTES, charts.series("design", _STYLES), ["tokens", "bytes"]),
                   charts.label_layer("tokens", "bytes", labels)]})

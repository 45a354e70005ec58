"""What the tab `allocation-jitter` shows: four memories as strips, the work of each step, and the two charts."""

from math import log2

from k3core.allocators import STEP_BYTES
from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.allocation_jitter_sim import STEPS
from k3core.lab.contract import Figure, Picture, Result, Scene, Table
from k3core.lab.display import binary_bytes
from k3core.lab.text import Text

NAMES = {"unified": Text("unified pool"), "two_pools": Text("two static pools"),
         "first_fit": Text("contiguous memory"), "two_ends": Text("two-ended region")}
STYLES = {"unified": ("ink", [1, 0]), "two_pools": ("ordinary", [6, 3]), "first_fit": ("miss", [2, 3]),
          "two_ends": ("vip", [8, 3, 2, 3])}
ARCS = 10  # moves of a step that are drawn, the largest
HEAD, ARC, STRIP, BARS, GAP = 18, 16, 30, 26, 14


def events(runs: dict, allocators: dict, memory: int, p) -> dict:
    """The log of the scene: per allocator one frame per step."""
    return {"memory": memory, "frames": {name: done.frames for name, done in runs.items()},
            "border": allocators["two_pools"].border, "state_share": p.state_share, "contiguous": p.contiguous,
            "most": max((frame["touched"] for done in runs.values() for frame in done.frames), default=0)}


def poster(log: dict) -> int:
    """The step in which most is moved, long after the mix has changed."""
    frames = log["frames"]
    moved = [sum(frames[name][step]["moved"] for name in frames) for step in range(STEPS)]
    return max(range(2 * STEPS // 3, STEPS), key=lambda step: (moved[step], -step))


def captions(log: dict) -> list:
    """Who came, who was refused, what was moved: two or three sentences per step."""
    return [Text("{came} {refused} {moved}", came=_came(log, step), refused=_refused(log, step),
                 moved=_moved(log, step)) for step in range(STEPS)]


def _came(log: dict, step: int) -> Text:
    frame = log["frames"]["unified"][step]
    return Text("Step {step}: requests that came: {came}, that left the unified pool: {left}.", step=step,
                came=frame["came"], left=frame["left"])


def _refused(log: dict, step: int) -> Text:
    lost = {name: frames[step]["refused"] + frames[step]["cut_off"] for name, frames in log["frames"].items()}
    if not any(lost.values()):
        return Text("Nobody was refused.")
    return Text("Refused: {unified} by the unified pool, {two_pools} by two static pools, {first_fit} by contiguous "
                "memory, {two_ends} by the two-ended region.", **lost)


def _moved(log: dict, step: int) -> Text:
    fit, ends = (log["frames"][name][step]["moved"] for name in ("first_fit", "two_ends"))
    if not fit + ends:
        return Text("Nothing was moved.")
    if not ends:
        return Text("Contiguous memory moved {bytes}, so that rows could grow.", bytes=binary_bytes(fit))
    if not fit:
        return Text("The two-ended region moved {bytes} into the holes that others left.", bytes=binary_bytes(ends))
    return Text("Contiguous memory moved {fit}, so that rows could grow; the two-ended region moved {ends} into the "
                "holes that others left.", fit=binary_bytes(fit), ends=binary_bytes(ends))


# --- the scene --------------------------------------------------------------------------------------------------


def draw_memory(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Four strips of memory at one step, addresses from left to right; under each the work of all steps so far."""
    log, width = scene.events, 340 if narrow else 720
    parts, y = [], 0.0
    for name, frames in log["frames"].items():
        parts += _head(log, name, frame, y, width, lang)
        top = y + HEAD + (ARC if name in ("first_fit", "two_ends") else 2)
        parts += _strip(log, frames[frame], top, width)
        parts += _arcs(log, frames[frame], top, width)
        if name == "two_pools":
            parts.append(_border(log, top, width, lang))
        parts += _bars(log, frames, frame, top + STRIP + 4, width)
        y = top + STRIP + 4 + BARS + GAP
    return Picture(d.svg(width, y, parts, scene.captions[frame].render(lang)), _legend(log, frame))


def _head(log: dict, name: str, step: int, y: float, width: float, lang: str) -> list:
    frames = log["frames"][name]
    lost = sum(frame["refused"] + frame["cut_off"] for frame in frames[: step + 1])
    words = Text("refused so far: {lost}; running: {running}", lost=lost, running=frames[step]["running"])
    return [d.text(0, y + 13, NAMES[name].render(lang), "label strong", data_id=f"allocator:{name}"),
            d.text(width, y + 13, words.render(lang), "small", "end")]


def _strip(log: dict, frame: dict, top: float, width: float) -> list:
    """What is held, to scale; of each piece the part that holds data is filled from the bottom."""
    scale = width / log["memory"]
    parts = [d.rect(0, top, width, STRIP, "free")]
    for request, kind, start, nbytes, used in joined(frame["extents"]):
        x, wide, tall = start * scale, nbytes * scale, STRIP * used / nbytes
        style = "mla piece" if kind == "rows" else "state piece"
        shapes = [d.rect(x, top, wide, STRIP, "padding")] if tall < STRIP - 0.3 else []
        shapes.append(d.rect(x, top + STRIP - tall, wide, tall, style))
        parts.append(d.group(shapes, f"request:{request}"))
    return parts


def joined(extents: list) -> list:
    """Neighbouring pieces of one request and kind as one, by address."""
    runs: list[list] = []
    for request, kind, start, nbytes, used in sorted(extents, key=lambda extent: extent[2]):
        if runs and runs[-1][:2] == [request, kind] and runs[-1][2] + runs[-1][3] == start:
            runs[-1][3] += nbytes
            runs[-1][4] += used
        else:
            runs.append([request, kind, start, nbytes, used])
    return runs


def _arcs(log: dict, frame: dict, top: float, width: float) -> list:
    """The largest moves of the step, as arcs from where the bytes were to where they are."""
    scale, parts = width / log["memory"], []
    for source, target, nbytes in sorted(frame["moves"], key=lambda move: (-move[2], move))[:ARCS]:
        x1, x2 = (source + nbytes / 2) * scale, (target + nbytes / 2) * scale
        middle, high = (x1 + x2) / 2, top - 2 - min(ARC, 6 + abs(x2 - x1) / 20)
        tip = 4 if x2 < x1 else -4
        parts.append(d.path(f"M{d.number(x1)} {d.number(top - 1)}Q{d.number(middle)} {d.number(2 * high - top)} "
                            f"{d.number(x2)} {d.number(top - 1)}m{tip} -5l{-tip} 5l{-tip} -5", "move",
                            title=binary_bytes(nbytes)))
    return parts


def _border(log: dict, top: float, width: float, lang: str) -> str:
    x = width * log["border"] / log["memory"]
    words = Text("drag to share the memory out differently").render(lang)
    return d.group([d.line(x, top - 3, x, top + STRIP + 3, "border"),
                    d.circle(x, top + STRIP / 2, 7, "grip", title=words, data_drag_x="state_share",
                             data_per_x=repr(-width / 100))])


def _bars(log: dict, frames: list, step: int, top: float, width: float) -> list:
    """The largest operation of each step so far, on a scale of powers of two."""
    column, most = width / STEPS, max(1.0, log2(max(log["most"], 2 * STEP_BYTES) / STEP_BYTES))
    parts = [d.line(0, top + BARS, width, top + BARS)]
    for index, frame in enumerate(frames[: step + 1]):
        if not frame["touched"]:
            continue
        tall = max(2.0, BARS * log2(max(1, frame["touched"] / STEP_BYTES)) / most)
        style = "miss" if frame["moved"] else "tables"
        parts.append(d.rect(index * column + 0.5, top + BARS - tall, column - 1, tall,
                            f"{style} now" if index == step else style, title=binary_bytes(frame["touched"])))
    return parts


def _legend(log: dict, step: int) -> list:
    """The colours, with the bytes of the unified pool, and how many steps moved anything."""
    frame = log["frames"]["unified"][step]
    held = {kind: sum(extent[4] for extent in frame["extents"] if extent[1] == kind) for kind in ("rows", "state")}
    padding = sum(extent[3] - extent[4] for extent in frame["extents"])
    moving = {name: sum(frame["moved"] > 0 for frame in log["frames"][name][: step + 1]) for name in NAMES}
    return [("mla", Text("rows; unified pool: {bytes}", bytes=binary_bytes(held["rows"]))),
            ("state", Text("states; unified pool: {bytes}", bytes=binary_bytes(held["state"]))),
            ("padding", Text("held but empty; unified pool: {bytes}", bytes=binary_bytes(padding))),
            ("free", Text("free; unified pool: {bytes}", bytes=binary_bytes(frame["free"]))),
            ("tables", Text("largest operation of a step, in powers of two")),
            ("miss", Text("one that moved bytes; steps so far: {fit} in contiguous memory, {ends} in the two-ended "
                          "region", fit=moving["first_fit"], ends=moving["two_ends"])),
            ("bead", Text("drag: the border of the static pools"))]


# --- charts -----------------------------------------------------------------------------------------------------


def quantiles_figure(table: Table) -> Figure:
    """Half of all operations look alike everywhere; the slowest ones do not."""
    places = {"unified": 40, "two_pools": 100, "first_fit": 70, "two_ends": 85}  # so that names do not overlap
    labels = [(percent, touched, NAMES[name], STYLES[name][0]) for percent, name, touched in table.rows
              if places[name] == percent]
    x = charts.quantitative("percent", Text("percent of operations at or below"))
    y = charts.quantitative("touched", None, log=True, axis=charts.BYTES_AXIS)
    return Figure("quantiles", "quantiles", Text("Work per operation"),
                  Text("Bytes touched by one operation, smallest to largest: 64 per table entry, and twice what was "
                       "moved. The vertical line is p99."),
                  {"layer": [charts.line_layer(x, y, charts.series("allocator", STYLES),
                                               ["percent", "allocator", "touched"]),
                             charts.label_layer("percent", "touched", labels), charts.rule_layer(99)]})


def unusable_figure(table: Table) -> Figure:
    """What cannot be given to anybody, over time."""
    labels = []
    stretches = {"unified": (40, 50), "two_pools": (33, 60), "first_fit": (10, 28), "two_ends": (59, 60)}
    for name, (first, last) in stretches.items():  # each name at the highest point of a stretch of its own
        share, step = max((share, -step) for step, own, share in table.rows if own == name and first <= step < last)
        labels.append((-step, share, NAMES[name], STYLES[name][0]))
    x = charts.quantitative("step", Text("time step"))
    y = charts.quantitative("unusable", None, axis={"format": ".0%", "title": None, "tickCount": 5})
    return Figure("unusable", "unusable", Text("Memory that holds nothing and helps nobody"),
                  Text("Padding, rows not yet written, holes that are too small, and what one static pool has left "
                       "over while the other is full. The vertical line is where the mix changes."),
                  {"layer": [charts.line_layer(x, y, charts.series("allocator", STYLES),
                                               ["step", "allocator", "unusable"]),
                             charts.label_layer("step", "unusable", labels), charts.rule_layer(STEPS / 2)]})

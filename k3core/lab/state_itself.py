"""The state itself: heat maps of a KDA layer, head by head, and how long the gate of each key channel remembers."""

from math import log, log10

import numpy as np

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Column, Figure, Picture, Result, Scene, Table
from k3core.lab.display import number, percent
from k3core.lab.text import Text

LEVELS = 9  # strengths of |S|, 0 to 9
MOST_ROWS = 32  # a larger state is drawn in squares of several values
SHORTEST, LONGEST = 0.1, 1000.0  # tokens: the ends of the scale of half-lives
FOREVER = 10_000.0  # half-lives beyond are not told apart
GAP = 16  # between two heads
WIDEST = 245  # a map
ROOMY = 200  # from this width on, the gates have a name and a finer scale


def half_lives(g) -> np.ndarray:
    """Tokens after which half of what a channel holds is forgotten, at its mean log decay: g [T, HV, dk] -> [HV, dk],
    float64. The delta rule, which overwrites too, is left out."""
    decay = -np.mean(np.asarray(g, np.float64), axis=0)
    return log(2.0) / np.maximum(decay, log(2.0) / FOREVER)


def events(states: list, g, reads: list, said: list, off: list) -> dict:
    """The log, a frame per state [HV, dk, dv] of `states`: strengths of its values as digits, half-lives so far.

    g [T, HV, dk]: log decay of every token; reads: tokens read per frame; said: glyphs of the tokens that a frame
    added; off: the largest difference from plain decoding.
    """
    pooled = [pool(np.abs(state)) for state in states]
    hottest = max(float(np.max(values)) for values in pooled) or 1.0
    frames = []
    for i, (state, values) in enumerate(zip(states, pooled)):
        before = states[i - 1] if i else np.zeros_like(state)
        frames.append({
            "read": reads[i], "said": said[i], "off": off[i], "peak": np.max(np.abs(state), axis=(1, 2)).tolist(),
            "changed": _share(state - before, state), "heat": _digits(values / hottest),
            "lives": np.round(half_lives(g[: reads[i]]), 3).tolist(),
        })
    return {"frames": frames, "side": states[0].shape[1] // pooled[0].shape[1]}


def pool(values, most: int = MOST_ROWS):
    """Means over squares, so that no side has more than `most`: [HV, dk, dv] -> [HV, rows, columns]."""
    heads, dk, dv = values.shape
    side = -(-max(dk, dv) // most)
    return values.reshape(heads, dk // side, side, dv // side, side).mean(axis=(2, 4))


def _share(change, state) -> list:
    """Size of a change beside the state's own, per head."""
    sizes = (np.sqrt(np.sum(np.asarray(x, np.float64) ** 2, axis=(1, 2))) for x in (change, state))
    return [float(part / whole) if whole else 0.0 for part, whole in zip(*sizes)]


def _digits(shares) -> list:
    """Strengths per head, a text of digits per row. The root lets small values be seen."""
    levels = np.ceil(np.sqrt(shares) * LEVELS - 0.5).astype(int)
    return [["".join(map(str, row)) for row in head] for head in levels.tolist()]


def captions(log_: dict) -> list:
    """What the tokens of each frame did to the state."""
    first, *rest = log_["frames"]
    peak = max(range(len(first["peak"])), key=lambda h: first["peak"][h])
    said = [Text("{read} tokens are read, the prompt. Head {h} holds the largest value, {peak}.", read=first["read"],
                 h=peak + 1, peak=number(first["peak"][peak], 3))]
    for n, frame in enumerate(rest, 1):
        most = max(range(len(frame["changed"])), key=lambda h: frame["changed"][h])
        where = Text("It is the state of plain decoding, to the bit.") if frame["off"] == 0 else Text(
            "It is {off} off the state of plain decoding.", off=number(frame["off"], 2))
        said.append(Text("Round {n} reads '{said}' for good. Head {h} changes most, by {share} of its size. {where}",
                         n=n, said=frame["said"], h=most + 1, share=percent(frame["changed"][most], 2), where=where))
    return said


# --- the drawing ---


def draw(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """One map per head: rows are key channels, columns value channels; beside each row its gate's half-life."""
    now = scene.events["frames"][frame]
    heads, width = len(now["heat"]), 340 if narrow else 720
    per_row = min(heads, 2 if narrow else 4)
    panel = (width - (per_row - 1) * GAP) / per_row  # what a map leaves of it belongs to the gates
    side = min(panel * 0.72, WIDEST)
    tall = side + 44
    parts = []
    for head in range(heads):
        x, y = head % per_row * (panel + GAP), head // per_row * (tall + GAP)
        parts += _head(now, head, x, y, side, panel, lang)
    height = (heads - 1) // per_row * (tall + GAP) + tall
    side_words = scene.events["side"]
    each = Text("|S|, stronger where larger; rows: key channels, columns: value channels") if side_words == 1 else Text(
        "|S|, stronger where larger; a square is the mean of {n} × {n} values", n=side_words)
    legend = [("state", each),
              ("gate", Text("half-life of a key channel's gate, in tokens, on a scale of powers of ten"))]
    return Picture(d.svg(width, height, parts, scene.captions[frame].render(lang)), legend)


def _head(now: dict, head: int, x: float, y: float, side: float, panel: float, lang: str) -> list:
    """A head's map under its name, and bars for its gates."""
    heat, lives = now["heat"][head], now["lives"][head]
    rows, columns, top = len(heat), len(heat[0]), y + 22
    cell, high = side / columns, side / rows
    title = Text("head {h}", h=head + 1).render(lang)
    middle = Text("half of its gates forget within {n} tokens", n=number(float(np.median(lives)), 2)).render(lang)
    parts = [d.text(x, y + 14, title, "label strong"),
             d.rect(x, top, side, side, "heat-frame", f"head:{head + 1}", f"{title}: {middle}")]
    for level in range(1, LEVELS + 1):
        runs = _runs(heat, str(level))
        if runs:
            squares = "".join(f"M{d.number(x + j * cell)} {d.number(top + i * high)}"
                              f"h{d.number(n * cell)}v{d.number(high)}h{d.number(-n * cell)}z" for i, j, n in runs)
            parts.append(d.path(squares, "state", opacity=round(level / LEVELS, 2)))
    left, wide, bar = x + side + 6, panel - side - 6, side / len(lives)
    parts += [d.rect(left, top + i * bar, max(0.5, wide * _place(life)), max(0.5, bar * 0.8), "gate")
              for i, life in enumerate(lives)]
    if wide >= ROOMY:
        parts.append(d.text(left, y + 14, middle, "label small"))
    for tokens in (1, 10, 100) if wide >= ROOMY else (1, 100):
        at = left + wide * _place(tokens)
        parts += [d.line(at, top, at, top + side + 4),
                  d.text(at, top + side + 16, str(tokens), "label small", "middle")]
    return parts


def _runs(heat: list, digit: str):
    """Neighbouring squares of one strength: (row, first column, how many)."""
    runs = []
    for i, row in enumerate(heat):
        j = row.find(digit)
        while j >= 0:
            n = 1
            while row[j + n : j + n + 1] == digit:
                n += 1
            runs.append((i, j, n))
            j = row.find(digit, j + n)
    return runs


def _place(tokens: float) -> float:
    """Where a half-life lies on its scale, 0 to 1."""
    share = log10(min(max(tokens, SHORTEST), LONGEST) / SHORTEST)
    return share / log10(LONGEST / SHORTEST)


# --- all layers ---


def gates_table(inputs: list, layer: int) -> Table:
    """Half-life of every key channel of every head of every KDA layer; inputs: KDATokens per layer."""
    rows = []
    for index, tokens in enumerate(inputs):
        for head, lives in enumerate(half_lives(tokens.g)):
            name = Text("layer {l}, head {h}", l=index + 1, h=head + 1)
            rows += [(name, int(index == layer), float(life)) for life in lives]
    return Table((Column("head", Text("head")), Column("shown", Text("shown")),
                  Column("tokens", Text("half-life, in tokens"), "float", scale=1.0, tolerance=1e-4)), rows)


def gates_figure() -> Figure:
    """A tick per channel."""
    x = charts.quantitative("tokens", Text("half-life, in tokens"), axis={"tickCount": 5, "format": "~r"})
    x["scale"] = {"type": "log", "base": 10}
    y = {"field": "head", "type": "nominal", "sort": None, "title": None}
    strength = {"condition": {"test": "datum.shown === 1", "value": 1}, "value": 0.4}
    return Figure("gates", "gates", Text("How long each gate remembers"),
                  Text("A tick is one key channel: after so many tokens half of what it holds is gone, by its mean log "
                       "decay over the text. Strong: the layer drawn above."),
                  {"mark": {"type": "tick", "thickness": 1.5, "color": charts.colour("gate")},
                   "encoding": {"x": x, "y": y, "opacity": strength}})

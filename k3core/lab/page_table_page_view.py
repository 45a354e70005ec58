"""The second scene of the tab `page-table`: bytes of a page of rows and of a page of state, and what is read."""

import numpy as np

from k3core.lab import drawing as d
from k3core.lab.contract import Picture, Result, Scene
from k3core.lab.display import number
from k3core.lab.page_table_bytes import SHOWN
from k3core.lab.text import Text

LEVELS = 5  # shades of a value's size
GARBAGE = LEVELS  # what no row could hold: not a number, or far larger than anything written


def page_events(read: dict, found: dict, wrong_table: bool) -> dict:
    """The corner of each page as shades, from the values."""
    rows, columns = SHOWN
    corner = {name: read[name][:rows, :columns] for name in ("rows", "state", "read")}
    scales = {"rows": 1.0, "state": float(np.abs(corner["state"]).max()) / 2, "read": 1.0}
    return {"shades": {name: shades(values, scales[name]) for name, values in corner.items()},
            "blocks": read["blocks"], "wrong": wrong_table, "found": found}


def shades(values: np.ndarray, scale: float) -> list:
    """0 to LEVELS - 1 by size against `scale`, GARBAGE for what is more than 4 times as large or not a number."""
    size = np.abs(np.where(np.isfinite(values), values, 10 * scale).astype(np.float64)) / scale
    levels = np.minimum(np.ceil(size * (LEVELS - 1)), LEVELS - 1).astype(int)
    return np.where(size > 4, GARBAGE, levels).tolist()


def page_caption(read: dict, found: dict, wrong_table: bool) -> Text:
    """What the reader sees in the three pictures."""
    if not wrong_table:
        return Text("Attention looks up block {block} in the MLA group's table and finds the rows that were "
                    "written, all {count} values. Click the state's page to let it look into the other table.",
                    block=read["blocks"][0],
                    count=number(found["values"]))
    return Text("Attention looks up block {block} in the KDA group's table. The bytes are there and nothing "
                "raises an error, but {wrong} of {count} values are wrong, {bad} of them no finite numbers.",
                block=read["blocks"][1],
                wrong=number(found["different"]), count=number(found["values"]), bad=number(found["not_finite"]))


def draw_page(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Three corners of pages: rows as written, the state as written, and what attention reads."""
    log, width = scene.events, 340 if narrow else 720
    across = 224
    unit = across / SHOWN[1]
    tall = unit * SHOWN[0]
    titles = {"rows": Text("block {block}: rows of tokens", block=log["blocks"][0]),
              "state": Text("block {block}: a KDA state", block=log["blocks"][1]),
              "read": Text("what attention reads")}
    parts, places = [], {}
    for order, name in enumerate(("rows", "state", "read")):
        x, y = (58, order * (tall + 44)) if narrow else (order * 248, 0)
        places[name] = x, y
        style = "state" if name == "state" else "mla"
        chosen = name == ("state" if log["wrong"] else "rows")
        picture = [d.text(x, y + 12, titles[name].render(lang), "label strong"),
                   d.rect(x, y + 20, across, tall, "heat-frame chosen" if chosen else "heat-frame"),
                   *_heat(log["shades"][name], x, y + 20, unit, style)]
        other = "true" if name == "state" else "false"
        click = {} if name == "read" else {"data_click": "wrong_table", "data_value": other}
        parts.append(d.group(picture, **click))
    parts.append(_arrow(places["state" if log["wrong"] else "rows"], places["read"], across, tall, narrow))
    bottom = 3 * (tall + 44) if narrow else tall + 46
    return Picture(d.svg(width, bottom, parts, scene.captions[frame].render(lang)), _legend(log))


def _heat(shades: list, left: float, top: float, unit: float, style: str) -> list:
    """One path per shade; values near zero are left blank."""
    parts = []
    side = d.number(unit)
    for level in range(1, GARBAGE + 1):
        cells = [f"M{d.number(left + column * unit)} {d.number(top + row * unit)}h{side}v{side}h-{side}z"
                 for row, line in enumerate(shades) for column, shade in enumerate(line) if shade == level]
        if cells:
            parts.append(d.path("".join(cells), "miss" if level == GARBAGE else f"{style} shade{level}"))
    return parts


def _arrow(source: tuple, target: tuple, across: float, tall: float, narrow: bool) -> str:
    """From the page that the table names to what is read: along the bottom, or along the left side."""
    if narrow:
        y1, y2 = source[1] + 20 + tall / 2, target[1] + 20 + tall / 2
        return d.path(f"M54 {d.number(y1)}H30V{d.number(y2)}H52l-6 -4m6 4l-6 4", "arrow")
    x1, x2, y = source[0] + across / 2, target[0] + across / 2, 20 + tall
    return d.path(f"M{d.number(x1)} {d.number(y + 3)}v16H{d.number(x2)}v-14l-4 6m4 -6l4 6", "arrow")


def _legend(log: dict) -> list:
    bad = sum(shade == GARBAGE for line in log["shades"]["read"] for shade in line)
    return [("mla", Text("rows: the darker, the larger the value")), ("state", Text("the state, read as a state")),
            ("miss", Text("no number, or far larger than any row: {n} of {total} shown", n=bad,
                          total=SHOWN[0] * SHOWN[1]))]

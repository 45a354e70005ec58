"""Requests as strips of hash blocks with the KDA groups' checkpoints below: shared by the tabs on prefixes.

A frame is plain data: {"rows": [{"segments": [(start, end, style)], "points": [(position, group, style)]}],
"now": index of the row at work, "line": position of a line through the drawing or None}.
"""

from k3core.lab import drawing as d
from k3core.lab.display import number
from k3core.lab.prefix_requests import GROUPS
from k3core.lab.text import Text

STRIP, LANE, HEAD = 30, 13, 20
ROW = HEAD + STRIP + 6 + GROUPS * LANE + 18
MARGIN = 8  # on both sides: half a grip


def scale_of(log: dict, narrow: bool) -> tuple:
    """(width of the drawing, drawing units per token)."""
    width = 340 if narrow else 720
    return width, (width - 2 * MARGIN) / max(row["tokens"] for row in log["rows"])


def rows(log: dict, frame: dict, heading, narrow: bool, lang: str) -> tuple:
    """All rows of one frame -> (parts, bottom). heading: index of a row -> Text above its strip."""
    _, scale = scale_of(log, narrow)
    parts = []
    for index, (row, shown) in enumerate(zip(log["rows"], frame["rows"])):
        style = "label strong" if index == frame["now"] else "label"
        parts.append(d.text(MARGIN, index * ROW + 13, heading(index).render(lang), style))
        parts += _row(log, row, shown, index, scale, lang)
    bottom = len(log["rows"]) * ROW
    if frame["line"]:
        x = MARGIN + frame["line"] * scale
        top = HEAD - 4 + max(0, frame["now"] - 1) * ROW
        parts.append(d.line(x, top, x, (frame["now"] + 1) * ROW - 14, "arrow"))
    return parts, bottom


def _row(log: dict, row: dict, shown: dict, index: int, scale: float, lang: str) -> list:
    parts, strip = [], index * ROW + HEAD
    for start, end, style in shown["segments"]:
        parts += _segment(start, end, style, strip, scale, log["hash_block"], index)
    for start in range(0, row["tokens"], log["page"]):
        wide = min(log["page"], row["tokens"] - start) * scale
        parts.append(d.rect(MARGIN + start * scale, strip - 2, wide, STRIP + 4, "outline"))
    for group in range(GROUPS):
        y = strip + STRIP + 6 + group * LANE + LANE / 2
        parts.append(d.line(MARGIN, y, MARGIN + row["tokens"] * scale, y))
    for position, group, style in shown["points"]:
        parts.append(_point(log, position, group, style, index, strip, scale, lang))
    return parts


def _segment(start: int, end: int, style: str, top: float, scale: float, block: int, row: int) -> list:
    """One rectangle per hash block, or a single one where blocks would be too thin to see."""
    step = block if block * scale >= 4 else max(1, end - start)
    parts, at = [], start
    while at < end:
        upto = min(end, (at // step + 1) * step if step == block else end)
        title = f"{number(at)} – {number(upto)}"
        parts.append(d.rect(MARGIN + at * scale, top, max(0.5, (upto - at) * scale - 1), STRIP, style,
                            f"tokens:{row}:{at // block}", title))
        at = upto
    return parts


def _point(log: dict, position: int, group: int, style: str, row: int, strip: float, scale: float, lang: str) -> str:
    """A checkpoint of one KDA group: a square that ends at its position."""
    x = max(MARGIN, MARGIN + position * scale - 10)
    y = strip + STRIP + 6 + group * LANE + 1
    title = Text("KDA group {group}, state after {tokens} tokens", group=group + 1, tokens=number(position))
    more = {"data_click": log["click"][0], "data_value": log["click"][1][group]} if log["click"] and not row else {}
    return d.rect(x, y, 10, LANE - 2, style, f"checkpoint:{position}", title.render(lang), **more)


def shared_grip(log: dict, narrow: bool, lang: str, row: int = 1) -> list:
    """Where the prompts part, with the grip that moves it."""
    width, scale = scale_of(log, narrow)
    x, y = MARGIN + log["shared"] * scale, row * ROW + HEAD - 2
    words = Text("shared: {tokens}", tokens=number(log["shared"])).render(lang)
    right = x > width - 115  # no room for the words on that side; at the left the row's heading ends before 178
    label = d.text(x - 11 if right else max(x + 11, 178), y - 5, words, "label small", "end" if right else "start")
    if right and x < 275:  # a narrow screen has no room on either side; the control tells the number
        label = ""
    return [d.line(x, HEAD - 2, x, y + STRIP, "rule"), label,
            d.handle(x, y, "shared", None, scale, 1, Text("drag to set the shared length").render(lang))]


def grain_grip(log: dict, narrow: bool, lang: str, top: float) -> tuple:
    """The grid on which checkpoints lie; its first tick is a grip -> (parts, bottom)."""
    width, scale = scale_of(log, narrow)
    grain, last = log["grain"], max(row["tokens"] for row in log["rows"])
    parts = [d.line(MARGIN, top + 8, width - MARGIN, top + 8)]
    if grain * scale >= 3:
        parts += [d.line(MARGIN + at * scale, top + 3, MARGIN + at * scale, top + 13, "arrow")
                  for at in range(grain, last + 1, grain)]
    x = MARGIN + min(grain, last) * scale
    parts.append(d.handle(x, top + 8, log["grain_param"], None, scale * log["grain_unit"], 1,
                          Text("drag to set the checkpoint grid").render(lang)))
    words = Text("checkpoint grid: {tokens} tokens", tokens=number(grain)).render(lang)
    right = x > width / 2
    parts.append(d.text(MARGIN if right else width - MARGIN, top + 28, words, "label small",
                        "start" if right else "end"))
    return parts, top + 34


def findable(log: dict, index: int) -> list:
    """Segments of a request that is over: the rows that can be found, and the rest of its last block."""
    tokens = log["rows"][index]["tokens"]
    whole = log["rows"][index].get("read", tokens) // log["hash_block"] * log["hash_block"]
    return [(0, whole, "mla"), (whole, tokens, "free")]


def taken(turn) -> list:
    """Segments of what a request took from the cache, and of this the part that is another prefix's."""
    right = turn.hit.tokens - turn.wrong
    return [(0, right, "hit"), (right, turn.hit.tokens, "wrong")]


def resumed(turn, wrong_groups=range(GROUPS)) -> list:
    """Points for the states that a request resumed from."""
    hit = turn.hit.tokens
    return [(hit, group, "wrong" if turn.wrong and group in wrong_groups else "hit")
            for group in range(GROUPS) if hit]


def stored(positions, style: str = "state") -> list:
    """Points for checkpoints that every group has."""
    return [(position, group, style) for position in positions for group in range(GROUPS)]


def matched(asked: tuple) -> list:
    """For each question about rows in turn: (stage, position, found, tokens matched after it)."""
    out, lit = [], 0
    for stage, end, found in asked:
        if stage == "checkpoint":
            continue
        lit = end if found else lit
        out.append((stage, end, found, lit))
    return out


def places(saves: tuple) -> Text | str:
    """Positions in words, at most three of them."""
    if not saves:
        return Text("no position")
    if len(saves) <= 3:
        return ", ".join(number(end) for end in saves)
    return Text("{count} positions up to {end}", count=len(saves), end=number(saves[-1]))


def legend(frame: dict) -> list:
    """What the row at work consists of, in tokens, and the checkpoints in sight."""
    shown = frame["rows"][frame["now"]]
    counts = {}
    for start, end, style in shown["segments"]:
        counts[style] = counts.get(style, 0) + end - start
    words = {
        "hit": Text("from the cache: {tokens} tokens", tokens=number(counts.get("hit", 0))),
        "wrong": Text("taken, but of another prefix: {tokens} tokens", tokens=number(counts.get("wrong", 0))),
        "padding": Text("rows found, but no state there: {tokens} tokens", tokens=number(counts.get("padding", 0))),
        "miss": Text("computed: {tokens} tokens", tokens=number(counts.get("miss", 0))),
        "accepted": Text("written by the model: {tokens} tokens", tokens=number(counts.get("accepted", 0))),
        "mistaken": Text("written otherwise than without a cache: {tokens} tokens",
                         tokens=number(counts.get("mistaken", 0))),
        "ghost": Text("not reached yet: {tokens} tokens", tokens=number(counts.get("ghost", 0))),
    }
    lines = [(style, text) for style, text in words.items() if counts.get(style)]
    older = sum(end - start for row in frame["rows"][: frame["now"]] for start, end, style in row["segments"]
                if style == "mla")
    points = [style for row in frame["rows"] for _, _, style in row["points"]]
    if older:
        lines.append(("mla", Text("MLA rows that can be found: {tokens} tokens", tokens=number(older))))
    lines.append(("state", Text("KDA checkpoints: {count} in {groups} groups",
                                count=sum(style in ("state", "hit") for style in points), groups=GROUPS)))
    if "rejected" in points:
        lines.append(("rejected", Text("evicted or not there: {count}", count=points.count("rejected"))))
    return lines

"""Requests of real text as characters in their hash blocks, with the KDA groups' checkpoints below.

Frames are those of `prefix_strips`; log["rows"] have "glyphs", one per token, and "plain", the answer without a cache
where that is another.
"""

from k3core.lab import drawing as d
from k3core.lab import prefix_strips, tiny_text
from k3core.lab.contract import Picture
from k3core.lab.display import number
from k3core.lab.prefix_requests import GROUPS
from k3core.lab.prefix_strips import MARGIN
from k3core.lab.text import Text

LEAST, MOST = 6.5, 9.0  # drawing units for a character
CELL, SQUARE, HEAD, GAP = 19, 7, 20, 12
LINE = CELL + SQUARE + 10
INKS = {"hit": "on-dark", "miss": "on-dark", "mla": "on-dark", "wrong": "on-dark", "accepted": "on-record"}


class Grid:
    """Where characters stand: whole hash blocks, as many as fit a line but at most `most`."""

    def __init__(self, block: int, narrow: bool, most: int = 64):
        self.width = 340 if narrow else 720
        room = self.width - 2 * MARGIN
        blocks = max(1, min(most, int(room // (block * LEAST))))
        self.pitch = min(MOST, room / (blocks * block))
        self.line = blocks * block

    def lines(self, tokens: int) -> int:
        return -(-tokens // self.line)

    def place(self, at: int, top: float) -> tuple:
        """Left upper corner of a character's cell."""
        return MARGIN + at % self.line * self.pitch, top + at // self.line * LINE

    def end(self, at: int, top: float) -> tuple:
        """Right upper corner of the cell of the last character before `at`."""
        x, y = self.place(at - 1, top)
        return x + self.pitch, y


def log_rows(served: list) -> list:
    """What the log keeps of requests with their answers."""
    return [{"tokens": len(turn.ids), "prompt": turn.tokens, "read": len(turn.ids) - 1,
             "glyphs": tiny_text.glyphs(turn.ids),
             "plain": "" if turn.answer == turn.right else tiny_text.glyphs(turn.right)} for turn in served]


def picture(log: dict, frame: dict, heading, caption: Text, narrow: bool, lang: str) -> Picture:
    """One frame: all rows, and the legend of the row at work."""
    parts, bottom = rows(log, frame, heading, narrow, lang)
    return Picture(d.svg(340 if narrow else 720, bottom, parts, caption.render(lang)), prefix_strips.legend(frame))


def rows(log: dict, frame: dict, heading, narrow: bool, lang: str) -> tuple:
    """All rows of one frame -> (parts, bottom). heading: index of a row -> Text above its lines."""
    grid, parts, top = Grid(log["hash_block"], narrow), [], 0.0
    for index, (row, shown) in enumerate(zip(log["rows"], frame["rows"])):
        style = "label strong" if index == frame["now"] else "label"
        parts.append(d.text(MARGIN, top + 13, heading(index).render(lang), style))
        parts += _row(log, grid, row, shown, index, top + HEAD, index <= frame["now"], lang)
        if frame["line"] and index in (frame["now"] - 1, frame["now"]):
            x, y = grid.end(frame["line"], top + HEAD)
            parts.append(d.line(x, y - 4, x, y + CELL + 4, "arrow"))
        top += HEAD + grid.lines(row["tokens"]) * LINE
        if row["plain"]:
            parts += _without(grid, row, shown, top, lang)
            top += HEAD + grid.lines(len(row["plain"])) * LINE
        top += GAP
    return parts, top - GAP


def _row(log: dict, grid: Grid, row: dict, shown: dict, index: int, top: float, known: bool, lang: str) -> list:
    parts = []
    for start, end, style in shown["segments"]:
        for left in cuts(start, end, log["hash_block"]):
            title = f"{number(left[0])} – {number(left[1])}"
            parts += cell(grid, *left, top, style, row["glyphs"] if known else "",
                          f"tokens:{index}:{left[0] // log['hash_block']}", title)
    for page in range(0, row["tokens"], log["page"]):
        x, y = grid.place(page, top)
        parts.append(d.line(x - 1, y - 3, x - 1, y + CELL + 3, "arrow"))
    for position, group, style in shown["points"]:
        x, y = grid.end(position, top)
        title = Text("KDA group {group}, state after {tokens} tokens", group=group + 1, tokens=number(position))
        more = ({"data_click": log["click"][0], "data_value": log["click"][1][group]}
                if log["click"] and not index else {})
        parts.append(d.rect(x - (SQUARE + 2) * (GROUPS - group), y + CELL + 3, SQUARE, SQUARE, style,
                            f"checkpoint:{position}", title.render(lang), **more))
    return parts


def cuts(start: int, end: int, block: int) -> list:
    """(start, end) of the parts of a segment that lie in one hash block each."""
    edges = [start, *range((start // block + 1) * block, end, block), end]
    return [(a, b) for a, b in zip(edges, edges[1:]) if a < b]


def cell(grid: Grid, start: int, end: int, top: float, style: str, glyphs: str, mark: str | None = None,
         title: str = "") -> list:
    """Part of a hash block: its rectangle, and each character in the middle of its place."""
    x, y = grid.place(start, top)
    parts = [d.rect(x, y, (end - start) * grid.pitch - 1, CELL, style, mark, title)]
    if glyphs:
        middles = " ".join(d.number(x + (i + 0.5) * grid.pitch) for i in range(end - start))
        parts.append(d.text(middles, y + 14, glyphs[start:end], f"glyph {INKS.get(style, '')}".strip(), "middle"))
    return parts


def _without(grid: Grid, row: dict, shown: dict, top: float, lang: str) -> list:
    """What the model writes without a cache, once the other answer is there."""
    if not any(style in ("accepted", "mistaken") for _, _, style in shown["segments"]):
        return []
    parts = [d.text(MARGIN, top + 8, Text("without the cache it writes").render(lang), "label small")]
    for start in range(0, len(row["plain"]), grid.line):
        end = min(start + grid.line, len(row["plain"]))
        parts += cell(grid, start, end, top + HEAD - 5, "accepted", row["plain"])
    return parts


def written(turn) -> list:
    """Segments of an answer: what the model would also have written without a cache, and what not."""
    return compared(turn.answer, turn.right, turn.tokens)


def compared(mine, right, at: int = 0) -> list:
    """Segments from `at` on: where two texts agree, and where not."""
    out = []
    for place, (one, other) in enumerate(zip(mine, right), at):
        style = "accepted" if one == other else "mistaken"
        start = out.pop()[0] if out and out[-1][2] == style else place
        out.append((start, place + 1, style))
    return out


def spoken(turn, who: Text) -> Text:
    """The caption of an answer."""
    answer = tiny_text.glyphs(turn.answer)
    if turn.same:
        return Text("{who} answers {text}: what it writes without a cache, and all {count} numbers in its states and "
                    "rows are the same to the bit.", who=who, text=answer, count=number(turn.numbers))
    if turn.answer == turn.right:
        return Text("{who} answers {text}. Without a cache it writes the same, but {differing} of {count} numbers in "
                    "its states and rows are others.", who=who, text=answer, differing=number(turn.differing),
                    count=number(turn.numbers))
    return Text("{who} answers {text}. Without a cache it writes {right}. No error is raised.", who=who, text=answer,
                right=tiny_text.glyphs(turn.right))

"""The last frames of the tab `checkpoint-atomicity` with a real text: what is read, and what becomes of it."""

from k3core.lab import drawing as d
from k3core.lab.contract import Picture
from k3core.lab.display import number
from k3core.lab.prefix_strips import MARGIN
from k3core.lab.prefix_text_view import CELL, HEAD, LINE, Grid, cell, compared, cuts
from k3core.lab.text import Text

BLOCK = 16  # characters that a line has a multiple of
READ = 28


def draw(log: dict, frame: int, caption: Text, narrow: bool, lang: str) -> Picture:
    """The prompt in its pieces and what its reader goes on from; in the second frame also the two texts."""
    grid = Grid(BLOCK, narrow)
    parts, top = _prompt(log, grid, lang)
    reads, top = _reads(log, grid, top + 6, lang)
    parts += reads
    texts, bottom = _texts(log, grid, top + 12, narrow, lang)
    svg = d.svg(grid.width, bottom, [*parts, *(texts if frame else [])], caption.render(lang))
    return Picture(svg, _legend(log, frame))


def _prompt(log: dict, grid: Grid, lang: str) -> tuple:
    title = Text("{who}'s text, and the names of its pieces", who=log["who"]).render(lang)
    parts, top, start = [d.text(MARGIN, 13, title, "label strong")], HEAD, 0
    taken = "hit" if all(read["ok"] for read in log["reads"]) else "wrong"
    for name, end in zip(log["names"], log["ends"]):
        for left, right in cuts(start, end, grid.line):
            parts += cell(grid, left, right, top, taken if end <= log["before"] else "miss", log["glyphs"])
        x, y = grid.place(start, top)
        parts.append(d.text(x, y + CELL + 14, name, "small"))
        start = end
    return parts, top + grid.lines(len(log["glyphs"])) * LINE


def _reads(log: dict, grid: Grid, top: float, lang: str) -> tuple:
    """For the rows and each KDA group: what should be there, and what is."""
    title = Text("{who} goes on after {count} tokens", who=log["who"], count=number(log["before"])).render(lang)
    wide = (grid.width - 2 * MARGIN - 60) / 2
    columns = MARGIN + 60, MARGIN + 60 + wide
    parts = [d.text(MARGIN, top + 12, title, "label strong"),
             d.text(columns[0], top + 32, Text("expects").render(lang), "small"),
             d.text(columns[1], top + 32, Text("reads").render(lang), "small")]
    y = top + 38
    for read in log["reads"]:
        name = Text("KDA {n}", n=read["group"]) if read["group"] else Text("rows")
        right = "state" if read["group"] else "mla"
        parts.append(d.text(MARGIN, y + 16, name.render(lang), "label"))
        held = right if read["ok"] else "mistaken"
        for x, words, style in ((columns[0], read["right"], right), (columns[1], read["held"], held)):
            ink = "mistaken-ink" if style == "mistaken" else "chip-ink"
            parts += [d.rect(x, y, wide - 6, 22, style),
                      d.text(x + wide / 2 - 3, y + 16, words, f"{ink} fit", "middle")]
        y += READ
    return parts, y


def _texts(log: dict, grid: Grid, top: float, narrow: bool, lang: str) -> tuple:
    """The right text and the one that the reader gets, side by side; on a phone one above the other."""
    parts, bottom = [], top
    for index, (title, key) in enumerate(((Text("right"), "right"), (Text("what the reader gets"), "wrong"))):
        left, y = (0, top + index * (HEAD + LINE)) if narrow else (index * grid.width / 2, top)
        parts.append(d.text(left + MARGIN, y + 13, title.render(lang), "label strong"))
        place = Grid(len(log["right"]), True, 1)
        inner = [part for start, end, style in compared(log[key], log["right"])
                 for part in cell(place, start, end, y + HEAD, style, log[key])]
        parts.append(d.group(inner, transform=f"translate({d.number(left)},0)"))
        bottom = y + HEAD + LINE
    return parts, bottom


def _legend(log: dict, frame: int) -> list:
    wrong = sum(not read["ok"] for read in log["reads"])
    lines = [("hit" if not wrong else "wrong", Text("not computed again: {count} tokens", count=number(log["before"]))),
             ("miss", Text("computed: {tokens} tokens", tokens=number(len(log["glyphs"]) - log["before"])))]
    if wrong:
        lines.append(("mistaken", Text("wrong content found or read: {count}", count=wrong)))
    if frame:
        differ = sum(a != b for a, b in zip(log["wrong"], log["right"]))
        lines += [("accepted", Text("characters that are right: {count}", count=len(log["right"]) - differ)),
                  ("mistaken", Text("characters that differ: {count}", count=differ))]
    return lines

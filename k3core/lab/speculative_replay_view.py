"""What the tab `speculative-replay` shows: one frame per verify round, and the memory at four head sizes."""

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab import tiny_text
from k3core.lab.contract import Figure, Picture, Result, Scene
from k3core.lab.display import binary_bytes, number
from k3core.lab.text import Text

GLYPHS = "abcdefghijklmnopqrstuvwxyz␣,.'-?"  # token ids as they are drawn; the space must be seen
STORE_WORDS = {"snapshots": Text("snapshots"), "projections": Text("projections"),
               "corrected": Text("corrected values"), "ring": Text("ring of records")}
COMMIT_WORDS = {"snapshots": Text("copies one snapshot over S"),
                "projections": Text("replays the kept records onto S, in order"),
                "corrected": Text("adds the kept records to S at once"),
                "ring": Text("moves a cursor; S is written at a flush")}
CONV_ROWS = 3  # inputs that the convolution looks back at
CELL, ROW = 13, 20  # one character of the text line
INK = {"miss": "glyph on-dark", "accepted": "glyph on-record"}  # letters on filled tiles


def alphabet(source: str) -> str:
    """The character that is drawn for each token id."""
    return tiny_text.glyphs(range(128)) if source == "text" else GLYPHS


def glyphs(ids, letters: str = GLYPHS) -> str:
    """Token ids as characters."""
    return "".join(letters[i] for i in ids)


def events(p, size: int, plain, text: list, same: int, log: list, slots: int, held: dict) -> dict:
    """The log: both texts, prompt included, and for each round what was drafted, kept and moved.

    size: dk = dv; plain: tiny_text.Plain; same: leading new tokens that equal it; slots: of the ring; held: bytes
    per store."""
    settings = {"drafts": p.drafts, "size": size, "store": p.store, "fault": p.fault, "letters": alphabet(p.source)}
    return settings | {"plain": [*plain.ids, *plain.tokens], "text": [*plain.ids, *text],
                       "prompt": len(plain.ids), "same": same,
                       "rounds": log, "slots": slots, "held": held}


def poster(log: dict) -> int:
    """A round in which drafts are both kept and taken back, the third or later if possible, when the ring
    holds something; where there is none, the round that keeps most; with a mistake, the one that first goes wrong."""
    rounds = log["rounds"]
    if log["same"] < len(log["plain"]) - log["prompt"]:
        return next(i + 1 for i, r in enumerate(rounds) if r["read"] + len(r["choices"]) >= log["same"])
    mixed = [i + 1 for i, r in enumerate(rounds) if 0 < r["accepted"] < len(r["window"]) - 1]
    if not mixed:
        return max(range(len(rounds)), key=lambda i: rounds[i]["accepted"]) + 1
    return next((frame for frame in mixed if frame >= 3), mixed[0])


# --- words ---


def captions(log: dict) -> list:
    """What happened in each round: to the drafts, then to the stores."""
    letters = log["letters"]
    first = glyphs(log["text"][log["prompt"]:][:1], letters)
    said = [Text("The prompt of {count} tokens is read, and the model chooses '{first}'. All stores start "
                 "from the same state S.", count=log["prompt"], first=first)]
    for i, r in enumerate(log["rounds"]):
        verdict, rollback = _verdict(i + 1, r, letters), _rollback(log["fault"], r)
        said.append(Text("{verdict} {rollback}", verdict=verdict, rollback=rollback))
    return said


def _verdict(n: int, r: dict, letters: str) -> Text:
    drafted, accepted, bonus = len(r["window"]) - 1, r["accepted"], glyphs(r["choices"][-1:], letters)
    if not drafted:
        return Text("Round {n}: nothing drafted, one token gained, '{bonus}'.", n=n, bonus=bonus)
    if accepted == drafted:
        return Text("Round {n}: all {drafted} drafts are right, and '{bonus}' comes on top.", n=n,
                    drafted=drafted, bonus=bonus)
    return Text("Round {n}: {accepted} of {drafted} drafts are right; where the first is wrong the model "
                "says '{bonus}'.", n=n, accepted=accepted, drafted=drafted, bonus=bonus)


def _rollback(fault: str, r: dict) -> Text:
    kept, folded = 1 + r["accepted"], r["before"][1]
    if fault == "drafted" and r["told"] > kept:
        return Text("The memories are told to keep {told} tokens instead of {kept}: rejected drafts stay in "
                    "the state.", told=r["told"], kept=kept)
    if fault == "column" and kept > 1:
        return Text("The state goes back to column 0 and misses {count} accepted tokens.", count=kept - 1)
    if fault == "conv":
        return Text("The state is rolled back, but the convolution goes on from the inputs of the prompt.")
    if r["flushed"] and folded:
        return Text("Snapshots copy slot {slot}, projections replay {kept} records, corrected values add "
                    "them up; the ring folds its {folded} older records into S.", slot=kept - 1, kept=kept,
                    folded=folded)
    return Text("Snapshots copy slot {slot}, projections replay {kept} records, corrected values add them "
                "up; the ring only moves its cursor.", slot=kept - 1, kept=kept)


def _legend(log: dict, r: dict | None) -> list:
    """What the shapes are, with counts of this round."""
    drafted, accepted = (len(r["window"]) - 1, r["accepted"]) if r else (0, 0)
    window, (_, history) = log["drafts"] + 1, r["before"] if r else (0, 0)
    each = {name: binary_bytes(log["held"][name] // window) for name in ("snapshots", "projections")}
    lines = [("accepted", Text("drafts accepted: {count}", count=accepted)),
             ("rejected", Text("drafts rejected: {count}", count=drafted - accepted)),
             ("outline", Text("bonus token: {count}", count=1 if r else 0)),
             ("snapshot", Text("snapshots: {count} of {size}", count=window, size=each["snapshots"])),
             ("record", Text("records, to the same scale: {bytes}", bytes=each["projections"]))]
    if r and r["flushed"]:
        lines.append(("folded", Text("ring, folded into S: {count}", count=history)))
    else:
        lines.append(("older", Text("ring, older records: {count}", count=history)))
    lines += [("conv", Text("inputs the convolution goes on from: {count}", count=CONV_ROWS)),
              ("state", Text("committed state S"))]
    if log["fault"] != "none":
        done = log["prompt"] + (r["read"] + 1 + len(r["choices"]) if r else 1)
        wrong = sum(a != b for a, b in zip(log["text"][:done], log["plain"]))
        lines.append(("miss", Text("wrong tokens so far: {count}", count=number(wrong))))
    return [*lines, ("bead", Text("drag the grip: number of drafts; click a store: run on it"))]


# --- the drawing ---


class Grid:
    """Where things are: window positions are columns, in both widths of the drawing."""

    def __init__(self, log: dict, narrow: bool):
        size = log["size"]
        self.narrow, self.width = narrow, 340 if narrow else 720
        self.left, self.column = (32, 27) if narrow else (146, 54)  # column 0's left edge, step of columns
        self.tile, self.slot = (23, 24) if narrow else (38, 44)  # sides of a token's tile and of a snapshot
        self.state = self.width - (30 if narrow else 124)  # left edge of S
        self.text = 0 if narrow else 92  # where the text line starts
        self.columns = log["drafts"] + 1
        # A record is as tall as a snapshot; k, v or u, g, beta and the conv inputs against d x d.
        self.strips = {"snapshots": self.slot, "projections": self.slot * (6 * size + 1) / size**2,
                       "corrected": self.slot * 6 / size}

    def x(self, column: int) -> float:
        """Centre of a window position."""
        return self.left + (column + 0.5) * self.column


def draw_rounds(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The text so far, the window with the model's choices, and what the four stores hold after the round."""
    log = scene.events
    grid, r = Grid(log, narrow), log["rounds"][frame - 1] if frame else None
    parts, y = _text(log, r, grid, lang)
    drawn, y = _window(log, r, grid, y + 12, lang)
    parts += drawn
    for name in grid.strips:
        drawn, y = _lane(name, log, r, grid, y + 12, lang)
        parts += drawn
    drawn, y = _ring(log, frame, grid, y + 12, lang)
    parts += drawn
    drawn, y = _conv(log, r, grid, y + 14, lang)
    label = scene.captions[frame].render(lang)
    return Picture(d.svg(grid.width, y + 4, [*parts, *drawn], label), _legend(log, r))


def _text(log: dict, r: dict | None, grid: Grid, lang: str) -> tuple:
    """The text as far as it has come; under it, in grey, plain decoding."""
    prompt, text, plain = log["prompt"], log["text"], log["plain"]
    before = prompt + (r["read"] + 1 if r else 0)  # committed before this round
    after = before + (len(r["choices"]) if r else 1)
    parts = [] if grid.narrow else [d.text(0, 15, Text("with drafts").render(lang), "label strong"),
                                    d.text(0, 15 + ROW, Text("plain").render(lang), "label small")]
    letters, line = log["letters"], 2 * ROW + 6
    places = _places([letters[i] for i in plain], (grid.width - grid.text) // CELL)
    for i, (column, row) in enumerate(places):
        x, y = grid.text + column * CELL, row * line
        if i < after:
            style = "blank"
            if i >= prompt and text[i] != plain[i]:
                style = "miss"
            elif i >= before:
                style = "outline" if i == after - 1 else "accepted"
            ink = "glyph old" if i < prompt else INK.get(style, "glyph")
            parts += [d.rect(x + 0.5, y + 1, CELL - 1, ROW - 2, style, f"token:{i}"),
                      d.text(x + CELL / 2, y + 15, letters[text[i]], ink, "middle")]
        parts.append(d.text(x + CELL / 2, y + 14 + ROW, letters[plain[i]], "glyph small", "middle"))
    return parts, (places[-1][1] + 1) * line


def _places(characters: list, per_line: int) -> list:
    """(column, line) of every character; a line ends where it is full, or behind a line end."""
    places, column, line = [], 0, 0
    for character in characters:
        if column == per_line:
            column, line = 0, line + 1
        places.append((column, line))
        column, line = (0, line + 1) if character == "⏎" else (column + 1, line)
    return places


def _window(log: dict, r: dict | None, grid: Grid, y: float, lang: str) -> tuple:
    """Tiles of what was read: the token chosen before, then drafts, right or wrong. Under them what the model
    chose, up to the bonus token."""
    tile, parts = grid.tile, []
    if not grid.narrow:
        parts += [d.text(0, y + tile / 2 + 5, Text("drafted").render(lang), "label strong"),
                  d.text(0, y + tile * 1.5 + 10, Text("model’s choice").render(lang), "label strong")]
    for i in range(grid.columns):
        if r is None or i >= len(r["window"]):
            parts += _tile(grid, i, y, "ghost", "", None)
        else:
            style = "free" if i == 0 else "accepted" if i <= r["accepted"] else "rejected"
            parts += _tile(grid, i, y, style, log["letters"][r["window"][i]], _mark(log, r, i))
    for i, choice in enumerate(r["choices"] if r else []):
        style = "outline" if i == r["accepted"] else "blank"
        parts += _tile(grid, i + 1, y + tile + 5, style, log["letters"][choice], _mark(log, r, i + 1))
    right = grid.left + grid.columns * grid.column
    hint = Text("drag to set the number of drafts").render(lang)
    grip = d.handle(right + 4, y + tile / 2, "drafts", None, grid.column, 0, hint)
    return [*parts, grip], y + 2 * tile + 5


def _tile(grid: Grid, column: int, y: float, style: str, glyph: str, mark: str | None) -> list:
    x, tile = grid.x(column), grid.tile
    return [d.rect(x - tile / 2, y, tile, tile, style, mark),
            d.text(x, y + tile / 2 + 5, glyph, INK.get(style, "glyph"), "middle")]


def _mark(log: dict, r: dict, i: int) -> str:
    return f"token:{log['prompt'] + r['read'] + i}"


def _kept(log: dict, r: dict | None) -> int:
    """How many positions of the window the state really keeps."""
    return 0 if r is None else 1 if log["fault"] == "column" else r["told"]


def _slot(log: dict, r: dict | None, i: int, style: str) -> tuple:
    """Class and mark of a slot after the round: kept, taken back, kept or lost by mistake, or not used."""
    if r is None or i >= len(r["window"]):
        return "ghost", None
    right, kept = i <= r["accepted"], i < _kept(log, r)
    return "miss" if right != kept else style if right else "rejected", _mark(log, r, i)


def _lane(name: str, log: dict, r: dict | None, grid: Grid, y: float, lang: str) -> tuple:
    """The slots of one store under the window's columns, a bracket over those that go into S, and S."""
    parts, side, wide, kept = _head(name, log, grid, y, lang), grid.slot, grid.strips[name], _kept(log, r)
    y += 18 if grid.narrow else 0
    for i in range(grid.columns):
        style, mark = _slot(log, r, i, "snapshot" if name == "snapshots" else "record")
        parts.append(d.rect(grid.x(i) - wide / 2, y, wide, side, style, mark))
    if kept:
        used = [kept - 1] if name == "snapshots" else range(kept)
        parts.append(_bracket([grid.x(i) for i in used], y + side + 2, grid.state + side / 2))
        order = {"projections": [(i, str(i + 1)) for i in used], "corrected": [(kept - 1, "Σ")]}.get(name, [])
        parts += [d.text(grid.x(i) + wide / 2 + 4, y + side - 2, words, "label small") for i, words in order]
    return [*parts, *_state(grid, y, kept > 0, lang)], y + side + 10


def _head(name: str, log: dict, grid: Grid, y: float, lang: str) -> list:
    """A store's name and bytes; clicking it makes the decoder run on that store."""
    words, size = STORE_WORDS[name].render(lang), binary_bytes(log["held"][name])
    chosen = name == log["store"]
    area = (grid.width, 16) if grid.narrow else (grid.left - 14, grid.slot)
    place = (grid.width, y + 12, "end") if grid.narrow else (0, y + 32, "start")
    parts = [d.rect(0, y, *area, "lane", f"store:{name}"), d.text(*place[:2], size, "label small", place[2]),
             d.text(0, y + (12 if grid.narrow else 15), f"▸ {words}" if chosen else words, "label strong")]
    runs = Text("the decoder runs on it") if chosen else Text("click to run the decoder on it")
    return [d.group(parts, title=runs.render(lang), data_click="store", data_value=name)]


def _bracket(centres: list, y: float, end: float) -> str:
    """From the kept slots down, along, and up into S."""
    top, low, barb = d.number(y), d.number(y + 5), d.number(y + 3)
    commands = "".join(f"M{d.number(x)} {top}V{low}" for x in centres)
    commands += f"M{d.number(min(centres))} {low}H{d.number(end)}V{top}"
    commands += f"M{d.number(end - 3)} {barb}L{d.number(end)} {top}L{d.number(end + 3)} {barb}"
    return d.path(commands, "arrow")


def _state(grid: Grid, y: float, written: bool, lang: str) -> list:
    """The committed state after the round, faint where the round did not touch it."""
    side, middle = grid.slot, y + grid.slot / 2 + 5
    parts = [d.rect(grid.state, y, side, side, "state" if written else "state old", "state:committed"),
             d.text(grid.state + side / 2, middle, "S", "on-dark strong", "middle")]
    if not grid.narrow:
        words = Text("written") if written else Text("untouched")
        parts.append(d.text(grid.state + side + 10, middle, words.render(lang), "label small"))
    return parts


def _ring(log: dict, frame: int, grid: Grid, y: float, lang: str) -> tuple:
    """The physical slots in a row: history, this round's records, rejected ones behind the cursor, free."""
    r, count, side = log["rounds"][frame - 1] if frame else None, log["slots"], grid.slot
    parts = _head("ring", log, grid, y, lang)
    y += 22 if grid.narrow else 0  # room for the cursor's head
    left = 0 if grid.narrow else grid.left
    step = (grid.state - 12 - left) / count
    base, write_pos = r["after"] if r else (0, 0)
    styles = dict.fromkeys(range(count), "free")
    styles |= {(base + i) % count: "older" for i in range(write_pos)}
    folded = [(r["before"][0] + i) % count for i in range(r["before"][1])] if r and r["flushed"] else []
    styles |= dict.fromkeys(folded, "folded")
    styles |= {slot: _slot(log, r, i, "record")[0] for i, slot in enumerate(r["slots"])} if r else {}
    marks = {slot: _mark(log, past, i) for past in log["rounds"][:frame]
             for i, slot in enumerate(past["slots"])}
    for slot, style in styles.items():
        parts.append(d.rect(left + slot * step + 1.5, y, step - 3, side, style, marks.get(slot)))
    cursor = left + (base + write_pos) % count * step
    parts += [d.line(cursor, y - 3, cursor, y + side + 3, "arrow"),
              d.circle(cursor, y - 3, 3, "cursor", title=Text("cursor").render(lang))]
    if folded:
        centres = [left + (slot + 0.5) * step for slot in folded]
        parts.append(_bracket(centres, y + side + 2, grid.state + side / 2))
    return [*parts, *_state(grid, y, bool(folded), lang)], y + side + 10


def _conv(log: dict, r: dict | None, grid: Grid, y: float, lang: str) -> tuple:
    """Inputs of the short convolution: three from before, the window's, and which three are next."""
    parts = [d.text(0, y + 14, Text("convolution").render(lang), "label strong")]
    y += 20 if grid.narrow else 0
    right = 1 + r["accepted"] if r else 0  # the first of the three inputs that the next round needs
    first = 0 if r is None or log["fault"] == "conv" else r["told"]
    small = 10 if grid.narrow else 14
    for i in range(CONV_ROWS + grid.columns):
        column = i - CONV_ROWS
        before = small - 3, grid.left + (column + 0.3) * small
        wide, centre = (grid.tile, grid.x(column)) if column >= 0 else before
        if first <= i < first + CONV_ROWS:
            style = "conv" if first == right else "miss"
        elif column >= 0 and (r is None or column >= len(r["window"])):
            style = "ghost"
        else:
            style = "rejected" if column >= right else "spent"
        parts.append(d.rect(centre - wide / 2, y, wide, 20, style, _mark(log, r, column) if r else None))
    return parts, y + 20


# --- the chart ---


def memory_figure() -> Figure:
    """Records against snapshots at four head sizes."""
    styles = {"snapshot": charts.colour("snapshot"), "record": charts.colour("record")}
    x = {"field": "size", "type": "nominal", "title": Text("head size dk = dv"), "axis": {"labelAngle": 0}}
    y = charts.quantitative("share", None, axis={"title": None, "tickCount": 5})
    colour = {"field": "design", "type": "nominal", "legend": None,
              "scale": {"domain": list(styles), "range": list(styles.values())}}
    bars = {"x": x, "xOffset": {"field": "design", "sort": list(styles)}, "y": y}
    faint = {"condition": {"test": "datum.design === 'snapshot'", "value": 0.3}, "value": 1}
    words, labels = {"type": "text", "dy": -9, "fontSize": 13}, bars | {"text": {"field": "label"}}
    claim = {"y": {"datum": 0.4, "type": "quantitative"}, "color": {"value": "var(--ink)"}}
    return Figure("memory", "shares", Text("Memory of the window, normalised to snapshots"),
                  Text("Grey: a state per position. Amber: k, v, g, β and the convolution's inputs per position, fp32. "
                       "A matrix grows with d², a record with d: 0.38 at 16, 0.047 at 128. Dashed: 0.4."),
                  {"layer": [
                      {"mark": {"type": "bar", "strokeWidth": 1},
                       "encoding": bars | {"color": colour, "stroke": colour, "fillOpacity": faint}},
                      {"mark": {"type": "rule", "strokeDash": [3, 3]}, "encoding": claim},
                      {"mark": words, "encoding": labels},
                  ]})

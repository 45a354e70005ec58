"""What the tab `speculative-replay` shows: one frame per verify round, and the memory at four head sizes."""

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Figure, Picture, Result, Scene
from k3core.lab.display import binary_bytes, number
from k3core.lab.text import Text

GLYPHS = "abcdefghijklmnopqrstuvwxyz␣,.'-?"  # ids as they are drawn; the space must be seen
STORE_WORDS = {"snapshots": Text("snapshots"), "projections": Text("projections"),
               "corrected": Text("corrected values"), "ring": Text("ring of records")}
COMMIT_WORDS = {"snapshots": Text("copies one snapshot over S"), "projections": Text("replays the kept records onto S, in order"),
                "corrected": Text("adds the kept records to S at once"), "ring": Text("moves a cursor; S is written at a flush")}
KERNEL = 4  # the convolution looks at this many tokens
CELL = 13  # one character of the text line
ROW = 20


def glyphs(ids) -> str:
    """Token ids as characters."""
    return "".join(GLYPHS[i] for i in ids)


def events(p, plain: list, text: list, prompt: int, same: int, log: list, ring_slots: int, held: dict) -> dict:
    """The log: both texts, prompt included, and for each round what was drafted, kept and moved.

    same: leading new tokens that equal plain decoding."""
    return {"plain": plain, "text": text, "prompt": prompt, "same": same, "rounds": log, "drafts": p.drafts, "size": p.head,
            "store": p.store, "fault": p.fault, "ring_slots": ring_slots, "held": held}


def poster(log: dict) -> int:
    """A round in which drafts are both kept and taken back, the third or later if possible, when the ring holds
    something; with a mistake, the round that first goes wrong."""
    rounds = log["rounds"]
    if log["same"] < len(log["plain"]) - log["prompt"]:
        return next(i + 1 for i, r in enumerate(rounds) if r["read"] + len(r["choices"]) >= log["same"])
    mixed = [i + 1 for i, r in enumerate(rounds) if 0 < r["accepted"] < len(r["window"]) - 1]
    return next((frame for frame in mixed if frame >= 3), min([*mixed, len(rounds)]))


def captions(log: dict) -> list:
    """What happened in each round: to the drafts, then to the stores."""
    said = [Text("The prompt of {count} tokens is read, and the model chooses '{first}'. All stores start from the same "
                 "state S.", count=log["prompt"], first=glyphs(log["text"][log["prompt"]:][:1]))]
    return said + [_caption(log, i) for i in range(len(log["rounds"]))]


def _caption(log: dict, i: int) -> Text:
    r = log["rounds"][i]
    drafted, accepted = len(r["window"]) - 1, r["accepted"]
    bonus = glyphs(r["choices"][-1:])
    if not drafted:
        verdict = Text("Round {n}: nothing drafted, one token gained, '{bonus}'.", n=i + 1, bonus=bonus)
    elif accepted == drafted:
        verdict = Text("Round {n}: all {drafted} drafts are right, and '{bonus}' comes on top.", n=i + 1, drafted=drafted, bonus=bonus)
    else:
        verdict = Text("Round {n}: {accepted} of {drafted} drafts are right; where the first is wrong the model says '{bonus}'.",
                       n=i + 1, accepted=accepted, drafted=drafted, bonus=bonus)
    return Text("{verdict} {rollback}", verdict=verdict, rollback=_rollback(log, r))


def _rollback(log: dict, r: dict) -> Text:
    kept, folded = 1 + r["accepted"], r["before"][1]
    if log["fault"] == "drafted" and r["told"] > kept:
        return Text("The memories are told to keep {told} tokens instead of {kept}: rejected drafts stay in the state.",
                    told=r["told"], kept=kept)
    if log["fault"] == "column" and kept > 1:
        return Text("The state goes back to column 0 and misses {count} accepted tokens.", count=kept - 1)
    if log["fault"] == "conv":
        return Text("The state is rolled back, but the convolution goes on from the inputs of the prompt.")
    if r["flushed"] and folded:
        return Text("Snapshots copy slot {slot}, projections replay {kept} records, corrected values add them up; the ring "
                    "folds its {folded} older records into S.", slot=kept - 1, kept=kept, folded=folded)
    return Text("Snapshots copy slot {slot}, projections replay {kept} records, corrected values add them up; the ring only "
                "moves its cursor.", slot=kept - 1, kept=kept)


class Grid:
    """Where things are: window positions are columns, in both widths of the drawing."""

    def __init__(self, log: dict, narrow: bool):
        self.narrow, self.width = narrow, 340 if narrow else 720
        self.left = 32 if narrow else 146  # of column 0
        self.column = 27 if narrow else 54
        self.tile = 23 if narrow else 38
        self.slot = 24 if narrow else 44  # side of a snapshot
        self.state = self.width - (30 if narrow else 124)  # left edge of S
        self.per_line = self.width // CELL if narrow else (self.width - 92) // CELL
        size = log["size"]
        record = (3 * size + 1 + 3 * size) / size**2  # k, v, g, beta and the conv inputs, against the state
        self.strips = {"projections": self.slot * record, "corrected": self.slot * 6 / size}
        self.columns = log["drafts"] + 1

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
    for name in ("snapshots", "projections", "corrected"):
        drawn, y = _lane(name, log, r, grid, y + 12, lang)
        parts += drawn
    drawn, y = _ring(log, frame, grid, y + 12, lang)
    parts += drawn
    drawn, y = _conv(log, r, grid, y + 14, lang)
    parts += drawn
    label = scene.captions[frame].render(lang)
    return Picture(d.svg(grid.width, y + 4, parts, label), _legend(log, r, frame))


def _text(log: dict, r: dict | None, grid: Grid, lang: str) -> tuple:
    """Plain decoding in grey, and above it the text with drafts as far as it has come."""
    prompt, text, plain = log["prompt"], log["text"], log["plain"]
    before = prompt + (r["read"] + 1 if r else 0)  # committed before this round
    after = before + (len(r["choices"]) if r else 1)
    left, parts, y = 0 if grid.narrow else 92, [], 0
    for start in range(0, len(plain), grid.per_line):
        if not grid.narrow and not start:
            parts += [d.text(0, y + 15, Text("with drafts").render(lang), "label strong"),
                      d.text(0, y + 15 + ROW, Text("plain").render(lang), "label small")]
        for i in range(start, min(start + grid.per_line, len(plain))):
            x, mark = left + (i - start) * CELL, f"token:{i}"
            if i < after:
                style = _standing(i, prompt, before, after, text, plain)
                parts.append(d.rect(x + 0.5, y + 1, CELL - 1, ROW - 2, style, mark))
                ink = "glyph old" if i < prompt else "glyph on-dark" if style == "miss" else "glyph"
                parts.append(d.text(x + CELL / 2, y + 15, GLYPHS[text[i]], ink, "middle"))
            parts.append(d.text(x + CELL / 2, y + 14 + ROW, GLYPHS[plain[i]], "glyph small", "middle"))
        y += 2 * ROW + 6
    return parts, y


def _standing(i: int, prompt: int, before: int, after: int, text: list, plain: list) -> str:
    """How one character of the text is drawn."""
    if i >= prompt and text[i] != plain[i]:
        return "miss"
    if i < before or i < prompt:
        return "blank"
    return "outline" if i == after - 1 else "accepted"


def _window(log: dict, r: dict | None, grid: Grid, y: float, lang: str) -> tuple:
    """Tiles of what was drafted; under them what the model chose, up to the bonus token."""
    tile, parts = grid.tile, []
    words = Text("drafted").render(lang), Text("model’s choice").render(lang)
    if not grid.narrow:
        parts += [d.text(0, y + tile / 2 + 5, words[0], "label strong"), d.text(0, y + tile * 1.5 + 10, words[1], "label strong")]
    for i in range(grid.columns):
        style = _tile_style(i, r)
        parts.append(_tile(grid, i, y, style, GLYPHS[r["window"][i]] if r and i < len(r["window"]) else "",
                           _mark(log, r, i)))
    for i, choice in enumerate(r["choices"] if r else []):
        bonus = i == r["accepted"]
        parts.append(_tile(grid, i + 1, y + tile + 5, "outline" if bonus else "blank", GLYPHS[choice], _mark(log, r, i + 1)))
    grip = d.handle(grid.x(grid.columns - 1) + grid.column / 2 + 4, y + tile / 2, "drafts", None, grid.column, 0,
                    Text("drag to set the number of drafts").render(lang))
    return [*parts, grip], y + 2 * tile + 5


def _tile(grid: Grid, column: int, y: float, style: str, glyph: str, mark: str | None) -> str:
    x, tile = grid.x(column), grid.tile
    parts = [d.rect(x - tile / 2, y, tile, tile, style)]
    if glyph:
        parts.append(d.text(x, y + tile / 2 + 5, glyph, "glyph on-record" if style == "accepted" else "glyph", "middle"))
    return d.group(parts, mark)


def _tile_style(i: int, r: dict | None) -> str:
    """Position 0 is the token that was already chosen; then drafts, right or wrong."""
    if r is None or i >= len(r["window"]):
        return "ghost"
    return "free" if i == 0 else "accepted" if i <= r["accepted"] else "rejected"


def _mark(log: dict, r: dict | None, i: int) -> str | None:
    return f"token:{log['prompt'] + r['read'] + i}" if r else None


def _kept(log: dict, r: dict | None) -> int:
    """How many positions of the window the state really keeps."""
    return 0 if r is None else 1 if log["fault"] == "column" else r["told"]


def _slot_style(log: dict, r: dict | None, i: int, style: str) -> str:
    """A slot after the round: kept, taken back, kept though it should not be (or the reverse), or never used."""
    if r is None or i >= len(r["window"]):
        return "ghost"
    right, kept = i <= r["accepted"], i < _kept(log, r)
    return "miss" if right != kept else style if right else "rejected"


def _lane(name: str, log: dict, r: dict | None, grid: Grid, y: float, lang: str) -> tuple:
    """The slots of one store under the window's columns, a bracket over those that go into S, and S."""
    parts, side, kept = _head(name, log, grid, y, lang), grid.slot, _kept(log, r)
    y += 18 if grid.narrow else 0
    for i in range(grid.columns):
        wide = grid.strips.get(name, side)
        style = _slot_style(log, r, i, "snapshot" if name == "snapshots" else "record")
        parts.append(d.rect(grid.x(i) - wide / 2, y, wide, side, style, _mark(log, r, i)))
    if kept:
        ends = [kept - 1] if name == "snapshots" else range(kept)
        parts.append(_bracket([grid.x(i) for i in ends], y + side + 2, grid.state + side / 2))
        if name == "projections":
            parts += [d.text(grid.x(i) + grid.strips[name] / 2 + 4, y + side - 2, str(i + 1), "label small") for i in ends]
        if name == "corrected":
            parts.append(d.text(grid.x(kept - 1) + grid.strips[name] / 2 + 4, y + side - 2, "Σ", "label small"))
    parts += _state(grid, y, side, bool(kept), lang)
    return parts, y + side + 10


def _head(name: str, log: dict, grid: Grid, y: float, lang: str) -> list:
    """A store's name and bytes; clicking it makes the decoder run on that store."""
    chosen, side = name == log["store"], grid.slot
    words, size = STORE_WORDS[name].render(lang), binary_bytes(log["held"][name])
    runs = Text("the decoder runs on it").render(lang) if chosen else ""
    if grid.narrow:
        parts = [d.rect(0, y, grid.width, 16, "lane"), d.text(0, y + 12, f"▸ {words}" if chosen else words, "label strong"),
                 d.text(grid.width, y + 12, size, "label small", "end")]
    else:
        parts = [d.rect(0, y, grid.left - 14, side, "lane"), d.text(0, y + 15, f"▸ {words}" if chosen else words, "label strong"),
                 d.text(0, y + 32, size, "label small")]
    return [d.group(parts, f"store:{name}", runs, data_click="store", data_value=name)]


def _bracket(centres: list, y: float, end: float) -> str:
    """From the kept slots down, along, and up into S."""
    low, top = d.number(y + 5), d.number(y)
    commands = "".join(f"M{d.number(x)} {top}V{low}" for x in centres)
    commands += f"M{d.number(centres[0])} {low}H{d.number(end)}V{top}"
    head = f"M{d.number(end - 3)} {d.number(y + 3)}L{d.number(end)} {top}L{d.number(end + 3)} {d.number(y + 3)}"
    return d.path(commands + head, "arrow")


def _state(grid: Grid, y: float, side: float, written: bool, lang: str) -> list:
    """The committed state after the round, faint where the round did not touch it."""
    parts = [d.rect(grid.state, y, side, side, "state" if written else "state old", "state:committed"),
             d.text(grid.state + side / 2, y + side / 2 + 5, "S", "on-dark strong", "middle")]
    if not grid.narrow:
        words = Text("written") if written else Text("untouched")
        parts.append(d.text(grid.state + side + 10, y + side / 2 + 5, words.render(lang), "label small"))
    return parts


def _ring(log: dict, frame: int, grid: Grid, y: float, lang: str) -> tuple:
    """The physical slots in a row: history, this round's records, rejected ones behind the cursor, free slots."""
    r = log["rounds"][frame - 1] if frame else None
    slots, side = log["ring_slots"], grid.slot
    parts = _head("ring", log, grid, y, lang)
    y += 18 if grid.narrow else 0
    base, write_pos = r["after"] if r else (0, 0)
    reach = grid.state - 12 - (0 if grid.narrow else grid.left)
    left, step = (0 if grid.narrow else grid.left), reach / slots
    live = {(base + i) % slots: i for i in range(write_pos)}
    newest = {slot: i for i, slot in enumerate(r["slots"])} if r else {}
    folded = [(r["before"][0] + i) % slots for i in range(r["before"][1])] if r and r["flushed"] else []
    for slot in range(slots):
        mark = _ring_mark(log, frame, slot)
        style = "folded" if slot in folded else _ring_style(log, r, slot, live, newest)
        parts.append(d.rect(left + slot * step + 1.5, y, step - 3, side, style, mark))
    cursor = left + (base + write_pos) % slots * step
    parts.append(d.path(f"M{d.number(cursor)} {d.number(y - 3)}V{d.number(y + side + 3)}", "arrow"))
    parts.append(d.circle(cursor, y - 3, 3, "cursor", title=Text("cursor").render(lang)))
    if folded:
        parts.append(_bracket([left + (slot + 0.5) * step for slot in folded], y + side + 2, grid.state + side / 2))
    parts += _state(grid, y, side, bool(folded), lang)
    return parts, y + side + 10


def _ring_style(log: dict, r: dict | None, slot: int, live: dict, newest: dict) -> str:
    if slot in newest:
        return _slot_style(log, r, newest[slot], "record")
    return "older" if slot in live else "free"


def _ring_mark(log: dict, frame: int, slot: int) -> str | None:
    """The token whose record lies in a slot: the last that was written there."""
    for r in reversed(log["rounds"][:frame]):
        if slot in r["slots"]:
            return _mark(log, r, r["slots"].index(slot))
    return None


def _conv(log: dict, r: dict | None, grid: Grid, y: float, lang: str) -> tuple:
    """Inputs of the short convolution: three from before, the window's; those that the next round starts from."""
    parts, old, high = [], KERNEL - 1, 20
    if grid.narrow:
        parts.append(d.text(0, y + 12, Text("convolution inputs").render(lang), "label strong"))
        y += 18
    else:
        parts.append(d.text(0, y + 14, Text("convolution").render(lang), "label strong"))
    first = 0 if r is None or log["fault"] == "conv" else r["told"]
    right = 0 if r is None else 1 + r["accepted"]
    step = 10 if grid.narrow else 14
    for i in range(old + grid.columns):
        centre = grid.x(i - old) if i >= old else grid.left - (old - i - 0.5) * step - 2
        wide = grid.tile if i >= old else step - 3
        kept = first <= i < first + old
        if i >= old and (r is None or i - old >= len(r["window"])):
            style = "ghost"
        elif kept:
            style = "conv" if first == right else "miss"
        else:
            style = "rejected" if i - old > (r["accepted"] if r else 0) else "spent"
        mark = _mark(log, r, i - old) if r else f"token:{log['prompt'] + i - old}"
        parts.append(d.rect(centre - wide / 2, y, wide, high, style, mark))
    return parts, y + high


def _legend(log: dict, r: dict | None, frame: int) -> list:
    """What the shapes are, with counts of this round."""
    drafted, accepted = (len(r["window"]) - 1, r["accepted"]) if r else (0, 0)
    lines = [("accepted", Text("drafts accepted: {count}", count=accepted)),
             ("rejected", Text("drafts rejected: {count}", count=drafted - accepted)),
             ("outline", Text("bonus token: {count}", count=1 if r else 0)),
             ("snapshot", Text("snapshots: {count} of {size}", count=log["drafts"] + 1, size=binary_bytes(log["held"]["snapshots"] // (log["drafts"] + 1)))),
             ("record", Text("records, to the same scale: {bytes}", bytes=binary_bytes(log["held"]["projections"] // (log["drafts"] + 1)))),
             ("older", Text("older records in the ring: {count}", count=_history(r))),
             ("conv", Text("inputs the convolution goes on from: {count}", count=KERNEL - 1)),
             ("state", Text("committed state S"))]
    if r and r["flushed"] and r["before"][1]:
        lines.append(("folded", Text("folded into S: {count}", count=r["before"][1])))
    committed = log["prompt"] + (r["read"] + 1 + len(r["choices"]) if r else 1)
    wrong = sum(a != b for a, b in zip(log["text"][:committed], log["plain"]))
    if wrong or log["fault"] != "none":
        lines.append(("miss", Text("wrong: {count} tokens so far", count=number(wrong))))
    return lines


def _history(r: dict | None) -> int:
    return 0 if r is None or r["flushed"] else r["before"][1]


def memory_figure() -> Figure:
    """Records against snapshots at four head sizes."""
    styles = {"snapshot": charts.colour("snapshot"), "record": charts.colour("record")}
    x = {"field": "size", "type": "nominal", "title": Text("head size dk = dv"), "axis": {"labelAngle": 0}}
    y = charts.quantitative("share", None, axis={"title": None, "tickCount": 5})
    colour = {"field": "design", "type": "nominal", "legend": None,
              "scale": {"domain": list(styles), "range": list(styles.values())}}
    offset = {"field": "design", "sort": list(styles)}
    return Figure("memory", "shares", Text("Memory of the window, normalised to snapshots"),
                  Text("Grey: a state per position. Amber: k, v, g, β and the convolution's inputs per position, fp32. A matrix "
                       "grows with d², a record with d: 0.38 at 16, 0.047 at 128."),
                  {"layer": [
                      {"mark": {"type": "bar", "strokeWidth": 1},
                       "encoding": {"x": x, "xOffset": offset, "y": y, "color": colour, "stroke": colour,
                                    "fillOpacity": {"condition": {"test": "datum.design === 'snapshot'", "value": 0.3}, "value": 1}}},
                      {"mark": {"type": "text", "dy": -8, "fontSize": 13},
                       "encoding": {"x": x, "xOffset": offset, "y": y, "text": {"field": "label"}}},
                      {"mark": {"type": "rule", "strokeDash": [3, 3]},
                       "encoding": {"y": {"datum": 0.4, "type": "quantitative"}, "color": {"value": "var(--ink)"}}},
                  ]})

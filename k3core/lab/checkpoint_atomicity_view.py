"""The scene of the tab `checkpoint-atomicity`: actions as lanes, the index, what is read, and the pool."""

from k3core.lab import checkpoint_atomicity_text_view as text_view
from k3core.lab import drawing as d
from k3core.lab.checkpoint_atomicity_log import NAMES, UNWRITTEN, wrong_entries
from k3core.lab.contract import Picture, Result, Scene
from k3core.lab.text import Text

LANE, CHIP, ROW = 30, 24, 28
# action -> (class, one letter for its chip, name)
ACTIONS = {
    "schedule": ("gate", Text("S"), Text("schedule")), "copy": ("conv", Text("C"), Text("copy")),
    "forward": ("record", Text("F"), Text("forward")), "commit": ("hit", Text("K"), Text("commit")),
    "release": ("free", Text("R"), Text("release or abort")), "evict": ("miss", Text("E"), Text("evict")),
}
ROLES = {"page": Text("page"), "state": Text("state"), "pinned": Text("pinned"), "saving": Text("saving")}
MOST_BLOCKS = 7
HEADS = (Text("prefix"), Text("rows"), Text("KDA 1"), Text("KDA 2"))


def draw(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Lanes of actions on top; what can be found beside what is read; the blocks at the bottom."""
    log, width = scene.events, 340 if narrow else 720
    if frame >= len(log["frames"]):
        return text_view.draw(log["text"], frame - len(log["frames"]), scene.captions[frame], narrow, lang)
    now = log["frames"][frame]
    parts, top = _lanes(log, frame, width, lang)
    found, bottom = _index(now, top + 12, width if narrow else 300, lang)
    left, start = (0, bottom + 14) if narrow else (334, top + 12)
    reads, end = _reads(now, left, start, width - left, lang)
    pool, bottom = _pool(now, max(bottom, end) + 16, width, 4 if narrow else MOST_BLOCKS, lang)
    label = scene.captions[frame].render(lang)
    return Picture(d.svg(width, bottom + 4, [*parts, *found, *reads, *pool], label), _legend(log, frame))


def _lanes(log: dict, frame: int, width: float, lang: str) -> tuple:
    """One chip per action in the lane of its request; those still to come are outlines."""
    events = [item["event"] for item in log["frames"][1:]]
    lanes = [*range(log["requests"]), None]
    left, pitch = 46, (width - 46) / max(len(events), 12)
    parts = []
    for index, who in enumerate(lanes):
        y = index * LANE
        name = Text("pool").render(lang) if who is None else NAMES[who]
        parts += [d.text(0, y + 18, name, "label strong"), d.line(left, y + CHIP / 2 + 1, width, y + CHIP / 2 + 1)]
    for step, (kind, who) in enumerate(events, 1):
        style, letter, name = ACTIONS[kind]
        x, y, wide = left + (step - 1) * pitch, lanes.index(who) * LANE, pitch - 2
        done = step <= frame
        if step == frame:
            parts.append(d.rect(x - 1, 0, wide + 2, len(lanes) * LANE - 4, "outline"))
        if not done:
            parts.append(d.rect(x, y + 1, wide, CHIP, "chip-ahead"))
        look = f"{style} chip" if done else "ghost"
        parts.append(d.rect(x, y + 1, wide, CHIP, look, f"step:{step}", name.render(lang)))
        if wide > 12.5:
            ink = "small" if not done else "label strong" if style in ("conv", "free") else "chip-ink"
            parts.append(d.text(x + wide / 2, y + 18, letter.render(lang), ink, "middle"))
    return parts, len(lanes) * LANE


def _index(now: dict, top: float, width: float, lang: str) -> tuple:
    """Which block the chained hash of each prefix leads to, per group."""
    title = Text("found by chained hash: block").render(lang)
    columns = (0, width * 0.42, width * 0.62, width * 0.82)
    parts = [d.text(0, top + 12, title, "label strong")]
    parts += [d.text(x, top + 32, words.render(lang), "small") for x, words in zip(columns, HEADS)]
    y = top + 40
    for entry in now["index"]:
        parts += [d.line(0, y - 2, width, y - 2), d.text(0, y + 16, entry["name"], "label")]
        found = [*(entry["rows"] or [None]), *(entry["states"] or [None, None])]
        for x, item, style in zip(columns[1:], found, ("mla", "state", "state")):
            parts += _found(item, x, y, width * 0.16, style)
        y += ROW
    return parts, y


def _found(item: list | None, x: float, y: float, wide: float, style: str) -> list:
    """One position of the index: the block it leads to; struck out where it holds something else."""
    if item is None:
        return [d.rect(x, y + 1, wide, 22, "ghost")]
    block, right = item
    parts = [d.rect(x, y + 1, wide, 22, style if right else "mistaken", f"block:{block}"),
             d.text(x + wide / 2, y + 17, str(block), "chip-ink" if right else "mistaken-ink", "middle")]
    return parts if right else [*parts, d.line(x, y + 23, x + wide, y + 1, "strike")]


def _reads(now: dict, left: float, top: float, width: float, lang: str) -> tuple:
    """For each request, what it should read when it goes on and what it would read."""
    parts, y = [], top
    for request, reads in enumerate(now["reads"]):
        if reads is None:
            idle = now["computed"][request] is None
            words = Text("not running") if idle else Text("waiting for its copies")
            parts += [d.text(left, y + 12, f"{NAMES[request]} · {words.render(lang)}", "label strong"),
                      d.rect(left, y + 20, width, 64, "ghost")]
        else:
            parts += _comparison(request, reads, left, y, width, lang)
        y += 104
    return parts, y - 12


def _comparison(request: int, reads: list, left: float, top: float, width: float, lang: str) -> list:
    title = Text("{who} goes on after {count} tokens", who=NAMES[request],
                 count=sum(1 for read in reads if read["row"])).render(lang)
    margin = 62
    cell = (width - margin) / max(5, len(reads))
    parts = [d.text(left, top + 12, title, "label strong"),
             d.text(left, top + 53, Text("expects").render(lang), "small"),
             d.text(left, top + 78, Text("reads").render(lang), "small")]
    for index, read in enumerate(reads):
        x = left + margin + index * cell
        head = Text("row {n}", n=read["row"]) if read["row"] else Text("KDA {n}", n=read["group"])
        style = "mla" if read["row"] else "state"
        parts.append(d.text(x + cell / 2 - 1, top + 32, head.render(lang), "small", "middle"))
        parts += _cell(x, top + 38, cell - 3, style, read["right"])
        parts += _cell(x, top + 63, cell - 3, style if read["ok"] else "mistaken", read["held"], read["block"])
    return parts


def _cell(x: float, y: float, wide: float, style: str, words: str, block: int | None = None) -> list:
    if style != "mistaken" and words == "0":
        style = "free"
    ink = {"mistaken": "mistaken-ink", "free": "label"}.get(style, "chip-ink")
    return [d.rect(x, y, wide, 22, style, f"block:{block}" if block else None),
            d.text(x + wide / 2, y + 16, words, f"{ink} fit", "middle")]


def _pool(now: dict, top: float, width: float, columns: int, lang: str) -> tuple:
    """One card per block: what it holds, and who has it. The next card adds a block."""
    title = Text("the pool: what each block really holds").render(lang)
    parts, tall = [d.text(0, top + 12, title, "label strong")], 78
    pitch = width / columns
    top += 22
    blocks = now["blocks"]
    for index, block in enumerate(blocks):
        x, y = index % columns * pitch, top + index // columns * tall
        parts.append(d.group(_card(block, now, x, y, pitch - 8, lang), f"block:{block['number']}"))
    if len(blocks) < MOST_BLOCKS:
        index, wide = len(blocks), pitch - 8
        x, y = index % columns * pitch, top + index // columns * tall
        more = Text("+ block {n}", n=index + 1).render(lang)
        card = [d.rect(x, y, wide, 34, "ghost card"), d.text(x + wide / 2, y + 22, more, "small", "middle")]
        parts.append(d.group(card, data_click="blocks", data_value=index + 1))
    return parts, top + -(-min(MOST_BLOCKS, len(blocks) + 1) // columns) * tall - 8


def _card(block: dict, now: dict, x: float, y: float, wide: float, lang: str) -> list:
    found = any(number == block["number"] for entry in now["index"]
                for item in (entry["rows"], entry["states"]) for number, _ in item or ())
    idle = not block["references"] and not found
    parts, cells = [], block["cells"]
    for index, words in enumerate(cells):
        share = wide / len(cells)
        style = {"rows": "mla", "state": "state", "zero": "free", "unwritten": "unwritten"}[block["kind"]]
        if idle or words == UNWRITTEN:
            style, words = ("free", "") if idle else ("unwritten", words)
        parts += [d.rect(x + index * share, y, share - (1 if len(cells) > 1 else 0), 34, style),
                  d.text(x + (index + 0.5) * share, y + 22, words,
                         "chip-ink fit" if style in ("mla", "state") else "label", "middle")]
    if block["group"] and not idle:
        parts.append(d.text(x + 3, y + 11, f"K{block['group']}", "corner"))
    who = [f"{NAMES[request]} {ROLES[role].render(lang)}" for request, role in block["roles"]][:2]
    if not who:
        who = [(Text("findable") if found else Text("free")).render(lang)]
    parts.append(d.text(x, y + 48, str(block["number"]), "label strong"))
    parts += [d.text(x + 14, y + 48 + 14 * line, words, "small") for line, words in enumerate(who)]
    return parts


def _legend(log: dict, frame: int) -> list:
    """How often each action has happened, and what is wrong by now."""
    now, done = log["frames"][frame], [item["event"][0] for item in log["frames"][1 : frame + 1]]
    wrong = wrong_entries(now) + sum(not read["ok"] for reads in now["reads"] for read in reads or ())
    lines = [(style, Text("{letter} {action}: {count}", letter=letter, action=name, count=done.count(kind)))
             for kind, (style, letter, name) in ACTIONS.items()]
    return [*lines, ("mla", Text("attention rows; t is shared, a and b are private")),
            ("state", Text("KDA state of a prefix; K1, K2: its group")),
            ("mistaken", Text("wrong content found or read: {count}", count=wrong))]

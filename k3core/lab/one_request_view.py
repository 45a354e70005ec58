"""What the home page's figure draws: one request, seven stations, each filled in once the request has been there."""

from k3core.lab import drawing as d
from k3core.lab.contract import Picture, Result, Scene
from k3core.lab.display import binary_bytes, number
from k3core.lab.one_request_steps import ANSWER, CLUSTERS, FIRST, FRESH, HASH_BLOCK, ORDINARY, SHOWN, SLOTS, VIP
from k3core.lab.text import Text

# The frames, in order; from DECODE on there is one per round that is shown, and then the last.
REQUEST, ROUTER, ADMISSION, ROWS, STATES, PAGES, PREFILL, DECODE = range(8)
LAST = DECODE + SHOWN
SCALE = FIRST + FRESH + ANSWER  # tokens across the whole width
# What a block of the pool holds: letter of `Cluster.blocks` -> (class, words of the legend)
BLOCK_KINDS = {
    "h": ("hit", Text("shared pages")),
    "r": ("mla", Text("own rows")),
    "s": ("state own", Text("running states")),
    "k": ("state", Text("states kept")),
    "m": ("mla soft", Text("rows kept")),
    "o": ("ordinary", Text("other requests")),
    ".": ("free", Text("free")),
}


def listed(positions) -> str:
    """Token positions, one after the other."""
    return " · ".join(number(position) for position in positions)


def milliseconds(seconds: float) -> str:
    """Whole milliseconds as text, without the unit."""
    return number(round(1000 * seconds))


# --- words --------------------------------------------------------------------------------------------------------


def captions(log: dict) -> list:
    """One or two sentences per frame: what has just happened."""
    return [
        Text("A conversation's next turn arrives: {prompt} tokens. The first {shared} are those of turn 1, which was "
             "served before.", prompt=number(log["prompt"]), shared=number(log["shared"])),
        _routed(log), _admitted(log),
        Text("Attention rows can be taken over hash block by hash block: {rows} tokens match.",
             rows=number(log["rows"])) if log["home"]
        else Text("Nothing of this conversation is in this cluster's cache."),
        _resumed(log),
        Text("One pool serves both kinds of cache: {hit} pages shared, {rows} of its own for rows, {states} for "
             "states. Nothing is set aside for either.",
             hit=log["blocks"][PREFILL].count("h"), rows=log["blocks"][PREFILL].count("r"),
             states=log["blocks"][PREFILL].count("s")),
        Text("{computed} tokens are computed instead of {prompt}: the first token comes after {ttft} ms, from an empty "
             "cache after {cold}.", computed=number(log["prompt"] - log["hit"]), prompt=number(log["prompt"]),
             ttft=milliseconds(log["ttft"]), cold=milliseconds(log["cold"])),
        *(_round(log, i) for i in range(SHOWN)),
        _ended(log),
    ]


def _routed(log: dict) -> Text:
    if not log["home"]:
        return Text("{first}, which served turn 1, is down. The conversation goes to {cluster}, its second choice, "
                    "where nothing of it is cached.", first=log["order"][0], cluster=log["cluster"])
    if log["down"] != "none":
        return Text("{down} is down, which this conversation does not notice: its name hashes to {cluster}, as it did "
                    "for turn 1.", down=log["down"], cluster=log["cluster"])
    return Text("The router hashes the conversation's name: {cluster} comes first, as it did for turn 1, and still has "
                "its cache.", cluster=log["cluster"])


def _admitted(log: dict) -> Text:
    met = {"running": log["running"], "waiting": log["waiting"], "wait": milliseconds(log["wait"])}
    if not log["burst"]:
        return Text("Nobody is ahead of it: it starts at once.")
    if log["vip"]:
        return Text("{running} ordinary requests run, {waiting} wait. This one is VIP, with slots and compute of its "
                    "own: it starts after {wait} ms.", **met)
    return Text("{running} ordinary requests run, {waiting} wait, and this one behind them: it starts after {wait} ms.",
                **met)


def _resumed(log: dict) -> Text:
    if log["hit"]:
        return Text("A recurrent state is there only where one was kept: {kept}. The last within the rows is {hit}. "
                    "The request resumes at the one boundary that both share.", kept=listed(log["kept"]),
                    hit=number(log["hit"]))
    return Text("No state was kept within what it shares, and rows alone are no use: it starts from the first token.")


def _round(log: dict, index: int) -> Text:
    kept = log["accepted"][index]
    if not log["drafts"]:
        return Text("Round {n}: without drafts every step gives one token.", n=index + 1)
    if log["keep_rejected"]:
        return Text("Round {n}: {kept} of {window} tokens stay, but the state keeps all of them. That is the mistake.",
                    n=index + 1, kept=kept, window=log["drafts"] + 1)
    return Text("Round {n}: {window} tokens are verified at once and {kept} stay. The state is replayed from their "
                "records; the rejected leave no trace.", n=index + 1, kept=kept, window=log["drafts"] + 1)


def _ended(log: dict) -> Text:
    kept = listed((*log["saves"], *log["answer_saves"]))
    if log["error"]:
        return Text("The answer is complete, but the state is off by up to {error}: everything after it is another "
                    "text.", error=number(log["error"], 2))
    return Text("The answer is complete, and its state is that of plain decoding, bit for bit. States were kept at "
                "{kept}: turn 3 will resume there.", kept=kept)


# --- drawing ------------------------------------------------------------------------------------------------------

ROUND_TALL = 44
ROUNDS_TALL = ROUND_TALL * SHOWN // 2
INDENT = 26  # of what a station shows, so that the line from station to station has room at the left
# Where the stations stand: (x, y of the head, width).
WIDE = {"request": (0, 14, 200), "router": (216, 14, 240), "admission": (480, 14, 240), "lookup": (0, 128, 720),
        "pool": (0, 240, 216), "decode": (240, 240, 236), "payoff": (490, 240, 230)}
NARROW = {"request": (0, 14, 340), "router": (0, 84, 340), "admission": (0, 186, 340), "lookup": (0, 290, 340),
          "pool": (0, 402, 340), "decode": (0, 490, 340), "payoff": (0, 678, 340)}


def draw_request(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """All seven stations; what the request has not reached is drawn as outlines."""
    log, places = scene.events, NARROW if narrow else WIDE
    width, height = (340, 786) if narrow else (720, 398)
    parts = [d.path(_way(places, width, narrow), "way")]
    for name, station in STATIONS.items():
        parts += station(log, frame, places[name], lang)
    return Picture(d.svg(width, height, parts, scene.captions[frame].render(lang)), legend(log, frame))


def legend(log: dict, frame: int) -> list:
    """Tokens by where they come from; then what the pool holds, counted."""
    taken, blocks = log["hit"] if frame >= STATES else 0, log["blocks"][frame]
    return [("hit", Text("tokens from the cache: {n}", n=number(taken))),
            ("miss", Text("tokens to compute: {n}", n=number(log["prompt"] - taken))),
            *((style, Text("{what}: {n}", what=words, n=blocks.count(letter)))
              for letter, (style, words) in BLOCK_KINDS.items() if blocks.count(letter))]


def _way(places: dict, width: float, narrow: bool) -> str:
    """The way of the request from station to station, as a path."""
    lookup, pool, decode = places["lookup"][1], places["pool"][1], places["decode"]
    down = f"V{d.number(decode[1] + ROUNDS_TALL + 50)}"
    if narrow:
        return f"M9 9V{lookup - 5}M{width - 1} {lookup + 64}V{pool - 22}H9{down}"
    return (f"M9 9H{width - 1}V{lookup - 24}H9V{lookup - 5}M{width - 1} {lookup + 64}V{pool - 24}H9V{pool - 5}"
            f"H{decode[0] + 9}{down}")


def _head(x: float, y: float, step: int, words: Text, frame: int, frames: range, lang: str) -> list:
    """Number and name of a station; the one where the request is now is filled."""
    now = frame in frames
    words = words.render(lang)
    wide = 8 + sum(14 if ord(letter) > 0x2E80 else 8 for letter in words)
    return [d.rect(x + 20, y - 14, wide, 18, "paper"),
            d.circle(x + 9, y - 5, 9, "station now" if now else "station" if frame < frames.start else "station done"),
            d.text(x + 9, y - 0.5, str(step), "small on-ink" if now else "small", "middle"),
            d.text(x + INDENT, y, words, "label strong" if now else "label")]


def _request(log: dict, frame: int, at: tuple, lang: str) -> list:
    """What arrives: for whom, how long, how much of it is old."""
    x, y, width = at
    vip, stacked = log["vip"], width < 300
    left, base, step = (x + INDENT, y + 54, 18) if stacked else (x + 120, y + 20, 16)
    lines = (Text("{tokens} tokens", tokens=number(log["prompt"])),
             Text("{shared} of them repeated", shared=number(log["shared"])))
    return [*_head(x, y, 1, Text("request"), frame, range(REQUEST, ROUTER), lang),
            d.rect(x + INDENT, y + 14, 18, 18, "vip own" if vip else "ordinary own", "request:own"),
            d.text(x + INDENT + 26, y + 28, (Text("VIP") if vip else Text("ordinary")).render(lang), "label"),
            *(d.text(left, base + index * step, line.render(lang), "label") for index, line in enumerate(lines))]


def _lookup(log: dict, frame: int, at: tuple, lang: str) -> list:
    """The tokens of turn 1 with the states kept along them, and those of turn 2 below, hash block by hash block."""
    x, y, width = at
    unit, before, now, tall = width / SCALE, y + 22, y + 40, 24
    parts = _head(x, y, 4, Text("prefix lookup"), frame, range(ROWS, PAGES), lang)
    if width > 400:
        parts.append(d.text(FIRST * unit, y, Text("turn 1, and the states kept along it").render(lang), "small", "end"))
    known = log["home"] or frame < ROUTER
    for start, end in _blocks(0, FIRST, ()):
        style = "ghost" if not known else "mla soft" if start < log["shared"] else "mla faint"
        parts.append(d.rect(start * unit, before, (end - start) * unit - 1, 9, style))
    parts += [_diamond(position * unit, before - 8, position) for position in log["kept"] if known]
    reached = log["prompt"] + (sum(log["accepted"][: max(0, frame - DECODE + 1)]) if frame < LAST else ANSWER)
    end = log["prompt"] + ANSWER
    for start, stop in _blocks(0, end, (log["shared"], log["hit"], log["rows"], log["prompt"], reached)):
        parts.append(d.rect(start * unit, now, max(0.6, (stop - start) * unit - 1), tall,
                            _token_style(log, frame, start, reached), f"block:{start // HASH_BLOCK}"))
    parts += _boundaries(log, frame, unit, before - 10, now + tall, width, lang)
    parts.append(d.handle(log["shared"] * unit, now + tall, "shared", None, unit, 1,
                          Text("drag to set how much is repeated").render(lang)))
    return parts


def _diamond(x: float, y: float, position: int) -> str:
    """A state that was kept at a position; the mark is the same wherever it is drawn."""
    return d.path(f"M{d.number(x)} {d.number(y)}l5 6l-5 6l-5 -6z", "state", f"state:{position}", number(position))


def _token_style(log: dict, frame: int, start: int, reached: int) -> str:
    """The class of the tokens from `start` on: what is known of them by now."""
    if start >= log["prompt"]:
        return "record" if start < reached else "ghost"
    if frame >= STATES and start < log["hit"]:
        return "hit"
    if frame >= PREFILL:
        return "miss"
    if frame >= ROWS and start < log["rows"]:
        return "mla soft"
    return "mla faint" if frame < ROWS and start < log["shared"] else "free"


def _boundaries(log: dict, frame: int, unit: float, top: float, bottom: float, width: float, lang: str) -> list:
    """How much is the same, until the cache says how much of it is of use: where rows end, where it resumes."""
    parts, base = [], bottom + 20
    if frame < ROWS:
        words = Text("the same up to {shared}: drag", shared=number(log["shared"])).render(lang)
        x = log["shared"] * unit
        return [d.text(max(x - 14, 0), base, words, "small", "end" if x > 180 else "start")]
    if frame >= STATES and log["hit"]:
        x = log["hit"] * unit
        words = Text("resume at {hit}", hit=number(log["hit"])).render(lang)
        parts += [d.line(x - 0.5, top, x - 0.5, base - 12, "outline"),
                  d.text(x - 5, base, words, "label strong", "end" if x > 120 else "start")]
    if log["rows"] > log["hit"] and (width > 400 or frame == ROWS):
        words = Text("rows to {rows}", rows=number(log["rows"])).render(lang)
        x = log["rows"] * unit
        parts.append(d.text(x if frame == ROWS else max(x - 14, log["hit"] * unit + 6), base, words, "small",
                            "end" if frame == ROWS and x > 120 else "start"))
    return parts


def _blocks(start: int, end: int, cuts: tuple) -> list:
    """The hash blocks of a stretch of tokens, cut where something changes inside one."""
    edges = sorted({*range(start, end, HASH_BLOCK), end, *(cut for cut in cuts if start < cut < end)})
    return list(zip(edges, edges[1:]))


def _router(log: dict, frame: int, at: tuple, lang: str) -> list:
    """Four clusters; a click kills one or brings it back. The one that serves this request is outlined."""
    x, y, width = at
    parts = _head(x, y, 2, Text("router"), frame, range(ROUTER, ADMISSION), lang)
    step, box = (43, 36) if width < 300 else (78, 60)
    for index, name in enumerate(CLUSTERS):
        left, down, rank = x + INDENT + index * step, name == log["down"], log["order"].index(name)
        chosen = name == log["cluster"] and frame >= ROUTER
        words = (Text("{name} is down; click to bring it back", name=name) if down else
                 Text("click to kill {name}", name=name)).render(lang)
        inside = [d.rect(left, y + 14, box, 32, "rejected" if down else "free own" if chosen else "free", title=words),
                  d.text(left + box / 2, y + 34, name, "label strong" if chosen else "label", "middle")]
        if down:
            inside.append(d.line(left + 5, y + 19, left + box - 5, y + 41, "arrow"))
        if rank == 0 and not down:
            inside.append(d.rect(left + 2, y + 41, box - 4, 3, "mla soft"))
        parts.append(d.group(inside, f"cluster:{name}", data_click="down", data_value="none" if down else name))
        if frame >= ROUTER:
            parts.append(d.text(left + box / 2, y + 60, str(rank + 1), "small", "middle"))
    hint = Text("order of choice; click one to kill it") if frame >= ROUTER else Text("click one to kill it")
    parts.append(d.text(x + INDENT, y + 78, hint.render(lang), "small"))
    return parts


def _admission(log: dict, frame: int, at: tuple, lang: str) -> list:
    """Slots of the two classes, and who waits for one."""
    x, y, _ = at
    parts = _head(x, y, 3, Text("admission"), frame, range(ADMISSION, ROWS), lang)
    here, left = frame >= ADMISSION, x + INDENT + 66
    waits = here and log["wait"] > 0 and frame == ADMISSION
    for line, (words, style, slots, busy) in enumerate((
            (Text("VIP"), "vip", SLOTS[VIP], 0), (Text("ordinary"), "ordinary", SLOTS[ORDINARY], log["running"]))):
        top, mine = y + 14 + line * 24, here and not waits and log["vip"] == (style == "vip")
        parts.append(d.text(x + INDENT, top + 14, words.render(lang), "label"))
        busy = min(busy if here else 0, slots - mine)
        for slot in range(slots):
            own = mine and slot == busy
            parts.append(d.rect(left + slot * 21, top, 18, 18, f"{style} own" if own else style if slot < busy
                                else "free", "request:own" if own else None))
    parts.append(d.text(x + INDENT, y + 78, Text("waiting").render(lang), "label"))
    queue = log["waiting"] if here else 0
    for place in range(queue + waits):
        mine = "request:own" if place == queue else None
        style = "ordinary" if not mine else "vip own" if log["vip"] else "ordinary own"
        parts.append(d.circle(left + 6 + place * 12, y + 74, 4.5, style, mine))
    if here and not waits:
        words = (Text("starts after {wait} ms", wait=milliseconds(log["wait"])) if log["wait"]
                 else Text("starts at once"))
        parts.append(d.text(left + 8 + queue * 12, y + 78, words.render(lang), "small"))
    return parts


def _pool(log: dict, frame: int, at: tuple, lang: str) -> list:
    """Every block of the cluster's pool."""
    x, y, width = at
    parts = _head(x, y, 5, Text("one pool of pages"), frame, range(PAGES, DECODE), lang)
    columns, left = (16, x) if width < 300 else (24, x + INDENT)
    cell = (x + width - left) / columns
    for index, letter in enumerate(log["blocks"][frame]):
        across, top = left + index % columns * cell, y + 12 + index // columns * cell
        parts.append(d.rect(across + 1, top, cell - 3, cell - 3, BLOCK_KINDS[letter][0], f"page:{index + 1}"))
    return parts


def _decode(log: dict, frame: int, at: tuple, lang: str) -> list:
    """The first verify rounds, the state replayed from what they kept, and where it is left for the next turn."""
    x, y, width = at
    parts = _head(x, y, 6, Text("decode: draft, verify, replay"), frame, range(DECODE, LAST), lang)
    window, x, step = log["drafts"] + 1, x + INDENT, (width - INDENT) / 2
    cell = min(17.0, (step - 8) / max(window, 6))
    for index, kept in enumerate(log["accepted"]):
        left, top = x + index % 2 * step, y + 14 + index // 2 * ROUND_TALL
        done = frame >= DECODE + index
        for place in range(window):
            style = "ghost" if not done else "record" if place < kept else "rejected"
            parts.append(d.rect(left + place * cell, top, cell - 2, 16, style, f"round:{index + 1}"))
        if done:
            parts.append(d.text(left, top + 31, Text("{kept} of {window} stay", kept=kept, window=window).render(lang),
                                "small"))
    below = y + 14 + ROUNDS_TALL
    return parts + _state(log, frame, x, below, lang) + _kept(log, frame, (x - INDENT, below + 44, width), lang)


def _state(log: dict, frame: int, x: float, y: float, lang: str) -> list:
    """The state, and whether it is what plain decoding gives."""
    if frame < DECODE:
        return [d.rect(x, y, 22, 22, "ghost")]
    words = (Text("off by {error}", error=number(log["error"], 2)) if log["error"] else
             Text("= plain decoding, bit for bit"))
    return [d.rect(x, y, 22, 22, "state", "state:running"),
            d.text(x + 11, y + 16, "S", "label strong on-dark", "middle"),
            d.text(x + 30, y + 16, words.render(lang), "label")]


def _kept(log: dict, frame: int, at: tuple, lang: str) -> list:
    """Where states were kept for the turn after this one, three in a line where there is nothing beside it."""
    x, y, width = at
    parts, per_line = _head(x, y, 7, Text("checkpoints"), frame, range(LAST, LAST + 1), lang), 3 if width > 300 else 6
    kept = (*log["saves"], *log["answer_saves"]) if frame == LAST else log["saves"]
    for index, position in enumerate(kept):
        left, base = x + INDENT + 100 + index % per_line * 60, y + index // per_line * 18
        if frame >= PREFILL:
            parts += [_diamond(left, base - 11, position), d.text(left + 9, base, number(position), "label")]
    return parts


def _payoff(log: dict, frame: int, at: tuple, lang: str) -> list:
    """Two pairs of bars: the wait for the first token, and the bytes that taking drafts back needs."""
    x, y, width = at
    cold, ttft, parts = log["cold"], log["ttft"], []
    pairs = (
        (Text("first token"), PREFILL, ((ttft, "hit", Text("{ms} ms", ms=milliseconds(ttft))),
                                        (cold, "miss", Text("{ms} ms, cache empty", ms=milliseconds(cold))))),
        (Text("to take drafts back"), DECODE, (
            (log["records"], "record", Text("{bytes} of records", bytes=binary_bytes(log["records"]))),
            (log["snapshots"], "snapshot", Text("{bytes} of snapshots", bytes=binary_bytes(log["snapshots"]))))),
    )
    for line, (name, since, bars) in enumerate(pairs):
        top, on = y + line * 58, frame >= since
        most = max(value for value, _, _ in bars)
        parts.append(d.text(x, top, name.render(lang), "label strong" if on else "label"))
        for index, (value, style, words) in enumerate(bars):
            level, long = top + 8 + index * 18, max(2.0, (width - 146) * value / most)
            parts.append(d.rect(x, level, long, 12, style if on else "ghost"))
            if on:
                parts.append(d.text(x + long + 6, level + 10.5, words.render(lang), "small"))
    return parts


STATIONS = {"request": _request, "router": _router, "admission": _admission, "lookup": _lookup, "pool": _pool,
            "decode": _decode, "payoff": _payoff}

"""What the tab `replayssm-ring` draws: the ring turning, the rule of the flush, the bytes of a step."""

from math import cos, pi, sin

from k3core.lab import drawing as d
from k3core.lab.contract import Picture, Result, Scene
from k3core.lab.display import binary_bytes, decimal_bytes
from k3core.lab.text import Text

NUMBERED_SLOTS = 32  # in a ring of more slots they are too narrow for a number
MOST_ROWS = 16  # of S₀ as it is drawn
GAP = 1.1  # drawing units between two slots
SPOKES_END = 84  # how far from the centre the lines of a flush stop


def events(p, state: int, record: int, cycle, turned: dict) -> dict:
    """The log: cursors before and after each step, the state's heat map, and the sizes that the bars need."""
    heats = [value for event in turned["events"] for row in event["heat"] for value in row]
    return {"steps": turned["events"], "letters": turned["letters"], "slots": turned["slots"],
            "window": p.window, "buffer": p.buffer, "capacity": p.buffer + p.window,
            "state": state, "record": record, "late": p.flush_late,
            "widest": max(state * (1 + p.window),
                          *(2 * state * event["accepted"] for event in turned["events"]),
                          *(state * (1 + event["flush"]) + record * (event["write"] + p.window)
                            for event in turned["events"])),
            "long_run": float(state * (1 + cycle.flush_share) + record * (cycle.mean_write_pos + p.window)),
            "hottest": max(heats) or 1.0}


def poster(steps: list) -> int:
    """The frame shown first: the second flush, or the last frame where there are fewer."""
    flushes = [index for index, event in enumerate(steps) if event["flush"] and index]
    return flushes[min(1, len(flushes) - 1)] if flushes else len(steps) - 1


def captions(p, turned: dict) -> list:
    """What just happened, one frame each: the start, then every step."""
    steps = turned["events"]
    start = Text("Before the first step. The prefill has left its state in S₀; the ring is empty, and both "
                 "cursors stand at the same slot.")
    return [start, *(_caption(p, number, event) for number, event in enumerate(steps) if number)]


def _caption(p, number: int, event: dict) -> Text:
    if event["flush"]:
        did = Text("Step {n} flushes: the history of {w} is folded into S₀, S₀ is written, and the base "
                   "moves past it.", n=number, w=event["write"])
    else:
        did = Text("Step {n} reads S₀ and folds a history of {w} on the fly; S₀ is not written.", n=number,
                   w=event["write"])
    if event["said"]:
        said = event["said"]
        kept = Text("It reads '{said}' and keeps '{kept}'.", said=said, kept=said[: event["accepted"]])
    elif event["accepted"] == p.window:
        kept = Text("The whole window of {window} is accepted.", window=p.window)
    else:
        kept = Text("{a} of {window} tokens are accepted; what lies behind the write cursor will be "
                    "overwritten.", a=event["accepted"], window=p.window)
    return Text("{did} {kept} {rule}", did=did, kept=kept, rule=rule(p.window, p.buffer, p.flush_late, event))


def rule(window: int, buffer: int, late: bool, event: dict) -> Text:
    """The comparison that decides whether the next step flushes, with its numbers."""
    w, limit, n = event["next_write"], buffer + window, window
    if late and event["next_flush"]:
        return Text("Late rule: {w} + {n} > {limit}, so the next step flushes.", w=w, n=n, limit=limit)
    if late:
        return Text("Late rule: {w} + {n} ≤ {limit}, so the next step does not flush.", w=w, n=n, limit=limit)
    if event["next_flush"]:
        return Text("{w} + 2 × {n} > {limit}, so the next step must flush.", w=w, n=n, limit=limit)
    return Text("{w} + 2 × {n} ≤ {limit}, so the next step need not flush.", w=w, n=n, limit=limit)


def draw_ring(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The ring with the state in its middle; beside it, or below it, the flush rule and the bytes."""
    log, event = scene.events, scene.events["steps"][frame]
    if narrow:
        width, height, centre, outer, inner = 340, 692, (170, 170), 164, 120
        left, rule_top, bars_top = 0, 394, 508
    else:
        width, height, centre, outer, inner = 720, 408, (202, 204), 190, 140
        left, rule_top, bars_top = 428, 58, 210
    style = slot_styles(log, event, frame)
    children = [
        *_slots(log, event, style, centre, outer, inner),
        *(_spokes(log, event, centre, inner) if event["flush"] and frame else []),
        *_state(log, event, frame, centre, 7.2 if narrow else 8.4, lang),
        *_cursors(log, event, centre, inner, lang),
        *_rule(log, event, left, rule_top, width - left, lang),
        *_bars(log, frame, left, bars_top, width - left, lang),
    ]
    picture = d.svg(width, height, children, scene.captions[frame].render(lang))
    return Picture(picture, _legend(event, style, frame))


# --- the ring ---


def slot_styles(log: dict, event: dict, frame: int) -> dict:
    """What each slot holds after the step: slot -> (class, number of its token or None)."""
    slots, capacity = log["slots"], log["capacity"]
    styles = {}
    for place in range(slots):
        slot = (event["next_base"] + place) % slots
        styles[slot] = ("free" if place < capacity else "padding", None)
    if frame == 0:
        return styles
    first = event["done"] - event["write"]
    for i in range(event["write"]):
        styles[(event["base"] + i) % slots] = ("folded" if event["flush"] else "older", first + i)
    for i in range(event["read"]):
        slot, place = (event["base"] + event["write"] + i) % slots, event["write"] + i
        token = event["done"] + i
        if place >= capacity:
            styles[slot] = ("miss", token)
        else:
            styles[slot] = ("accepted" if i < event["accepted"] else "rejected", token)
    return styles


def _slots(log: dict, event: dict, style: dict, centre: tuple, outer: float, inner: float) -> list:
    slots, parts = log["slots"], []
    middle, size = (outer + inner) / 2, min(13, 2 * pi * inner / slots * 0.62)
    for slot, (kind, token) in style.items():
        words = _word(log, event, token)
        mark = None if token is None else f"token:{token}"
        shape = sector(centre, inner, outer, slot / slots, (slot + 1) / slots)
        parts.append(d.path(shape, kind, mark, words))
        if token is not None and slots <= NUMBERED_SLOTS:
            x, y = at(centre, middle, (slot + 0.5) / slots)
            ink = "on-record" if kind in ("accepted", "miss") else ""
            parts.append(d.text(x, y + size * 0.36, words, f"slot-number {ink}".strip(), "middle"))
    return parts


def _word(log: dict, event: dict, token: int | None) -> str:
    """What stands in a slot: the number of its token, or its character."""
    if token is None:
        return ""
    if not log["letters"]:
        return str(token)
    here = token - event["done"]
    return event["said"][here] if here >= 0 else log["letters"][token]


def _spokes(log: dict, event: dict, centre: tuple, inner: float) -> list:
    """A flush: a line from every folded record towards the state."""
    parts = []
    for i in range(event["write"]):
        turn = ((event["base"] + i) % log["slots"] + 0.5) / log["slots"]
        parts.append(d.line(*at(centre, inner - 3, turn), *at(centre, SPOKES_END, turn), "spoke"))
    return parts


def _state(log: dict, event: dict, frame: int, centre: tuple, cell: float, lang: str) -> list:
    """S₀ as a heat map of |S|; it changes with a flush only, and then it is framed."""
    rows, columns = len(event["heat"]), len(event["heat"][0])
    cell = min(14 * cell / columns, 12 * cell / rows)
    x, y = centre[0] - columns * cell / 2, centre[1] - rows * cell / 2 - 14
    style = "heat-frame written" if event["flush"] and frame else "heat-frame"
    parts = [d.rect(x - 3, y - 3, columns * cell + 6, rows * cell + 6, style, "state:checkpoint")]
    for i, row in enumerate(event["heat"]):
        for j, value in enumerate(row):
            strength = round(0.08 + 0.92 * value / log["hottest"], 3)
            place = (x + j * cell, y + i * cell, cell - 0.8, cell - 0.8)
            parts.append(d.rect(*place, "state", opacity=strength))
    below = y + rows * cell + 20
    size = Text("S₀, {bytes} per head", bytes=binary_bytes(log["state"])).render(lang)
    return [*parts, d.text(centre[0], below, size, "label strong state-ink", "middle"),
            d.text(centre[0], below + 17, _written(log, frame).render(lang), "label small", "middle")]


def _written(log: dict, frame: int) -> Text:
    flushes = [step for step in range(1, frame + 1) if log["steps"][step]["flush"]]
    if not flushes:
        return Text("written by the prefill")
    return Text("written just now") if flushes[-1] == frame else Text("written in step {n}", n=flushes[-1])


def _cursors(log: dict, event: dict, centre: tuple, inner: float, lang: str) -> list:
    """Base and write cursor after the step, inside the ring; the arc between them is the history."""
    slots = log["slots"]
    base, write = event["next_base"] / slots, (event["next_base"] + event["next_write"]) / slots
    marks = [(base, Text("base")), (write, Text("write"))][: 1 + (event["next_write"] > 0)]
    parts = []
    for turn, words in marks:
        tip, spread = at(centre, inner - 2, turn), 0.011
        left, right = (at(centre, inner - 13, turn + side) for side in (-spread, spread))
        corners = " L".join(",".join(d.number(c) for c in corner) for corner in (tip, left, right))
        parts.append(d.path(f"M{corners}Z", "cursor"))
        x, y = at(centre, inner - 22 - 13 * abs(sin(2 * pi * turn)), turn)  # words are wider than high
        parts.append(d.text(x, y + 4.5, words.render(lang), "label strong halo", "middle"))
    if event["next_write"]:
        parts.append(d.path(arc(centre, inner - 2, base, write), "cursor-arc"))
    return parts


def at(centre: tuple, radius: float, turn: float) -> tuple:
    """The place at `turn` of the way round, clockwise from the top."""
    return centre[0] + radius * sin(2 * pi * turn), centre[1] - radius * cos(2 * pi * turn)


def sector(centre: tuple, inner: float, outer: float, begin: float, end: float) -> str:
    """Path of a piece of a ring, with a gap of constant width to its neighbours."""
    far, near = GAP / (4 * pi * outer), GAP / (4 * pi * inner)
    corners = [at(centre, outer, begin + far), at(centre, outer, end - far), at(centre, inner, end - near),
               at(centre, inner, begin + near)]
    a, b, c, e = (",".join(d.number(value) for value in corner) for corner in corners)
    out, back = (f"A{d.number(radius)},{d.number(radius)} 0 0" for radius in (outer, inner))
    return f"M{a}{out} 1 {b}L{c}{back} 0 {e}Z"


def arc(centre: tuple, radius: float, begin: float, end: float) -> str:
    """Path of an open arc, clockwise; less than a whole turn."""
    start, stop = (",".join(d.number(value) for value in at(centre, radius, turn)) for turn in (begin, end))
    return f"M{start}A{d.number(radius)},{d.number(radius)} 0 {int(end - begin > 0.5)} 1 {stop}"


# --- the rule and the bytes ---


def _rule(log: dict, event: dict, left: float, top: float, width: float, lang: str) -> list:
    """The history as a bar, the next window and the one after it; what passes L forces a flush."""
    w, window, capacity = event["next_write"], log["window"], log["capacity"]
    windows = 1 if log["late"] else 2
    cell, tall = width / (capacity + window), 24
    parts = [d.text(left, top - 34, Text("Does the next step have to flush?").render(lang), "label strong")]
    for i in range(w + windows * window):
        kind = "older" if i < w else "miss" if i >= capacity else "rejected"
        parts.append(d.rect(left + i * cell + 0.5, top, cell - 1, tall, kind))
    needed = f"{windows} × {window}" if windows > 1 else str(window)
    for begin, end, words in ((0, w, str(w)), (w, w + windows * window, needed)):
        if end > begin:
            x1, x2 = left + begin * cell + 1, left + end * cell - 1
            parts += [d.line(x1, top - 5, x2, top - 5, "bracket"),
                      d.text((x1 + x2) / 2, top - 11, words, "label", "middle")]
    limit = left + capacity * cell
    parts += [d.line(limit, top - 3, limit, top + tall + 12, "arrow"),
              d.text(limit - 14, top + tall + 20, f"L = {capacity}", "label strong", "end"),
              d.handle(limit, top + tall + 16, "buffer", None, cell, cell,
                       Text("drag to set the buffer").render(lang)),
              d.handle(left + (w + window) * cell, top + tall / 2, "window", None, cell, cell,
                       Text("drag to set the window").render(lang))]
    verdict = rule(window, log["buffer"], log["late"], event).render(lang)
    return [*parts, *_wrapped(left, top + tall + 48, verdict, width)]


def _wrapped(left: float, top: float, words: str, width: float) -> list:
    """A sentence on one line, or on two where it is too long for the width."""
    head, comma, tail = words.replace("，", "，|").replace(", ", ",|").partition("|")
    if len(words) * 6.6 < width or not comma:
        return [d.text(left, top, words, "label")]
    return [d.text(left, top, head, "label"), d.text(left, top + 17, tail, "label")]


def step_bytes(log: dict, step: int) -> tuple:
    """Bytes of one step: (state of the ring, its records, state per position, same tokens without drafts)."""
    event = log["steps"][step]
    state = log["state"] * (1 + event["flush"])
    records = log["record"] * (event["write"] + event["read"])
    return state, records, log["state"] * (1 + event["read"]), 2 * log["state"] * event["accepted"]


def _bars(log: dict, frame: int, left: float, top: float, width: float, lang: str) -> list:
    """Bytes moved in this step by three designs, to one scale."""
    parts = [d.text(left, top, Text("Bytes moved in this step, per head").render(lang), "label strong")]
    if frame == 0:
        return parts
    state, records, snapshots, plain = step_bytes(log, frame)
    unit = width / log["widest"]
    accepted = log["steps"][frame]["accepted"]
    rows = [
        (Text("ring: {bytes}", bytes=decimal_bytes(state + records)), [("state", log["state"])]
         + ([("state", log["state"])] if log["steps"][frame]["flush"] else []) + [("record", records)]),
        (Text("a state per position: {bytes}", bytes=decimal_bytes(snapshots)),
         [("state", log["state"])] + [("snapshot", log["state"])] * log["steps"][frame]["read"]),
        (Text("the accepted tokens without drafts: {bytes}", bytes=decimal_bytes(plain)),
         [("state", log["state"])] * (2 * accepted)),
    ]
    y = top + 20
    for words, pieces in rows:
        parts.append(d.text(left, y, words.render(lang), "label"))
        x = left
        for kind, size in pieces:
            parts.append(d.rect(x, y + 6, size * unit - 1, 15, kind))
            x += size * unit
        y += 46
    total = sum(sum(step_bytes(log, step)[:2]) for step in range(1, frame + 1))
    lines = (Text("ring so far: {mean} per step", mean=decimal_bytes(total / frame)),
             Text("in the long run: {mean} per step", mean=decimal_bytes(log["long_run"])))
    for i, words in enumerate(lines):
        parts.append(d.text(left, y + 3 + 17 * i, words.render(lang), "label small"))
    return parts


def _legend(event: dict, style: dict, frame: int) -> list:
    """What the ring holds, counted."""
    kinds = [kind for kind, _ in style.values()]
    count = {kind: kinds.count(kind) for kind in kinds}
    lines = [
        ("older", Text("committed records: {n}", n=count.get("older", 0))),
        ("folded", Text("folded into S₀ by this step: {n}", n=count.get("folded", 0))),
        ("accepted", Text("accepted in this step: {n}", n=event["accepted"] if frame else 0)),
        ("rejected", Text("rejected: {n}", n=count.get("rejected", 0))),
        ("miss", Text("beyond the capacity: {n}", n=count.get("miss", 0))),
        ("free", Text("free: {n}", n=count.get("free", 0))),
        ("padding", Text("slack up to a power of two: {n}", n=count.get("padding", 0))),
    ]
    shown = [line for line in lines if line[0] in count or line[0] not in ("miss", "folded")]
    return [*shown, ("state", Text("S₀, stronger where |S| is larger"))]

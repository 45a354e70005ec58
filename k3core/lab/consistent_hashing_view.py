"""The scene of the tab `consistent-hashing`: the ring, and five schemes side by side."""

import numpy as np

from k3core.fleet.hashing import xxh64
from k3core.lab import drawing as d
from k3core.lab.contract import Picture, Result, Scene
from k3core.lab.display import number, percent
from k3core.lab.fleet_nodes import (
    LETTERS,
    arc,
    bring_up,
    node_arcs,
    on_circle,
    pick,
    spokes,
    take_down,
    turns_of,
)
from k3core.lab.text import Text

STEPS = 6  # frames in which the sessions arrive; then come requests, then the bound
DOTS = 150  # sessions that are drawn
RING, BAND = 140, 26
COLUMNS = ("ring", "HRW", "Maglev", "jump", "mod n")
WEIGHT_STEP = 11
MANY_POINTS = 300  # beyond this the gaps between arcs would hide the arcs


def events(letters, weights, p, ring, names, keys, owners, requests, bounded, caps) -> dict:
    """The log: where everything lies on the ring, and each node's load in every frame under every scheme."""
    fair = np.array(weights) / sum(weights)
    home = owners["ring"][requests]
    hot = requests == 0 if p.hot else np.zeros(len(requests), dtype=bool)
    frames = [
        {
            name: (_count(owner[: p.sessions * step // STEPS], letters), None, None)
            for name, owner in owners.items()
        }
        for step in range(STEPS + 1)
    ]
    loads = {
        name: (_count(owner[requests[~hot]], letters), _count(owner[requests[hot]], letters), None)
        for name, owner in owners.items()
    }
    stays = bounded == home
    split = (
        _count(bounded[stays & ~hot], letters),
        _count(bounded[stays & hot], letters),
        _count(bounded[~stays], letters),
    )
    frames += [loads, loads | {"ring": split}]
    shift = [turn / 360 for turn in pick(p.turns, letters, 0)]
    firsts = (turns_of(xxh64([f"{name}_0" for name in names])) + shift) % 1.0
    shares = ring.shares()
    return {
        "letters": letters,
        "weights": weights,
        "fair": fair.tolist(),
        "arcs": node_arcs(ring),
        "firsts": firsts.tolist(),
        "points": len(ring.owners),
        "shares": shares.tolist(),
        "frames": frames,
        "caps": caps.tolist(),
        "dots": list(zip(turns_of(keys[:DOTS]).tolist(), owners["ring"][:DOTS].tolist())),
        "hot": _hot_walk(ring, keys[:1], bounded[hot]) if p.hot else None,
        "moved": int((~stays).sum()),
        "requests": len(requests),
        "sessions": p.sessions,
        "hot_requests": int(hot.sum()),
        "node": int(owners["ring"][0]),
    }


def _count(nodes: np.ndarray, letters: str) -> list:
    return np.bincount(nodes, minlength=len(letters)).tolist()


def _hot_walk(ring, key: np.ndarray, serving: np.ndarray) -> dict:
    """Where the hot session lies, its first point, and that of the last node that serves it."""
    start, wanted = int(ring.entry(key)[0]), set(serving.tolist())
    ends, owners = turns_of(ring.positions).tolist(), ring.owners.tolist()
    last = start
    wanted.discard(owners[last])
    while wanted:
        last = (last + 1) % len(owners)
        wanted.discard(owners[last])
    return {"turn": float(turns_of(key)[0]), "first": ends[start], "last": ends[last]}


def fullest(log: dict, frame: int, scheme: str = "ring") -> tuple:
    """(node, its load over its fair share) of the fullest node in a frame; the lowest node on a tie."""
    loads = totals(log, frame, scheme)
    total = sum(loads)
    if not total:
        return 0, 0.0
    ratios = [load / (total * fair) for load, fair in zip(loads, log["fair"])]
    node = max(range(len(ratios)), key=lambda i: (ratios[i], -i))
    return node, ratios[node]


def totals(log: dict, frame: int, scheme: str) -> list:
    """Load per node in a frame, whatever it is made of."""
    parts = [part for part in log["frames"][frame][scheme] if part]
    return [sum(values) for values in zip(*parts)]


def captions(log: dict, p) -> list:
    """One sentence or two per frame."""
    shares = [share / fair for share, fair in zip(log["shares"], log["fair"])]
    big, small = (pick_one(range(len(shares)), key=lambda i: shares[i]) for pick_one in (max, min))
    said = [
        Text(
            "The ring holds {points} points. A session belongs to the first point clockwise of its hash, so a node "
            "owns the arcs that end at its points: {big} {most} times its fair share of the circle, {small} {least}.",
            points=number(log["points"]),
            big=log["letters"][big],
            most=number(shares[big], 3),
            small=log["letters"][small],
            least=number(shares[small], 3),
        )
    ]
    for frame in range(1, STEPS + 1):
        node, ratio = fullest(log, frame)
        said.append(
            Text(
                "{count} of {total} sessions are placed. Node {node} is the fullest, with {ratio} "
                "times its fair share.",
                count=number(sum(totals(log, frame, "ring"))),
                total=number(log["sessions"]),
                node=log["letters"][node],
                ratio=number(ratio, 3),
            )
        )
    return [*said, _requests_caption(log, p), _bounded_caption(log)]


def _requests_caption(log: dict, p) -> Text:
    node, ratio = fullest(log, STEPS + 1)
    if p.hot:
        return Text(
            "Now requests. One session sends {hot} % of them, and every scheme gives it to one node, {home} on the "
            "ring. The fullest node of the ring, {node}, has {ratio} times its fair share.",
            hot=p.hot,
            home=log["letters"][log["node"]],
            node=log["letters"][node],
            ratio=number(ratio, 3),
        )
    return Text(
        "Now requests, one per session: load is spread as the sessions are. The fullest "
        "node, {node}, has {ratio} times its fair share.",
        node=log["letters"][node],
        ratio=number(ratio, 3),
    )


def _bounded_caption(log: dict) -> Text:
    node, ratio = fullest(log, STEPS + 2)
    return Text(
        "With bounded loads a request that finds its node full walks on. The fullest node, {node}, has {ratio} times "
        "its fair share; {moved} of the requests land on a node without their prefix.",
        node=log["letters"][node],
        ratio=number(ratio, 3),
        moved=percent(log["moved"] / log["requests"], 3),
    )


def draw_ring(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The ring, and at its right (below if narrow) a row per node with its load under each scheme."""
    log, width = scene.events, 340 if narrow else 720
    centre = (170 if narrow else 176, 172)
    ring = _ring(log, frame, centre, lang)
    left, top = (0, 352) if narrow else (374, 14)
    rows, bottom = _rows(log, frame, left, top, width - left, lang)
    parts = [*ring, *rows]
    return Picture(
        d.svg(width, max(bottom, 346), parts, scene.captions[frame].render(lang)), _legend(log, frame)
    )


def _ring(log: dict, frame: int, centre: tuple, lang: str) -> list:
    peak, ratio = fullest(log, frame)
    parts = []
    for node, arcs in enumerate(log["arcs"]):
        style = "arc peak" if node == peak and frame else "arc"
        commands = "".join(arc(centre, RING, begin, end) for begin, end in arcs)
        parts.append(d.path(commands, style, f"node:{log['letters'][node]}", log["letters"][node]))
    if log["points"] <= MANY_POINTS:
        ends = [end for arcs in log["arcs"] for _, end in arcs]
        parts.append(d.path(spokes(centre, RING - BAND / 2, RING + BAND / 2, ends), "points"))
    parts += _dots(log, frame, centre, peak)
    parts += _hot(log, frame, centre)
    if frame:
        words = Text("fullest node: {node}", node=log["letters"][peak]).render(lang)
        parts += [
            d.text(centre[0], centre[1] + 2, f"{number(ratio, 3)} ×", "headline", "middle"),
            d.text(centre[0], centre[1] + 22, words, "label small", "middle"),
        ]
    for node, turn in enumerate(log["firsts"]):
        parts += _bead(log["letters"][node], centre, turn)
    return parts


def _bead(letter: str, centre: tuple, turn: float) -> list:
    """A node's first point as a grip: dragging it round the ring turns all points of the node."""
    x, y = on_circle(centre, RING + BAND / 2 + 3, turn)
    grip = d.circle(
        x,
        y,
        10,
        "grip",
        f"node:{letter}",
        letter,
        data_drag_turn="turns",
        data_item=LETTERS.index(letter),
        data_centre_x=centre[0],
        data_centre_y=centre[1],
    )
    return [grip, d.text(x, y + 4, letter, "on-grip", "middle")]


def _dots(log: dict, frame: int, centre: tuple, peak: int) -> list:
    """Sessions as dots inside the ring, those of the fullest node filled darker."""
    shown = len(log["dots"]) * min(frame, STEPS) // STEPS
    parts = []
    for index, (turn, node) in enumerate(log["dots"][:shown]):
        x, y = on_circle(centre, RING - BAND / 2 - 7 - 6 * (index % 3), turn)
        parts.append(d.circle(x, y, 2.2, "key-dot peak" if node == peak else "key-dot"))
    return parts


def _hot(log: dict, frame: int, centre: tuple) -> list:
    """The hot session: its place, and the way to the node that serves it, past full ones under the bound."""
    if not log["hot"] or frame <= STEPS:
        return []
    hot, radius = log["hot"], RING - BAND / 2 - 32
    end = hot["last"] if frame == STEPS + 2 else hot["first"]
    x, y = on_circle(centre, radius, hot["turn"])
    way = arc(centre, radius, hot["turn"], end) + spokes(centre, radius, RING - BAND / 2, [end])
    return [d.path(way, "walk"), d.circle(x, y, 6, "hot", "session:hot")]


def _rows(log: dict, frame: int, left: float, top: float, width: float, lang: str) -> tuple:
    """A row per node: its name, ×, its weight to drag, and a bar per scheme; + brings missing nodes back."""
    letters, names = log["letters"], list(log["frames"][0])
    highest = max(LETTERS.index(letter) for letter in letters)
    listed = LETTERS[: max(highest + 2, 8)]
    start = left + 86
    column = (width - 86) / len(names)
    last = (STEPS,) if frame <= STEPS else (STEPS + 1, STEPS + 2)  # requests have a scale of their own
    unit = (column - 8) / max(max(totals(log, at, name)) for name in names for at in last)
    high = min(27, 288 / len(listed))
    parts, y = [], top + 22
    for place in range(len(names)):
        parts.append(d.text(start + place * column, top + 6, COLUMNS[place], "label small"))
    for letter in listed:
        if letter in letters:
            node = letters.index(letter)
            parts += _node(log, letter, left, y, high)
            for place, name in enumerate(names):
                parts += _bar(log, frame, name, node, start + place * column, y, high, unit)
        else:
            parts.append(bring_up(left + 21, y + high / 2, 42, letter, "nodes", letters))
        y += high
    parts.append(d.text(left, y + 16, Text("fullest").render(lang), "label small"))
    for place, name in enumerate(names):
        ratio = fullest(log, frame, name)[1]
        parts.append(
            d.text(start + place * column, y + 16, number(ratio, 3) if frame else "–", "label strong")
        )
    return parts, y + 26


def _node(log: dict, letter: str, left: float, y: float, high: float) -> list:
    """Name, ×, and the weight as a small track of four stops."""
    middle, weight = y + high / 2, log["weights"][log["letters"].index(letter)]
    stops = [left + 42 + WEIGHT_STEP * step for step in range(4)]
    parts = [
        d.text(left, middle + 4, letter, "label strong", data_id=f"node:{letter}"),
        d.line(stops[0], middle, stops[-1], middle),
        d.circle(
            stops[weight - 1],
            middle,
            6,
            "grip",
            title=f"{letter}: {weight}",
            data_drag_x="weights",
            data_per_x=WEIGHT_STEP,
            data_item=LETTERS.index(letter),
        ),
    ]
    if len(log["letters"]) > 1:
        parts.append(take_down(left + 23, middle, "nodes", log["letters"].replace(letter, "")))
    return parts


def _bar(log: dict, frame: int, name: str, node: int, x: float, y: float, high: float, unit: float) -> list:
    """One node's load under one scheme: what stays, the hot session's part, what walked here; fair share."""
    peak = fullest(log, frame, name)[0] == node and frame
    styles = ("ordinary" if peak else "ordinary soft", "hot", "miss")
    parts, at = [], x
    for values, style in zip(log["frames"][frame][name], styles):
        if values and values[node]:
            wide = values[node] * unit
            parts.append(
                d.rect(
                    at,
                    y + 4,
                    wide,
                    high - 8,
                    style,
                    f"node:{log['letters'][node]}",
                    f"{log['letters'][node]}: {number(values[node])}",
                )
            )
            at += wide
    total = log["sessions"] if frame <= STEPS else log["requests"]
    fair = x + log["fair"][node] * total * unit
    parts.append(d.line(fair, y + 1, fair, y + high - 1, "fair"))
    if name == "ring" and frame == STEPS + 2:
        cap = x + log["caps"][node] * unit
        parts.append(d.line(cap, y + 1, cap, y + high - 1, "cap"))
    return parts


def _legend(log: dict, frame: int) -> list:
    """What the colours are, with counts; and what can be done by hand."""
    loads = totals(log, frame, "ring")
    peak, total = fullest(log, frame)[0], sum(loads)
    if not frame:
        lines = [
            (
                "soft",
                Text(
                    "arcs of {nodes} nodes, {points} points", nodes=len(loads), points=number(log["points"])
                ),
            )
        ]
    else:
        lines = [
            (
                "ordinary",
                Text(
                    "fullest node, {node}: {count} of {total}",
                    node=log["letters"][peak],
                    count=number(loads[peak]),
                    total=number(total),
                ),
            ),
            ("soft", Text("other nodes: {count}", count=number(total - loads[peak]))),
        ]
    if frame > STEPS and log["hot"]:
        lines.append(("hot", Text("hot session: {count} requests", count=number(log["hot_requests"]))))
    if frame > STEPS + 1:
        lines.append(("miss", Text("walked on to another node: {count}", count=number(log["moved"]))))
        lines.append(("cap", Text("cap: {count}", count=number(max(log["caps"])))))
    lines.append(("fair", Text("fair share")))
    lines.append(("bead", Text("drag: a node round the ring, its weight in the list")))
    return lines

"""What the tab `verify-and-replay` draws: three runs on one clock, segments joined, a deviation fading."""

from math import floor, log10

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Figure, Picture, Result, Scene
from k3core.lab.display import number
from k3core.lab.state_itself import pool
from k3core.lab.text import Text
from k3core.lab.verify_and_replay_runs import TOKENS, halves

NAMES = (Text("straight through"), Text("interrupted, resumed"), Text("deviated, verified"))
NODES_TOP = 54
MOST_ROWS = 16  # of a state as it is drawn
FAINTEST = -9  # power of ten of a difference that is drawn faintest


# --- three runs ---


def run_events(p, built: dict, letters: str = "") -> dict:
    """The log: each run's moments, one per tick of the clock, and where its marks stand. letters: glyphs of the tokens,
    where they are a text."""
    straight = [{"kind": "read", "read": t, "off": 0.0, "heat": _magnitudes(state)}
                for t, state in enumerate(built["states"])]
    others = ([_plain(moment) for moment in built[run]["moments"]] for run in ("resumed_run", "deviated"))
    lanes = [straight, *others]
    hottest = max(value for moment in straight for row in moment["heat"] for value in row)
    return {"lanes": lanes, "cut": p.cut, "checkpoint": (p.cut - 1) // p.every * p.every, "every": p.every,
            "deviation_at": p.deviation_at, "detected_at": built["deviated"]["detected_at"],
            "hottest": hottest, "letters": letters,
            "worst": [max(moment["off"] for moment in lane) for lane in lanes]}


def _plain(moment: dict) -> dict:
    """A moment as plain data: magnitudes of the state, and of its difference where there is one."""
    rest = {name: value for name, value in moment.items() if name not in ("state", "difference")}
    return rest | {"heat": _magnitudes(moment["state"]),
                   "difference": _magnitudes(moment["difference"]) if moment["off"] else None}


def _magnitudes(state) -> list:
    """|S| of a state [1, dk, dv] as rows to draw; a large one in squares of several values."""
    return pool(abs(state), MOST_ROWS)[0].tolist()


def ticks(built: dict) -> int:
    """Frames of the scene: the longest run."""
    return max(TOKENS + 1, len(built["resumed_run"]["moments"]), len(built["deviated"]["moments"]))


def run_poster(built: dict) -> int:
    """The frame shown first: about the middle of the records' arrival."""
    arrivals = [i for i, moment in enumerate(built["resumed_run"]["moments"]) if moment["kind"] == "arrival"]
    return arrivals[len(arrivals) // 2]


def at_tick(lane: list, tick: int) -> dict:
    """The moment of a run at a tick; a run that has ended stays as it is."""
    return lane[min(tick, len(lane) - 1)]


def run_captions(p, built: dict, letters: str = "") -> list:
    """What just happened to the runs, one frame each; with a text, what the straight run has just read of it."""
    resumed, hurt = built["resumed_run"]["moments"], built["deviated"]["moments"]
    captions = [Text("Before the first token. All three runs start from the same state.")]
    for tick in range(1, ticks(built)):
        said = [text for text in (_about_resumed(p, resumed, tick), _about_hurt(hurt, tick)) if text]
        if not said:
            said = [Text("The runs have read {a}, {b} and {c} tokens.", a=min(tick, TOKENS),
                         b=at_tick(resumed, tick)["read"], c=at_tick(hurt, tick)["read"])]
        both = len(said) > 1
        captions.append(Text("{first} {second}", first=said[0], second=said[1]) if both else said[0])
    if letters:
        return [Text("{said} Text of the first run: '{text}'.", said=words, text=letters[max(0, tick - 16) : tick])
                if 0 < tick <= TOKENS else words for tick, words in enumerate(captions)]
    return captions


def _about_resumed(p, lane: list, tick: int):
    if tick >= len(lane):
        return None
    now, before = lane[tick], lane[tick - 1]
    if now["kind"] == "lost":
        return Text("Second run: interrupted after token {cut}. Its state is lost; there are the checkpoint "
                    "of token {c} and, on their way, the records since.", cut=p.cut, c=now["read"])
    if now["kind"] == "arrival" and now["again"]:
        return Text("Second run: record {n} arrives again and is ignored.", n=now["seq"] + 1)
    if now["kind"] == "arrival" and now["read"] == before["read"]:
        return Text("Second run: record {n} arrives and must wait for record {next}.", n=now["seq"] + 1,
                    next=now["read"] + 1)
    if now["kind"] == "arrival":
        return Text("Second run: record {n} arrives; the replay reaches token {read}.", n=now["seq"] + 1,
                    read=now["read"])
    if now["kind"] == "resumed" and before["kind"] == "arrival":
        return Text("Second run: every record is replayed, the difference is {off}; it reads on.",
                    off=_off(before["off"]))
    return None


def _about_hurt(lane: list, tick: int):
    if tick >= len(lane):
        return None
    now = lane[tick]
    if now["kind"] == "caught":
        return Text("Third run: verification at token {n} finds a difference of {off}; the replayed state takes over.",
                    n=now["read"], off=_off(now["was_off"]))
    if now.get("verified") and now["off"] > 0:
        return Text("Third run: verification at token {n} lets a difference of {off} pass.", n=now["read"],
                    off=_off(now["off"]))
    if now["kind"] == "hurt":
        return Text("Third run: after token {n} its state is pushed off by {off}.", n=now["read"],
                    off=_off(now["off"]))
    return None


def _off(value: float) -> Text | str:
    return Text("0, every bit") if value == 0 else number(value, 2)


def some(residue: float) -> Text | str:
    """The power of ten of a rounding residue: its digits differ between platforms and say nothing."""
    if residue == 0:
        return "0"
    power = str(floor(log10(residue))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return Text("some 10{power}", power=power)


def draw_runs(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Three lanes of tokens on one clock, each with its state and how far that is from the straight run's."""
    log = scene.events
    width, tall = (340, 158) if narrow else (720, 122)
    parts, counts = [], {}
    for index, lane in enumerate(log["lanes"]):
        top = 4 + index * tall
        now = at_tick(lane, frame)
        kinds = cell_kinds(log, index, min(frame, len(lane) - 1))
        for kind, _ in kinds:
            counts[kind] = counts.get(kind, 0) + 1
        parts += _lane(log, index, now, kinds, top, narrow, lang)
        parts += _maps(log, index, now, top, narrow, lang)
        if index:
            parts.append(d.line(0, top - 8, width, top - 8))
    legend = [
        ("state", Text("read on the right state: {n}", n=counts.get("state", 0))),
        ("miss", Text("read on a wrong state: {n}", n=counts.get("miss", 0))),
        ("record", Text("replayed: {n}", n=counts.get("record", 0))),
        ("older", Text("records that wait: {n}", n=counts.get("older", 0))),
        ("rejected", Text("lost, record not yet here: {n}", n=counts.get("rejected", 0))),
        ("ghost", Text("still to come: {n}", n=counts.get("ghost", 0))),
    ]
    return Picture(d.svg(width, 4 + 3 * tall, parts, scene.captions[frame].render(lang)), legend)


def cell_kinds(log: dict, index: int, tick: int) -> list:
    """What each token is to a run at a tick: (class, strength)."""
    lane = log["lanes"][index]
    now = lane[tick]
    kinds = [("state" if i < now["read"] else "ghost", 1.0) for i in range(TOKENS)]
    if index == 1 and now["kind"] != "read":
        for i in range(log["checkpoint"], log["cut"]):
            if i < now["read"]:
                kinds[i] = ("record" if now["off"] == 0 else "miss", 1.0)
            else:
                kinds[i] = ("older" if i in now.get("arrived", ()) else "rejected", 1.0)
        if now["off"] > 0:
            after = max(0, now["read"] - log["cut"])
            kinds[log["cut"] : log["cut"] + after] = [("miss", strength(now["off"]))] * after
    if index == 2:
        for moment in lane[: tick + 1]:
            if moment["kind"] == "caught":
                kinds[moment["from"] : moment["read"]] = [("record", 1.0)] * (moment["read"] - moment["from"])
            elif moment["read"]:
                wrong = moment["off"] > 0
                kinds[moment["read"] - 1] = ("miss", strength(moment["off"])) if wrong else ("state", 1.0)
    return kinds


def strength(off: float) -> float:
    """How strongly a difference is drawn: 1 from 0.1 on, fainter with its power of ten."""
    return round(min(1.0, max(0.15, 1 - (log10(max(off, 1e-30)) + 1) / FAINTEST * 0.85)), 2) if off else 0.0


def _lane(log: dict, index: int, now: dict, kinds: list, top: float, narrow: bool, lang: str) -> list:
    """One run's tokens as cells, with its marks and grips."""
    per_row, cell, tall = (24, 340 / 24, 18) if narrow else (TOKENS, 462 / TOKENS, 30)
    parts = [d.text(0, top + 13, lane_name(log, index, now).render(lang), "label strong")]
    read = Text("{n} of {total} tokens", n=now["read"], total=TOKENS).render(lang)
    parts.append(d.text(per_row * cell, top + 13, read, "label small", "end"))
    first = top + 22

    def corner(token: float) -> tuple:
        row = min(int(token // per_row), TOKENS // per_row - 1)
        return (token - row * per_row) * cell, first + row * (tall + 18)

    sets = {1: "cut", 2: "deviation_at"}.get(index)
    for i, (kind, strong) in enumerate(kinds):
        x, y = corner(i)
        click = {"data_click": sets, "data_value": i + 1} if sets and i + 1 < TOKENS else {}
        parts.append(d.rect(x + 0.5, y, cell - 1, tall, kind, f"token:{i + 1}", str(i + 1),
                            opacity=strong if strong < 1 else None, **click))
        if log["letters"]:
            dark = kind in ("state", "miss") and strong > 0.5
            ink = "on-dark " if dark else "on-record " if kind == "record" else ""
            parts.append(d.text(x + cell / 2, y + tall / 2 + 4, log["letters"][i], f"glyph {ink}small", "middle"))
    for token in marks(log, index):
        x, y = corner(token - 1) if token else (-cell, first)
        parts.append(d.line(x + cell, y - 2, x + cell, y + tall + 6, "arrow"))
    if sets:
        x, y = corner(log[sets] - 1)
        words = Text("drag to move the interruption") if index == 1 else Text("drag to move the deviation")
        parts.append(d.line(x + cell, y - 2, x + cell, y + tall + 2, "arrow"))
        parts.append(d.handle(x + cell, y + tall + 7, sets, None, cell, cell, words.render(lang)))
    return parts


def lane_name(log: dict, index: int, now: dict) -> Text:
    """What a run is, and the token that matters most to it by now."""
    if index == 1 and now["kind"] != "read":
        return Text("interrupted, checkpoint {n}", n=log["checkpoint"])
    noticed = log["detected_at"]
    if index == 2 and noticed is not None and (now["kind"] == "caught" or now["read"] > noticed):
        return Text("deviated, noticed at {n}", n=noticed)
    return NAMES[index]


def marks(log: dict, index: int) -> list:
    """Tokens after which a line stands: the checkpoint of the second run, the verifications of the third."""
    verified = sorted({*range(log["every"], TOKENS, log["every"]), TOKENS})
    return {1: [log["checkpoint"]], 2: verified}.get(index, [])


def _maps(log: dict, index: int, now: dict, top: float, narrow: bool, lang: str) -> list:
    """The run's state, and how far it is from the straight run at the same token."""
    unit = 5.2 if narrow else 7.2
    rows, columns = len(now["heat"]), len(now["heat"][0])
    cell = min(14 * unit / columns, 10 * unit / rows)
    left, y = (2, top + 96) if narrow else (492, top + 20)
    wide, tall = columns * cell, rows * cell
    parts = [d.rect(left - 2, y - 2, wide + 4, tall + 4, "heat-frame", "state:checkpoint")]
    for i, row in enumerate(now["heat"]):
        for j, value in enumerate(row):
            parts.append(_pixel(left + j * cell, y + i * cell, cell, "state", value / log["hottest"]))
    if not index:
        return [*parts, d.text(left + wide + 12, y + 12, Text("its state |S|").render(lang), "label small")]
    beside = left + wide + 14
    parts.append(d.rect(beside - 2, y - 2, wide + 4, tall + 4, "difference-frame"))
    if not now["off"]:
        parts.append(d.text(beside + wide / 2, y + tall / 2 + 5, "0", "label small", "middle"))
    else:
        for i, row in enumerate(now["difference"]):
            for j, value in enumerate(row):
                share = value / log["worst"][index]
                parts.append(_pixel(beside + j * cell, y + i * cell, cell, "miss", share))
    said = Text("difference {off}", off=_off(now["off"])).render(lang)
    style = "label small" if now["off"] == 0 else "label strong"
    place = (beside + wide + 10, y + 14, said, style) if narrow else (720, top + 12, said, style, "end")
    return [*parts, d.text(*place)]


def _pixel(x: float, y: float, cell: float, style: str, share: float) -> str:
    return d.rect(x, y, cell - 0.6, cell - 0.6, style, opacity=round(0.06 + 0.94 * min(1.0, share), 2))


# --- segments of several nodes ---


def node_events(p, built: dict) -> dict:
    """The log: the order in which parts became ready, and their maps M and S_local as magnitudes."""
    parts = {span: {"m": _magnitudes(m), "s": _magnitudes(s)}
             for span, (m, s) in built["tree"]["parts"].items()}
    return {"events": [[kind, *span] for kind, span in built["tree"]["events"]], "piece": p.piece,
            "nodes": -(-TOKENS // p.piece), "parts": [[*span, part] for span, part in sorted(parts.items())],
            "hottest": max(value for part in parts.values() for row in part["s"] for value in row)}


def node_poster(built: dict) -> int:
    """The frame shown first: everything composed."""
    return len(built["tree"]["events"])


def node_captions(p, built: dict) -> list:
    """What became ready, one frame each."""
    last = len(built["tree"]["events"])
    captions = [Text("The stream is cut into pieces of {n} tokens; each goes to a node that knows nothing "
                     "of the others.",
                     n=p.piece)]
    for number_of, (kind, (begin, end)) in enumerate(built["tree"]["events"], start=1):
        first, past = begin * p.piece + 1, min(end * p.piece, TOKENS)
        if number_of == last:
            captions.append(Text("The last two parts are joined. Applied to the state at the start, the "
                                 "whole comes within {off} of the straight run.",
                                 off=some(built["nodes_tree"])))
        elif kind == "node":
            captions.append(Text("Node {n} is done: tokens {first} to {past} as one map, whatever the state "
                                 "before them.",
                                 n=end, first=first, past=past))
        else:
            captions.append(Text("Two neighbours are there, so they are joined: tokens {first} to {past}.",
                                 first=first, past=past))
    return captions


def draw_nodes(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Pieces of the stream at the top, below each what a node made of it, joined in pairs down to one."""
    log = scene.events
    width = 340 if narrow else 720
    column = width / log["nodes"]
    rows, columns = len(log["parts"][0][2]["s"]), len(log["parts"][0][2]["s"][0])
    cell = min(60 / rows, (column - 8) / (rows + columns + 1))  # M is square, S_local as wide as the values
    row = rows * cell + 34
    ready = [tuple(event[1:]) for event in log["events"][:frame]]
    places, depth = {}, 0
    for begin, end, _ in log["parts"]:
        places[begin, end] = (begin + end) / 2 * column
        depth = max(depth, level((begin, end)))
    lines, maps = [], []
    for begin, end, part in log["parts"]:
        span, x = (begin, end), places[begin, end]
        y = NODES_TOP + level(span) * row
        if end - begin > 1:
            for half in halves(span):
                corners = [places[half], NODES_TOP + level(half) * row + rows * cell + 4, y - 12, x, y - 4]
                shape = "M{},{}V{}H{}V{}".format(*map(d.number, corners))
                lines.append(d.path(shape, "join" if span in ready else "join waiting"))
        look = "ghost" if span not in ready else "heat-frame written" if span == ready[-1] else "heat-frame"
        maps += _part(part, look, x, y, cell, log["hottest"])
    pieces = []
    for node in range(log["nodes"]):
        x = node * column
        first, past = node * log["piece"] + 1, min((node + 1) * log["piece"], TOKENS)
        done = (node, node + 1) in ready
        name = Text("node {n}", n=node + 1).render(lang)
        pieces += [d.text(x + column / 2, 12, f"{first}–{past}", "label small", "middle"),
                   d.rect(x + 1, 18, column - 2, 22, "record" if done else "ghost", f"node:{node}", name),
                   d.text(x + column / 2, 33, name, "label on-record" if done else "label small", "middle")]
    singles = sum(end - begin == 1 for begin, end in ready)
    legend = [("record", Text("segments computed: {n} of {total}", n=singles, total=log["nodes"])),
              ("gate", Text("M, what remains of any state before")),
              ("state", Text("S_local, what the segment wrote")),
              ("ghost", Text("not ready yet: {n}", n=len(log["parts"]) - len(ready)))]
    height = NODES_TOP + depth * row + rows * cell + 6
    return Picture(d.svg(width, height, [*pieces, *lines, *maps], scene.captions[frame].render(lang)), legend)


def level(span: tuple) -> int:
    """How many joins a span of nodes is away from single nodes."""
    begin, end = span
    return 0 if end - begin == 1 else 1 + max(level(half) for half in halves(span))


def _part(part: dict, look: str, x: float, y: float, cell: float, hottest: float) -> list:
    """M and S_local side by side, centred at x; outlines where they are not ready."""
    rows, columns = len(part["s"]), len(part["s"][0])
    left = x - ((rows + columns) * cell + 4) / 2
    drawn = []
    boxes = (("gate", part["m"], left, 1.0), ("state", part["s"], left + rows * cell + 4, hottest))
    for style, values, at, top in boxes:
        drawn.append(d.rect(at - 1, y - 1, len(values[0]) * cell + 2, rows * cell + 2, look))
        if look != "ghost":
            drawn += [_pixel(at + j * cell, y + i * cell, cell, style, value / top)
                      for i, row in enumerate(values) for j, value in enumerate(row)]
    return drawn


# --- a deviation fading ---


def fade_figure(caught) -> Figure:
    """What is left of a deviation if nobody corrects it."""
    styles = {"measured": ("miss", [1, 0]), "bound": ("snapshot", [6, 4])}
    y = charts.quantitative("share", None, axis={"format": "~%", "title": None}) | {"scale": {"type": "log"}}
    layers = [charts.line_layer(charts.quantitative("token", Text("token"), axis={"tickMinStep": 1}), y,
                                charts.series("line", styles), ["token", "share"])]
    if caught is not None:
        layers.append(charts.rule_layer(caught))
    return Figure("fade", "fade", Text("A deviation that nobody corrects"),
                  Text("Solid: what is left of it. Dashed: the most that the slowest channel of each gate "
                       "lets through. The vertical line marks where verification notices."),
                  {"layer": layers})

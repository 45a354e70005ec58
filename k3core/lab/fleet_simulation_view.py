"""What the tab `fleet-simulation` shows: clusters as lanes over time, latencies below them, two charts."""

import numpy as np

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Figure, Picture, Result, Scene, Table
from k3core.lab.display import number, percent
from k3core.lab.fleet_nodes import LETTERS
from k3core.lab.fleet_simulation_runs import finite
from k3core.lab.fleet_time import (
    LogScale,
    clock_words,
    diamonds,
    dots,
    latency_grid,
    levels,
    seconds_words,
    steps,
)
from k3core.lab.text import Text

FRAMES, UNTIL_LAST_ARRIVAL = 44, 36  # frames in all, and until the last arrival
BINS = 2 * (FRAMES - 1)  # of the curves
MARKS, LINE_MARKS = 300, 90  # latencies drawn per class, each the longest of its neighbours; corners of the line
STEPS = (1, 2, 5, 10, 20, 50, 100, 200)  # seconds between labels of the axis
GRID = (0.2, 0.8, 5.0, 30.0)
LOW, HIGH = 0.03, 120.0
STYLES = ("vip", "ordinary")


def drawn(p) -> list:
    """(letter, cluster index) of the clusters that are drawn: the first ones, and those that join."""
    first = [(LETTERS[place], place) for place in range(p.clusters)]
    joins = sum(time > 0 for time in p.joins)
    return first + [(LETTERS[p.clusters + place], p.clusters * p.size + place) for place in range(joins)]


def events(p, runs) -> dict:
    """The log: per cluster its slots, queue and hits in every half frame, and what happens when."""
    chosen, own = runs.situation, runs.own
    tick, run = chosen.length / UNTIL_LAST_ARRIVAL, own.run
    times = np.arange(BINS) * tick / 2
    lanes = [_lane(p, run, letter, cluster, times, tick) for letter, cluster in drawn(p)]
    load = max((max(pool.slots, pool.prefill) for pool in own.load_in_burst), default=0.0)
    return {
        "tick": tick, "length": chosen.length, "window": chosen.window, "poster": round(chosen.window[1] / tick) - 1,
        "lanes": lanes,
        "deaths": [*p.deaths, *[0] * 8][:8], "joins": [*p.joins, *[0] * 4][:4], "slots": chosen.slots, "load": load,
        "undrawn": chosen.clusters - p.clusters, "policy": p.policy, "measure": chosen.measure,
        "running": _totals(run, run.busy_intervals(), times), "waiting": _totals(run, run.waiting_intervals(), times),
        "arriving": [_rates(run.requests.arrival[run.requests.klass == k], times, tick / 2) for k in (0, 1)],
        "burst": p.burst, "rates": (chosen.vip_rate, chosen.ordinary_rate), "incidents": _incidents(runs, lanes),
        "marks": [_marks(run, run.requests.klass == k, getattr(run, chosen.measure), MARKS) for k in (0, 1)],
        "other": _marks(run, run.requests.klass == 0, getattr(runs.outcomes["shared"].run, chosen.measure), LINE_MARKS),
        "p99": finite(own.p99_ms(0, chosen.measure)),
        "p99_shared": finite(runs.outcomes["shared"].p99_ms(0, chosen.measure)),
    }


def _lane(p, run, letter: str, cluster: int, times, tick: float) -> dict:
    """One cluster: running and waiting per class, the share of prompt tokens that were hits, its life."""
    lane = {"letter": letter, "cluster": cluster, "index": cluster if cluster < p.clusters else None}
    for name, intervals in (("running", run.busy_intervals()), ("waiting", run.waiting_intervals())):
        request, where, begin, end = intervals
        here = where == cluster
        klass = run.requests.klass[request]
        lane[name] = [levels(begin[here & (klass == k)], end[here & (klass == k)], times) for k in (0, 1)]
    mine = np.flatnonzero(run.completed & (run.cluster == cluster))
    place = np.minimum((run.start[mine] / (tick / 2)).astype(np.int64), BINS - 1)
    prompt, hit = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    np.add.at(prompt, place, run.requests.prompt[mine])
    np.add.at(hit, place, run.hit[mine])
    lane["hits"] = [h / t if t else None for h, t in zip(hit.tolist(), prompt.tolist())]
    if lane["index"] is None:
        lane["born"] = sorted(time for time in p.joins if time)[cluster - p.clusters * p.size]
        lane["death"] = lane["back"] = 0
    else:
        lane["born"], lane["death"] = 0, [*p.deaths, *[0] * 8][cluster]
        lane["back"] = lane["death"] + p.repair if lane["death"] and p.repair else 0
    return lane


def _totals(run, intervals: tuple, times) -> list:
    request, _, begin, end = intervals
    klass = run.requests.klass[request]
    return [levels(begin[klass == k], end[klass == k], times) for k in (0, 1)]


def _rates(arrival: np.ndarray, times: np.ndarray, width: float) -> list:
    """Arrivals per second from each time to the next."""
    edges = np.searchsorted(arrival, np.append(times, times[-1] + width))
    return (np.diff(edges) / width).tolist()


def _marks(run, mine: np.ndarray, latency: np.ndarray, most: int) -> list:
    """(arrival, seconds): the longest of each group of neighbours, at most `most` of them."""
    served = np.flatnonzero(mine & ~np.isnan(latency))
    marks = []
    for group in np.array_split(served, min(most, max(1, len(served)))):
        if len(group):
            longest = int(group[np.argmax(latency[group])])
            marks.append((float(run.requests.arrival[longest]), float(latency[longest])))
    return marks


def _incidents(runs, lanes: list) -> list:
    """(time, what, letter, attempts lost) of everything that happens to clusters that are drawn, in order of time."""
    found, run = [], runs.own.run
    for lane in lanes:
        letter = lane["letter"]
        if lane["death"]:
            found.append((lane["death"], "dies", letter, sum(row[1] == lane["cluster"] for row in run.lost)))
        if lane["back"]:
            found.append((lane["back"], "back", letter, 0))
        if lane["born"]:
            found.append((lane["born"], "joins", letter, 0))
    return sorted(found)


def _incident_words(what: str, letter: str, lost: int) -> Text:
    if what == "dies":
        return Text("Cluster {letter} dies: requests that start again elsewhere, without their prefix: {lost}.",
                    letter=letter, lost=number(lost))
    if what == "back":
        return Text("Cluster {letter} is back, and empty.", letter=letter)
    return Text("Cluster {letter} joins, and holds no prefix.", letter=letter)


def captions(log: dict) -> list:
    """One or two sentences per frame."""
    said = []
    for frame in range(FRAMES):
        time, place = frame * log["tick"], min(2 * frame, BINS - 1)
        vip, ordinary = (curve[place] for curve in log["running"])
        vip_wait, ordinary_wait = (curve[place] for curve in log["waiting"])
        state = Text("VIP: {vip} running, {vip_wait} waiting. Ordinary: {ordinary} running, {ordinary_wait} waiting.",
                     vip=number(vip), vip_wait=number(vip_wait), ordinary=number(ordinary),
                     ordinary_wait=number(ordinary_wait))
        said.append(Text("{time} s, {phase}. {state} {note}", time=clock_words(time), phase=_phase(log, time),
                         state=state, note=_note(log, time)))
    return said


def _phase(log: dict, time: float) -> Text:
    if time >= log["length"]:
        return Text("no more arrivals")
    if log["burst"] == 1:
        return Text("steady traffic")
    begin, end = log["window"]
    return Text("before the burst") if time < begin else Text("in the burst") if time < end else Text("after the burst")


def _note(log: dict, time: float) -> Text:
    """What happened since the last frame, or what the burst does."""
    news = [incident for at, *incident in log["incidents"] if time - log["tick"] < at <= time]
    if news:
        return _incident_words(*news[-1])
    begin, end = log["window"]
    if begin <= time < end and log["load"] >= 1:
        return Text("One budget is offered {load} times what it can do: unstable, its queue grows.",
                    load=number(log["load"], 3))
    place = min(int(2 * time / log["tick"]), BINS - 1)
    hits = [lane["hits"][place] for lane in log["lanes"] if lane["hits"][place] is not None]
    if hits:
        return Text("Hits: {share} of prompt tokens.", share=percent(sum(hits) / len(hits), 3))
    return Text("No prompt is being computed.")


def ms_words(value: float | None) -> str:
    """Milliseconds as people say them."""
    return "\N{EN DASH}" if value is None else seconds_words(value / 1000)


def draw_fleet(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Arrivals with the burst as a grip, a lane per cluster, latencies; what is to come lies under a veil."""
    log, width = scene.events, 340 if narrow else 720
    axis = Axis(log, 54, width - 10, frame)
    parts, grips, y = _arrivals(log, axis, lang)
    height = max(24, min(54, 250 // len(log["lanes"])))
    for lane in log["lanes"]:
        more, own = _draw_lane(log, lane, axis, y, height)
        parts, grips, y = parts + more, grips + own, y + height + 10
    more, y = _new(log, axis, y, lang)
    grips += more
    more, labels, y = _latencies(log, axis, y + 12, lang)
    veil = d.rect(axis.x(axis.now), 12, axis.right - axis.x(axis.now), y - 28, "veil")
    clock = d.line(axis.x(axis.now), 12, axis.x(axis.now), y - 16, "fair")
    drawing = [*parts, *more, veil, clock, *labels, *grips]
    return Picture(d.svg(width, y, drawing, scene.captions[frame].render(lang)), _legend(log, frame))


class Axis:
    """Time from left to right, and the moment shown."""

    def __init__(self, log: dict, left: float, right: float, frame: int):
        self.left, self.right, self.now = left, right, frame * log["tick"]
        self.end = log["tick"] * (FRAMES - 1)
        self.pixels = (right - left) / self.end
        self.edges = [self.x(place * log["tick"] / 2) for place in range(BINS + 1)]

    def x(self, time: float) -> float:
        return self.left + min(time, self.end) * self.pixels

    @property
    def second(self) -> int:
        """The moment as a whole second that a parameter takes, not after it."""
        return min(600, max(1, int(self.now)))


def _arrivals(log: dict, axis: Axis, lang: str) -> tuple:
    """Requests per second of both classes, VIP below; the burst's height is a grip."""
    high, base, (vip, ordinary) = 44, 62, log["arriving"]
    plateau = log["rates"][0] + log["rates"][1] * log["burst"]
    both = [a + b for a, b in zip(vip, ordinary)]
    unit = high / max(plateau * 1.1, *both)
    begin, end = (axis.x(time) for time in log["window"])
    parts = [d.text(0, 10, Text("arrivals per second").render(lang), "label small"),
             d.rect(begin, 14, end - begin, base - 14, "window"),
             d.path(steps(axis.edges, [0] * BINS, vip, base, unit), "vip"),
             d.path(steps(axis.edges, vip, both, base, unit), "ordinary"),
             d.line(begin, base - plateau * unit, end, base - plateau * unit, "cap"),
             d.text(axis.left - 6, 25, number(round(max(both))), "label small", "end"),
             d.line(axis.left, base, axis.right, base)]
    return parts, [d.handle(end, base - plateau * unit, None, "burst", 0, -log["rates"][1] * unit, "")], base + 16


def _draw_lane(log: dict, lane: dict, axis: Axis, y: float, height: float) -> tuple:
    """Running requests upwards to the line of all slots, waiting ones downwards, hits as a strip between them."""
    up, down = height * 0.56, height * 0.3
    base, below = y + up, y + up + 6
    most = max(1, *(max(a + b for a, b in zip(*one["waiting"])) for one in log["lanes"]))
    mark, hits = f"node:{lane['letter']}", lane["hits"]
    begin, end = (axis.x(time) for time in log["window"])
    parts = [d.rect(begin, y, end - begin, height, "window"), d.line(axis.left, y, axis.right, y, "rule")]
    for name, at, unit in (("running", base, up / log["slots"]), ("waiting", below, -down / most)):
        vip, ordinary = lane[name]
        parts += [d.path(steps(axis.edges, [0] * BINS, vip, at, unit), "vip", mark),
                  d.path(steps(axis.edges, vip, [a + b for a, b in zip(vip, ordinary)], at, unit), "ordinary", mark)]
    found = [share or 0.0 for share in hits]
    there = [0.0 if share is None else 1.0 for share in hits]
    parts += [d.path(steps(axis.edges, [0.0] * BINS, found, base + 5, 4), "hit", mark),
              d.path(steps(axis.edges, found, there, base + 5, 4), "miss", mark)]
    grips = _life(log, lane, axis, y, height)
    letter = d.text(0, base + 4, lane["letter"], "label strong", data_id=mark)
    return parts, [letter, *grips]


def _life(log: dict, lane: dict, axis: Axis, y: float, height: float) -> list:
    """When the cluster is away, its death or birth as a grip, and the button that kills, revives or withdraws it."""
    parts, middle = [], y + height * 0.56 + 3
    if lane["born"]:
        parts.append(_away(axis, 0, lane["born"], y, height))
        place = log["joins"].index(lane["born"])
        parts.append(_item_grip(axis, lane["born"], middle, "joins", place))
        return [*parts, *_button("×", middle, "joins", _with(log["joins"], place, 0))]
    if not lane["death"]:
        return _button("×", middle, "deaths", _with(log["deaths"], lane["index"], axis.second))
    parts.append(_away(axis, lane["death"], lane["back"] or axis.end, y, height))
    parts.append(_item_grip(axis, lane["death"], middle, "deaths", lane["index"]))
    return [*parts, *_button("+", middle, "deaths", _with(log["deaths"], lane["index"], 0))]


def _away(axis: Axis, begin: float, end: float, y: float, height: float) -> str:
    return d.rect(axis.x(begin), y, axis.x(end) - axis.x(begin), height, "away")


def _item_grip(axis: Axis, time: float, y: float, param: str, item: int) -> str:
    """A moment of one cluster that can be dragged along the axis; beyond its end there is nothing to grab."""
    if time > axis.end:
        return ""
    return d.circle(axis.x(time), y, 7, "grip", title=f"{time} s", data_drag_x=param, data_per_x=f"{axis.pixels:.6g}",
                    data_item=item)


def _button(sign: str, middle: float, param: str, value: str) -> list:
    inside = [d.rect(12, middle - 12, 24, 24, "hit-area"), d.text(24, middle + 5, sign, "on-grip", "middle")]
    return [d.group(inside, data_click=param, data_value=value)]


def _with(values: list, place: int, value: int) -> str:
    return ",".join(str(value if place == index else old) for index, old in enumerate(values))


def _new(log: dict, axis: Axis, y: float, lang: str) -> tuple:
    """The button that lets a cluster join at the clock; and how many clusters are not drawn."""
    parts = []
    if 0 in log["joins"]:
        letter = LETTERS[len(log["lanes"])]
        place = log["joins"].index(0)
        joined = _with(log["joins"], place, axis.second)
        parts = [d.rect(0, y, 34, 24, "ghost add", data_click="joins", data_value=joined),
                 d.text(17, y + 16.5, f"+ {letter}", "on-grip", "middle")]
    if log["undrawn"] > 0:
        words = Text("and {count} more clusters", count=log["undrawn"]).render(lang)
        parts.append(d.text(axis.left, y + 16.5, words, "label small"))
    return parts, y + (27 if parts else 0)


def _latencies(log: dict, axis: Axis, y: float, lang: str) -> tuple:
    """The longest latencies by arrival: ordinary and VIP as they were, VIP in the shared queue as a line."""
    base = y + 124
    scale = LogScale(LOW, HIGH, base, y + 12)

    def place(marks):
        return [(axis.x(at), scale(latency)) for at, latency in marks]

    words = {"ttft": Text("time to first token, by arrival"), "response": Text("time to last token, by arrival"),
             "wait": Text("wait, by arrival")}[log["measure"]]
    parts = [d.text(0, y + 4, words.render(lang), "label small"), *latency_grid(scale, axis.left, axis.right, GRID)]
    parts += [d.path(dots(place(log["marks"][1]), 3), "ordinary")]
    if log["policy"] != "shared":
        parts.append(d.path(_polyline(place(log["other"])), "vip-shared"))
    parts.append(d.path(diamonds(place(log["marks"][0]), 5.5), "vip"))
    labels = []
    own, shared = (None if value is None else scale(value / 1000) for value in (log["p99"], log["p99_shared"]))
    if own is not None:
        words = Text("VIP P99 {time}", time=ms_words(log["p99"]))
        labels += [d.line(axis.left, own, axis.right, own, "vip-line"),
                   d.text(axis.right, own - 4, words.render(lang), "label small strong halo", "end")]
    if shared is not None and log["policy"] != "shared":
        words = Text("VIP P99 in one queue {time}", time=ms_words(log["p99_shared"]))
        labels.append(d.text(axis.right, shared - 4, words.render(lang), "label small strong halo", "end"))
    step = next(step for step in STEPS if axis.end / step <= 6)
    for time in range(0, int(axis.end * 0.97), step):
        labels.append(d.text(axis.x(time), base + 15, f"{time} s", "label small", "middle"))
    return parts, labels, base + 18


def _polyline(points: list) -> str:
    return "".join(f"{'L' if index else 'M'}{d.number(x)} {d.number(y)}" for index, (x, y) in enumerate(points))


def _legend(log: dict, frame: int) -> list:
    """What the colours are, with counts at the moment shown."""
    place = min(2 * frame, BINS - 1)
    vip, ordinary = ([log[name][k][place] for name in ("running", "waiting")] for k in (0, 1))
    lines = [("vip", Text("VIP: {running} running, {waiting} waiting", running=number(vip[0]), waiting=number(vip[1]))),
             ("ordinary", Text("ordinary: {running} running, {waiting} waiting", running=number(ordinary[0]),
                               waiting=number(ordinary[1]))),
             ("fair", Text("up: running, down: waiting; the line above a lane: {slots} slots", slots=log["slots"])),
             ("hit", Text("hits of prompt tokens")), ("miss", Text("prompt tokens computed"))]
    if log["policy"] != "shared":
        lines.append(("vip-shared", Text("VIP in the shared queue")))
    lines.append(("bead", Text("× kills, + adds at the clock; drag: deaths, the height of the burst")))
    return lines


def percentiles_figure(table: Table) -> Figure:
    """VIP from the median to the maximum, with the two limits of the claim."""
    styles = {"isolated": ("vip", [1, 0]), "shared": ("vip", [5, 4])}
    last = {row[1]: row[2] for row in table.rows}
    labels = [("max", last[kind], words, "vip") for kind, words in
              (("isolated", Text("— own budget")), ("shared", Text("– – one queue"))) if kind in last]
    x = {"field": "share", "type": "ordinal", "title": None, "sort": ["P50", "P90", "P95", "P99", "max"],
         "axis": {"labelAngle": 0}}
    axis = {"labelExpr": "datum.value >= 1000 ? format(datum.value / 1000, ',') + ' s' : datum.value + ' ms'",
            "values": [30, 200, 800, 3000, 10000, 60000], "title": None}
    y = {"field": "time", "type": "quantitative", "title": None, "scale": {"type": "log"}, "axis": axis}
    rows = [{"share": at, "time": height, "label": words, "colour": charts.colour(meaning)}
            for at, height, words, meaning in labels]
    text = {"data": {"values": rows}, "mark": {"type": "text", "align": "right", "dx": -6, "dy": -9, "fontSize": 13},
            "encoding": {"x": x, "y": y, "text": {"field": "label"},
                         "color": {"field": "colour", "type": "nominal", "scale": None}}}
    limits = {"data": {"values": [{"time": 200}, {"time": 800}]}, "mark": {"type": "rule", "strokeDash": [3, 3]},
              "encoding": {"y": y, "color": {"value": "var(--ink)"}}}
    return Figure("percentiles", "percentiles", Text("VIP: from the median to the worst"),
                  Text("The dashed rules are 200 and 800 ms. A budget of its own moves the whole upper part of the "
                       "distribution."),
                  {"layer": [charts.line_layer(x, y, charts.series("kind", styles), ["share", "time"]), text, limits]})


def cost_figure(hit_rate: float) -> Figure:
    """The price of the mean request falls with its hits."""
    x = charts.quantitative("hit", Text("hit rate"), axis={"format": "~p", "tickCount": 5})
    y = charts.quantitative("cents", None, axis={"title": None, "tickCount": 5, "labelExpr": "datum.label + ' ¢'"})
    line = {"mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "color": {"value": charts.colour("hit")}}}
    cent = {"mark": {"type": "rule", "strokeDash": [3, 3]},
            "encoding": {"y": {"datum": 1, "type": "quantitative"}, "color": {"value": "var(--ink)"}}}
    return Figure("cost", "cost", Text("Price of the mean request, against its hits"),
                  Text("The dashed rule is one cent, the vertical one this run's hit rate. What is left at the right "
                       "is output and hits, "
                       "which no cache makes cheaper."), {"layer": [line, cent, charts.rule_layer(hit_rate)]})

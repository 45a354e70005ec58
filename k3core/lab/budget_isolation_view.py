"""What the tab `budget-isolation` shows: budgets and queues at a moment, the history, six policies."""

from heapq import heapify, heappop, heappush
from math import isnan

import numpy as np

from k3core.fleet.admission import POLICIES
from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Figure, Picture, Result, Scene
from k3core.lab.display import number
from k3core.lab.fleet_time import (
    KINDS,
    POLICY_NAMES,
    SHORT_NAMES,
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

TICK, FRAMES, POSTER = 1.5, 33, 13  # seconds per frame; the first one to show lies at the end of the burst
END = TICK * (FRAMES - 1)
GRID = (0.2, 1.0, 5.0, 20.0)  # seconds at which the latency chart has lines
LOW, HIGH = 0.03, 60.0
STYLES = ("vip", "ordinary")
NOTABLE = 0.3  # seconds of waiting that are worth a word about idle slots


def events(p, case, slots: int, pages: int, phases: tuple, cases: dict) -> dict:
    """The log: every request of the chosen policy's run with its slot, and each policy's figures."""
    run, kind = case.run, np.minimum(case.arrivals.kind, 1)
    budgets = POLICIES[run.fleet.policy].budgets(run.fleet.classes, run.fleet.spec)
    need = -(-(run.requests.prompt + run.requests.output) // run.fleet.spec.page_tokens) + run.fleet.spec.state_pages
    columns = (kind, run.requests.klass, run.pool, slot_numbers(run, [budget.slots for budget in budgets]), need,
               run.requests.arrival, run.start, run.first_token, run.end)
    return {
        "requests": list(zip(*(values.tolist() for values in columns))), "refused": sorted(run.rejected),
        "budgets": [(budget.slots, budget.pages, budget.prefill_percent) for budget in budgets],
        "set": (p.vip_slots, p.vip_compute, p.vip_pages), "slots": slots, "pages": pages, "policy": p.policy,
        "burst": p.burst, "phases": phases, "waiting": _curves(run, kind),
        "arriving": [levels(run.requests.arrival[kind == k], run.requests.arrival[kind == k] + 1.0,
                            np.arange(int(END)) + 0.999) for k in (0, 1)],
        "p99": (case.p99_ms(True), case.p99_ms(False)),
        "policies": [(name, one.p99_ms(True), one.p99_ms(False), one.changed, len(one.run.rejected))
                     for name, one in cases.items()],
    }


def slot_numbers(run, sizes: list) -> np.ndarray:
    """A slot of its pool for every request that was served, the lowest free one -> int64 [N], -1 for the others."""
    first = np.cumsum([0, *sizes])
    free = [list(range(int(begin), int(begin) + size)) for begin, size in zip(first, sizes)]
    for heap in free:
        heapify(heap)
    taken = np.full(len(run.start), -1, dtype=np.int64)
    served = np.flatnonzero(run.completed).tolist()
    turns = sorted([(float(run.start[i]), 1, i) for i in served] + [(float(run.end[i]), 0, i) for i in served])
    for _, starts, i in turns:  # at equal times a slot is given back before it is taken
        if starts:
            taken[i] = heappop(free[run.pool[i]])
        else:
            heappush(free[run.pool[i]], int(taken[i]))
    return taken


def _curves(run, kind: np.ndarray) -> list:
    """Requests of each kind that wait, four times a second."""
    request, _, begin, end = run.waiting_intervals()
    times = np.arange(int(END * 4)) / 4 + 0.125
    return [levels(begin[kind[request] == k], end[kind[request] == k], times) for k in (0, 1)]


def moment(log: dict, time: float) -> dict:
    """Who runs, who waits, which lanes compute and how many pages are in use at a time."""
    now = {"running": [], "waiting": ([], []), "lanes": [None] * len(log["budgets"]),
           "pages": [[0, 0] for _ in log["budgets"]],
           "lent": 0}
    for index, (kind, _, pool, slot, need, arrival, start, first, end) in enumerate(log["requests"]):
        if isnan(start) or not arrival <= time < end:
            continue
        if time < start:
            now["waiting"][kind].append(time - arrival)
            continue
        foreign = len(log["budgets"]) > 1 and kind != pool
        now["running"].append((index, kind, slot, foreign))
        now["lent"] += foreign
        now["pages"][pool][kind] += need
        if time < first:
            now["lanes"][pool] = kind
    return now


def captions(log: dict) -> list:
    """One or two sentences per frame."""
    return [Text("{time} s, {phase}. {state} {note}", time=clock_words(time), phase=_phase(log, time),
                 state=_state(moment(log, time)), note=_note(log, moment(log, time)))
            for time in (TICK * frame for frame in range(FRAMES))]


def _phase(log: dict, time: float) -> Text:
    before, burst, after = log["phases"]
    if time < before:
        return Text("before the burst")
    if time < before + burst:
        return Text("in the burst")
    return Text("after the burst") if time < before + burst + after else Text("no more arrivals")


def _state(now: dict) -> Text:
    running = [sum(kind == k for _, kind, _, _ in now["running"]) for k in (0, 1)]
    return Text("VIP: {vip} running, {vip_wait} waiting. Ordinary: {ordinary} running, {ordinary_wait} waiting.",
                vip=running[0], vip_wait=len(now["waiting"][0]), ordinary=running[1],
                ordinary_wait=len(now["waiting"][1]))


def _note(log: dict, now: dict) -> Text:
    """What is remarkable about the moment."""
    free, waiting = log["slots"] - len(now["running"]), now["waiting"][0] + now["waiting"][1]
    if now["lent"]:
        return Text("In a slot of the other class: {lent}.", lent=now["lent"])
    if free and waiting and max(waiting) > NOTABLE:
        return Text("Idle slots: {free}, while the longest wait is {wait}.", free=free,
                    wait=seconds_words(max(waiting)))
    if waiting:
        return Text("The longest wait so far is {wait}.", wait=seconds_words(max(waiting)))
    return Text("Nobody waits.")


def draw_cluster(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Three budgets as bars with their borders, the queues, the history with a clock, and a row per policy."""
    log, width, time = scene.events, 340 if narrow else 720, TICK * frame
    now = moment(log, time)
    parts, y = _queues(now, width, lang)
    more, y = _budgets(log, now, y + 6, width, lang)
    parts += more
    left = 46
    more, y = _history(log, time, left, width - 8, y + 14, lang)
    parts += more
    more, y = _latencies(log, time, left, width - 8, y + 10, lang)
    parts += more
    more, y = _policies(log, y + 30, width, lang)
    return Picture(d.svg(width, y, [*parts, *more], scene.captions[frame].render(lang)), _legend(log, now))


def _queues(now: dict, width: float, lang: str) -> tuple:
    """A line per class, a square for each request that waits, the first in line at the left."""
    parts, y = [], 0
    for kind, style in enumerate(STYLES):
        count = len(now["waiting"][kind])
        words = (Text("VIP waiting: {count}", count=count), Text("ordinary waiting: {count}", count=count))[kind]
        parts.append(d.text(0, y + 11, words.render(lang), "label small"))
        fits = int((width - 132) // 9)
        for place in range(min(count, 2 * fits)):
            parts.append(d.rect(132 + place % fits * 9, y + 2 + place // fits * 9, 8, 8, style))
        y += 14 if not kind else 22
    return parts, y


def _budgets(log: dict, now: dict, y: float, width: float, lang: str) -> tuple:
    """Slots as cells, the prefill lanes and the pages as bars; the border between the classes is a grip."""
    cell, parts = width / log["slots"], []
    vip_slots, vip_compute, vip_pages = log["set"]
    split = len(log["budgets"]) > 1
    held = {slot: (index, kind, foreign) for index, kind, slot, foreign in now["running"]}
    words = _heading(Text("state slots"), vip_slots, log["slots"] - vip_slots, "", split, lang)
    parts.append(d.text(0, y + 12, words, "label small"))
    for slot in range(log["slots"]):
        index, kind, foreign = held.get(slot, (None, None, False))
        style = "free" if index is None else STYLES[kind] + (" lent" if foreign else "")
        parts.append(d.rect(slot * cell + 0.5, y + 18, cell - 2, 26, style,
                            None if index is None else f"request:{index}"))
    parts += _border(vip_slots * cell - 0.5, y + 14, 34, "vip_slots", cell, split)
    y += 56
    shares = ((Text("prefill compute"), "vip_compute", vip_compute, 100, " %", _lanes(log, now)),
              (Text("pages"), "vip_pages", vip_pages, log["pages"], "", _pages(log, now)))
    for name, param, percent, total, unit, filled in shares:
        mine = total * percent // 100
        parts.append(d.text(0, y + 12, _heading(name, mine, total - mine, unit, split, lang), "label small"))
        parts.append(d.rect(0, y + 18, width, 14, "free"))
        parts += [d.rect(begin * width, y + 18, share * width, 14, style) for begin, share, style in filled]
        parts += _border(width * percent / 100, y + 15, 20, param, width / 100, split)
        y += 44
    return parts, y


def _heading(name: Text, vip: int, rest: int, unit: str, split: bool, lang: str) -> str:
    if split:
        words = Text("{name}: {vip} for VIP, {rest} for ordinary", name=name, vip=f"{vip}{unit}", rest=f"{rest}{unit}")
    else:
        words = Text("{name}: all {sum} for whoever is next", name=name, sum=f"{vip + rest}{unit}")
    return words.render(lang)


def _border(x: float, y: float, height: float, param: str, pixels: float, split: bool) -> list:
    """The border of two budgets; under a policy without budgets it is dashed, for it does nothing there."""
    return [d.line(x, y, x, y + height, "fair" if split else "cap"),
            d.handle(x, y + height / 2, param, None, pixels, 0, "")]


def _lanes(log: dict, now: dict) -> list:
    """(begin, share, style) of each pool's prefill lane that is busy."""
    begin, parts = 0.0, []
    for (_, _, percent), kind in zip(log["budgets"], now["lanes"]):
        if kind is not None:
            parts.append((begin, percent / 100, STYLES[kind]))
        begin += percent / 100
    return parts


def _pages(log: dict, now: dict) -> list:
    """(begin, share, style) of the pages that each class holds in each pool."""
    begin, parts = 0.0, []
    for (_, pages, _), used in zip(log["budgets"], now["pages"]):
        at = begin
        for kind, count in enumerate(used):
            parts.append((at, count / log["pages"], STYLES[kind]))
            at += count / log["pages"]
        begin += pages / log["pages"]
    return parts


def _history(log: dict, time: float, left: float, right: float, y: float, lang: str) -> tuple:
    """Arrivals per second with the burst's height as a grip, below them the queues of both classes."""
    unit, (before, burst, _) = (right - left) / END, log["phases"]
    at = [left + second * unit for second in range(int(END) + 1)]
    top, high, parts = y + 12, 34, []
    most = max(6 + 4 * log["burst"], *(a + b for a, b in zip(*log["arriving"])))
    scale, base = high / most, top + high
    height = scale * (4 + 4 * log["burst"])  # VIP, and ordinary times the burst's factor
    parts += [d.text(0, y + 6, Text("arrivals per second").render(lang), "label small"),
              d.rect(left + before * unit, top - 4, burst * unit, 112, "window"),
              d.path(steps(at, [0] * int(END), log["arriving"][0], base, scale), "vip"),
              d.path(steps(at, log["arriving"][0], [a + b for a, b in zip(*log["arriving"])], base, scale), "ordinary"),
              d.line(left + before * unit, base - height, left + (before + burst) * unit, base - height, "cap")]
    grip = d.handle(left + (before + burst) * unit, base - height, None, "burst", 0, -4 * scale, "")
    y = base + 14
    quarter = [left + step * unit / 4 for step in range(int(END * 4) + 1)]
    vip, ordinary = log["waiting"]
    both = [a + b for a, b in zip(vip, ordinary)]
    most = max(10, *both)
    base = y + 60
    parts.append(d.path(steps(quarter, [0] * len(vip), vip, base, 48 / most), "vip"))
    parts.append(d.path(steps(quarter, vip, both, base, 48 / most), "ordinary"))
    parts += [d.text(0, y + 6, Text("waiting").render(lang), "label small"),
              d.text(left - 4, base - 39, number(most), "label small", "end"),
              d.line(left, base, right, base), *_clock(time, left, unit, top - 4, base), grip]
    return parts, base


def _clock(time: float, left: float, unit: float, top: float, bottom: float) -> list:
    """The moment that is shown: what is to come lies under a veil."""
    x = left + time * unit
    return [d.rect(x, top, left + END * unit - x, bottom - top, "veil"), d.line(x, top, x, bottom, "fair")]


def _latencies(log: dict, time: float, left: float, right: float, y: float, lang: str) -> tuple:
    """Every request at its arrival and its time to first token, on a logarithmic scale, with both P99."""
    unit, base = (right - left) / END, y + 116
    scale = LogScale(LOW, HIGH, base, y + 10)
    points = ([], [])
    for kind, _, _, _, _, arrival, _, first, _ in log["requests"]:
        if not isnan(first):
            points[kind].append((left + arrival * unit, scale(first - arrival)))
    parts = [d.text(0, y + 4, Text("time to first token, by arrival").render(lang), "label small"),
             *latency_grid(scale, left, right, GRID)]
    parts += [d.path(dots(points[1], 3.4), "ordinary"), d.path(diamonds(points[0], 6), "vip")]
    refused = [(left + log["requests"][i][5] * unit, y + 12) for i in log["refused"]]
    parts.append(d.path(diamonds(refused, 5), "miss"))
    parts += _clock(time, left, unit, y + 8, base)
    known = sorted((scale(p99 / 1000), kind) for kind, p99 in enumerate(log["p99"]) if p99 is not None)
    close = len(known) == 2 and known[1][0] - known[0][0] < 15  # the lower label then goes below its line
    for rank, (height, kind) in enumerate(known):
        time_words = seconds_words(log["p99"][kind] / 1000)
        words = (Text("VIP P99 {time}", time=time_words), Text("ordinary P99 {time}", time=time_words))[kind]
        parts += [d.line(left, height, right, height, f"{STYLES[kind]}-line"),
                  d.text(right, height + (13 if close and rank else -4), words.render(lang),
                         "label small strong halo", "end")]
    for second in range(0, int(END) + 1, 10):
        parts.append(d.text(left + second * unit, base + 15, f"{second} s", "label small", "middle"))
    return parts, base + 18


def _policies(log: dict, y: float, width: float, lang: str) -> tuple:
    """A row per policy: both P99 on a logarithmic scale, VIP requests that the burst changes. A click chooses."""
    left, last = (68, 94) if width < 500 else (168, 140)
    unit = width - left - last
    parts = [d.line(0, y - 18, width, y - 18),
             d.text(0, y, Text("P99").render(lang), "label small"),
             d.text(width, y, Text("VIP changed").render(lang), "label small", "end")]
    scale, y = LogScale(LOW, HIGH, 0, 1), y + 8
    for policy, vip, ordinary, changed, _ in log["policies"]:
        chosen = policy == log["policy"]
        words = (SHORT_NAMES if width < 500 else POLICY_NAMES)[policy].render(lang)
        parts += [d.rect(0, y - 2, width, 25, "outline chosen-row") if chosen else "",
                  d.text(4, y + 15, words, "label strong" if chosen else "label", data_id=f"policy:{policy}")]
        for value, style, top in ((vip, "vip", y + 1), (ordinary, "ordinary", y + 12)):
            if value is not None:
                wide = scale(value / 1000) * unit
                parts += [d.rect(left, top, wide, 9, style, f"policy:{policy}"),
                          d.text(left + wide + 4, top + 9, seconds_words(value / 1000), "label tiny")]
        parts += [d.text(width - 6, y + 15, number(changed), "label strong" if chosen else "label", "end"),
                  d.group([d.rect(0, y - 2, width, 25, "hit-area")], data_click="policy", data_value=policy)]
        y += 27
    return parts, y + 2


def _legend(log: dict, now: dict) -> list:
    """What the colours are, with counts at the moment shown."""
    running = [sum(kind == k for _, kind, _, _ in now["running"]) for k in (0, 1)]
    lines = [("vip", Text("VIP: {running} running, {waiting} waiting", running=running[0],
                          waiting=len(now["waiting"][0]))),
             ("ordinary", Text("ordinary: {running} running, {waiting} waiting", running=running[1],
                               waiting=len(now["waiting"][1]))),
             ("free", Text("free slots: {count}", count=log["slots"] - len(now["running"])))]
    if now["lent"]:
        lines.append(("lent", Text("in a slot of the other class: {count}", count=now["lent"])))
    if log["refused"]:
        lines.append(("miss", Text("refused in all: {count}", count=len(log["refused"]))))
    lines.append(("bead", Text("drag: the three borders, the height of the burst; a click on a row chooses the "
                               "policy")))
    return lines


def spread_figure() -> Figure:
    """Median to P99 of both classes under each policy."""
    order = [POLICY_NAMES[name] for name in POLICY_NAMES]
    y = {"field": "policy", "type": "nominal", "title": None, "sort": order}
    offset = {"field": "kind", "type": "nominal", "sort": list(KINDS), "scale": {"domain": list(KINDS)}}
    axis = {"labelExpr": "datum.value >= 1000 ? datum.value / 1000 + ' s' : datum.value + ' ms'",
            "values": [30, 100, 300, 1000, 3000, 10000]}
    x = {"field": "median", "type": "quantitative", "title": None, "scale": {"type": "log"}, "axis": axis}
    layers = [{"mark": {"type": "rule", "strokeWidth": width}, "transform": [{"filter": f"datum.kind === '{kind}'"}],
               "encoding": {"x": x, "x2": {"field": "p99"}, "y": y, "yOffset": offset,
                            "color": {"value": charts.colour(kind)}}}
              for kind, width in (("vip", 7), ("ordinary", 3))]
    return Figure("spread", "spread", Text("Time to first token: from the median to P99"),
                  Text("Thick: VIP, thin: ordinary. Left end: half of the requests are faster. Right end: 99 % are. A "
                       "policy moves the two classes against each other; none makes both short."), {"layer": layers})


def lending_figure() -> Figure:
    """Who gains and who loses when idle slots are lent."""
    x = charts.quantitative("arrival", Text("arrival, seconds"), axis={"tickCount": 5})
    y = charts.quantitative("change", None, axis={"title": None, "tickCount": 5, "labelExpr": "datum.label + ' s'"})
    colour = {"field": "kind", "type": "nominal", "legend": None,
              "scale": {"domain": list(KINDS), "range": [charts.colour("vip"), charts.colour("ordinary")]}}
    shape = {"field": "kind", "type": "nominal", "legend": None,
             "scale": {"domain": list(KINDS), "range": ["diamond", "circle"]}}
    layer = {"mark": {"type": "point", "filled": True, "size": 26},
             "encoding": {"x": x, "y": y, "color": colour, "shape": shape}}
    zero = {"mark": "rule", "encoding": {"y": {"datum": 0, "type": "quantitative"}, "color": {"value": "var(--ink)"}}}
    return Figure("lending", "lending", Text("Where lending helps and where it leaks"),
                  Text("First token under lending less first token under strict reservation, request by request. "
                       "Below the line: earlier, "
                       "the borrowers. Above: later, the VIP requests (diamonds) whose slots were lent."),
                  {"layer": [layer, zero]})

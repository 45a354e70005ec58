"""What the workbench `traces` shows: prompts in order of time and what each reused, policies side by side, curves."""

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Column, Figure, Picture, Result, Scene, Table
from k3core.lab.display import binary_bytes, number, percent
from k3core.lab.text import Text
from k3core.lab.traces_runs import BINS, Run, Setup, Trace, source_of, written_by

GIB = 2**30
FRAMES = 48  # requests that the scene steps through
VISIBLE = 16  # prompts on the drawing at a time
STYLES = {"dense": ("snapshot", [2, 3]), "align": ("state", [1, 0]), "marconi": ("hit", [6, 3])}
OWN_STYLE = ("record", [1, 0])


def events(trace: Trace, setup: Setup, compared: list, bound: Run, p) -> dict:
    """The log: some requests in a row as they were served, and every policy's sums."""
    requests, own = [], dict(compared)[p.policy]
    first = (len(trace.requests) - 1) * p.start // 100
    for index, request in enumerate(trace.requests[first:first + FRAMES], first):
        requests.append({"number": index + 1, "ms": request.timestamp, "input": request.input_length,
                         "hit": own.hits[index], "rows": own.rows[index], "source": source_of(trace, setup, own, index),
                         "written": written_by(trace, setup, own, index), "known": request.hash_ids is not None})
    return {"requests": requests, "grain": setup.grain, "hash_block": trace.hash_block, "all": len(trace.requests),
            "forget": setup.forget_states, "policy": p.policy, "bound": bound.hit_tokens,
            "tokens": bound.counts.input_tokens,
            "policies": [(name, one.hit_tokens, one.counts.checkpoints, one.counts.peak_bytes)
                         for name, one in compared]}


def requests_table(log: dict) -> Table:
    """One row per request, as many as the drawing shows at a time."""
    rows = [(f"request:{one['number']}", one["number"], one["ms"] / 1000, one["input"], one["hit"],
             one["rows"] - one["hit"], one["input"] - one["rows"],
             "–" if one["source"] is None else number(one["source"] + 1), len(one["written"]))
            for one in log["requests"][:VISIBLE]]
    return Table((Column("id", Text("id")), Column("request", Text("request")),
                  Column("time", Text("arrival"), "float", "s"),
                  Column("input", Text("prompt tokens")), Column("hit", Text("reused")),
                  Column("lost", Text("rows without a checkpoint")), Column("new", Text("not cached")),
                  Column("source", Text("resumes from request")), Column("written", Text("checkpoints left"))),
                 rows, Text("{count} requests, from the first on the drawing", count=number(len(rows))))


def captions(log: dict) -> list:
    """One sentence or two per request."""
    return [Text("Request {index} at {time} s, {tokens} prompt tokens. {reuse} {leaves}",
                 index=number(one["number"]), time=number(one["ms"] / 1000), tokens=number(one["input"]),
                 reuse=_reuse(one, log), leaves=_leaves(one))
            for one in log["requests"]]


def _reuse(one: dict, log: dict) -> Text:
    hit, rows, lost = number(one["hit"]), number(one["rows"]), number(one["rows"] - one["hit"])
    if not one["known"]:
        return Text("The trace does not say what its prompts share, so nothing is reused.")
    if not one["rows"]:
        return Text("No full grain of {grain} tokens is cached: all of it is computed.", grain=number(log["grain"]))
    if log["forget"] and lost != "0":
        return Text("Counted as reused: {rows}, because the rows are there; but the last checkpoint lies at {hit}.",
                    rows=rows, hit=hit)
    if not one["hit"]:
        return Text("Attention rows of the first {rows} are cached, but no checkpoint lies there: all of it is "
                    "computed.", rows=rows)
    source = number(one["source"] + 1)
    if one["rows"] > one["hit"]:
        return Text("It resumes at {hit}, from a checkpoint of request {source}; rows of {lost} more were cached in "
                    "vain.", hit=hit, source=source, lost=lost)
    return Text("It resumes at {hit}, from a checkpoint of request {source}, as far as rows are cached.",
                hit=hit, source=source)


def _leaves(one: dict) -> Text:
    written = one["written"]
    if not written:
        return Text("It leaves no checkpoint.")
    if len(written) == 1:
        return Text("It leaves a checkpoint at {position}.", position=number(written[0]))
    return Text("It leaves {count} checkpoints, the last one at {position}.",
                count=len(written), position=number(written[-1]))


def draw_requests(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Top: one bar per prompt, the latest at the bottom. Below: the whole trace under every policy."""
    log, width = scene.events, 340 if narrow else 720
    prompts, top = _prompts(log, frame, width, narrow, lang)
    policies, bottom = _policies(log, top + 34, width, narrow, lang)
    return Picture(d.svg(width, bottom, [*prompts, *policies], scene.captions[frame].render(lang)), _legend(log, frame))


def _prompts(log: dict, frame: int, width: float, narrow: bool, lang: str) -> tuple:
    left, pitch, tall, top = (52 if narrow else 112), 17, 12, 26
    longest = max(max(one["input"] for one in log["requests"]), log["grain"])
    scale = (width - left - 8) / longest
    first = max(0, frame + 1 - VISIBLE)
    height = min(VISIBLE, len(log["requests"])) * pitch
    parts = _ruler(log["grain"], longest, left, top, height, scale)
    for row, index in enumerate(range(first, frame + 1)):
        one, y = log["requests"][index], top + row * pitch
        name = number(one["number"]) if narrow else f"{number(one['number'])} · {number(one['ms'] / 1000, 3)} s"
        parts.append(d.text(left - 8, y + tall - 1, name, "label strong" if index == frame else "label small", "end"))
        parts.append(d.group(_bar(one, left, y, tall, scale, log["forget"]), f"request:{one['number']}"))
        above = one["number"] - 1 - one["source"] if one["source"] is not None else 0  # rows up to the source
        if index == frame and 0 < above <= row:  # from the checkpoint down to where the prompt resumes
            x = left + one["hit"] * scale
            parts.append(d.line(x, y - above * pitch + tall, x, y, "arrow"))
    parts.append(d.handle(left + log["grain"] * scale, top - 6, "grain_blocks", None, log["hash_block"] * scale, 1,
                          Text("drag to set the grain").render(lang)))
    return parts, top + height + 6


def _ruler(grain: int, longest: int, left: float, top: float, height: float, scale: float) -> list:
    """A line at every multiple of the grain, as many as can be told apart; some have their number."""
    every = max(1, int(-(-7 // (grain * scale))))
    label = every * max(1, int(-(-62 // (every * grain * scale))))
    parts = []
    for index in range(every, longest // grain + 1, every):
        x = left + index * grain * scale
        parts.append(d.line(x, top, x, top + height, "rule"))
        if index % label == 0 and x < left + longest * scale - 24 and index * grain * scale > 20 and index > 1:
            parts.append(d.text(x, top - 8, number(index * grain), "label small", "middle"))
    return parts


def _bar(one: dict, left: float, y: float, tall: float, scale: float, forget: bool) -> list:
    """Reused, cached in vain (or promised, where states are forgotten), computed; a mark where a checkpoint is left."""
    vain = "miss" if forget else "snapshot"
    parts = [d.rect(left + start * scale, y, (end - start) * scale, tall, style)
             for start, end, style in ((0, one["hit"], "hit"), (one["hit"], one["rows"], vain),
                                       (one["rows"], one["input"], "ordinary")) if end > start]
    return parts + [d.rect(left + position * scale - 2, y - 2, 4, tall + 4, "state") for position in one["written"]]


def _policies(log: dict, top: float, width: float, narrow: bool, lang: str) -> tuple:
    """One row per policy: tokens reused, against all that rows alone could save; checkpoints."""
    left, wide, pitch = (0, 190, 38) if narrow else (108, 300, 24)
    title = Text("All {count} requests, by policy: choose one", count=number(log["all"])).render(lang)
    parts, most = [d.text(0, top, title, "label strong")], max(1, *(row[2] for row in log["policies"]))
    right = left + wide + (62 if narrow else 66)
    room = width - right - (0 if narrow else 118)
    if not narrow:
        parts.append(d.text(width, top, Text("checkpoints · bytes held").render(lang), "label small", "end"))
    top += 12
    for name, hit, checkpoints, size in log["policies"]:
        chosen = name == log["policy"]
        y = top + (16 if narrow else 0)
        share = hit / log["bound"] if log["bound"] else 0.0
        count = Text("{count} checkpoints", count=number(checkpoints)).render(lang)
        words = f"{count}, {binary_bytes(size)}" if narrow else f"{number(checkpoints)} · {binary_bytes(size)}"
        bars = [d.rect(left, y, wide, 14, "free", None, name, data_click="policy", data_value=name),
                d.rect(left, y, wide * min(1.0, share), 14, "hit", data_click="policy", data_value=name),
                d.rect(right, y, room * checkpoints / most, 14, "state")]
        if chosen:
            bars.append(d.rect(left, y, wide, 14, "outline"))
        label = "label strong" if chosen else "label"
        parts.append(d.group(bars, f"policy:{name}"))  # words stay outside: what is pointed at gets an outline
        parts += [d.text(0, y - 4 if narrow else y + 12, name, label, data_click="policy", data_value=name),
                 d.text(left + wide + 6, y + 12, percent(hit / log["tokens"], 3), label),
                 d.text(width, y - 4 if narrow else y + 12, words, "label small", "end")]
        top += pitch
    return parts, top + 4


def _legend(log: dict, frame: int) -> list:
    """What the colours are, with counts up to this request."""
    seen = log["requests"][:frame + 1]
    rows, tokens = sum(one["rows"] for one in seen), sum(one["input"] for one in seen)
    hit = sum(one["hit"] for one in seen)
    vain = ("snapshot", Text("rows cached, no checkpoint: {count}", count=number(rows - hit)))
    if log["forget"]:
        vain = ("miss", Text("counted as reused without a checkpoint: {count}", count=number(rows - hit)))
    return [("hit", Text("reused: {count} tokens", count=number(hit))),
            vain,
            ("ordinary", Text("not cached: {count}", count=number(tokens - rows))),
            ("state", Text("checkpoints left: {count}", count=number(sum(len(one["written"]) for one in seen)))),
            ("free", Text("what rows alone could save: {count}", count=percent(log["bound"] / log["tokens"], 3)))]


# --- curves -----------------------------------------------------------------------------------------------------


def grain_table(rows: list) -> Table:
    """Hit rate by policy and grain."""
    points = {(one.grain, name): run for kind, name, one, run in rows if kind in ("grain", "policies")
              and (kind == "grain" or name in STYLES)}
    return _curve("grain", Text("grain"), "exact", sorted((grain, name, run) for (grain, name), run in points.items()))


def capacity_table(rows: list) -> Table:
    """Hit rate by policy and capacity in GiB; without curves only the chosen capacity, at the bytes that were held."""
    points = [(one.capacity / GIB, name, run) for kind, name, one, run in rows if kind == "capacity"]
    points = points or [(run.counts.peak_bytes / GIB, name, run) for kind, name, _, run in rows
                        if kind == "policies" and name in STYLES]
    return _curve("capacity", Text("cache in GiB"), "float", sorted(points, key=lambda point: point[:2]))


def _curve(key: str, label: Text, kind: str, points: list) -> Table:
    return Table((Column(key, label, kind), Column("policy", Text("policy")),
                  Column("hit_rate", Text("hit rate"), "float"), Column("checkpoints", Text("checkpoints"))),
                 [(x, name, run.hit_rate, run.counts.checkpoints) for x, name, run in points])


def course_table(names: dict, compared: dict) -> Table:
    """Hit rate in each part of the trace."""
    rows = [(100 * (part + 1) // BINS, name, hit / tokens) for name in names
            for part, (hit, tokens) in enumerate(compared[name].course) if tokens]
    return Table((Column("part", Text("of the requests, in percent")), Column("policy", Text("policy")),
                  Column("hit_rate", Text("hit rate"), "float")), rows)


def figures(tables: dict, own: str, setup: Setup) -> list:
    """Hit rate against capacity, against the grain, and in the course of the trace."""
    capacity = [setup.capacity / GIB] if setup.capacity else []
    return [
        _figure("capacity", tables, own, True, capacity, Text("Hit rate, by cache size"), Text(
            "With little room, checkpoints and rows push each other out: keeping many costs hits.")),
        _figure("grain", tables, own, True, [setup.grain], Text("Hit rate, by grain"), Text(
            "Coarse blocks lose what prompts share beyond the last full one, fine ones cost more entries.")),
        _figure("course", tables, own, False, [], Text("Hit rate in the course of the trace"), Text(
            "An empty cache has to fill first; later, what is evicted shows.")),
    ]


def _figure(name: str, tables: dict, own: str, log: bool, rules: list, title: Text, caption: Text) -> Figure:
    table = tables[name]
    there = {row[1] for row in table.rows}
    styles = {policy: style for policy, style in STYLES.items() if policy in there}
    if own in there and own not in styles:
        styles[own] = OWN_STYLE
    legend = {"legend": {"orient": "top", "title": None, "symbolType": "stroke"}}
    by = {channel: one | legend for channel, one in charts.series("policy", styles).items()}
    scale, ticks = {"domain": [0, 100]}, {"tickCount": 5}
    first = table.columns[0]
    if log:
        scale = {"type": "log", "base": 2, "nice": False}
        ticks = {"values": sorted({row[0] for row in table.rows}), "format": ",d" if first.kind == "exact" else ",.3~r"}
    x = charts.quantitative(first.key, first.label, scale=scale, axis=ticks)
    y = charts.quantitative("hit_rate", None, axis={"title": None, "format": ".0%", "tickCount": 5},
                            scale={"zero": True})
    layers = [charts.line_layer(x, y, by, [first.key, "policy", "hit_rate"])]
    return Figure(name, name, title, caption, {"layer": [*layers, *(charts.rule_layer(value) for value in rules)]})

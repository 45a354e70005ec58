"""What the tab `page-table` shows: the grid of blocks with the page tables beside it, and the chart."""

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Figure, Picture, Result, Scene, Table
from k3core.lab.display import binary_bytes, number, percent
from k3core.lab.page_table_log import contents, role
from k3core.lab.text import Text
from k3core.sizing import blocks_per_request

KINDS = {
    "rows": Text("MLA rows"), "running": Text("running states"), "kept": Text("states kept for reuse or drafts"),
    "unwritten": Text("reserved rows, not written yet"), "padding": Text("padding"),
}
GRID = 416  # width of the grid of blocks beside the tables
ROW, FORK_ROW = 34, 19  # heights of a request and of its fork in the list
NUMBERS = 3  # lines of block numbers under the grid
DEFAULT_REQUESTS = 6  # of a shorter list, a grip's value would bring the others back, so it has none
KDA_WIDTH = 92  # of the strips of the recurrent groups, before the strip of rows


def events(layout, settings, timeline, listed: list, marks: list) -> dict:
    """The log of the scene: every frame, and the geometry that drawing needs."""
    names = [name for name, _, _ in listed]
    forks = [name for name in timeline.final if name.islower()]
    groups = [{"kind": group.kind, "layers": len(group.layers), "recurrent": group.recurrent}
              for group in layout.groups]
    need = {name: [blocks_per_request(group, tokens, settings) for group in layout.groups]
            for name, tokens, _ in listed}
    return {"frames": timeline.frames, "num_blocks": timeline.pool.num_blocks, "block_bytes": layout.block_bytes,
            "block_size": layout.block_size, "page_bytes": layout.page_bytes, "state_bytes": layout.state_bytes,
            "group_size": layout.group_size, "groups": groups, "names": names, "marks": list(marks),
            "lengths": [tokens for _, tokens, _ in listed], "forks": forks, "need": need,
            "final": dict(timeline.final)}


# --- captions ---------------------------------------------------------------------------------------------------


def captions(log: dict) -> list:
    """One or two sentences per frame: what just happened to the tables."""
    return [_caption(log, frame) for frame in log["frames"]]


def _caption(log: dict, frame: dict) -> Text:
    kind, name = frame["kind"], frame["request"]
    rows, states = _taken(log, frame)
    if kind == "empty":
        return Text("{count} blocks of {bytes}: a block is one page in each of {pages} tensors, and every page "
                    "is {page}. Block 0 is the null block, which is never handed out.",
                    count=number(log["num_blocks"]), bytes=binary_bytes(log["block_bytes"]),
                    pages=log["group_size"], page=binary_bytes(log["page_bytes"]))
    if kind in ("arrive", "let_in"):
        what = {"arrive": Text("{name} comes", name=name), "let_in": Text("Now {name} fits", name=name)}[kind]
        return Text("{what}, with {tokens} of its {total} tokens. It takes {count} blocks from the front of "
                    "the free list, {rows} for rows and {states} for states.",
                    what=what, tokens=number(frame["tokens"][name]),
                    total=number(log["final"][name]), count=rows + states, rows=rows, states=states)
    if kind == "grow" and not rows + states:
        return Text("The requests reach their full length within the blocks that they have.")
    if kind == "grow" and not states:
        return Text("The requests grow. Blocks taken for rows: {rows}; for states: none, because a state does "
                    "not grow.", rows=rows)
    if kind == "grow":
        return Text("The requests grow. Blocks taken for rows: {rows}; for states: {states}, because one is "
                    "kept at every block.",
                    rows=rows, states=states)
    if kind == "wait":
        return Text("{name} will need {need} blocks, and {room} are not yet promised to others. It takes none "
                    "and waits: all or nothing.", name=name, need=frame["need"], room=frame["room"])
    if kind == "refuse":
        return Text("{name} will need {need} blocks, more than the pool has. It can never run, so it is refused now.",
                    name=name, need=number(frame["need"]))
    return _fork_or_leave(frame, rows + states)


def _fork_or_leave(frame: dict, copied: int) -> Text:
    kind, name = frame["kind"], frame["request"]
    if kind == "fork":
        return Text("{name} goes on from {source} another way. It shares all {count} blocks: each counts two "
                    "references now, and not a byte was copied.",
                    name=name, source=frame["source"], count=_entries(frame, name))
    if kind == "write":
        return Text("{name} writes a token. What {source} must not see needs blocks of its own, {copied}: its "
                    "running states, and the rows of the block that is part full. {shared} blocks stay shared.",
                    name=name,
                    source=frame["source"], copied=copied, shared=_entries(frame, name) - copied)
    if kind == "fork_refused":
        return Text("{name} would fork, but its copy needs {need} blocks of its own and {room} are not "
                    "promised: no fork.",
                    name=name, need=frame["need"], room=frame["room"])
    if not frame["tables"]:
        return Text("{name}, the last, leaves. All blocks are free again.", name=name)
    if len(frame["freed"]) < frame["held"]:
        return Text("{name} leaves. Of its {held} blocks {freed} fall free; the others stay, because another "
                    "table still holds them.", name=name, held=frame["held"], freed=len(frame["freed"]))
    return Text("{name} leaves. Its {freed} blocks fall free, wherever they lie; nothing is moved.", name=name,
                freed=len(frame["freed"]))


def _taken(log: dict, frame: dict) -> tuple:
    """Blocks taken in this frame: for rows, for states."""
    counts = [len(blocks) for blocks in frame["taken"]] or [0] * len(log["groups"])
    states = sum(count for count, group in zip(counts, log["groups"]) if group["recurrent"])
    return sum(counts) - states, states


def _entries(frame: dict, name: str) -> int:
    return sum(map(len, frame["tables"][name]))


# --- the scene --------------------------------------------------------------------------------------------------


def draw_pool(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The blocks as a grid, the page tables of all requests beside it (below if narrow), one table in numbers."""
    log = scene.events
    now = log["frames"][frame]
    width = 340 if narrow else 720
    blocks = contents(now, log["block_size"])
    grid, grid_bottom = _grid(log, now, blocks, 340 if narrow else GRID, lang)
    left, top = (0, grid_bottom + 20) if narrow else (GRID + 24, 0)
    tables, tables_bottom = _tables(log, now, left, top, width - left, lang)
    below = tables_bottom + 8 if narrow else grid_bottom + 12
    numbers, bottom = _numbers(log, frame, below, 340 if narrow else GRID, lang)
    parts = [*grid, *tables, *numbers]
    drawing = d.svg(width, max(bottom, tables_bottom), parts, scene.captions[frame].render(lang))
    return Picture(drawing, _legend(log, now, blocks))


def _grid(log: dict, now: dict, blocks: dict, width: float, lang: str) -> tuple:
    """Every block of the pool in numeric order."""
    count = log["num_blocks"]
    columns = 16 if count <= 160 else 24 if count <= 384 else 32
    step = width / columns
    size = step - (2 if step > 14 else 1)
    places = {block: ((block % columns) * step, (block // columns) * step) for block in range(count)}
    taken = {block for blocks in now["taken"] for block in blocks}
    free = [places[block] for block in range(1, count) if block not in blocks]
    parts = [d.path(squares(free, size), "free"),
             d.rect(*places[0], size, size, "ghost", title=Text("null block").render(lang))]
    for block, held in blocks.items():
        parts.append(_cell(log, block, held, places[block], size, block in taken))
    parts.append(d.path(squares([places[block] for block in now["freed"]], size), "rejected"))
    return parts, -(-count // columns) * step


def squares(corners: list, size: float) -> str:
    """Squares as one path."""
    side = d.number(size)
    return "".join(f"M{d.number(x)} {d.number(y)}h{side}v{side}h-{side}z" for x, y in corners)


def _cell(log: dict, block: int, held: dict, place: tuple, size: float, fresh: bool) -> str:
    """A block to scale: what is useful of it is filled, padding is hatched, rows not written are empty."""
    x, y = place
    mark, holders = f"block:{block}", held["holders"]
    group = log["groups"][held["group"]]
    if held["role"] == "rows":
        tall = max(1.5, size * held["rows"] / log["block_size"])
        shapes = [d.rect(x, y, size, size, "reserved", mark), d.rect(x, y, size, tall, "mla", mark)]
        dark = tall > 0.62 * size
    else:
        wide, tall = size * group["layers"] / log["group_size"], size * log["state_bytes"] / log["page_bytes"]
        shapes = [d.rect(x, y, size, size, "padding", mark),
                  d.rect(x, y, wide, tall, "state" if held["role"] == "running" else "snapshot", mark)]
        dark = held["role"] == "running"
    if size > 15:
        words = holders[0]
        if size > 22:  # room for a second sign: the other holder, or the group of a state
            words += holders[1] if len(holders) > 1 else str(held["group"]) if group["recurrent"] else ""
        style = "cell-mark on-dark" if dark else "cell-mark"
        shapes.append(d.text(x + size / 2, y + size / 2 + 4, words, style, "middle"))
    if len(holders) > 1:
        corner = size * 0.4
        shapes.append(d.path(f"M{d.number(x + size)} {d.number(y)}v{d.number(corner)}l-{d.number(corner)} "
                             f"-{d.number(corner)}z", "shared"))
    if fresh:
        shapes.append(d.rect(x, y, size, size, "outline"))
    cell = d.group(shapes, f"request:{holders[0]}", _cell_title(log, block, held))
    return d.group([cell], f"request:{holders[1]}") if len(holders) > 1 else cell


def _cell_title(log: dict, block: int, held: dict) -> str:
    group = log["groups"][held["group"]]
    rows = f", {held['rows']} / {log['block_size']}" if held["role"] == "rows" else ""
    return f"{block}: {' + '.join(held['holders'])}, {group['kind'].upper()} {held['group']}{rows}"


def _tables(log: dict, now: dict, left: float, top: float, width: float, lang: str) -> tuple:
    """A row per request: its name, what it takes, and its page table, one strip per group."""
    parts, y = [], top
    for place, name in enumerate(log["names"]):
        parts += _request(log, now, place, name, left, y, width, lang)
        y += ROW
        if name.lower() in log["forks"]:
            if name.lower() in now["tables"]:
                parts += _strips(log, now, name.lower(), left, y - 3, width)
            y += FORK_ROW
    return parts, y + 4


def _request(log: dict, now: dict, place: int, name: str, left: float, y: float, width: float, lang: str) -> list:
    mark = log["marks"][place]
    if not mark:
        words = Text("+ {name}, {tokens} tokens", name=name, tokens=number(log["lengths"][place])).render(lang)
        return [d.rect(left, y + 2, width - 1, ROW - 8, "ghost add", data_click="running",
                       data_value=_marks(log, place, 1)),
                d.text(left + 8, y + 19, words, "small")]
    parts = [d.text(left, y + 12, name, "label strong", data_id=f"request:{name}"),
             d.text(left + 18, y + 12, _standing(log, now, place, name).render(lang), "small",
                    data_id=f"request:{name}")]
    fork = Text("fork").render(lang)
    parts.append(_button(left + width - 62, y, 40, fork, _marks(log, place, 1 if mark == 2 else 2), mark == 2))
    parts.append(_button(left + width - 18, y, 18, "×", _marks(log, place, 0), False))
    parts += _strips(log, now, name, left, y + 16, width)
    if len(log["lengths"]) >= DEFAULT_REQUESTS:
        unit = _unit(log, width)
        end = left + KDA_WIDTH + log["lengths"][place] / log["block_size"] * unit
        words = Text("drag to set the tokens of {name}", name=name).render(lang)
        parts.append(d.circle(end, y + 21, 6, "grip", title=words,
                              data_drag_x="lengths", data_item=place, data_per_x=repr(unit / log["block_size"])))
    return parts


def _button(x: float, y: float, wide: float, words: str, value: str, on: bool) -> str:
    style = "small strong pressed" if on else "small"
    return d.group([d.rect(x, y, wide, 16, "hit-area"), d.text(x + wide / 2, y + 12, words, style, "middle")],
                   data_click="running", data_value=value)


def _marks(log: dict, place: int, mark: int) -> str:
    """The list that says for each request whether it comes, with one entry changed."""
    marks = list(log["marks"])
    marks[place] = mark
    return ",".join(map(str, marks))


def _standing(log: dict, now: dict, place: int, name: str) -> Text:
    total = log["lengths"][place]
    if name in now["tables"] and now["tokens"][name] < total:
        return Text("{tokens} of {total} tokens, {count} blocks",
                    tokens=number(now["tokens"][name]), total=number(total),
                    count=_entries(now, name))
    if name in now["tables"]:
        return Text("{total} tokens, {count} blocks", total=number(total), count=_entries(now, name))
    if name in now["waiting"]:
        return Text("{total} tokens, waits", total=number(total))
    return Text("{total} tokens", total=number(total))


def _unit(log: dict, width: float) -> float:
    """Width of one block in the strip of rows."""
    most = max(max(need[0] for need in log["need"].values()), 12)
    return min(9.0, (width - KDA_WIDTH - 8) / most)


def _strips(log: dict, now: dict, name: str, left: float, y: float, width: float) -> list:
    """One page table: the recurrent groups, then the rows, each in logical order."""
    parts, groups = [], log["groups"]
    need = log["need"].get(name) or log["need"][name.upper()]
    x = left + 18
    if name.islower():
        parts.append(d.text(left, y + 10, name, "label strong", data_id=f"request:{name}"))
    recurrent = [index for index, group in enumerate(groups) if group["recurrent"]]
    share = (KDA_WIDTH - 24) / len(recurrent)
    for order, group in enumerate(recurrent):
        parts += _strip(now, name, group, x + order * share, y, min(9.0, (share - 3) / need[group]), need[group])
    for group in range(len(groups)):
        if not groups[group]["recurrent"]:
            parts += _strip(now, name, group, left + KDA_WIDTH, y, _unit(log, width), need[group])
    return parts


def _strip(now: dict, name: str, group: int, x: float, y: float, unit: float, need: int) -> list:
    """A table's entries side by side, those it will still need as an outline; tiny entries run together."""
    table = now["tables"].get(name, [[]] * (group + 1))[group]
    running = now["running"][name][group] if table else None
    roles = [role(running, index) for index in range(len(table))]
    styles = {"rows": "mla", "running": "state", "kept": "snapshot", "draft": "snapshot"}
    parts = [d.rect(x, y, unit * need - 1, 10, "ghost")]
    if unit < 2.5:
        runs = [(kind, index) for index, kind in enumerate(roles) if index == 0 or roles[index - 1] != kind]
        for run, following in zip(runs, [*(start for _, start in runs[1:]), len(roles)]):
            wide = (following - run[1]) * unit
            parts.append(d.rect(x + run[1] * unit, y, wide, 10, styles[run[0]], f"request:{name}"))
        return parts
    for index, (block, kind) in enumerate(zip(table, roles)):
        parts.append(d.rect(x + index * unit, y, unit - 1, 10, styles[kind], f"block:{block}", str(block)))
    return parts


def _numbers(log: dict, frame: int, top: float, width: float, lang: str) -> tuple:
    """The page table that this frame is about, in block numbers; a fixed number of lines, so that nothing jumps."""
    bottom = top + 18 + 20 * (len(log["groups"]) - 1 + NUMBERS)
    name = _subject(log, frame)
    if name is None:
        return [], bottom
    now = log["frames"][frame]
    taken = {block for blocks in now["taken"] for block in blocks}
    words = Text("page table of {name}", name=name).render(lang)
    parts = [d.text(0, top + 10, words, "label strong", data_id=f"request:{name}")]
    y = top + 16
    order = [g for g, group in enumerate(log["groups"]) if group["recurrent"]] + \
            [g for g, group in enumerate(log["groups"]) if not group["recurrent"]]
    across = int((width - 52) // 28)
    for group in order:
        lines = 1 if log["groups"][group]["recurrent"] else NUMBERS
        table, room = now["tables"][name][group], across * lines
        shown = table if len(table) <= room else table[: room - 1]
        parts.append(d.text(0, y + 14, f"{log['groups'][group]['kind'].upper()} {group}", "small"))
        for index, block in enumerate(shown):
            x, line = 52 + 28 * (index % across), y + 20 * (index // across)
            style = "entry fresh" if block in taken else "entry"
            parts.append(d.group([d.rect(x, line, 26, 18, style, f"block:{block}"),
                                  d.text(x + 13, line + 13, str(block), "small entry-number", "middle")]))
        if len(table) > len(shown):
            parts.append(d.text(52 + 28 * (across - 1) + 2, y + 20 * (lines - 1) + 13, "…", "small"))
        y += 20 * lines
    return parts, bottom


def _subject(log: dict, frame: int) -> str | None:
    """The request that a frame is about: its own, else the one that an earlier frame was about, if it still runs."""
    running = log["frames"][frame]["tables"]
    for earlier in reversed(log["frames"][: frame + 1]):
        if earlier["request"] in running:
            return earlier["request"]
    return next(iter(running), None)


def _legend(log: dict, now: dict, blocks: dict) -> list:
    """What the grid's colours are, with counts."""
    blocks = blocks.values()
    count = {kind: sum(held["role"] == kind for held in blocks) for kind in ("rows", "running", "kept", "draft")}
    layers = [log["groups"][held["group"]]["layers"] for held in blocks if held["role"] != "rows"]
    padding = sum(log["block_bytes"] - n * log["state_bytes"] for n in layers)
    row_layers = sum(group["layers"] for group in log["groups"] if not group["recurrent"])
    empty = sum(log["block_size"] - held["rows"] for held in blocks if held["role"] == "rows")
    row = log["page_bytes"] // log["block_size"] * row_layers
    lines = [("mla", Text("blocks of MLA rows: {n}", n=count["rows"])),
             ("reserved", Text("rows not written yet: {bytes}", bytes=binary_bytes(empty * row))),
             ("state", Text("running states: {n}", n=count["running"])),
             ("snapshot", Text("states kept for reuse or drafts: {n}", n=count["kept"] + count["draft"])),
             ("padding", Text("padding: {bytes}", bytes=binary_bytes(padding)))]
    shared = sum(len(held["holders"]) > 1 for held in blocks)
    if shared:
        lines.append(("shared", Text("in two tables, counted twice, stored once: {n}", n=shared)))
    free = log["num_blocks"] - 1 - now["used"]
    lines.append(("free", Text("free: {n} of {total}", n=free, total=log["num_blocks"] - 1)))
    grips = len(log["lengths"]) >= DEFAULT_REQUESTS
    return [*lines, ("bead", Text("drag: the length of a request"))] if grips else lines


def curve_figure(table: Table, lengths: list) -> Figure:
    """Short requests pay for their states, long ones do not."""
    styles = {"none": ("state", [1, 0]), "align": ("mla", [6, 4]), "all": ("miss", [2, 3])}
    names = {"none": Text("running state only"), "align": Text("and the aligned one"),
             "all": Text("a state per block")}
    useful = {(tokens, mode): share for tokens, mode, share in table.rows}
    places = {"none": 1536, "align": 768, "all": 1048576}  # where a line has room above it for its name
    labels = [(at, useful[at, mode], names[mode], styles[mode][0]) for mode, at in places.items()]
    x = charts.quantitative("tokens", Text("tokens of the request"), log=True)
    y = charts.quantitative("useful", None, axis={"format": ".0%", "title": None, "tickCount": 5})
    layers = [charts.line_layer(x, y, charts.series("mode", styles), ["tokens", "mode", "useful"]),
              charts.label_layer("tokens", "useful", labels)]
    return Figure("curve", "curve", Text("How much of what a request takes is useful"),
                  Text("The states are a fixed price: {share} of 12 tokens' memory is useful in mode align, "
                       "and nearly all of a long request's. The vertical lines are your requests.",
                       share=percent(next(row[2] for row in table.rows if row[1] == "align"), 3)),
                  {"layer": layers + [charts.rule_layer(tokens) for tokens in sorted(set(lengths))]})

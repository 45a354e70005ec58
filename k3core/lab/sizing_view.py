"""What the workbench `sizing` shows: a page and a block to scale, the pool, sessions by length."""

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Column, Figure, Picture, Result, Scene, Table
from k3core.lab.display import binary_bytes, number, percent
from k3core.lab.text import Text
from k3core.models import Model
from k3core.sizing import (
    Layout,
    Settings,
    blocks_per_request,
    conv_state_bytes,
    recurrent_state_bytes,
    slot_bytes,
    unified_block,
)

CURVE_LENGTHS = tuple(2**power for power in range(6, 23))
DRAWN_GROUPS = 8
KINDS = {
    "mla": Text("MLA"), "full": Text("attention"), "sliding": Text("sliding window"), "kda": Text("KDA"),
         "gdn": Text("GDN"),
    "mamba2": Text("Mamba-2"), "compressed": Text("compressed"), "compressor-4": Text("compressor 4:1"),
    "compressor-128": Text("compressor 128:1"),
}


def kind_words(kind: str) -> Text | str:
    """A kind of layer in words; kinds that share one block table are joined by a plus."""
    return KINDS.get(kind, kind)


def held_blocks(layout: Layout, settings: Settings, tokens: int) -> dict:
    """Blocks that one request holds, by what is in them."""
    held = {"attention": 0, "state": 0, "window": 0}
    for group in layout.groups:
        kind = "state" if group.recurrent else "window" if group.window else "attention"
        held[kind] += blocks_per_request(group, tokens, settings)
    return held


def events(model: Model, layout: Layout, settings: Settings, answer: dict) -> dict:
    """The log of the scene: a state and a row in bytes, the groups, a request, the pool."""
    largest = max(model.recurrent, key=lambda cache: slot_bytes(cache, settings), default=None)
    state = recurrent_state_bytes(largest, settings.tp, settings.state_dtype) if largest else 0
    window = conv_state_bytes(largest, settings.tp, settings.conv_dtype) if largest else 0
    held = held_blocks(layout, settings, settings.max_model_len)
    first = ["row", "measure", "align", "page"] if layout.block_size else ["page"]
    if not largest:
        first = ["align"] if len(layout.group_bytes) < 2 else []  # pages of several sizes: none to draw
    return {
        "steps": [*first, "groups", "request", "pool"], "packed": bool(layout.group_bytes),
        "row": layout.token_bytes,
        "row_kind": next((group.kind for group in layout.groups if not group.recurrent), ""),
        "state_kind": largest.kind if largest else "", "state": state, "conv": layout.state_bytes - state,
        "column": window // (largest.conv_kernel - 1) if largest else 0,
        "step": unified_block(1, layout.token_bytes, settings, layout.chunk), "block": layout.block_size,
        "page": layout.page_bytes, "drafts": settings.drafts, "align": settings.align, "model": model.title,
        "groups": [_group(model, layout, settings, index) for index in range(len(layout.groups))],
        "size": layout.group_size, "empty": layout.padding_layers, "block_bytes": layout.block_bytes,
        "tokens": settings.max_model_len, "held": held, "blocks": answer["num_blocks"],
        "requests": answer["limit"]["requests_at_max_model_len"],
        "growth": sum(1 / group.block_size for group in layout.groups
                      if not group.recurrent and not group.window),
    }


def _group(model: Model, layout: Layout, settings: Settings, index: int) -> dict:
    """One group as it is drawn: `pages` cells, `used` bytes in each, `conv` of them convolution."""
    group = layout.groups[index]
    out = {"kind": group.kind, "layers": len(group.layers), "recurrent": group.recurrent, "conv": 0,
           "blocks": blocks_per_request(group, settings.max_model_len, settings)}
    if layout.group_bytes:  # pages of different sizes: the group is drawn as one
        return out | {"pages": 1, "used": layout.group_bytes[index], "page": layout.block_bytes, "slots": 1}
    cache = model.layers[group.layers[0]]
    used = layout.page_bytes
    if group.recurrent:
        used = slot_bytes(cache, settings)
        out["conv"] = used - recurrent_state_bytes(cache, settings.tp, settings.state_dtype)
    return out | {"pages": len(group.layers), "used": used, "page": layout.page_bytes,
                  "slots": layout.group_size}


def captions(log: dict, note: Text | None) -> list:
    """One sentence or two per frame."""
    state, rows, held = log["state"] + log["conv"], number(log["block"] or 0), log["held"]
    need = sum(held.values())
    blocks, requests, used = number(log["blocks"]), number(log["requests"]), number(log["requests"] * need)
    words = {
        "row": Text("One token's row in one {kind} layer takes {row} B. One {state} state with its "
                    "convolution window takes {bytes} B, however long the sequence is.",
                    row=number(log["row"]),
                    bytes=number(state),
                    kind=kind_words(log["row_kind"]), state=kind_words(log["state_kind"])),
        "measure": Text("Measured in rows, the state is {rows} of them: a page of rows must be at least that "
                        "long to hold a state as well.", rows=number(state / log["row"], 5) if log["row"]
                        else "0"),
        "align": Text("Rounded up to a multiple of {step}, a block stands for {block} tokens.", block=rows,
                      step=number(log["step"] or 0)) if state else
                 Text("Without a state to fit in, a block stands for {block} tokens, rows of {row} B.",
                      block=rows,
                      row=number(log["row"])),
        "page": Text("The page is {page} B. A state leaves {padding} B of it empty, {percent} of the state.",
                     page=number(log["page"]), padding=number(log["page"] - state),
                     percent=percent((log["page"] - state) / state, 3) if state else "0 %"),
        "groups": Text("{count} groups share the pool: one block number is a page in each of {size} tensors, "
                       "{bytes} in all. {empty} slots have no layer.", count=len(log["groups"]),
                       size=log["size"],
                       bytes=binary_bytes(log["block_bytes"]), empty=number(log["empty"]))
             if not log["packed"] else
                  Text("Groups: {count}. One block number is {bytes}, the pages of all layers of a group.",
                       count=len(log["groups"]), bytes=binary_bytes(log["block_bytes"])),
        "request": Text("A request of {tokens} tokens holds {need} blocks: {rows} of rows and {states} of "
                        "states.",
                        tokens=number(log["tokens"]), need=number(need), states=number(held["state"]),
                        rows=number(held["attention"] + held["window"])),
        "pool": Text("Of {blocks} blocks, {requests} such requests take {used}. Drag the end of the first "
                     "one to change its length.", blocks=blocks, requests=requests, used=used)
             if log["growth"] else
                Text("Of {blocks} blocks, {requests} such requests take {used}.", blocks=blocks,
                     requests=requests, used=used),
    }
    said = [words[step] for step in log["steps"]]
    return said if note is None else [*said[:-1], Text("{caption} {note}", caption=said[-1], note=note)]


def draw_layout(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Top: a state and a block of rows, one unit of length per byte. Middle: the groups of one block
    number. Bottom: the pool, and the requests in it."""
    log, width = scene.events, 340 if narrow else 720
    shown = log["steps"][:frame + 1]
    page, top = _page(log, shown, width, lang) if log["steps"][0] != "groups" else ([], -14)
    groups, top = _groups(log, "groups" in shown, top + 26, width, narrow, lang)
    pool, bottom = _pool(log, shown, top + 30, width, lang)
    return Picture(d.svg(width, bottom, [*page, *groups, *pool], scene.captions[frame].render(lang)),
                   _legend(log, shown))


def _page(log: dict, shown: list, width: float, lang: str) -> tuple:
    """The state's bar over the rows' bar, in the same scale, with a tick at every step of alignment."""
    scale, tall, top, parts = width / log["page"], 30, 20, []
    state, conv = log["state"] * scale, log["conv"] * scale
    if log["state"]:
        name = Text("one {kind} state with its window: {bytes} B", kind=kind_words(log["state_kind"]),
                    bytes=number(log["state"] + log["conv"])).render(lang)
        parts += [d.text(0, 12, name, "label strong"), d.rect(0, top, state, tall, "state", "part:state"),
                  d.rect(state, top, conv, tall, "conv", "part:conv")]
        if "page" in shown:
            parts.append(d.rect(state + conv, top, width - state - conv, tall, "padding", "part:padding"))
        parts.append(d.handle(state + conv, top, "drafts", None, log["column"] * scale, 1,
                              Text("drag to set the draft tokens").render(lang)))
        top += tall + 6
    if log["block"] is None:
        return parts, top
    block, step = log["block"], log["step"]
    measured = (log["state"] + log["conv"]) / log["row"] if "measure" in shown else 1
    rows = block if "align" in shown else measured
    parts.append(d.rect(0, top, rows * log["row"] * scale, tall, "mla", "part:rows"))
    if "align" in shown:
        parts += _ticks(block, step, top, tall, width)
        if not log["state"]:
            parts.append(d.text(0, 12, _rows_words(log).render(lang), "label strong"))
    if log["state"]:
        parts += [d.line(state + conv, 14, state + conv, top + tall + 4, "arrow"),
                  d.text(0, top + tall + 34, _rows_words(log).render(lang), "label strong")]
    return parts, top + tall + (40 if log["state"] else 20)


def _rows_words(log: dict) -> Text:
    return Text("one block of {kind} rows: {block} × {row} B", kind=kind_words(log["row_kind"]),
                block=number(log["block"]),
                row=number(log["row"]))


def _ticks(block: int, step: int, top: float, tall: float, width: float) -> list:
    """Marks at multiples of the alignment, as many as can be told apart, and some of their numbers."""
    parts, every = [], max(1, -(-4 * block // int(step * width)))
    label = every * max(1, -(-52 * block // int(every * step * width)))
    count = block // step
    for index in range(every, count + 1, every):
        x = width * index * step / block
        parts.append(d.line(x, top + tall, x, top + tall + (6 if index % label == 0 else 3), "arrow"))
        if index % label == 0 and width - x > 70:
            parts.append(d.text(x, top + tall + 18, number(index * step), "label small", "middle"))
    return [*parts, d.text(width, top + tall + 18, number(block), "label strong", "end")]


def _groups(log: dict, shown: bool, top: float, width: float, narrow: bool, lang: str) -> tuple:
    """One row per group, one cell per tensor: used bytes from the bottom, padding above, outlines where no
    layer is."""
    left, tall = (0, 30) if narrow else (164, 42)
    block = binary_bytes(log["block_bytes"])
    name = Text("one block number: {bytes}", bytes=block) if log["packed"] else \
        Text("one block number, {size} pages: {bytes}", size=log["size"], bytes=block) if narrow else \
        Text("one block number, a page in each of {size}: {bytes}", size=log["size"], bytes=block)
    parts, drawn = [d.text(0, top, name.render(lang), "label strong")], _alike(log["groups"])
    top += 12
    for index, group, count in drawn[:DRAWN_GROUPS]:
        kind = kind_words(group["kind"])
        title = Text("{layers} × {kind}", kind=kind, layers=group["layers"]).render(lang)
        if count > 1:
            title = Text("{count} groups of {group}", count=count, group=title).render(lang)
        share = Text("{share} used",
                     share=percent(group["used"] * group["pages"] / (group["page"] * group["slots"]), 3))
        if narrow:
            parts.append(d.text(0, top + 14, f"{title}, {share.render(lang)}", "label"))
            top += 19
        else:
            parts += [d.text(0, top + 17, title, "label"),
                      d.text(0, top + 34, share.render(lang), "label small")]
        cells = _cells(group, left, top, width - left, tall) if shown else [
            d.rect(left, top, width - left, tall, "ghost")]
        parts.append(d.group(cells, f"group:{index}", title))
        top += tall + 8
    rest = sum(count for _, _, count in drawn[DRAWN_GROUPS:])
    if rest > 0:
        parts.append(d.text(0, top + 10, Text("and {count} more groups", count=rest).render(lang),
                            "label small"))
        top += 18
    return parts, top


def _alike(groups: list) -> list:
    """(index, group, how many) to draw: each group, or where there are too many, each run of groups that
    look alike."""
    if len(groups) <= DRAWN_GROUPS:
        return [(index, group, 1) for index, group in enumerate(groups)]
    looks = [(group["kind"], group["layers"]) for group in groups]
    starts = [i for i, look in enumerate(looks) if i == 0 or look != looks[i - 1]]
    return [(i, groups[i], end - i) for i, end in zip(starts, [*starts[1:], len(groups)])]


def _cells(group: dict, left: float, top: float, width: float, tall: float) -> list:
    """The cells of a group; too many to be told apart become one."""
    style = "state" if group["recurrent"] or group["kind"].startswith("compressor") else "mla"
    pitch = width / group["slots"]
    merged = pitch < 4
    columns = [(left + i * pitch, pitch - 2) for i in range(group["pages"])]
    if merged:
        columns = [(left, pitch * group["pages"])]
    high, conv = tall * group["used"] / group["page"], tall * group["conv"] / group["page"]
    parts = []
    for x, wide in columns:
        if high < tall - 0.01:
            parts.append(d.rect(x, top, wide, tall - high, "padding"))
        parts.append(d.rect(x, top + tall - high, wide, high - conv, style))
        if conv:
            parts.append(d.rect(x, top + tall - conv, wide, conv, "conv"))
    empty = group["slots"] - group["pages"]
    if empty and merged:
        parts.append(d.rect(left + pitch * group["pages"], top, pitch * empty, tall, "ghost"))
    elif empty:
        parts += [d.rect(left + i * pitch, top, pitch - 2, tall, "ghost")
                  for i in range(group["pages"], group["slots"])]
    return parts


def _pool(log: dict, shown: list, top: float, width: float, lang: str) -> tuple:
    """The pool as one bar: each request's states, then its rows; the grip sets the length of a request."""
    need, states, tall = sum(log["held"].values()), log["held"]["state"], 34
    name = Text("the pool: {blocks} blocks", blocks=number(log["blocks"])).render(lang)
    parts = [d.text(0, top, name, "label strong"), d.rect(0, top + 10, width, tall, "free")]
    count = log["requests"] if "pool" in shown else min(1, log["requests"]) if "request" in shown else 0
    per_block, top = width / max(1, log["blocks"]), top + 10
    one = need * per_block
    if count and one < 4:  # too narrow to be told apart: all states, then all rows
        blue = count * states * per_block
        parts += [d.rect(0, top, blue, tall, "state", "part:state"),
                  d.rect(blue, top, count * one - blue, tall, "mla", "part:rows")]
    for index in range(count if one >= 4 else 0):
        x, blue = index * one, states * per_block
        parts += [d.rect(x, top, blue, tall, "state", "part:state"),
                  d.rect(x + blue, top, one - blue - 1, tall, "mla", "part:rows")]
    if not log["requests"] and "request" in shown:
        words = Text("a request needs {need} blocks", need=number(need)).render(lang)
        parts += [d.rect(0, top, width, tall, "rejected"),
                  d.text(width / 2, top + 22, words, "label strong", "middle")]
    if log["growth"] and "request" in shown:
        parts.append(d.handle(min(one, width), top + tall / 2, "max_model_len", None,
                              per_block * log["growth"], 1,
                              Text("drag to set the length of a request").render(lang)))
    return parts, top + tall + 8


def _legend(log: dict, shown: list) -> list:
    """What the colours are, with counts."""
    held, lines = log["held"], []
    if log["state"]:
        lines += [("state", Text("recurrent state of one layer: {bytes}", bytes=binary_bytes(log["state"]))),
                  ("conv", Text("convolution window, 3 columns and {drafts} for drafts: {bytes}",
                                drafts=log["drafts"], bytes=binary_bytes(log["conv"])))]
    if log["row"]:
        lines.append(("mla", Text("rows of {row} B, one per token", row=number(log["row"]))))
    if log["packed"] and len(log["groups"]) > 1:
        lines += [("state", Text("partial sums of the compressors")),
                  ("padding", Text("what a group leaves of a block"))]
    if "page" in shown:
        padding = log["page"] - log["state"] - log["conv"]
        lines += [("padding", Text("padding: {bytes}", bytes=binary_bytes(padding)))] if padding else []
    if "groups" in shown and log["empty"]:
        lines.append(("ghost", Text("slots without a layer: {count}", count=number(log["empty"]))))
    if "pool" in shown:
        free = log["blocks"] - log["requests"] * sum(held.values())
        lines.append(("free", Text("blocks left over: {count}", count=number(free))))
    return lines


def curve_table(layout: Layout, settings: Settings, answer: dict) -> Table:
    """Requests at once against their length: in blocks, with drafts replayed, and if bytes were all."""
    rows, pool = [], answer["num_blocks"] * layout.block_bytes
    for tokens in CURVE_LENGTHS:
        bare = answer["bytes_per_token"] * tokens + answer["slot_bytes"] + answer["window_bytes_per_sequence"]
        counts = {"bytes": pool // int(bare),
                  "replay": answer["num_blocks"] // layout.blocks_per_request(tokens, settings, True),
                  "blocks": answer["num_blocks"] // layout.blocks_per_request(tokens, settings)}
        if counts["replay"] == counts["blocks"]:
            del counts["replay"]
        rows += [(tokens, design, count) for design, count in counts.items() if count]
    return Table((Column("tokens", Text("tokens of a request")), Column("design", Text("design")),
                  Column("requests", Text("requests at once"))), rows)


def curve_figure(table: Table, own: int) -> Figure:
    """The blocks flatten the curve where requests are short."""
    words = {"bytes": Text("if bytes were all"), "replay": Text("with drafts replayed"),
             "blocks": Text("in whole blocks")}
    styles = {"bytes": ("snapshot", [2, 3]), "replay": ("record", [6, 4]), "blocks": ("ink", [1, 0])}
    first, last, most = CURVE_LENGTHS[0], CURVE_LENGTHS[-1], max([2, *(row[2] for row in table.rows)])
    # The lines fall: right of a point and above it there is room, and left of it and below.
    places = (("bytes", 3, {}), ("replay", 8, {}), ("blocks", 6, {"align": "right", "dx": -4, "dy": 18}))
    labels = [layer for design, index, mark in places
              for layer in _label(table, design, index, words[design], styles[design][0], mark)]
    # Fixed domains: where nothing fits there is no row to take them from.
    x = charts.quantitative("tokens", Text("tokens of a request"), scale=_log_scale(first, last))
    y = charts.quantitative("requests", None, axis={"title": None, "tickCount": 6}, scale=_log_scale(1, most))
    return Figure(
        "curve", "curve", Text("Requests at once, by length"),
        Text("Below one block, a shorter request costs the same: it holds a block of every group whatever "
             "its length."),
        {"layer": [charts.line_layer(x, y, charts.series("design", styles), ["tokens", "design", "requests"]),
                   *labels, *([charts.rule_layer(own)] if first <= own <= last else [])]})


def _log_scale(first: int, last: int) -> dict:
    return {"type": "log", "base": 2, "domain": [first, last]}


def _label(table: Table, design: str, index: int, words: Text, meaning: str, mark: dict) -> list:
    """The name of a line at one of its points; [] where the line is not that long."""
    rows = [row for row in table.rows if row[1] == design][index:][:1]
    layers = [charts.label_layer("tokens", "requests", [(row[0], row[2], words, meaning)]) for row in rows]
    return [layer | {"mark": layer["mark"] | {"align": "left", "dx": 0} | mark} for layer in layers]

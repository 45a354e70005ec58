"""What the tab `unified-pool` shows: a pool that fills, a state that moves, memory against context."""

from k3core.lab import charts
from k3core.lab import drawing as d
from k3core.lab.contract import Column, Figure, Picture, Result, Scene, Table
from k3core.lab.display import binary_bytes, number, percent
from k3core.lab.text import Text
from k3core.models import load
from k3core.paged_cache import StatePage, relayout
from k3core.sizing import Layout

LARGEST_CELL = 46
TITLES = {name: load(name).title for name in
          ("kimi-k3", "kimi-linear-48b", "deepseek-v3", "deepseek-v4-pro", "deepseek-v4-flash",
           "llama-3.3-70b")}
REGIONS = {"state": Text("State"), "conv": Text("Convolution window")}


def pool_events(layout: Layout, sizes: dict, context: int) -> dict:
    """The log of the first scene: what a block is, and the lengths at which the pool is shown."""
    crossover = sizes["token_equivalent"]
    lengths = {1, context} | {n for n in (crossover, *(2**power for power in range(10, 20))) if n < context}
    scale = 1024  # the drawing holds a power of two of tokens, and the state
    while scale < max(context, 1.5 * crossover):
        scale *= 2
    states = [group for group in layout.groups if group.recurrent]
    return {
        "lengths": sorted(lengths), "context": context, "crossover": crossover, "scale": scale,
        "row": sizes["bytes_per_token"], "state": sizes["slot_bytes"], "block": layout.block_size,
        "block_bytes": layout.block_bytes, "states": len(states),
        "filled": [len(group.layers) * layout.state_bytes / layout.block_bytes for group in states],
    }


def pool_captions(log: dict) -> list:
    """One sentence or two per length."""
    said, state = [], binary_bytes(log["state"])
    for tokens in log["lengths"]:
        rows, words = tokens * log["row"], number(tokens)
        if tokens == log["crossover"]:
            said.append(Text("{tokens} tokens: the rows now weigh as much as the state, {state}. From here "
                             "on it is the rows that fill the pool.", tokens=words, state=state))
        elif tokens == 1:
            said.append(Text("One token. The state takes its {count} blocks at once, {state}, and will never "
                             "take another; the rows of this token are {row} B.", count=log["states"],
                             state=state,
                             row=number(log["row"])))
        elif tokens < log["crossover"]:
            said.append(Text("{tokens} tokens: {rows} of rows, {share} of the state's {state}.", tokens=words,
                             state=state,
                             rows=binary_bytes(rows), share=percent(rows / log["state"], 3)))
        else:
            said.append(Text("{tokens} tokens: {rows} of rows, {times} times the state, which is still "
                             "{state}.", tokens=words,
                             rows=binary_bytes(rows), times=number(rows / log["state"], 3), state=state))
    return said


def draw_pool(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Top: state and rows as bars in one scale, with the grip of the context. Below: the pool, a cell per
    block."""
    log, width = scene.events, 340 if narrow else 720
    tokens = log["lengths"][frame]
    bars, top = _bars(log, tokens, width, narrow, lang)
    cells, bottom = _blocks(log, tokens, top + 28, width, 230 if narrow else 250, lang)
    held, blocks = -(-tokens // log["block"]), _pool_size(log)
    legend = [
        ("state", Text("KDA state and window: {bytes} in {count} blocks", bytes=binary_bytes(log["state"]),
                       count=log["states"])),
        ("mla", Text("MLA rows: {bytes} in {count} blocks", bytes=binary_bytes(tokens * log["row"]),
                     count=number(held))),
        ("padding", Text("padding of the state's blocks: {bytes}",
                         bytes=binary_bytes(log["states"] * log["block_bytes"] - log["state"]))),
        ("free", Text("free blocks: {count}", count=number(blocks - log["states"] - held))),
    ]
    return Picture(d.svg(width, bottom, [*bars, *cells], scene.captions[frame].render(lang)), legend)


def _pool_size(log: dict) -> int:
    return log["states"] + -(-log["scale"] // log["block"])


def _bars(log: dict, tokens: int, width: float, narrow: bool, lang: str) -> tuple:
    """Two bars over one ruler of tokens: the state as long as the rows that weigh as much."""
    per_token, tall = width / log["scale"], 26
    state = per_token * log["state"] / log["row"]
    name = Text("the state, {bytes}", bytes=binary_bytes(log["state"])).render(lang)
    rows = Text("the rows of {tokens} tokens, {bytes}", tokens=number(tokens),
                bytes=binary_bytes(tokens * log["row"])).render(lang)
    parts = [
        d.text(0, 12, name, "label strong state-ink"), d.rect(0, 18, state, tall, "state", "pool:state"),
        d.text(0, 62, rows, "label strong"), d.rect(0, 68, log["context"] * per_token, tall, "ghost"),
        d.rect(0, 68, tokens * per_token, tall, "mla", "pool:rows"),
        d.line(state, 18, state, 48, "arrow"), d.line(state, 66, state, 98, "arrow"),
        d.text(min(state + 4, width - 96), 110, number(log["crossover"]), "label strong"),
    ]
    for quarter in (2, 4) if narrow else (1, 2, 3, 4):
        at = log["scale"] * quarter // 4
        x = at * per_token
        if abs(x - state - 30) < 70 and quarter < 4:
            continue  # the crossover is written here
        parts.append(d.line(x, 94, x, 98, "arrow"))
        parts.append(d.text(x, 110, number(at), "label small", "end" if quarter == 4 else "middle",
                            data_click="context", data_value=at))
    grip = d.handle(log["context"] * per_token, 68 + tall / 2, "context", None, per_token, 1,
                    Text("drag to set the context").render(lang))
    return [*parts, grip], 112


def _blocks(log: dict, tokens: int, top: float, width: float, height: float, lang: str) -> tuple:
    """One cell per block: the state's first, then rows in the order of the tokens, the last partly full."""
    count, states = _pool_size(log), log["states"]
    columns = max(1, round((count * width / height) ** 0.5), -(-width // LARGEST_CELL))
    pitch = width / columns
    gap = 2 if pitch > 12 else 1 if pitch > 5 else 0.4
    side = pitch - gap
    name = Text("the pool: {count} blocks of {bytes}", count=number(count), bytes=binary_bytes(log["block_bytes"]))
    if width > 400:
        name = Text("{pool}, {tokens} tokens", pool=name, tokens=number(log["block"]))
    parts = [d.text(0, top, name.render(lang), "label strong")]
    top += 10

    def place(index: int) -> tuple:
        return index % columns * pitch, top + index // columns * pitch

    for index in range(states):
        x, y = place(index)
        high = side * log["filled"][index]
        parts += [d.rect(x, y, side, side - high, "padding"),
                  d.rect(x, y + side - high, side, high, "state", "pool:state")]
    full, rest = divmod(tokens, log["block"])
    parts.append(_squares([place(i) for i in range(states, states + full)], side, "mla", "pool:rows"))
    parts.append(_squares([place(i) for i in range(states + full, count)], side, "free", None))
    if rest:
        x, y = place(states + full)
        high = max(1.0, side * rest / log["block"])
        parts.append(d.rect(x, y + side - high, side, high, "mla", "pool:rows"))
    return parts, top + -(-count // columns) * pitch


def _squares(places: list, side: float, style: str, mark: str | None) -> str:
    """Many squares as one path."""
    edge = d.number(side)
    return d.path("".join(f"M{d.number(x)} {d.number(y)}h{edge}v{edge}h-{edge}z" for x, y in places), style,
                  mark)


def move_events(page: StatePage, from_tp: int, to_tp: int) -> dict:
    """The log of the second scene: every move with the heads it carries."""
    moves = []
    for move in relayout(page, from_tp, to_tp):
        part = page.shard(to_tp)
        border = part.heads * part.state_bytes_per_head
        region = "state" if move.target_offset < border else "conv"
        per_head = page.state_bytes_per_head if region == "state" else page.conv_bytes_per_head
        within = move.target_offset - (border if region == "conv" else 0)
        moves.append({"region": region, "first": move.target_rank * part.heads + within // per_head,
                      "heads": move.nbytes // per_head, "bytes": move.nbytes,
                      "from": move.source_rank, "from_offset": move.source_offset,
                      "to": move.target_rank, "to_offset": move.target_offset})
    return {"heads": page.heads, "from_tp": from_tp, "to_tp": to_tp, "moves": moves, "page": page.nbytes}


def move_captions(log: dict) -> list:
    """One sentence per move."""
    first = Text("Written at TP{a}: {heads} heads of one layer, {bytes} in all. To be read at TP{b}: {count} "
                 "byte ranges move, and no element is touched.", a=log["from_tp"], b=log["to_tp"],
                 heads=log["heads"],
                 bytes=binary_bytes(log["page"]), count=len(log["moves"]))
    return [first, *(
        Text("{region}, heads {first} to {last}: {bytes} B from rank {a}, byte {from_offset}, to rank {b}, "
             "byte {to_offset}.",
             region=REGIONS[move["region"]], first=move["first"], last=move["first"] + move["heads"] - 1,
             bytes=number(move["bytes"]), a=move["from"], b=move["to"],
             from_offset=number(move["from_offset"]),
             to_offset=number(move["to_offset"])) for move in log["moves"])]


def draw_relayout(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The ranks' pages before and after, heads from left to right; the state's strip over the window's."""
    log, width, gap = scene.events, 340 if narrow else 720, 110
    state, conv = 26, 8
    after = 20 + state + conv + gap
    parts = [d.text(0, 12, f"TP{log['from_tp']}", "label strong"),
             d.text(0, after + state + conv + 18, f"TP{log['to_tp']}", "label strong")]
    tops = {"from": {"state": 20, "conv": 20 + state + 2}, "to": {"state": after, "conv": after + state + 2}}
    heights = {"state": state, "conv": conv}
    for side, ranks in (("from", log["from_tp"]), ("to", log["to_tp"])):
        for region, tall in heights.items():
            style = region if side == "from" else "ghost"
            for rank in range(ranks):
                x, wide = _heads(log, ranks, rank * log["heads"] // ranks, log["heads"] // ranks, width)
                parts.append(d.rect(x, tops[side][region], wide, tall, style, f"rank:{side}:{rank}"))
    for index, move in enumerate(log["moves"][:frame], start=1):
        x, wide = _heads(log, log["to_tp"], move["first"], move["heads"], width)
        source, source_wide = _heads(log, log["from_tp"], move["first"], move["heads"], width)
        region = move["region"]
        parts.append(d.rect(x, tops["to"][region], wide, heights[region], region, f"move:{index}",
                            f"{move['bytes']} B"))
        start = tops["from"][region] + heights[region]
        style = "arrow" if index == frame else "rule"
        parts.append(d.line(source + source_wide / 2, start, x + wide / 2, tops["to"][region], style))
        if index == frame:
            parts.append(d.rect(source, tops["from"][region], source_wide, heights[region], "outline"))
            parts.append(d.rect(x, tops["to"][region], wide, heights[region], "outline"))
    legend = [("state", Text("state, head by head")), ("conv", Text("convolution window, head by head")),
              ("ghost", Text("ranges still to come: {count}", count=len(log["moves"]) - frame))]
    return Picture(d.svg(width, after + state + conv + 24, parts, scene.captions[frame].render(lang)), legend)


def _heads(log: dict, ranks: int, first: int, count: int, width: float) -> tuple:
    """Where `count` heads from `first` on lie in a row of `ranks` pages: (x, width)."""
    space = 3 if ranks > 1 else 0
    per_head = (width - space * (ranks - 1)) / log["heads"]
    rank = first // (log["heads"] // ranks)
    return first * per_head + rank * space, count * per_head


def moves_table(log: dict) -> Table:
    """Every byte range of the move."""
    rows = [(f"move:{index}", REGIONS[move["region"]], move["from"], move["from_offset"], move["to"],
             move["to_offset"],
             move["bytes"]) for index, move in enumerate(log["moves"], start=1)]
    return Table((Column("id", Text("id")), Column("region", Text("part of the page")),
                  Column("from", Text("from rank")),
                  Column("from_offset", Text("at byte")), Column("to", Text("to rank")),
                  Column("to_offset", Text("at byte")),
                  Column("bytes", Text("bytes"))), rows, Text("The move as byte ranges, one layer"))


def models_table(curve: Table, context: int) -> Table:
    """The models at this context, and how much is there before the first token."""
    at = {name: size for name, tokens, size in curve.rows if tokens == context}
    first = {}
    for name, _, size in curve.rows:
        first.setdefault(name, size)
    own = at["kimi-k3"]
    rows = [(f"model:{name}", TITLES[name], first[name], size, size / own) for name, size in at.items()]
    return Table((Column("id", Text("id")), Column("model", Text("model")),
                  Column("first", Text("at the shortest length"), unit="B"),
                  Column("bytes", Text("at this context"), unit="B"),
                  Column("times", Text("against Kimi K3"), "float", "×", scale=1.0)),
                 rows, Text("Per rank, one request of {tokens} tokens", tokens=number(context)))


_STYLES = {"kimi-k3": ("state", [1, 0]), "kimi-linear-48b": ("ordinary", [6, 3]),
           "deepseek-v3": ("mla", [1, 0]),
           "deepseek-v4-pro": ("vip", [6, 3]), "deepseek-v4-flash": ("vip", [2, 3]),
           "llama-3.3-70b": ("muted", [1, 0])}


def curve_figure(table: Table, context: int) -> Figure:
    """Flat while the state is most of it, then as steep as the others."""
    def label(name: str, index: int, **mark) -> dict:
        tokens, size = [row[1:] for row in table.rows if row[0] == name][index]
        layer = charts.label_layer("tokens", "bytes", [(tokens, size, TITLES[name], _STYLES[name][0])])
        return layer | {"mark": layer["mark"] | mark}

    at_the_end = [label(name, -1) for name in ("llama-3.3-70b", "deepseek-v3", "kimi-k3", "deepseek-v4-pro")]
    x = charts.quantitative("tokens", Text("tokens of the context"), log=True)
    y = charts.quantitative("bytes", None, log=True, axis=charts.BYTES_AXIS)
    return Figure(
        "curve", "curve", Text("Memory of a request against its context"),
        Text("A hybrid starts high and stays flat until its rows outweigh its state; attention alone starts "
             "at nothing and grows from the first token."),
        {"layer": [charts.line_layer(x, y, charts.series("model", _STYLES), ["model", "tokens", "bytes"]),
                   *at_the_end, label("deepseek-v4-flash", -1, dy=20),
                   label("kimi-linear-48b", 0, align="left", dx=4),
                   charts.rule_layer(context)],
         "height": 360})

"""Tab `page-table`: requests of chosen lengths over one pool of blocks, and how much of what they hold is useful."""

from dataclasses import replace
from math import log

import numpy as np

from k3core.lab import page_table_bytes as real
from k3core.lab import page_table_page_view as page_view
from k3core.lab import page_table_view as view
from k3core.lab.contract import Check, Column, Experiment, Metric, Prediction, Preset, Result, Scene, Table
from k3core.lab.display import binary_bytes, number, percent
from k3core.lab.page_table_log import Timeline, contents, role, written_next
from k3core.lab.params import Param
from k3core.lab.text import Text
from k3core.models import load
from k3core.paged_cache import PageTables
from k3core.sizing import Settings, blocks_per_request, make_layout, mapping_efficiency, resolve

LETTERS = "ABCDEFGH"
SHORT = 12  # the prompt of the prediction
GUESSES = (0.88, 0.66, 0.38, 0.1)
LENGTHS = (12, 1536, 8192, 131072, 1048576)
CHART_LENGTHS = (12, 48, 192, 768, 1536, 3072, 8192, 32768, 131072, 524288, 1048576)
MODES = ("none", "align", "all")


def run(p, seed: int) -> Result:
    """Play the requests over the pool, count what their blocks hold, and read real bytes back."""
    model = load(p.model)
    settings = resolve(model, Settings(tp=p.tp, kv_dtype=p.kv_dtype, drafts=p.drafts, align=p.align, mode=p.mode))
    layout = make_layout(model, settings)
    marks = [p.running[i] if i < len(p.running) else 1 for i in range(len(p.lengths))]
    listed = [(LETTERS[i], tokens, marks[i]) for i, tokens in enumerate(p.lengths)]
    timeline = Timeline(layout, settings, p.num_blocks)
    timeline.play([(name, tokens, mark == 2) for name, tokens, mark in listed if mark])
    fullest = timeline.frames[timeline.fullest]
    held = pool_bytes(layout, fullest)
    walked, formula = walk_tables(layout, fullest), formula_bytes(layout, fullest)

    read = real.read_back(model, layout, settings, p.wrong_table, np.random.default_rng(seed))
    found = real.compare(read["rows"], read["read"])
    requests = requests_table(model, layout, settings, [(name, tokens) for name, tokens, mark in listed if mark])
    curve = curve_table(model, settings)
    story = view.events(layout, settings, timeline, listed, marks)
    short = mapping_efficiency(model, layout, settings, SHORT)
    return Result(
        metrics=_metrics(layout, settings, requests, held, fullest),
        checks=[
            Check("tables_agree", Text("every block is in as many page tables as its reference count says, and every "
                                       "table is as long as the formula says"),
                  timeline.discrepancies == 0, timeline.discrepancies, 0),
            Check("bytes_as_formula",
                  Text("what the page tables lead to, block by block, is what the formula counts"),
                  walked == formula, walked, formula, "B"),
            Check("pool_whole_again", Text("when the last request has left, every block is free again"),
                  timeline.frames[-1]["used"] == 0, timeline.frames[-1]["used"], 0),
            Check("rows_read_back", Text("attention reads the rows that were written"), found["different"] == 0,
                  differences_text(found), Text("no difference")),
        ],
        tables={"requests": requests, "where": where_table(held), "lengths": lengths_table(model, settings),
                "curve": curve},
        figures=[view.curve_figure(curve, [tokens for _, tokens, mark in listed if mark])],
        scenes=[
            Scene("pool", Text("One pool of blocks, and the page tables that lead into it"), story,
                  view.captions(story), poster=timeline.fullest),
            Scene("page", Text("Real bytes: a page of rows, a page of state, and what attention reads"),
                  page_view.page_events(read, found, p.wrong_table),
                  [page_view.page_caption(read, found, p.wrong_table)]),
        ],
        answer=min(range(len(GUESSES)), key=lambda i: (abs(log(GUESSES[i] / short["request"])), i)),
        answer_text=Text("{blocks} blocks, {bytes}, of which {share} is useful.", blocks=short["blocks"],
                         bytes=binary_bytes(short["blocks"] * layout.block_bytes),
                         share=percent(short["request"], 3)),
    )


def pool_bytes(layout, frame: dict) -> dict:
    """Where the bytes of the blocks in use are: kind -> bytes, shared blocks counted once.

    rows and running: useful. kept: states kept for reuse or for drafts. unwritten: rows that are reserved. padding:
    what a state leaves of its page, and slots of the block that no layer of the group uses.
    """
    held = dict.fromkeys(("rows", "running", "kept", "unwritten", "padding"), 0)
    for block in contents(frame, layout.block_size).values():
        layers = len(layout.groups[block["group"]].layers)
        if block["role"] == "rows":
            useful = {"rows": block["rows"] * layers * layout.token_bytes,
                      "unwritten": (layout.block_size - block["rows"]) * layers * layout.token_bytes}
        else:
            useful = {"running" if block["role"] == "running" else "kept": layers * layout.state_bytes}
        for kind, size in useful.items():
            held[kind] += size
        held["padding"] += layout.block_bytes - sum(useful.values())
    return held


def walk_tables(layout, frame: dict) -> int:
    """Useful bytes that the page tables of a frame lead to: for each request its rows, and one state per layer."""
    total = 0
    for name, tables in frame["tables"].items():
        tokens = frame["tokens"][name]
        for spec, table, running in zip(layout.groups, tables, frame["running"][name]):
            layers = len(spec.layers)
            for index in range(len(table)):
                kind = role(running, index)
                if kind == "rows":
                    total += min(layout.block_size, tokens - index * layout.block_size) * layers * layout.token_bytes
                elif kind == "running":
                    total += layers * layout.state_bytes
    return total


def formula_bytes(layout, frame: dict) -> int:
    """The same from token counts alone: tokens times bytes per token, plus a state, for each request."""
    row = sum(len(group.layers) for group in layout.groups if not group.recurrent) * layout.token_bytes
    state = sum(len(group.layers) for group in layout.groups if group.recurrent) * layout.state_bytes
    return sum(tokens * row + state for tokens in frame["tokens"].values())


def differences_text(found: dict) -> Text:
    """How far off what was read is."""
    if not found["different"]:
        return Text("{total} values, none differs", total=number(found["values"]))
    return Text("{wrong} of {total} values differ, {bad} are no finite numbers, the largest is off by {off}",
                wrong=number(found["different"]), total=number(found["values"]), bad=number(found["not_finite"]),
                off=number(found["largest"], 3))


def requests_table(model, layout, settings, requests: list) -> Table:
    """Each request at full length, on its own: its blocks, and how much of them is useful."""
    rows = []
    for name, tokens in requests:
        need = [blocks_per_request(group, tokens, settings) for group in layout.groups]
        states = sum(count for count, group in zip(need, layout.groups) if group.recurrent)
        share = mapping_efficiency(model, layout, settings, tokens)["request"]
        rows.append((f"request:{name}", name, tokens, sum(need) - states, states, sum(need) * layout.block_bytes,
                     share))
    return Table((Column("id", Text("id")), Column("request", Text("request")), Column("tokens", Text("tokens")),
                  Column("row_blocks", Text("blocks of rows")), Column("state_blocks", Text("blocks of states")),
                  Column("bytes", Text("takes"), unit="B"),
                  Column("useful", Text("useful"), "float", "share", scale=1.0)),
                 rows, Text("The requests, each at full length and on its own"))


def where_table(held: dict) -> Table:
    """The blocks in use at the fullest moment, by what their bytes are."""
    total = sum(held.values())
    rows = [(view.KINDS[kind], size, size / total if total else 0.0) for kind, size in held.items()]
    return Table((Column("kind", Text("bytes of")), Column("bytes", Text("in blocks in use"), unit="B"),
                  Column("share", Text("share"), "float", "share", scale=1.0)), rows,
                 Text("Where the bytes are at the fullest moment"))


def lengths_table(model, settings) -> Table:
    """Useful share of one request by its length, for the modes that keep few states."""
    others = [replace(settings, mode=mode) for mode in ("align", "none")]
    layouts = [(make_layout(model, other), other) for other in others]
    found = {tokens: [mapping_efficiency(model, *layout, tokens) for layout in layouts] for tokens in LENGTHS}
    rows = [(tokens, *(one[key] for one in pair for key in ("blocks", "request"))) for tokens, pair in found.items()]
    return Table((Column("tokens", Text("tokens")), Column("align_blocks", Text("blocks, align")),
                  Column("align", Text("useful, align"), "float", "share", scale=1.0),
                  Column("none_blocks", Text("blocks, none")),
                  Column("none", Text("useful, none"), "float", "share", scale=1.0)), rows,
                 Text("Useful share of one request, by length"))


def curve_table(model, settings) -> Table:
    """Useful share against length in each mode, for the chart."""
    rows = []
    for mode in MODES:
        other = replace(settings, mode=mode)
        layout = make_layout(model, other)
        rows += [(tokens, mode, mapping_efficiency(model, layout, other, tokens)["request"])
                 for tokens in CHART_LENGTHS]
    return Table((Column("tokens", Text("tokens")), Column("mode", Text("mode")),
                  Column("useful", Text("useful"), "float", "share", scale=1.0)), rows)


def _metrics(layout, settings, requests: Table, held: dict, fullest: dict) -> list:
    total = sum(row[5] for row in requests.rows)
    useful = sum(row[5] * row[6] for row in requests.rows)
    in_use = sum(held.values())
    entries = sum(len(table) for tables in fullest["tables"].values() for table in tables)
    rows, states = ([group for group in layout.groups if group.recurrent == kind] for kind in (False, True))
    layers = sum(len(group.layers) for group in states)
    padding = layout.block_bytes * len(states) - layers * layout.state_bytes
    state_blocks = sum(row[4] for row in requests.rows) // len(states)
    return [
        Metric("mapping_efficiency", Text("useful, of the blocks that these requests take"),
               useful / total if total else None, "share", kind="float", scale=1.0,
               how=tuple(_request_how(layout, row) for row in requests.rows)),
        Metric("kda_page_efficiency", Text("useful, of a block of KDA states"),
               layers * layout.state_bytes / (len(states) * layout.block_bytes), "share", kind="float", scale=1.0,
               how=(f"{layers} * {number(layout.state_bytes)} / ({len(states)} * {number(layout.block_bytes)})",)),
        Metric("mla_page_efficiency", Text("useful, of a full block of MLA rows"),
               sum(len(group.layers) for group in rows) * layout.block_size * layout.token_bytes
               / (len(rows) * layout.block_bytes), "share", kind="float", scale=1.0,
               how=(f"{len(rows[0].layers)} * {number(layout.block_size)} * {number(layout.token_bytes)} / "
                    f"{number(layout.block_bytes)}",)),
        Metric("padding_bytes", Text("padding in the state blocks of these requests"), state_blocks * padding, "B",
               how=(f"{number(state_blocks)} * ({len(states)} * {number(layout.block_bytes)} - {layers} * "
                    f"{number(layout.state_bytes)})",)),
        Metric("block_size", Text("tokens in a block, so that a page holds a state"), layout.block_size,
               how=(f"{settings.align} * ceil({number(layout.state_bytes)} / ({settings.align} * "
                    f"{number(layout.token_bytes)}))",) if settings.mode != "all" else ()),
        Metric("pool_efficiency", Text("useful, of all blocks in use at the fullest moment"),
               (held["rows"] + held["running"]) / in_use if in_use else None, "share", kind="float", scale=1.0),
        Metric("shared_bytes", Text("saved by sharing blocks at the fullest moment"),
               (entries - fullest["used"]) * layout.block_bytes, "B"),
    ]


def _request_how(layout, row: tuple) -> str:
    """One request's useful share as a sum that can be checked by hand."""
    _, name, tokens, row_blocks, state_blocks, _, share = row
    mla = sum(len(group.layers) for group in layout.groups if not group.recurrent)
    kda = sum(len(group.layers) for group in layout.groups if group.recurrent)
    rows, states = f"{number(tokens)} * {mla} * {number(layout.token_bytes)}", f"{kda} * {number(layout.state_bytes)}"
    blocks = f"{row_blocks + state_blocks} * {number(layout.block_bytes)}"
    return f"{name}: ({rows} + {states}) / ({blocks}) = {percent(share, 4)}"


EXPERIMENT = Experiment(
    slug="page-table", tab=5, family="pages",
    name=Text("Page table"),
    title=Text("Page table: one pool, two kinds of cache"),
    question=Text("MLA rows grow with every token, a KDA state never grows. If both live in blocks of one "
                  "size, how much of a block is useful, and what does a short request cost?"),
    params=(
        Param("lengths", Text("Tokens of requests A, B, C, …"), "list", [12, 1536, 8192, 40000, 30000, 60000],
              1, 1048576, max_length=len(LETTERS)),
        Param("running", Text("Each request: 0 away, 1 comes, 2 forks"), "list", [1, 1, 1, 2, 1, 1], 0, 2,
              max_length=len(LETTERS),
              help=Text("In the drawing: ×, + and the word fork. What the list leaves out comes.")),
        Param("mode", Text("States kept"), "choice", "align", choices=(
            ("none", Text("running")), ("align", Text("and aligned")), ("all", Text("every block"))),
            help=Text("For prefix reuse: none, the one at the last block boundary, or one per block.")),
        Param("drafts", Text("Draft tokens"), "int", 0, 0, 15, 1,
              help=Text("Each needs a state of its own until it is accepted, and a column of the convolution's "
                        "window.")),
        Param("tp", Text("Tensor parallel ranks"), "choice", 8, choices=tuple((n, str(n)) for n in (1, 2, 4, 8, 16))),
        Param("kv_dtype", Text("MLA rows in"), "choice", "fp8", choices=(("fp8", "fp8"), ("bf16", "bf16"))),
        Param("align", Text("Block a multiple of"), "choice", 128,
              choices=tuple((n, str(n)) for n in (16, 32, 64, 128))),
        Param("model", Text("Model"), "choice", "kimi-k3",
              choices=(("kimi-k3", "Kimi K3"), ("kimi-linear-48b", "Kimi-Linear-48B"))),
        Param("num_blocks", Text("Blocks in the pool"), "int", 128, 16, 1024, 16),
        Param("wrong_table", Text("Read rows through the KDA table"), "bool", False, breaker=True,
              help=Text("The block is there, its bytes are another layer's state.")),
    ),
    presets=(
        Preset("six-requests", Text("Six requests"),
               Text("A 12-token request takes 7 blocks, 141.75 MiB. F waits until A and B have left; D's fork "
                    "copies 4 blocks of 33.")),
        Preset("twelve-tokens", Text("12 tokens"),
               Text("7 blocks of 20.25 MiB for 12 tokens: 37.9 % is useful. Six such requests fill this pool "
                    "of 47 blocks, almost 1 GiB for 72 tokens, and two must wait."),
               {"lengths": [12] * 8, "running": [1] * 8, "num_blocks": 48}),
        Preset("seven-drafts", Text("7 drafts"),
               Text("The page fits better, 95.2 % of a state block is useful; but every request holds 27 state "
                    "blocks instead of 6, and a short one uses a tenth of what it takes."),
               {"drafts": 7, "num_blocks": 256}),
        Preset("kimi-linear", Text("Kimi-Linear, 120,000 tokens"),
               Text("TP2 in bf16: blocks of 960 tokens, 131 per request. Of 319 two requests get in, the third "
                    "waits: 2.44 at a time."),
               {"model": "kimi-linear-48b", "tp": 2, "kv_dtype": "bf16", "align": 64, "num_blocks": 320,
                "lengths": [120000] * 3, "running": [1, 1, 1]}),
        Preset("million", Text("A million tokens"),
               Text("Of the long one 99.46 % is useful, 683 blocks of rows and 6 of states. The fixed price "
                    "only hurts the short."),
               {"lengths": [1048576, 12], "running": [1, 1], "num_blocks": 704}),
        Preset("dense", Text("A state per block"),
               Text("Three of four blocks hold a state that only a later request might want. However long the "
                    "request, little more than a quarter of its memory is useful."),
               {"mode": "all", "num_blocks": 256}),
        Preset("too-long", Text("Longer than the pool"),
               Text("D can never fit. It is refused at once, and E, behind it, is not held up."),
               {"lengths": [8192, 30000, 12, 400000, 30000], "running": [1] * 5}),
        Preset("wrong-table", Text("The wrong table"),
               Text("The KDA block is read as rows: nearly every value is wrong, some are NaN, and nothing "
                    "raises an error."),
               {"wrong_table": True}, breaks=("rows_read_back",)),
    ),
    prediction=Prediction(Text("A request of 12 tokens takes blocks for its rows and for its states. How much "
                               "of the memory it takes holds something it needs?"),
                          tuple(Text("about {share}", share=percent(share)) for share in GUESSES)),
    function=run,
    draw={"pool": view.draw_pool, "page": page_view.draw_page},
    code=(PageTables.allocate, PageTables.writable, written_next, pool_bytes, real.read_back),
)

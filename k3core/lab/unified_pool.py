"""Tab `unified-pool`: rows that grow with every token and a state that does not, in one pool of pages."""

import numpy as np

from k3core.lab import unified_pool_view as view
from k3core.lab.contract import (
    Check,
    Column,
    Experiment,
    Metric,
    Prediction,
    Preset,
    Result,
    Scene,
    Table,
)
from k3core.lab.display import binary_bytes, number
from k3core.lab.params import Param
from k3core.lab.text import Text
from k3core.mla import latent_rows, mla_decode, mla_prefill
from k3core.models import Model, load
from k3core.paged_cache import (
    BlockPool,
    PageStorage,
    PageTables,
    RowPage,
    StatePage,
    apply_moves,
    relayout,
)
from k3core.sizing import Settings, make_layout, resolve, size

RANKS = (1, 2, 4, 8, 16)
LENGTHS = tuple(2**power for power in range(10, 21))
CROSSOVERS = (1000, 4000, 16000, 64000)  # the options of the prediction
BOUND = 1e-12  # float64 attention over rows of size 1, in two orders of summation
HEADS, D, ROPE, RANK, DV, TOKENS = 4, 16, 8, 32, 12, 50  # the small model that is really decoded


def run(p, seed: int) -> Result:
    """Bytes against context, a decode from pages, and a state moved between ranks."""
    model = load(p.model)
    settings = resolve(model, settings_of(p))
    sizes = size(model, settings)
    layout = make_layout(model, settings)
    rng = np.random.default_rng(seed)
    decoded, moved = decode_from_pages(rng, p.forget == "rope"), move_state(model, p, rng)
    log = view.pool_events(layout, sizes, p.context)
    pages = StatePage(model.recurrent[0].heads, model.recurrent[0].dk, model.recurrent[0].dv, 3,
                      _storage(p.state_dtype))
    moves = view.move_events(pages, p.tp, p.to_tp)
    curve = models_table(p)
    return Result(
        metrics=_metrics(p, sizes, decoded, moved),
        checks=_checks(sizes, decoded, moved),
        tables={"ranks": ranks_table(model, p), "models": view.models_table(curve, p.context),
                "moves": view.moves_table(moves),
                "curve": curve},
        figures=[view.curve_figure(curve, p.context)],
        scenes=[Scene("pool", Text("One pool, one request, as its context grows"), log,
                      view.pool_captions(log),
                      poster=len(log["lengths"]) - 1),
                Scene("relayout", Text("The state of one layer, moved from TP{a} to TP{b}", a=p.tp,
                                       b=p.to_tp), moves,
                      view.move_captions(moves), poster=len(moves["moves"]))],
        answer=min(range(len(CROSSOVERS)),
                   key=lambda i: (abs(np.log(sizes["token_equivalent"] / CROSSOVERS[i])), i)),
        answer_text=Text("{tokens} tokens: a state of {state} against {row} per token.",
                         tokens=number(sizes["token_equivalent"]),
                         state=binary_bytes(sizes["checkpoint_bytes"]),
                         row=Text("{count} B", count=number(sizes["bytes_per_token"]))),
    )


def settings_of(p, tp: int | None = None) -> Settings:
    """The sizing of one rank: a single state per group, no drafts."""
    return Settings(tp=tp or p.tp, kv_dtype=p.kv_dtype, state_dtype=p.state_dtype, mode="none",
                    max_model_len=p.context)


def _storage(state_dtype: str) -> str:
    return {"fp32": "float32", "bf16": "uint16"}[state_dtype]


def decode_from_pages(rng, forget_rope: bool) -> dict:
    """One query over rows that lie in pages of a shared pool, absorbed, against keys and values built out.

    The pool holds a second request's rows and a KDA state as well, so that the blocks come in no order.
    Returns the largest difference ("error"), and how many numbers of the rows and of the state came back
    changed ("changed").
    """
    row_page, state_page = RowPage(16, RANK + ROPE, "float64"), StatePage(HEADS, 8, 6, 3, "float64")
    storage = PageStorage(1, 12, row_page.nbytes)
    tables = PageTables(BlockPool(12), groups=2)
    tables.allocate("own", [0, 1])
    for index in range(-(-TOKENS // row_page.tokens)):
        for request in (("own", "other"), ("other", "own"))[index % 2]:
            tables.allocate(request, [1, 0])
    rows = {name: latent_rows(rng.standard_normal((TOKENS, RANK + ROPE)), np.ones(RANK), 1e-6)
            for name in ("own", "other")}
    state, window = rng.standard_normal((HEADS, 8, 6)), rng.standard_normal((3, HEADS * 22))
    state_page.write(storage.page(0, tables.tables["own"][1][0]), state, window)
    for start in range(0, TOKENS, 7):  # as a scheduler does, a few tokens of each in turn
        for name in rows:
            storage.write_rows(row_page, 0, tables.tables[name][0], start, rows[name][start:start + 7])

    read = storage.rows(row_page, 0, tables.tables["own"][0], TOKENS)
    read_state, read_window = state_page.read(storage.page(0, tables.tables["own"][1][0]))
    q = rng.standard_normal((HEADS, D + ROPE))
    w_uk, w_uv = (rng.standard_normal(shape) / RANK**0.5 for shape in ((HEADS, D, RANK), (HEADS, RANK, DV)))
    asked = np.where(np.arange(D + ROPE) < D, q, 0.0) if forget_rope else q
    absorbed = mla_decode(asked, read, w_uk, w_uv)
    unabsorbed = mla_prefill(q[None], rows["own"], w_uk, w_uv)[0]
    changed = int((read != rows["own"]).sum() + (read_state != state).sum() + (read_window != window).sum())
    return {"error": float(np.abs(absorbed - unabsorbed).max()), "changed": changed,
            "blocks": tables.tables["own"][0]}


def move_state(model: Model, p, rng) -> dict:
    """A state of the model's heads, small in dk and dv, written by `tp` ranks and moved to `to_tp`.

    Returns how many bytes of the target pages are wrong, of how many. With forget "heads" the pages are cut
    as if they were one string of bytes.
    """
    whole = StatePage(model.recurrent[0].heads, 4, 6, 3)
    state = rng.standard_normal((whole.heads, 4, 6), np.float32)
    window = rng.standard_normal((3, whole.heads * 14), np.float32)
    sources, expected = (pages_of(whole, state, window, ranks) for ranks in (p.tp, p.to_tp))
    targets = [np.zeros_like(page) for page in expected]
    moves = relayout(whole, p.tp, p.to_tp)
    if p.forget == "heads":
        targets = np.split(np.concatenate(sources), p.to_tp)
    else:
        apply_moves(moves, sources, targets)
    wrong = sum(int((target != page).sum()) for target, page in zip(targets, expected))
    return {"wrong": wrong, "bytes": whole.nbytes, "moved": sum(move.nbytes for move in moves),
            "moves": len(moves), "crossing": sum(move.source_rank != move.target_rank for move in moves)}


def pages_of(whole: StatePage, state, window, ranks: int) -> list:
    """The page that each rank would write if it had computed its heads itself."""
    part, pages = whole.shard(ranks), []
    parts = np.split(window, [whole.heads * 4, whole.heads * 8], axis=1)
    by_head = [piece.reshape(3, whole.heads, -1) for piece in parts]
    for rank in range(ranks):
        heads = slice(rank * part.heads, (rank + 1) * part.heads)
        pages.append(np.zeros(part.nbytes, np.uint8))
        own = [piece[:, heads].reshape(3, -1) for piece in by_head]
        part.write(pages[-1], state[heads], np.concatenate(own, axis=1))
    return pages


def models_table(p) -> Table:
    """Bytes of one request per rank, by model and length; a sliding window counts what it holds of it."""
    rows = []
    for name in view.TITLES:
        model = load(name)
        sizes = size(model, Settings(tp=p.tp, kv_dtype=p.kv_dtype, state_dtype=p.state_dtype,
                                     max_model_len=p.context))
        window = max(getattr(cache, "window", None) or 0 for cache in model.layers)
        for tokens in sorted({*LENGTHS, p.context}):
            held = sizes["window_bytes_per_sequence"] * min(tokens, window) // window if window else 0
            rows.append((name, tokens, int(sizes["bytes_per_token"] * tokens) + sizes["slot_bytes"] + held))
    return Table((Column("model", Text("model")), Column("tokens", Text("tokens of the context")),
                  Column("bytes", Text("bytes of a request"), unit="B")), rows)


def ranks_table(model: Model, p) -> Table:
    """What a rank holds, and all of them together: rows are copied to every rank, states are split."""
    rows = []
    for tp in RANKS:
        sizes = size(model, settings_of(p, tp))
        held = sizes["bytes_per_token"] * p.context + sizes["slot_bytes"]
        rows.append((f"tp:{tp}", tp, sizes["slot_bytes"], sizes["bytes_per_token"], sizes["token_equivalent"],
                     sizes["block_size"], held, held * tp))
    return Table((Column("id", Text("id")), Column("tp", Text("ranks")),
                  Column("state", Text("state, per rank"), unit="B"),
                  Column("row", Text("bytes per token, per rank")),
                  Column("crossover", Text("crossover, tokens")),
                  Column("block", Text("tokens per block")),
                  Column("rank", Text("this context, per rank"), unit="B"),
                  Column("all", Text("all ranks together"), unit="B")),
                 rows, Text("The same request on more ranks"))


def _metrics(p, sizes: dict, decoded: dict, moved: dict) -> list:
    grown = sizes["bytes_per_token"] * p.context
    exact = decoded["error"] <= BOUND
    return [
        Metric("crossover_tokens", Text("tokens whose rows weigh as much as the state"),
               sizes["token_equivalent"]),
        Metric("bytes_at_context", Text("MLA rows of {tokens} tokens", tokens=number(p.context)), grown, "B"),
        Metric("state_bytes", Text("state, at any context"), sizes["slot_bytes"], "B"),
        Metric("state_share", Text("of all this is state"),
               sizes["slot_bytes"] / (sizes["slot_bytes"] + grown), "share",
               kind="float", scale=1.0),
        Metric("bytes_per_token", Text("added by every token"), sizes["bytes_per_token"],
               text=Text("{count} B", count=number(sizes["bytes_per_token"]))),
        Metric("max_abs_error", Text("absorbed from pages against keys and values built"), decoded["error"],
               kind="error" if exact else "float", scale=BOUND if exact else 1.0,
               text=number(decoded["error"], 2)),
        Metric("moves", Text("byte ranges moved, one layer"), moved["moves"]),
        Metric("crossing", Text("of them to another rank"), moved["crossing"]),
    ]


def _checks(sizes: dict, decoded: dict, moved: dict) -> list:
    row, state, crossover = sizes["bytes_per_token"], sizes["checkpoint_bytes"], sizes["token_equivalent"]
    return [
        Check("absorbed_equals_unabsorbed",
              Text("absorbed decode from pages equals keys and values built for every head"),
              decoded["error"] <= BOUND, number(decoded["error"], 2),
              Text("at most {bound}", bound=number(BOUND))),
        Check("pages_keep", Text("rows and state come back from their pages unchanged"),
              decoded["changed"] == 0,
              decoded["changed"], 0),
        Check("relayout_exact", Text("after the move every rank holds its heads, byte for byte"),
              moved["wrong"] == 0,
              Text("{wrong} of {bytes} B wrong", wrong=number(moved["wrong"]), bytes=number(moved["bytes"])),
              0),
        Check("relayout_covers", Text("the moves cover every byte once"), moved["moved"] == moved["bytes"],
              moved["moved"],
              moved["bytes"], "B"),
        Check("crossover_weighs", Text("at the crossover rows and state differ by at most half a row"),
              2 * abs(crossover * row - state) <= row, abs(crossover * row - state), row // 2, "B"),
    ]


EXPERIMENT = Experiment(
    slug="unified-pool", tab=7, family="pages",
    name=Text("Unified pool"),
    title=Text("One pool: rows grow, the state does not"),
    question=Text("An MLA layer adds a row for every token; a KDA layer rewrites one state. From which "
                  "length on do the rows weigh more, and what do a million tokens cost?"),
    params=(
        Param("context", Text("Context, in tokens"), "int", 1048576, 1, 1048576, 1),
        Param("tp", Text("Tensor parallel ranks"), "choice", 1, choices=tuple((n, str(n)) for n in RANKS)),
        Param("kv_dtype", Text("KV dtype"), "choice", "bf16", choices=(("bf16", "bf16"), ("fp8", "fp8"))),
        Param("state_dtype", Text("State dtype"), "choice", "fp32",
              choices=(("fp32", "fp32"), ("bf16", "bf16"))),
        Param("model", Text("Model"), "choice", "kimi-k3",
              choices=(("kimi-k3", "Kimi K3"), ("kimi-linear-48b", "Kimi-Linear-48B"))),
        Param("to_tp", Text("Move the state to"), "choice", 4, choices=tuple((n, str(n)) for n in RANKS),
              help=Text("As when prefill and decode run on different numbers of ranks.")),
        Param("forget", Text("Forget"), "choice", "nothing", breaker=True,
              choices=(("nothing", Text("nothing")), ("rope", Text("the shared key slice")),
                       ("heads", Text("the heads"))),
              help=Text("The last 64 of a row's 576 values in the scores; or that a page is laid out head by head.")),
    ),
    presets=(
        Preset("crossover", Text("At the crossover"),
               Text("16,253 tokens of rows and one state: 428.6 MiB each."),
               {"context": 16253}),
        Preset("tp8-fp8", Text("TP8, fp8"),
               Text("The state is split by eight, rows are not: the crossover falls to 4,063 tokens, and 8 "
                    "ranks together keep every row eight times."), {"tp": 8, "kv_dtype": "fp8"}),
        Preset("kimi-linear", Text("Kimi-Linear"),
               Text("7 MLA layers of 27: crossover 5,384 tokens, 7.875 GiB at a million."),
               {"model": "kimi-linear-48b"}),
        Preset("forget-rope", Text("Forget the key slice"),
               Text("Scores without the 64 shared values are other scores: the outputs differ in the first "
                    "digit."), {"forget": "rope"},
               breaks=("absorbed_equals_unabsorbed",)),
        Preset("by-bytes", Text("Cut without heads"),
               Text("Eight pages joined and cut in four: the windows of the first rank land in the state of "
                    "its neighbour."), {"tp": 8, "forget": "heads"},
               breaks=("relayout_exact",)),
    ),
    prediction=Prediction(Text("K3, bf16 rows, one rank: after how many tokens do the MLA rows weigh as much "
                               "as the whole KDA state?"), tuple(Text("about {count}", count=number(count))
                                                for count in CROSSOVERS)),
    function=run,
    draw={"pool": view.draw_pool, "relayout": view.draw_relayout},
    code=(mla_decode, mla_prefill, relayout, decode_from_pages),
)

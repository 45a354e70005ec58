"""Workbench `sizing`: block size, bytes, groups and capacity of the reader's own model."""

import re
from dataclasses import fields
from itertools import pairwise

from k3core.lab import sizing_view as view
from k3core.lab.contract import (
    Check,
    Column,
    Experiment,
    Input,
    Metric,
    Prediction,
    Preset,
    Result,
    Scene,
    Snippet,
    Table,
)
from k3core.lab.display import number
from k3core.lab.params import Param, ParamError
from k3core.lab.sizing_problems import model_from
from k3core.lab.sizing_steps import derivation, derivation_table, state_dtype_why
from k3core.lab.text import Text
from k3core.models import Model, load, names
from k3core.sizing import (
    GROUPINGS,
    KV_DTYPES,
    MODES,
    STATE_DTYPES,
    Layout,
    Settings,
    blocks_per_request,
    log_lines,
    make_layout,
    resolve,
    size,
    unified_block,
)

GIB = 2**30
LENGTHS = (1024, 4096, 16384, 65536, 262144, 1048576)
BLOCKS = (16, 64, 128, 1536)  # the options of the prediction
NOTES = {"pi0.7": Text("How many prefix tokens π0.7 uses is not published, nor whether it keeps Gemma 3's "
                       "sliding windows; every layer counts as full attention here.")}


def run(p, seed: int, files: dict) -> Result:
    """Size the cache of the model that was chosen or dropped."""
    model = model_of(p, files)
    settings = settings_of(p)
    answer = answer_for(model, settings)
    settings = resolve(model, settings)
    layout = make_layout(model, settings)
    log = view.events(model, layout, settings, answer)
    lengths = fits_table(layout, settings, answer)
    curve = view.curve_table(layout, settings, answer)
    printed = answer["reported_tokens_before" if p.old_log and layout.block_size else "reported_tokens"]
    return Result(
        metrics=_metrics(answer, printed),
        checks=_checks(model, layout, settings, answer, printed),
        tables={"groups": groups_table(layout, log), "lengths": lengths,
                "derivation": derivation_table(answer),
                "curve": curve},
        figures=[view.curve_figure(curve, p.max_model_len)],
        scenes=[Scene("layout", Text("{model}: page, block and pool to scale", model=model.title), log,
                      view.captions(log, NOTES.get(model.name)), poster=len(log["steps"]) - 1)],
        snippets=[Snippet("command", Text("The same answer on the command line"),
                          command(p, "config" in files)),
                  Snippet("log", Text("What an engine would log"), "\n".join(log_lines(answer)))],
        answer=_nearest(layout.block_size),
        answer_text=_answer_text(layout, settings),
        suggested=own_settings(model) if "config" in files else {},
    )


def model_of(p, files: dict) -> Model:
    """The dropped config.json, or the preset. Raises ParamError naming the field that is wrong."""
    return model_from(files["config"]) if "config" in files else load(p.model)


def settings_of(p) -> Settings:
    """The settings that sizing takes, from the page's; 0 and "model" mean that sizing chooses."""
    return Settings(
        tp=p.tp, kv_dtype=p.kv_dtype, state_dtype=None if p.state_dtype == "model" else p.state_dtype,
        conv_dtype=p.conv_dtype, drafts=p.drafts, align=p.align or None, mode=p.mode, grouping=p.grouping,
        max_model_len=p.max_model_len, num_blocks=p.num_blocks or None,
        memory_bytes=None if p.num_blocks else int(p.memory_gib * GIB))


def own_settings(model: Model) -> dict:
    """What an engine takes where nobody says otherwise: it is K3 that is served in fp8 and with its length."""
    length = {"max_model_len": model.max_model_len} if model.max_model_len else {}
    return {"kv_dtype": Settings().kv_dtype, "align": 0} | length


def answer_for(model: Model, settings: Settings) -> dict:
    """`sizing.size`. Raises ParamError where the settings do not fit the model."""
    try:
        return size(model, settings)
    except ValueError as error:
        problem = str(error)
    heads = re.match(r"tp (\d+) does not divide \w+ (\d+)", problem)
    if heads:
        raise ParamError("tp", Text("TP is {tp}, which does not divide the {heads} heads of {model}; choose "
                                    "a divisor", tp=heads[1], heads=heads[2], model=model.title))
    if problem.startswith("kv dtype"):
        raise ParamError("kv_dtype", Text("KV dtype is {dtype}, which {model} has no rows for; choose bf16 "
                                          "or fp8", dtype=settings.kv_dtype, model=model.title))
    raise ParamError("model", Text("{model} cannot be sized with these settings: {problem}",
                                   model=model.title, problem=problem))


def command(p, from_file: bool) -> str:
    """The line of `python -m k3core size` that gives the same answer; what is default there is left out."""
    settings = settings_of(p)
    words = ["python -m k3core size", "config.json" if from_file else p.model]
    for field in fields(Settings):
        value = getattr(settings, field.name)
        if field.name not in ("memory_bytes", "batched_tokens") and value != field.default:
            words.append(f"--{field.name.replace('_', '-')} {value}")
    if not p.num_blocks:
        words.append(f"--memory-gib {p.memory_gib!r}")
    return " ".join(words)


def groups_table(layout: Layout, log: dict) -> Table:
    """One row per group: its layers, what they use of a block, what a request holds."""
    rows = [(f"group:{index}", view.kind_words(group.kind), len(group.layers), _ranges(group.layers),
             group.block_size,
             drawn["used"] * drawn["pages"] / layout.block_bytes, drawn["blocks"])
            for index, (group, drawn) in enumerate(zip(layout.groups, log["groups"]))]
    return Table((Column("id", Text("id")), Column("kind", Text("group")), Column("layers", Text("layers")),
                  Column("indices", Text("which, from 0")), Column("block_size", Text("tokens per block")),
                  Column("used", Text("of the block used"), "float", "share", scale=1.0),
                  Column("blocks", Text("blocks of a request"))), rows,
                 Text("Groups: layers that share a block table"))


def _ranges(layers: tuple) -> str:
    """Indices as runs of equal steps: (3, 7, 11, 12) is "3, 7 … 11, 12" with the step of 4 read off."""
    if len(layers) > 4 and len({b - a for a, b in pairwise(layers)}) == 1:
        return f"{layers[0]}, {layers[1]} … {layers[-1]}"
    return ", ".join(map(str, layers)) if len(layers) < 12 else \
        f"{', '.join(map(str, layers[:3]))} … {', '.join(map(str, layers[-2:]))}"


def fits_table(layout: Layout, settings: Settings, answer: dict) -> Table:
    """Requests at once by length, the reader's own length among them."""
    rows = []
    for tokens in sorted({*LENGTHS, settings.max_model_len}):
        held = view.held_blocks(layout, settings, tokens)
        replayed = layout.blocks_per_request(tokens, settings, replay=True)
        rows.append((f"length:{tokens}", tokens, held["attention"] + held["window"], held["state"],
                     answer["num_blocks"] // sum(held.values()), answer["num_blocks"] // replayed,
                     BINDS[_binding(held, answer["num_blocks"])]))
    return Table((Column("id", Text("id")), Column("tokens", Text("tokens of a request")),
                  Column("rows", Text("blocks of rows")), Column("states", Text("blocks of states")),
                  Column("requests", Text("requests at once")),
                  Column("replay", Text("with replay of drafts")),
                  Column("binds", Text("most of it is"))), rows, Text("How many requests fit, by length"))


BINDS = {"attention": Text("attention rows"), "state": Text("recurrent states"),
         "window": Text("sliding windows"),
         "none fits": Text("nothing fits")}


def _binding(held: dict, num_blocks: int) -> str:
    return max(held, key=held.get) if num_blocks >= sum(held.values()) else "none fits"


def _metrics(answer: dict, printed: int) -> list:
    limit, tokens = answer["limit"], answer["settings"]["max_model_len"]
    return [
        _metric(answer, "block_size", Text("tokens per block"), answer["block_size"]),
        _metric(answer, "requests", Text("requests of {tokens} tokens at once", tokens=number(tokens)),
                limit["requests_at_max_model_len"]),
        _metric(answer, "binds", Text("take most of it"), limit["binds"], text=BINDS[limit["binds"]]),
        _metric(answer, "requests_at_one_token", Text("requests at once, however short"),
                limit["requests_at_one_token"]),
        _metric(answer, "bytes_per_token", Text("per token, all layers"), answer["bytes_per_token"],
                text=_bytes(answer["bytes_per_token"])),
        _metric(answer, "slot_bytes", Text("state and convolution of a sequence"), answer["slot_bytes"], "B"),
        Metric("state_dtype", Text("state dtype: {why}", why=state_dtype_why(answer)),
               answer["settings"]["state_dtype"] if answer["state_dtype_from"] else "–"),
        _metric(answer, "token_equivalent", Text("tokens that weigh as much as one state"),
                answer["token_equivalent"]),
        _metric(answer, "page_bytes", Text("page of one layer"), answer["page_bytes"],
                text=_bytes(answer["page_bytes"])),
        _metric(answer, "padding_percent", Text("padding, of the state"), answer["padding_percent"] / 100,
                "share"),
        _metric(answer, "padding_layers", Text("empty slots per block number"), answer["padding_layers"]),
        _metric(answer, "blocks_per_request", Text("blocks of one request"), answer["blocks_per_request"]),
        _metric(answer, "request_bytes", Text("bytes of these blocks"), answer["request_bytes"], "B"),
        _metric(answer, "num_blocks", Text("blocks in the pool"), answer["num_blocks"]),
        _metric(answer, "reported_tokens", Text("tokens an engine prints as cache size"), printed),
    ]


def _metric(answer: dict, key: str, label: Text, value, unit: str = "", text=None) -> Metric:
    kind = "float" if isinstance(value, float) else "exact"
    return Metric(key, label, value, unit, kind=kind, scale=1.0, text=text, how=derivation(answer, key))


def _bytes(count) -> Text:
    return Text("{count} B", count=number(count, 6))


def _checks(model: Model, layout: Layout, settings: Settings, answer: dict, printed: int) -> list:
    spare = layout.page_bytes - layout.state_bytes if layout.state_bytes else 0
    step = unified_block(1, layout.token_bytes, settings,
                         layout.chunk) or 1  # the shortest block there could be
    placed = {index for group in layout.groups for index in group.layers}
    caching = {index for index, cache in enumerate(model.layers) if cache is not None}
    held = answer["request_bytes"]
    needed = int(answer["bytes_per_token"] * settings.max_model_len) + answer["slot_bytes"]
    requests = answer["limit"]["requests_at_max_model_len"]
    return [
        Check("page_fits", Text("a page holds a state, and one step of alignment less would not"),
              0 <= spare < max(1, step * layout.token_bytes), Text("{spare} B to spare", spare=number(spare)),
              Text("less than {step} tokens of {row} B", step=number(step), row=number(layout.token_bytes))),
        Check("layers_placed", Text("every layer with a cache has its place in a group"), placed == caching,
              len(placed), len(caching)),
        Check("request_fits", Text("the blocks of a request hold all its rows and states"), needed <= held,
              held,
              Text("at least {bytes}", bytes=_bytes(needed)), "B"),
        Check("printed_tokens", Text("the printed cache size stands for the requests that fit"),
              printed // settings.max_model_len == requests, printed // settings.max_model_len, requests),
    ]


def _nearest(block) -> int:
    """The option of the prediction that is nearest to the block size, by ratio."""
    if block is None:
        return len(BLOCKS) - 1
    return min(range(len(BLOCKS)), key=lambda i: (max(block, BLOCKS[i]) / min(block, BLOCKS[i]), i))


def _answer_text(layout: Layout, settings: Settings) -> Text:
    if layout.block_size is None:
        return Text("There are no rows to count: a block is one state.")
    if not layout.state_bytes:
        return Text("Without a recurrent state nothing forces a larger block: {block} tokens.",
                    block=number(layout.block_size))
    return Text("It is {block}: a state takes as much as {rows} rows, rounded up to a multiple of {step}.",
                block=number(layout.block_size), rows=number(layout.state_bytes / layout.token_bytes, 5),
                step=number(unified_block(1, layout.token_bytes, settings, layout.chunk)))


EXPERIMENT = Experiment(
    slug="sizing", tab=0, family="workbench",
    name=Text("Sizing"),
    title=Text("Sizing: bytes, blocks and sessions of your model"),
    question=Text("How many bytes does a token cost, and a sequence? Which block size will the engine "
                  "choose, what does it pad, and how many sessions of which length fit?"),
    params=(
        Param("model", Text("Model"), "choice", "kimi-k3",
              choices=tuple((name, load(name).title) for name in names()),
              help=Text("A config.json takes its place.")),
        Param("tp", Text("Tensor parallel ranks"), "choice", 8,
              choices=tuple((n, str(n)) for n in (1, 2, 4, 8, 16, 32))),
        Param("kv_dtype", Text("KV dtype"), "choice", "fp8",
              choices=tuple((name, name) for name in KV_DTYPES)),
        Param("drafts", Text("Draft tokens"), "int", 0, 0, 16, 1),
        Param("max_model_len", Text("Tokens of a request"), "int", 1048576, 1, 4194304, 1,
              help=Text("What engines call max_model_len.")),
        Param("memory_gib", Text("Memory for the cache, per rank"), "float", 46.48, 0.01, 512, unit="GiB",
              help=Text("What weights and activations leave of the GPU; vLLM logs it at start as Available KV cache "
                        "memory.")),
        Param("num_blocks", Text("Blocks, instead of memory"), "int", 0, 0, 4000000, 1,
              help=Text("0: as many as the memory holds.")),
        Param("align", Text("Alignment of a block"), "choice", 128,
              choices=((0, Text("model")), *((n, str(n)) for n in (16, 32, 64, 128, 256))),
              help=Text("What the attention kernel's block must be a multiple of; model: 64 for MLA, else "
                        "16.")),
        Param("mode", Text("Keep states for prefix reuse"), "choice", "align",
              choices=tuple((m, m) for m in MODES),
              help=Text("Never, at the end of an aligned step, or at every block.")),
        Param("state_dtype", Text("State dtype"), "choice", "model",
              choices=(("model", Text("model")), *((name, name) for name in STATE_DTYPES)),
              help=Text("Model: what its file names, else what vLLM takes for its kind of layer.")),
        Param("conv_dtype", Text("Convolution dtype"), "choice", "bf16",
              choices=tuple((n, n) for n in STATE_DTYPES[::-1])),
        Param("grouping", Text("Layers per group"), "choice", "default",
              choices=tuple((name, name) for name in GROUPINGS)),
        Param("old_log", Text("Print the old cache size"), "bool", False, breaker=True,
              help=Text("As engines once did: groups as if each got an equal share of the blocks.")),
    ),
    presets=(
        Preset("k3-drafts", Text("K3, 7 drafts"),
               Text("Seven more columns of the convolution window fill the padding: 1,536 tokens with 0.7 % "
                    "to spare, at any alignment up to 128. But every group now holds 9 states per request, "
                    "or 2 with replay (vllm recipes #861)."), {"drafts": 7, "align": 0}),
        Preset("kimi-linear", Text("Kimi-Linear on two 3090s"),
               Text("Block 960, 319 blocks, 2.49 requests of 120,000 tokens, 299,062 tokens printed (vllm "
                    "#28228)."),
               {"model": "kimi-linear-48b", "tp": 2, "kv_dtype": "bf16", "align": 0, "mode": "none",
                "max_model_len": 120000, "memory_gib": 2.3}),
        Preset("qwen-528", Text("Why 528?"),
               Text("Qwen3.5-4B: 528 tokens, 0.76 % padding, so prompts below 528 tokens never hit the "
                    "prefix cache (vllm #40696)."),
               {"model": "qwen3.5-4b", "tp": 1, "kv_dtype": "bf16", "align": 0, "max_model_len": 262144,
                "memory_gib": 40.0}),
        Preset("qwen-27b", Text("33.04×"),
               Text("Qwen3.5-27B with 1,487 blocks: 45 blocks per request of 32,768 tokens, 33 requests, "
                    "1,082,800 tokens (vllm #40691)."),
               {"model": "qwen3.5-27b", "tp": 1, "kv_dtype": "bf16", "align": 0, "mode": "none",
                "max_model_len": 32768, "num_blocks": 1487}),
        Preset("old-log", Text("The old cache size"),
               Text("The same pool, printed as 290,864 tokens: that would be 8 requests where 33 fit (vllm "
                    "#40691)."),
               {"model": "qwen3.5-27b", "tp": 1, "kv_dtype": "bf16", "align": 0, "mode": "none",
                "max_model_len": 32768, "num_blocks": 1487, "old_log": True}, breaks=("printed_tokens",)),
        Preset("pi05", Text("π0.5, no state"),
               Text("A policy's prefix of 968 tokens: 18,432 B per token, nothing recurrent, so blocks of 16 "
                    "tokens and no padding."),
               {"model": "pi0.5", "tp": 1, "kv_dtype": "bf16", "align": 0, "max_model_len": 968,
                "memory_gib": 4.0}),
    ),
    prediction=Prediction(Text("K3 on 8 ranks with fp8 rows: one page must hold either MLA rows or one KDA "
                               "state. How many tokens will a block stand for?"),
                          tuple(Text("{count} tokens", count=number(count)) for count in BLOCKS)),
    function=run,
    draw={"layout": view.draw_layout},
    code=(unified_block, make_layout, blocks_per_request),
    inputs=(Input("config", Text("Your model: drop its config.json here"), ".json", 2**22,
                  replaces="model"),),
)

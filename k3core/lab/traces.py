"""Workbench `traces`: the reader's own requests, replayed under one checkpoint policy after another."""

import csv
import io
from collections.abc import Iterator

from k3core.fleet.latency import PRICES
from k3core.lab import traces_view as view
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
from k3core.lab.display import binary_bytes, number
from k3core.lab.params import Param, ParamError
from k3core.lab.sizing import answer_for
from k3core.lab.text import Text
from k3core.lab.traces_problems import lines_in_words, reason
from k3core.lab.traces_runs import (
    Run,
    Setup,
    Trace,
    recount,
    run_steps,
    sample,
    trace_steps,
)
from k3core.models import load, names
from k3core.prefix_cache.policy import Policy, read_policy
from k3core.sizing import Settings
from k3core.traces import EVICTIONS, TraceCache

GIB = 2**30
COMPARED = ("dense", "align", "align+8192", "marconi", "marconi+8192", "retain:0")
SWEPT = ("dense", "align", "marconi")
GRAINS = (1, 2, 3, 4, 6, 12)  # in hash blocks
SIXTEENTHS = (1, 2, 4, 8, 16)  # of what dense needs without limit
SHORT = 20_000  # blocks of a trace that is replayed for the curves unasked
WORKLOAD_NAMES = {"shared-system-prompt": Text("shared system prompt"), "multi-turn": Text("conversations"),
                  "agentic": Text("agents")}
EVICTION_NAMES = {"lru": Text("least recently used"), "fifo": Text("oldest"),
                  "checkpoints-first": Text("checkpoints first")}
SWEEPS = {"auto": Text("short traces"), "always": Text("always"), "never": Text("never")}
BAD_LINES = {"refuse": Text("refuse the file"), "skip": Text("leave it out")}


def run(p, seed: int, files: dict) -> Iterator:
    """Replay the trace that was dropped or made; yields Progress and returns the Result."""
    trace = yield from trace_steps(p, seed, files.get("trace"))
    if trace.bad and p.bad_lines == "refuse":
        raise ParamError("trace", Text("{lines}. Mend the file, or choose to leave such lines out",
                                       lines=lines_in_words(trace.bad)))
    setup = setup_of(p, trace.hash_block)
    policies = dict.fromkeys((*COMPARED, p.policy))
    wanted = [("policies", name, changed(setup, name, setup.grain, setup.capacity)) for name in policies]
    bound = changed(setup, "dense", setup.grain, None, forget_states=False)
    wanted.append(("bound", "dense", bound))
    if p.sweep == "always" or p.sweep == "auto" and trace.blocks <= SHORT:
        wanted += [("grain", name, changed(setup, name, count * trace.hash_block, setup.capacity))
                   for count in sorted({*GRAINS, p.grain_blocks}) for name in dict.fromkeys((*SWEPT, p.policy))]
    wanted = [(kind, name, one) for kind, name, one in wanted if one is not None]
    runs = yield from replay_all(trace, wanted)
    largest = runs[bound].counts.peak_bytes
    if any(kind == "grain" for kind, _, _ in wanted):
        more = [("capacity", name, changed(setup, name, setup.grain, capacity))
                for capacity in capacities(setup, largest) for name in dict.fromkeys((*SWEPT, p.policy))]
        more = [entry for entry in more if entry[2] is not None]
        wanted += more
        runs |= yield from replay_all(trace, more)
    return result_of(p, seed, trace, setup, [(kind, name, one, runs[one]) for kind, name, one in wanted], runs[bound])


def replay_all(trace: Trace, wanted: list) -> Iterator:
    """Setup -> Run of everything wanted; yields Progress."""
    runs = {}
    for done, (_, name, setup) in enumerate(wanted):
        note = Text("{policy}, grain {grain}, {capacity}", policy=name, grain=number(setup.grain),
                    capacity=capacity_words(setup.capacity))
        runs[setup] = yield from run_steps(trace, setup, done, len(wanted), note)
    return runs


def setup_of(p, hash_block: int) -> Setup:
    """What the settings ask for. Raises ParamError."""
    grain = p.grain_blocks * hash_block
    sizes = answer_for(load(p.model), Settings(tp=p.tp))
    policy = policy_at(p.policy, grain)
    if policy is None:
        raise ParamError("policy", Text(
            "policy is {policy}, whose chunks are shorter than the grain of {grain} tokens; choose another policy or a "
            "finer grain", policy=p.policy, grain=number(grain)))
    capacity = int(p.capacity_gib * GIB) if p.capacity_gib else None
    setup = Setup(policy, grain, capacity, p.eviction, sizes["bytes_per_token"], sizes["checkpoint_bytes"],
                  p.forget_states)
    if capacity is not None and capacity < setup.block_bytes:
        raise ParamError("capacity_gib", Text(
            "capacity is {capacity}, less than one block of {block}; give more, or 0 for no limit",
            capacity=binary_bytes(capacity), block=binary_bytes(setup.block_bytes)))
    return setup


def policy_at(name: str, grain: int) -> Policy | None:
    """A policy by its name on this page (an interval of 8g is eight grains), None if it does not fit the grain."""
    policy = read_policy(written(name, grain))
    try:
        policy.check(grain)
    except ValueError:
        return None
    return policy


def written(name: str, grain: int) -> str:
    """A policy's name as the command takes it."""
    return name.replace("8g", str(8 * grain))


def changed(setup: Setup, name: str, grain: int, capacity: int | None,
            forget_states: bool | None = None) -> Setup | None:
    """The same with another policy, grain and capacity; None if policy and grain do not fit."""
    policy = policy_at(name, grain)
    forget_states = setup.forget_states if forget_states is None else forget_states
    return policy and Setup(policy, grain, capacity, setup.eviction, setup.bytes_per_token, setup.checkpoint_bytes,
                            forget_states)


def capacities(setup: Setup, largest: int) -> list:
    """Capacities to try: parts of what dense needs without limit, and the reader's own."""
    parts = {max(setup.block_bytes, largest * part // 16) for part in SIXTEENTHS}
    return sorted(parts | ({setup.capacity} if setup.capacity else set()))


def capacity_words(capacity: int | None) -> Text | str:
    return Text("without limit") if capacity is None else binary_bytes(capacity)


def result_of(p, seed: int, trace: Trace, setup: Setup, rows: list, bound: Run) -> Result:
    """Everything the page shows."""
    compared = [(name, one) for kind, name, _, one in rows if kind == "policies"]
    own = dict(compared)[p.policy]
    price = PRICES[p.price]
    policies = policies_table(compared, price)
    log = view.events(trace, setup, compared, bound, p)
    course = view.course_table(dict.fromkeys([*SWEPT, p.policy]), dict(compared))
    tables = {"policies": policies, "requests": view.requests_table(log), "lines": lines_table(trace),
              "grain": view.grain_table(rows), "capacity": view.capacity_table(rows), "course": course}
    text = io.StringIO()
    header = [column.key for column in policies.columns[1:]]
    csv.writer(text, lineterminator="\n").writerows([header, *(row[1:] for row in policies.rows)])
    return Result(
        metrics=metrics(p, trace, setup, own, bound), checks=checks(p, trace, setup, compared, bound), tables=tables,
        figures=view.figures(tables, p.policy, setup),
        scenes=[Scene("requests", Text("Prompts, one below the other: what each took from the cache"), log,
                      view.captions(log), poster=min(view.VISIBLE, len(log["requests"])) - 1)],
        snippets=[Snippet("command", Text("The same answer on the command line"), command(p, seed, trace, setup)),
                  Snippet("csv", Text("The comparison as CSV"), text.getvalue())],
        answer=answer(own.hit_tokens, bound.hit_tokens),
        answer_text=Text("{policy} reuses {hit} of the {bound} tokens whose attention rows an endless cache would "
                         "hold.", policy=p.policy, hit=number(own.hit_tokens), bound=number(bound.hit_tokens)))


def answer(hit: int, bound: int) -> int:
    """The option of the prediction that is right: by quarters of what could be reused."""
    return min(3, 4 * hit // bound) if bound else 0


def policies_table(compared: list, price) -> Table:
    """One row per policy over the whole trace."""
    rows = [(f"policy:{name}", name, one.hit_rate, one.hit_tokens, one.hit_requests, one.counts.checkpoints,
             one.counts.checkpoints_written, one.counts.evicted_checkpoints, one.counts.evicted_blocks,
             one.counts.peak_bytes, 1000 * one.seconds / one.counts.requests, cost(one, price) / 1e9)
            for name, one in compared]
    return Table((Column("id", Text("id")), Column("policy", Text("policy")),
                  Column("hit_rate", Text("hit rate"), "float", "share"),
                  Column("hit_tokens", Text("tokens reused")), Column("requests_with_hit", Text("requests with a hit")),
                  Column("checkpoints", Text("checkpoints")), Column("checkpoints_written", Text("written")),
                  Column("evicted_checkpoints", Text("checkpoints evicted")),
                  Column("evicted_blocks", Text("blocks evicted")),
                  Column("peak_bytes", Text("bytes at most"), unit="B"),
                  Column("ttft_ms", Text("to the first token"), "float", "ms"),
                  Column("cost", Text("price of all"), "float", "$")),
                 rows, Text("The whole trace under each policy"))


def cost(one: Run, price) -> int:
    """Nano-dollars for the whole trace."""
    return price.cost(one.counts.input_tokens - one.hit_tokens, one.hit_tokens, one.output_tokens)


def lines_table(trace: Trace) -> Table:
    """Every line that is not a request, with its number and the reason."""
    rows = [(error.line, reason(error)) for error in trace.bad]
    if not rows:
        none = Text("none: this trace was made here") if trace.lines is None else Text("none: every line is a request")
        rows = [(0, none)]
    return Table((Column("line", Text("line of the file")), Column("reason", Text("reason"))), rows,
                 Text("Lines that are not requests and were left out"))


def metrics(p, trace: Trace, setup: Setup, own: Run, bound: Run) -> list:
    counts, price = own.counts, PRICES[p.price]
    tokens, requests = counts.input_tokens, counts.requests
    miss_cost = price.cost(tokens, 0, own.output_tokens)
    block = (f"block_bytes = grain × bytes_per_token = {setup.grain} × {setup.bytes_per_token:g} = {setup.block_bytes}",
             f"checkpoint_bytes = {setup.checkpoint_bytes}")
    paid = (f"miss {price.miss}, hit {price.hit}, output {price.output} n$ per token ({price.source})",
            (f"({price.miss} × {tokens - own.hit_tokens} + {price.hit} × {own.hit_tokens} "
             f"+ {price.output} × {own.output_tokens}) / 1e9"))
    time = ("mean over the requests of (work of the new tokens behind the hit) / (FLOP/s seen on 8 × B300)",)
    return [
        Metric("hit_rate", Text("of the prompt tokens reused"), own.hit_rate, "share", kind="float",
               how=(f"hit_rate = hit_tokens / input_tokens = {own.hit_tokens} / {tokens}",)),
        Metric("hit_tokens", Text("prefill tokens saved"), own.hit_tokens),
        Metric("rows_hit_tokens", Text("had rows in the cache"), counts.rows_hit_tokens),
        Metric("bound_tokens", Text("could be reused at best"), bound.hit_tokens),
        Metric("requests_with_hit", Text("requests with a hit, of {count}", count=number(requests)), own.hit_requests),
        Metric("checkpoints", Text("positions with a checkpoint"), counts.checkpoints),
        Metric("evicted_checkpoints", Text("checkpoints evicted"), counts.evicted_checkpoints),
        Metric("evicted_blocks", Text("blocks of rows evicted"), counts.evicted_blocks),
        Metric("peak_bytes", Text("most bytes held, per rank"), counts.peak_bytes, "B", how=block),
        Metric("ttft_ms", Text("mean time to first token on K3"), 1000 * own.seconds / requests, "ms", "derived",
               "float", how=time),
        Metric("ttft_miss_ms", Text("the same without a cache"), 1000 * own.cold_seconds / requests, "ms", "derived",
               "float", how=time),
        Metric("cost", Text("price of the trace"), cost(own, price) / 1e9, "$", price.badge, "float", how=paid),
        Metric("cost_saved", Text("saved by the cache"), (miss_cost - cost(own, price)) / 1e9, "$", "derived", "float",
               scale=1e-9),
        Metric("requests", Text("requests replayed"), requests),
        Metric("lines_skipped", Text("lines left out"), len(trace.bad)),
    ]


def checks(p, trace: Trace, setup: Setup, compared: list, bound: Run) -> list:
    own = dict(compared)[p.policy]
    first = sample(trace)
    plain = sum(hit for hit, _ in recount(first, setup.policy, setup.grain, trace.hash_block))
    cache = TraceCache(setup.policy, setup.grain, trace.hash_block)
    counted = sum(cache.serve(request) for request in first)
    counted = cache.counts.rows_hit_tokens if p.forget_states else counted
    resumable = own.counts.hit_tokens
    best_name, best = max(compared, key=lambda item: item[1].hit_tokens)
    largest = max(one.counts.peak_bytes for _, one in compared)
    asked = p.requests if trace.lines is None else trace.lines
    return [
        Check("below_input", Text("every request computes at least its last token"),
              min(one.least_computed for _, one in compared) >= 1, min(one.least_computed for _, one in compared), 1),
        Check("dense_bound", Text("no policy reuses more than a checkpoint everywhere in an endless cache"),
              best.hit_tokens <= bound.hit_tokens,
              Text("{tokens} by {policy}", tokens=number(best.hit_tokens), policy=best_name),
              Text("at most {tokens}", tokens=number(bound.hit_tokens))),
        Check("recount", Text("the first {count} prompts, compared block by block without limit, give the same hits",
                              count=len(first)), counted == plain, counted, plain),
        Check("resumable", Text("every reused token lies before a checkpoint"), own.hit_tokens <= resumable,
              own.hit_tokens, Text("at most {tokens}", tokens=number(resumable))),
        Check("fits", Text("the cache never holds more than its capacity"),
              setup.capacity is None or largest <= setup.capacity, largest, capacity_words(setup.capacity), "B"),
        Check("lines", Text("requests and lines left out are all there was"),
              len(trace.requests) + len(trace.bad) == asked, len(trace.requests) + len(trace.bad), asked),
    ]


def command(p, seed: int, trace: Trace, setup: Setup) -> str:
    """Lines for a shell: where the trace was made here, its making, then the replay; defaults are left out."""
    words = [f"python -m k3core replay trace.{file_ending(trace)}"]
    for option, value, default in (
            ("hash-block", trace.hash_block, 512), ("grain", setup.grain, 1536),
            ("policy", written(p.policy, setup.grain), "align"),
            ("capacity-gib", repr(p.capacity_gib) if p.capacity_gib else "inf", "inf"), ("eviction", p.eviction, "lru"),
            ("model", p.model, "kimi-k3"), ("tp", p.tp, 1), ("bad-lines", p.bad_lines, "refuse")):
        if value != default:
            words.append(f"--{option} {value}")
    replay = " ".join(words)
    if trace.lines is not None:
        return replay
    return "\n".join((
        "python - > trace.jsonl <<'END'", "import json, numpy", "from k3core.traces import WORKLOADS, generate_trace",
        f"for request in generate_trace(WORKLOADS[{p.workload!r}], {p.requests}, numpy.random.default_rng({seed})):",
        "    print(json.dumps(request._asdict()))", "END", replay))


def file_ending(trace: Trace) -> str:
    return "jsonl" if trace.lines is None or trace.json else "csv"


EXPERIMENT = Experiment(
    slug="traces", tab=0, family="workbench",
    name=Text("Traces"),
    title=Text("Traces: what a prefix cache saves on your requests"),
    question=Text("Attention rows can be reused up to any block, a recurrent state only where a checkpoint was kept. "
                  "How much of a real stream of prompts is left to compute, under which policy, in how many bytes?"),
    params=(
        Param("workload", Text("Trace made here"), "choice", "shared-system-prompt",
              choices=tuple(WORKLOAD_NAMES.items()), help=Text("A file takes its place.")),
        Param("requests", Text("Requests to make"), "int", 64, 2, 200, 1),
        Param("policy", Text("Keep checkpoints"), "choice", "align", choices=(
            ("dense", Text("dense: everywhere")), ("align", Text("align: at the last boundary")),
            ("align+8192", Text("align+8192: also where chunks end")),
            ("marconi", Text("marconi: also where prompts part")),
            ("marconi+8192", Text("marconi+8192: both")),
            ("retain:0", Text("retain:0: last boundary before the last token, and partings")),
            ("retain:8g", Text("retain:8g: also every eight grains")))),
        Param("grain_blocks", Text("Grain, in hash blocks"), "int", 3, 1, 16, 1,
              help=Text("Tokens of a cached block and the grid of checkpoints: 3 × 512 = 1,536.")),
        Param("capacity_gib", Text("Cache, per rank"), "float", 0.0, 0, 4096, unit="GiB",
              help=Text("0: without limit.")),
        Param("eviction", Text("What leaves first"), "choice", "lru",
              choices=tuple((name, EVICTION_NAMES[name]) for name in EVICTIONS)),
        Param("model", Text("Model"), "choice", "kimi-k3",
              choices=tuple((name, load(name).title) for name in names() if load(name).recurrent)),
        Param("tp", Text("Tensor parallel ranks"), "choice", 8,
              choices=tuple((n, str(n)) for n in (1, 2, 4, 8, 16, 32))),
        Param("price", Text("Price list"), "choice", "kimi-k3", choices=tuple((name, name) for name in PRICES)),
        Param("sweep", Text("Curves over grain and capacity"), "choice", "auto", choices=tuple(SWEEPS.items()),
              help=Text("They replay the trace some forty times.")),
        Param("start", Text("Draw from"), "int", 0, 0, 99, 1, unit="%", help=Text("Of the way through the trace.")),
        Param("hash_block", Text("Tokens per entry of hash_ids"), "int", 512, 1, 65536, 1,
              help=Text("Of a file; Mooncake's is 512.")),
        Param("bad_lines", Text("A line that is not a request"), "choice", "refuse", choices=tuple(BAD_LINES.items())),
        Param("forget_states", Text("Count rows as hits"), "bool", False, breaker=True,
              help=Text("As simulators do that know no recurrent state.")),
    ),
    presets=(
        Preset("marconi", Text("Where prompts part"),
               Text("A checkpoint also where a prompt leaves the shared one: 68.9 % of the tokens instead "
                    "of 58.2 % (the rule of vllm #37898)."), {"policy": "marconi"}),
        Preset("fine", Text("A finer grain"),
               Text("At 512 tokens align finds 69.5 % instead of 58.2 %: coarse blocks lose what prompts "
                    "share beyond the last full one."), {"grain_blocks": 1}),
        Preset("conversations", Text("Conversations"),
               Text("A later turn begins with all of the one before, so the last boundary is enough: "
                    "every policy reuses the same."), {"workload": "multi-turn"}),
        Preset("agents", Text("Agents, small cache"),
               Text("3 GiB: checkpoints everywhere push rows out, 67.2 %; marconi writes a fifth as many "
                    "and finds 76.6 %."), {"workload": "agentic", "capacity_gib": 3.0, "policy": "marconi"}),
        Preset("forget", Text("Rows are not enough"),
               Text("A simulator without states promises what no policy can resume from: the recount and "
                    "the checkpoints disagree."), {"forget_states": True}, breaks=("recount", "resumable")),
    ),
    prediction=Prediction(Text("64 requests share a system prompt of 6,000 tokens; K3 keeps its state at the last "
                               "boundary of 1,536 in each prompt. How much of what the attention rows could save can "
                               "it use?"),
                          (Text("less than a quarter"), Text("a quarter to a half"), Text("a half to three quarters"),
                           Text("more than three quarters"))),
    function=run,
    draw={"requests": view.draw_requests},
    code=(Policy.boundaries, TraceCache.serve, recount),
    inputs=(Input("trace", Text("Your trace: drop Mooncake JSON Lines or an Azure CSV here"),
                  ".jsonl,.json,.csv,.txt", 2**26),),
)

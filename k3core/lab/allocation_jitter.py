"""Tab `allocation-jitter`: the same requests over four ways to share memory, and how evenly each of them works."""

import numpy as np

from k3core.allocators import ROW_BLOCK, FirstFit, Geometry, TwoEnds, TwoPools, UnifiedPool
from k3core.lab import allocation_jitter_view as view
from k3core.lab.allocation_jitter_sim import STEPS, Simulation, arrivals, mean_bytes, mean_rows, overlaps, quantile
from k3core.lab.contract import (
    Check,
    Column,
    Experiment,
    Metric,
    Prediction,
    Preset,
    Progress,
    Result,
    Scene,
    Table,
)
from k3core.lab.display import binary_bytes, number, percent
from k3core.lab.params import Param, ParamError
from k3core.lab.text import Text
from k3core.models import load
from k3core.sizing import Settings, make_layout, resolve

STEADY = 16  # times the pool's p99 from which an allocator counts as less steady
PAGED = ("unified", "two_pools", "two_ends")  # these promise a request its full length
SHARES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 92, 94, 96, 98, 99, 100)
WIDE = Geometry(row_bytes=4096, state_bytes=22 * 31_900_000, block_tokens=7808, block_bytes=7808 * 4096, groups=22)


def run(p, seed: int):
    """Play one trace over each of the four allocators."""
    geometry, memory = geometry_of(p.geometry), round(p.memory * 2**30)
    short = (p.short_first, p.short_later)
    allocators = make_allocators(geometry, memory, p)
    trace = arrivals(geometry, memory, p.load, short, p.slots, np.random.default_rng(seed))
    shares = [mean_rows(percent) * geometry.row_bytes / mean_bytes(geometry, percent, p.slots) for percent in short]
    runs = {}
    for order, (name, allocator) in enumerate(allocators.items()):
        runs[name] = Simulation(allocator, trace, p.slots, sum(shares) / 2, p.by_rows)
        for step in runs[name].steps():
            if step % 8 == 7:
                yield Progress(order * STEPS + step, len(allocators) * STEPS)

    works = {name: [operation[4] for operation in done.operations] for name, done in runs.items()}
    lost = {name: allocators[name].free_bytes() - done.whole for name, done in runs.items()}
    wrong = sum(overlaps(frame, memory) for done in runs.values() for frame in done.frames)
    idle = sum(done.held_idle for done in runs.values())
    broken = sum(runs[name].cut_off for name in PAGED)
    quantiles, spread = quantiles_table(works), unusable_table(runs, memory)
    answer, verdict = judge(works, runs, memory)
    log = view.events(runs, allocators, memory, p)
    return Result(
        metrics=_metrics(works, runs, memory, len(trace)),
        checks=[
            Check("sound", Text("no piece of memory is held twice, in any step, under any allocator"),
                  wrong == 0, wrong, 0),
            Check("whole_again", Text("when everybody has left, all memory is free again"),
                  not any(lost.values()), sum(map(abs, lost.values())), 0, "B"),
            Check("promises_kept", Text("where a full length was promised, nobody is cut off while growing"),
                  broken == 0, broken, 0),
            Check("let_in_runs", Text("whoever is let in runs: nobody holds memory and waits for more"),
                  idle == 0, Text("{n} steps of waiting", n=number(idle)), Text("none")),
        ],
        tables={"verdict": verdict_table(works, runs, memory), "kinds": kinds_table(runs), "quantiles": quantiles,
                "unusable": spread},
        figures=[view.quantiles_figure(quantiles), view.unusable_figure(spread)],
        scenes=[Scene("memory", Text("The same requests in four memories: holes, padding, and what is moved"), log,
                      view.captions(log), poster=view.poster(log))],
        answer=answer, answer_text=verdict,
    )


def geometry_of(name: str) -> Geometry:
    """Bytes of rows and states for one of the choices of the parameter."""
    if name == "wide":
        return WIDE
    model = load(name)
    served = {"kimi-k3": Settings(tp=8, kv_dtype="fp8", align=128), "kimi-linear-48b": Settings(tp=2, align=64)}[name]
    return Geometry.of(make_layout(model, resolve(model, served)))


def make_allocators(geometry: Geometry, memory: int, p) -> dict:
    """The four, by name. Raises ParamError where a static pool is too small for one state or one block."""
    states = memory * p.state_share // 100
    least = ROW_BLOCK * geometry.row_bytes
    if states < geometry.state_bytes or memory - states < least:
        raise ParamError("state_share", Text(
            "state_share is {share}; of {memory} that gives {states} to states and {rows} to rows, but one state "
            "takes {state} and one block of rows {block}", share=p.state_share, memory=binary_bytes(memory),
            states=binary_bytes(states), rows=binary_bytes(memory - states),
            state=binary_bytes(geometry.state_bytes), block=binary_bytes(least)))
    return {"unified": UnifiedPool(geometry, memory), "two_pools": TwoPools(geometry, memory, states),
            "first_fit": FirstFit(geometry, memory, reserve=p.contiguous == "reserve"),
            "two_ends": TwoEnds(geometry, memory)}


def judge(works: dict, runs: dict, memory: int) -> tuple:
    """(index of the right option, the verdict in words): steadiness is what 99 of 100 operations stay below."""
    p99 = {name: quantile(values, 99) for name, values in works.items()}
    idle = {name: percent(unusable(done, memory), 3) for name, done in runs.items()}
    worse = [name for name in runs if name != "unified" and p99[name] >= STEADY * max(1, p99["unified"])]
    option = {0: 2, len(runs) - 1: 0}.get(len(worse), 1)
    say = (Text("Yes, steadier than all three."), Text("Steadier than what moves memory, no more."),
           Text("No."))[option]
    work = Text("99 of 100 operations touch at most {unified}; in two static pools {two_pools}, in contiguous memory "
                "{first_fit}, in the two-ended region {two_ends}.",
                **{name: binary_bytes(value) for name, value in p99.items()})
    price = Text("Memory that helps nobody: {unified}; there {two_pools}, {first_fit} and {two_ends}.", **idle)
    return option, Text("{say} {work} {price}", say=say, work=work, price=price)


def verdict_table(works: dict, runs: dict, memory: int) -> Table:
    """The four side by side, and whether the unified pool is steadier."""
    pool, rows = quantile(works["unified"], 99), []
    for name, done in runs.items():
        values = works[name]
        rows.append((f"allocator:{name}", view.NAMES[name], quantile(values, 50), quantile(values, 99),
                     max(values, default=0), sum(operation[3] for operation in done.operations),
                     done.refused, done.never, done.cut_off, done.most_running, in_use(done, memory),
                     unusable(done, memory),
                     steadier(name, quantile(values, 99), pool)))
    return Table((Column("id", Text("id")), Column("allocator", Text("memory")),
                  Column("p50", Text("work, p50"), unit="B"), Column("p99", Text("p99"), unit="B"),
                  Column("max", Text("max"), unit="B"), Column("moved", Text("moved in all"), unit="B"),
                  Column("refused", Text("refused")), Column("never", Text("can never fit")),
                  Column("cut_off", Text("cut off")),
                  Column("running", Text("most at once")),
                  Column("used", Text("memory in use, mean"), "float", "share", scale=1.0),
                  Column("unusable", Text("unusable, mean"), "float", "share", scale=1.0),
                  Column("verdict", Text("the unified pool is"))), rows, Text("Four memories, the same requests"))


def steadier(name: str, p99: int, pool: int) -> Text:
    """What the unified pool is, compared with an allocator of this p99."""
    if name == "unified":
        return Text("itself")
    if p99 >= STEADY * max(1, pool):
        return Text("steadier, about {times} times", times=number(two_digits(p99 // max(1, pool))))
    if pool >= STEADY * max(1, p99):
        return Text("less steady, about {times} times", times=number(two_digits(pool // max(1, p99))))
    return Text("as steady")


def two_digits(count: int) -> int:
    """A count with all but its first two digits zero."""
    step = 10 ** max(0, len(str(count)) - 2)
    return count // step * step


def kinds_table(runs: dict) -> Table:
    """Who pays: p99 of the operations of each kind."""
    rows = []
    for name, done in runs.items():
        by_kind = [[operation[4] for operation in done.operations if operation[1] == kind]
                   for kind in ("admit", "grow", "leave")]
        rows.append((f"allocator:{name}", view.NAMES[name], *(quantile(values, 99) for values in by_kind)))
    return Table((Column("id", Text("id")), Column("allocator", Text("memory")),
                  Column("admit", Text("to let in"), unit="B"), Column("grow", Text("to grow"), unit="B"),
                  Column("leave", Text("to leave"), unit="B")), rows,
                 Text("Work by kind of operation, p99: who waits for it"))


def quantiles_table(works: dict) -> Table:
    """Work that a share of the operations does not exceed, for the first chart."""
    rows = [(share, name, quantile(values, share)) for name, values in works.items() if values for share in SHARES]
    return Table((Column("percent", Text("percent of operations")), Column("allocator", Text("memory")),
                  Column("touched", Text("work"), unit="B")), rows)


def unusable_table(runs: dict, memory: int) -> Table:
    """Share of the memory that neither holds data nor can be given out, over time, for the second chart."""
    rows = [(step, name, value / memory) for name, done in runs.items() for step, value in enumerate(done.unusable)]
    return Table((Column("step", Text("time step")), Column("allocator", Text("memory")),
                  Column("unusable", Text("unusable"), "float", "share", scale=1.0)), rows)


def unusable(done: Simulation, memory: int) -> float:
    """Mean share of the memory that neither holds data nor can be given out."""
    return sum(done.unusable) / (STEPS * memory)


def in_use(done: Simulation, memory: int) -> float:
    """Mean share of the memory that holds data."""
    return sum(frame["used"] for frame in done.frames) / (STEPS * memory)


def _metrics(works: dict, runs: dict, memory: int, requests: int) -> list:
    work, refused, idle = [], [], []
    for name, done in runs.items():
        which, lost = view.NAMES[name], done.refused + done.never + done.cut_off
        work.append(Metric(f"p99_work_{name}",
                           Text("work that 99 of 100 operations stay below, {memory}", memory=which),
                           quantile(works[name], 99), "B"))
        refused.append(Metric(f"refused_{name}", Text("refused or cut off, {memory}", memory=which), lost,
                              text=Text("{n} of {total}", n=number(lost), total=number(requests))))
        idle.append(Metric(f"fragmentation_{name}", Text("neither in use nor usable, {memory}", memory=which),
                           unusable(done, memory), "share", kind="float", scale=1.0))
    return work + refused + idle


EXPERIMENT = Experiment(
    slug="allocation-jitter", tab=6, family="pages",
    name=Text("Allocation jitter"),
    title=Text("Allocation jitter: what a memory does when it is full"),
    question=Text("One pool for rows and states is said to give steadier access than memory that fragments. Is it "
                  "steadier, than what, and what does it cost?"),
    params=(
        Param("load", Text("Offered load, of the memory"), "int", 100, 20, 200, 10, unit="%"),
        Param("short_first", Text("Short requests, first half"), "int", 20, 0, 100, 5, unit="%",
              help=Text("16 to 2,048 tokens of prompt; the others 8,192 to 65,536.")),
        Param("short_later", Text("Short requests, second half"), "int", 95, 0, 100, 5, unit="%"),
        Param("state_share", Text("Two static pools: for states"), "int", 25, 5, 95, 1, unit="%",
              help=Text("In the drawing: drag the border.")),
        Param("contiguous", Text("Contiguous memory"), "choice", "move",
              choices=(("move", Text("grows and moves")), ("reserve", Text("reserves full length")))),
        Param("slots", Text("States per request"), "int", 2, 1, 9, 1,
              help=Text("The running one, one kept for reuse, one per draft token.")),
        Param("memory", Text("Memory for the cache"), "float", 3.0, 0.5, 16.0, 0.1, unit="GiB"),
        Param("geometry", Text("Model"), "choice", "kimi-k3", choices=(
            ("kimi-k3", Text("Kimi K3, TP8, fp8")), ("kimi-linear-48b", Text("Kimi-Linear-48B, TP2, bf16")),
            ("wide", Text("22 groups, blocks of 7,808 tokens")))),
        Param("by_rows", Text("Let in by rows alone"), "bool", False, breaker=True,
              help=Text("Admission forgets that a request needs states as well.")),
    ),
    presets=(
        Preset("split-for-long", Text("A split for long requests"),
               Text("The static split suits the long requests of the first half. When short ones come, states run "
                    "out: 47 of 83 requests are refused and 35.7 % of the memory is out of reach, against 23 and "
                    "7.1 % in one pool (sglang #33004).")),
        Preset("steady-mix", Text("A steady mix"),
               Text("The mix stays what the split was made for: two static pools refuse 15 of 64 requests, one pool "
                    "17, and both work equally evenly. One pool pays when the mix does not hold still."),
               {"short_first": 70, "short_later": 70, "state_share": 42}),
        Preset("reserve", Text("Reserve full length"),
               Text("Nothing moves any more, and contiguous memory is as steady as the pool, 960 B at p99. The price "
                    "is memory held for tokens that have not come and holes between: 12.1 % against 7.1 %."),
               {"contiguous": "reserve"}),
        Preset("crowd", Text("High concurrency"),
               Text("85 requests at once in 16 GiB. The pool's p99 is 3 KiB, as in a small memory; contiguous memory "
                    "moves 47 GiB in all, the two-ended region 75 GiB."), {"memory": 16.0, "load": 120}),
        Preset("vllm-54458", Text("23 of 70 blocks"),
               Text("A state needs a block in each of 22 groups, so even 12 tokens take 23 of 70 blocks (vllm "
                    "#54458). Whatever their length, three requests run at once. Another allocator does not help: "
                    "the states are that large."),
               {"geometry": "wide", "memory": 2.1, "slots": 1, "state_share": 66, "short_first": 100,
                "short_later": 0}),
        Preset("vllm-49064", Text("Too few states"),
               Text("All requests are short. The static pool for states has 14 slots, enough for 7 requests: 96 of "
                    "137 are refused while 70.5 % of the memory is out of reach (vllm #49064). One pool runs 19 at "
                    "once."), {"short_first": 100, "short_later": 100}),
        Preset("sglang-36889", Text("10 slots, 2 streams"),
               Text("10 slots at 5 states per request make 2 streams, however many are configured (sglang #36889). "
                    "One pool runs 7."), {"slots": 5, "state_share": 19, "short_first": 70, "short_later": 70}),
        Preset("sglang-23643", Text("Scratch for drafts"),
               Text("Every request reserves 6 states, 5 of them for drafts (sglang #23643): 7 run at once in one "
                    "pool. Set the states to 1, as replay allows, and 14 do."),
               {"slots": 6, "state_share": 70, "short_first": 70, "short_later": 70}),
        Preset("vllm-ascend-17074", Text("Can never fit"),
               Text("The longest prompts need more blocks than there are. They are refused when they come instead of "
                    "waiting forever (vllm-ascend #17074); the table counts them."),
               {"memory": 0.8, "load": 150, "short_first": 70, "short_later": 40, "state_share": 40}),
        Preset("vllm-52520", Text("Let in, cannot run"),
               Text("Admission counts rows only (vllm #52520). Requests hold their rows and wait 428 steps in all "
                    "for states that others hold, so the check fails."),
               {"by_rows": True}, breaks=("let_in_runs",)),
    ),
    prediction=Prediction(Text("Is work on the unified pool steadier than on two static pools, on contiguous memory, "
                               "and on a region that is compacted?"),
                          (Text("steadier than on all three"), Text("only steadier than where memory is moved"),
                           Text("no steadier than on any"))),
    function=run,
    draw={"memory": view.draw_memory},
    code=(Simulation, UnifiedPool, FirstFit, TwoEnds, judge),
)

"""Tab `verify-and-replay`: one stream of tokens built in several ways; which of them end in the same bits."""

from functools import reduce

import numpy as np

from k3core.bf16 import from_bf16, to_bf16
from k3core.kda import (
    apply_segment,
    compose_segments,
    gate_lower_bound,
    kda_chunk,
    kda_read,
    kda_recurrent,
    kda_segment,
    kda_update,
    l2norm,
)
from k3core.lab import tiny_text
from k3core.lab import verify_and_replay_runs as runs
from k3core.lab import verify_and_replay_view as view
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
from k3core.lab.display import number
from k3core.lab.params import Param
from k3core.lab.text import Text
from k3core.lab.verify_and_replay_runs import DK, DV, TOKENS
from k3core.replayssm import verify_and_replay

PRECISIONS = {
    "float64": (np.float64, Text("float64")),
    "float32": (np.float32, Text("float32")),
    "bf16": (np.float32, Text("float32, inputs rounded to bf16")),
}
TOLERANCES = {"0": Text("none: every bit counts"), "0.0001": Text("0.0001"), "0.01": Text("0.01")}
ANSWERS = (0, 1, 2, 4)  # how many of the four other ways end bit-equal: the options of the prediction


def run(p, seed: int):
    """Build the stream straight, interrupted, deviated, in chunks and in segments."""
    rng = np.random.default_rng(seed)
    if p.source == "text":
        exact, letters, own, margin = yield from read_stream(p, seed)
        start, chosen = np.zeros_like(own), (tiny_text.margin_line(margin),)
    else:
        exact, letters, own, chosen = draw_stream(p.memory, rng), "", None, ()
        start = rng.standard_normal((1, DK, DV)) * 0.3
    plan = runs.plan(p, rng, start.shape)
    yield Progress(0, 2)
    stream = cast(exact, p.precision)
    mine = build(p, stream, start.astype(stream[0].dtype), plan)
    if own is not None and p.precision == "float32":  # the model's own: it too reads token by token
        mine["stepwise"] = max(mine["stepwise"], float(np.abs(mine["straight"] - own).max()))
    yield Progress(1, 2)
    fading = fade(p, stream, plan["noise"])
    _, reference = kda_recurrent(*(x.astype(np.float64) for x in exact), start.astype(np.float64))
    rounding = float(np.abs(mine["straight"] - reference).max()), rounding_allowed(p.precision, reference)
    caught = mine["deviated"]["detected_at"]
    chunk, nodes = largest(mine, "chunk"), largest(mine, "nodes")
    equal = {name: mine[name] == 0.0 for name in ("stepwise", "resumed", "corrected")}
    equal["corrected"] = caught is not None and equal["corrected"]  # unnoticed, it may fade to nothing or not
    ways = int(equal["resumed"]) + int(equal["corrected"])
    return Result(
        metrics=_metrics(p, mine, equal, fading[0], rounding, chosen),
        checks=_checks(p, mine, fading, rounding),
        tables={"ways": ways_table(p, mine, equal), "fade": fade_table(p, *fading)},
        figures=[view.fade_figure(caught)],
        scenes=[
            Scene("runs", Text("Three runs of the same stream"), view.run_events(p, mine, letters),
                  view.run_captions(p, mine, letters), poster=view.run_poster(mine)),
            Scene("nodes", Text("Segments from several nodes, composed"), view.node_events(p, mine),
                  view.node_captions(p, mine), poster=view.node_poster(mine)),
        ],
        answer=ANSWERS.index(ways),
        answer_text=Text("{n} of 4: what repeats the same operations on every token in the same order. "
                         "Chunks and segments come within {error}.", n=ways,
                         error=view.some(max(chunk, nodes))),
    )


def draw_stream(memory: int, rng) -> tuple:
    """q, k, v, g, beta of one head in float64; most gates forget over about `memory` tokens."""
    q, k = (l2norm(rng.standard_normal((TOKENS, 1, DK))) for _ in range(2))
    z = 0.7 * rng.standard_normal((TOKENS, 1, DK)) - np.log(5.0 * memory - 1.0)
    v, beta = rng.standard_normal((TOKENS, 1, DV)), rng.random((TOKENS, 1))
    return q, k, v, gate_lower_bound(z, np.zeros(1)), beta


def read_stream(p, seed: int):
    """q, k, v, g, beta of one head of the trained model over the first TOKENS tokens of the reader's text, prompt and
    what follows: a generator of Progress -> (stream, glyphs of the tokens, the model's own state [1, dk, dv] behind,
    the smallest margin of a choice)."""
    ids = tiny_text.read_prompt(p.prompt)[:TOKENS]
    plain = yield from tiny_text.plain_once(p.prompt[: TOKENS - 1], TOKENS - len(ids) + 1, p.choosing, seed)
    layer, head = tiny_text.head_of(p.head)
    stream = tuple(np.ascontiguousarray(x[:, head : head + 1]) for x in plain.inputs[layer][:5])
    letters = tiny_text.glyphs([*plain.ids, *plain.tokens][:TOKENS])
    return stream, letters, plain.states[-1][layer][head : head + 1], plain.margin


def cast(stream: tuple, precision: str) -> tuple:
    """The stream's arrays as a precision of `PRECISIONS` holds them."""
    if precision == "bf16":
        return tuple(from_bf16(to_bf16(x)) for x in stream)
    return tuple(x.astype(PRECISIONS[precision][0]) for x in stream)


def build(p, stream: tuple, start, plan: dict) -> dict:
    """Every construction's largest difference from the straight run, and the runs that the scene shows."""
    q, k, v, g, beta = stream
    o, straight = kda_recurrent(q, k, v, g, beta, start)
    states = runs.states_of(stream, start)

    def off(state) -> float:
        output = kda_read(q[-1], state, q.dtype.type(q.shape[-1] ** -0.5))
        return max(float(np.abs(state - straight).max()), float(np.abs(output - o[-1]).max()))

    resumed = runs.interrupted(p, stream, states, plan)
    deviated = runs.deviated(p, stream, states, plan)
    segments = {}
    for node in plan["order"]:  # each node knows its own tokens only
        part = slice(node * p.piece, min((node + 1) * p.piece, TOKENS))
        segments[node] = kda_segment(k[part], v[part], g[part], beta[part])
    in_a_row = reduce(compose_segments, (segments[node] for node in sorted(segments)))
    tree = runs.compose_tree(segments, plan["order"])
    _, chunked = kda_chunk(q, k, v, g, beta, start, chunk_size=p.piece)
    head, tail = ([x[: p.cut] for x in stream], [x[p.cut :] for x in stream])
    _, chunked_twice = kda_chunk(*tail, kda_chunk(*head, start, chunk_size=p.piece)[1], chunk_size=p.piece)
    return {
        "straight": straight, "states": states, "resumed_run": resumed, "deviated": deviated, "tree": tree,
        "stepwise": off(states[-1]),
        "resumed": max(resumed["largest"], off(resumed["state"])),
        "corrected": off(deviated["state"]),
        "chunk": off(chunked), "chunk_cut": off(chunked_twice),
        "nodes": off(apply_segment(in_a_row, start)), "nodes_tree": off(apply_segment(tree["root"], start)),
        "bound": close_enough(start.dtype, states),
    }


def close_enough(dtype, states: list) -> float:
    """What another order of the same operations may differ by: a rounding of the largest state per token."""
    return TOKENS * float(np.finfo(dtype).eps) * max(1.0, float(np.abs(np.stack(states)).max()))


def rounding_allowed(precision: str, reference) -> float:
    """What a precision may differ from float64 by: a rounding per token; in bf16 also 2^-9 of the inputs."""
    scale = max(1.0, float(np.abs(reference).max()))
    return scale * {"float64": 0.0, "float32": TOKENS * 2.0**-23, "bf16": 2.0**-4}[precision]


def fade(p, stream: tuple, difference) -> tuple:
    """What is left of a deviation after 0, 1, 2, ... tokens, and at most: (share [n], bound [n]), in float64.

    A difference of two states goes through gates and delta rule like a state that sees no values, and no gate
    lets through more than its slowest channel: |D_t| <= max exp(g_t) |D_{t-1}| for beta |k|^2 in [0, 2].
    """
    _, k, v, g, beta = (x.astype(np.float64) for x in stream)
    whole = np.sqrt(np.sum(difference * difference))
    left, bound = [1.0], [1.0]
    for t in range(p.deviation_at, TOKENS):
        difference, _ = kda_update(k[t], np.zeros_like(v[t]), g[t], beta[t], difference)
        left.append(float(np.sqrt(np.sum(difference * difference)) / whole))
        bound.append(float(bound[-1] * np.exp(g[t].max())))
    return left, bound


def ways_table(p, mine: dict, equal: dict) -> Table:
    """Every way to build the stream, and how its end compares with the straight run's."""
    zero, bound = Text("0: every bit"), at_most(mine["bound"])
    same = Text("the same operations in the same order")
    tolerated = zero if p.tolerance == "0" else at_most(float(p.tolerance))
    names = (
        ("stepwise", Text("token by token, kda_step"), zero, same),
        ("resumed", Text("resumed from checkpoint and records"), zero, same),
        ("corrected", Text("deviated, verified, corrected"), tolerated,
         Text("the same operations once it is noticed")),
        ("chunk", Text("in chunks"), bound, Text("additions in another order")),
        ("chunk_cut", Text("in chunks, cut at the interruption"), bound, Text("another order again")),
        ("nodes", Text("segments of several nodes, in a row"), bound, Text("products of matrices")),
        ("nodes_tree", Text("segments of several nodes, as a tree"), bound,
         Text("products in another order")),
    )
    rows = []
    for name, words, allowed, why in names:
        close = mine[name] <= (mine["bound"] if name not in equal else float(p.tolerance))
        end = Text("in the same bits") if equal.get(name) else Text("close") if close else Text("elsewhere")
        rows.append((name, words, end, allowed, why))
    return Table((Column("id", Text("id")), Column("way", Text("built")), Column("end", Text("ends")),
                  Column("allowed", Text("difference allowed")), Column("kind", Text("why"))), rows,
                 Text("Against the straight run"))


def fade_table(p, left: list, bound: list) -> Table:
    """What is left of a deviation, for the chart."""
    rows = []
    for n, (share, most) in enumerate(zip(left, bound)):
        rows += [(p.deviation_at + n, "measured", share), (p.deviation_at + n, "bound", most)]
    return Table((Column("token", Text("token")), Column("line", Text("curve")),
                  Column("share", Text("left of the deviation"), "float", scale=1e-6, tolerance=tolerance(p))), rows)


def _checks(p, mine: dict, fading: tuple, rounding: tuple) -> list:
    none = Text("0: every bit")
    caught, allowed = mine["deviated"]["detected_at"], float(p.tolerance)
    ratio = max(share / most for share, most in zip(*fading))
    chunk, nodes, bound = largest(mine, "chunk"), largest(mine, "nodes"), mine["bound"]
    return [
        Check("stepwise", Text("token by token gives the bits of the whole sequence"), mine["stepwise"] == 0,
              mine["stepwise"], none),
        Check("resumed", Text("the resumed run equals the straight one from the interruption to the end"),
              mine["resumed"] == 0, mine["resumed"], none),
        Check("corrected",
              Text("a noticed deviation is corrected to the bit, an unnoticed one stays within the tolerance"),
              mine["corrected"] <= (0 if caught is not None else allowed), mine["corrected"],
              none if caught is not None else at_most(allowed)),
        Check("chunks", Text("chunks differ by rounding only"), chunk <= bound, view.some(chunk),
              at_most(bound)),
        Check("nodes", Text("composed segments differ by rounding only"), nodes <= bound, view.some(nodes),
              at_most(bound)),
        Check("fades", Text("a deviation never exceeds what the slowest gate lets through"),
              ratio <= 1 + 1e-9, ratio, Text("at most 1 of the bound")),
        Check("precision", Text("the precision costs no more than its roundings"), rounding[0] <= rounding[1],
              view.some(rounding[0]), at_most(rounding[1])),
    ]


def at_most(bound: float) -> Text:
    return Text("at most {bound}", bound=number(bound, 2))


def largest(mine: dict, way: str) -> float:
    """The larger difference of a way's two variants: chunks whole or cut, segments in a row or as a tree."""
    return max(mine[way], mine[{"chunk": "chunk_cut", "nodes": "nodes_tree"}[way]])


def _metrics(p, mine: dict, equal: dict, left: list, rounding: tuple, chosen: tuple) -> list:
    """chosen: how surely the tokens of a real text were chosen, as lines."""
    caught = mine["deviated"]["detected_at"]
    seen = TOKENS if caught is None else caught
    end = Text("left of the deviation at the end")
    when = end if caught is None else Text("left of the deviation by then")
    return [
        Metric("detected_at", Text("token at which verification noticed"), caught),
        Metric("deviation_left", when, left[seen - p.deviation_at], "share", kind="float", scale=1e-6,
               tolerance=tolerance(p)),
        _yes("bit_equal_stepwise", Text("token by token, same bits"), equal["stepwise"], chosen),
        _yes("bit_equal_resumed", Text("resumed, same bits"), equal["resumed"]),
        _yes("bit_equal_corrected", Text("corrected, same bits"), equal["corrected"]),
        _yes("within_bound_chunk", Text("chunks, within rounding"), largest(mine, "chunk") <= mine["bound"]),
        _yes("within_bound_nodes", Text("segments, within rounding"),
             largest(mine, "nodes") <= mine["bound"]),
        _yes("within_bound_precision", Text("precision, within its roundings"), rounding[0] <= rounding[1]),
    ]


def tolerance(p) -> float:
    """How far two platforms may differ in what is left of a deviation: the trained model's gates are float32."""
    return 1e-9 if p.source == "drawn" else 1e-4


def _yes(key: str, label: Text, holds: bool, how: tuple = ()) -> Metric:
    return Metric(key, label, holds, text=Text("yes") if holds else Text("no"), how=how)


EXPERIMENT = Experiment(
    slug="verify-and-replay", tab=3, family="state",
    name=Text("Verify and replay"),
    title=Text("Verify and replay: one stream, several ways"),
    question=Text("A run is interrupted and resumed elsewhere; another is disturbed and repaired; a third is "
                  "computed in pieces on several nodes. Which of them end in exactly the same state, and "
                  "which only come close?"),
    params=(
        tiny_text.source_param(("drawn", Text("chance"))),
        tiny_text.prompt_param("def area(width, height):\n    return "),
        tiny_text.CHOOSING,
        tiny_text.head_param(Text("Head whose state is built")),
        Param("cut", Text("Interrupted after token"), "int", 30, 1, TOKENS - 1, 1),
        Param("delivery", Text("Records arrive"), "choice", "reordered",
              choices=(("ordered", Text("in order")), ("reordered", Text("reordered")),
                       ("late", Text("first one last")), ("twice", Text("twice")))),
        Param("deviation_at", Text("Deviation after token"), "int", 19, 1, TOKENS - 1, 1,
              help=Text("Noise of 10 % of the state is added once.")),
        Param("every", Text("Tokens between checkpoints, each verified"), "int", 8, 1, 16, 1),
        Param("tolerance", Text("Difference that verification lets pass"), "choice", "0",
              choices=tuple(TOLERANCES.items())),
        Param("memory", Text("Memory of the gates, in tokens"), "int", 16, 2, 64, 1, when=("source", ("drawn",))),
        Param("precision", Text("Precision"), "choice", "float32",
              choices=tuple((name, title) for name, (_, title) in PRECISIONS.items())),
        Param("piece", Text("Tokens per chunk and per node"), "int", 12, 8, 24, 1),
        Param("replay_twice", Text("Replay one record twice"), "bool", False, breaker=True,
              help=Text("Forgets the sequence numbers once: the middle record is applied two times.")),
    ),
    presets=(
        Preset("real-text", Text("A real text"),
               Text("Keys, values and gates of one head of the trained model while it reads and goes on writing "
                    "Python. The same two ways end in the same bits, and these are the model's own."),
               {"source": "text", "prompt": "def area(width, height):\n    return ", "head": "2.1"}),
        Preset("late-first", Text("The first record last"),
               Text("Nothing can be replayed until the first record is there; then all of it at once, to the "
                    "bit."), {"delivery": "late", "cut": 32}),
        Preset("twice", Text("Every record twice"),
               Text("Sixteen arrivals for eight records: eight are ignored by their number."),
               {"delivery": "twice", "cut": 32}),
        Preset("rare-checks", Text("Rare checks, short memory"),
               Text("Verified every 16 tokens with a tolerance of 0.01 and gates that remember 3 tokens: the "
                    "deviation is gone before anyone looks."),
               {"every": 16, "tolerance": "0.01", "memory": 3, "deviation_at": 17}),
        Preset("long-memory", Text("Long memory"),
               Text("Gates that remember 64 tokens: an unnoticed deviation would still be there at the end."),
               {"memory": 64, "deviation_at": 10, "every": 16}),
        Preset("double", Text("Replay one record twice"),
               Text("The resumed run leaves the straight one at once, and the gates only slowly bring it back."),
               {"replay_twice": True}, breaks=("resumed",)),
    ),
    prediction=Prediction(
        Text("Four other ways to process the same 48 tokens: resumed after an interruption, corrected after "
             "a deviation, in chunks, in segments on four nodes. How many end in exactly the same bits?"),
        (Text("none of them"), Text("one of them"), Text("two of them"), Text("all four"))),
    function=run,
    draw={"runs": view.draw_runs, "nodes": view.draw_nodes},
    code=(verify_and_replay, runs.deviated, runs.interrupted, runs.compose_tree, fade),
)

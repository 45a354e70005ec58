"""Tab `speculative-replay`: a decoder takes its rejected drafts back, with four stores side by side."""

from functools import partial

import numpy as np

from k3core.decode import NoisyOracle, PromptLookup, Speculation, acceptance_by_position
from k3core.lab import acceptance, pace, state_itself, tiny_text
from k3core.lab import speculative_replay_view as view
from k3core.lab.byte_cost import LAYOUTS
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
from k3core.lab.display import number
from k3core.lab.params import Param
from k3core.lab.speculative_replay_run import (
    STORES,
    WEIGHT_SEEDS,
    AdvancesByDrafted,
    SideBySide,
    decoder_of,
    held_bytes,
    plain_once,
    speculate,
)
from k3core.lab.text import Text
from k3core.models import Recurrent
from k3core.replayssm import ProjectionStore, SnapshotStore
from k3core.replayssm.stores import StateStore
from k3core.sizing import record_bytes, recurrent_state_bytes

SIZES = tuple(WEIGHT_SEEDS)  # S0, S1, S2, S3
ROUNDING = 2.0**-18  # per element of a state of order 1: tens of float32 roundings, each 2^-24
CLAIMED_RATIO = 0.4
BOUNDS = (1.5, 2.5, 3.5, 5.0)  # between the options of the prediction


def run(p, seed: int):
    """Decode the prompt plainly and with drafts, compare, and count the window's bytes at four head sizes."""
    text = p.source == "text"
    plain = yield from plain_once(p, seed)
    decoder = decoder_of(p)
    if p.draft == "lookup":
        draft, expected = PromptLookup(), None
    else:
        rng = np.random.default_rng(seed)
        draft = NoisyOracle(plain.ids + plain.tokens, p.acceptance, decoder.config.vocab_size, rng)
        expected = acceptance.mean_tokens(p.acceptance, p.drafts)
    decode = AdvancesByDrafted if p.fault == "drafted" else Speculation
    make_store = partial(SideBySide, answering=p.store, fault=p.fault)
    sampler = tiny_text.sampler(p.choosing if text else "greedy", seed)
    speculation = decode(decoder, plain.ids, draft, make_store, p.drafts, sampler, plain.prefill)
    rounds, log, deviations, states = yield from speculate(speculation, plain, p.layer - 1, text)
    same = next((i for i in range(p.tokens) if plain.tokens[i] != speculation.tokens[i]), p.tokens)
    margin = min([plain.margin, *(round.margin for round in rounds)])
    stores, mean = speculation.stores[0].stores, (p.tokens - 1) / len(rounds)
    held = {name: held_bytes(store) // decoder.config.kda_heads for name, store in stores.items()}
    memory, lengths = memory_table(p.drafts + 1), acceptance.table(mean, expected, p.drafts)
    size, slots = decoder.config.kda_key_dim, stores["ring"].slots
    events = view.events(p, size, plain, speculation.tokens, same, log, slots, held)
    shown = state_itself.events(states, plain.inputs[p.layer - 1].g, *_frames(plain, log, states, p))
    return Result(
        metrics=[*_metrics(p, same, mean, expected, held, margin), *_work(p, rounds, shown)],
        checks=_checks(p, same, deviations, plain, memory),
        tables={"rounds": rounds_table(rounds, events["letters"]), "stores": stores_table(log, held, deviations),
                "memory": memory, "shares": shares_table(memory), "acceptance": lengths,
                "lengths": acceptance.chart_table(lengths),
                "positions": acceptance.positions_table(acceptance_by_position(rounds)),
                "gates": state_itself.gates_table(plain.inputs, p.layer - 1)},
        figures=[view.memory_figure(), acceptance.figure(), acceptance.positions_figure(),
                 state_itself.gates_figure()],
        scenes=[Scene("rounds", Text("Verify rounds"), events, view.captions(events), view.poster(events)),
                Scene("state", Text("The state itself"), shown, state_itself.captions(shown),
                      len(shown["frames"]) - 1)],
        answer=sum(mean > bound for bound in BOUNDS),
        answer_text=_answer(p, mean, expected),
    )


def _frames(plain: tiny_text.Plain, log: list, states: list, p) -> tuple:
    """For every state: how many tokens the text has read, which were new, and how far off plain decoding it is."""
    ends = [0, *(r["read"] + len(r["choices"]) for r in log)]
    letters = view.alphabet(p.source)
    reads = [len(plain.ids) + end for end in ends]
    said = ["", *(view.glyphs([r["window"][0], *r["choices"][:-1]], letters) for r in log)]
    off = [float(np.max(np.abs(state - plain.states[end][p.layer - 1]))) for state, end in zip(states, ends)]
    return reads, said, off


def memory_table(window: int) -> Table:
    """Bytes of a window at the four head sizes, measured on real arrays and by formula, one head."""
    rows = []
    for index, size in enumerate(SIZES):
        state, conv = np.zeros((1, size, size), np.float32), np.zeros((3, 3 * size), np.float32)
        snapshots = held_bytes(SnapshotStore(state, conv, window))
        records = held_bytes(ProjectionStore(state, conv, window))
        head = Recurrent("kda", heads=1, key_heads=1, dk=size, dv=size, conv_kernel=4)
        fields = LAYOUTS["fp32"].with_conv(True)
        formula = window * recurrent_state_bytes(head), window * record_bytes(head, fields)
        rows.append((f"S{index}", size, snapshots, records, records / snapshots, *formula))
    return Table((Column("size", Text("size")), Column("d", Text("dk = dv")),
                  Column("snapshots", Text("snapshots"), unit="B"),
                  Column("records", Text("records"), unit="B"),
                  Column("ratio", Text("records / snapshots"), "float", scale=1.0),
                  Column("snapshots_formula", Text("snapshots, by formula"), unit="B"),
                  Column("records_formula", Text("records, by formula"), unit="B")),
                 rows, Text("A window of {count} positions, one head, arrays measured", count=window))


def shares_table(memory: Table) -> Table:
    """The same, normalised to the snapshots, for the chart."""
    rows = []
    for size, d, snapshots, records, ratio, *_ in memory.rows:
        rows += [(f"{size} · {d}", "snapshot", 1.0, number(1.0), snapshots),
                 (f"{size} · {d}", "record", ratio, number(ratio, 2), records)]
    return Table((Column("size", Text("size")), Column("design", Text("design")),
                  Column("share", Text("of the snapshots"), "float", scale=1.0),
                  Column("label", Text("of the snapshots")),
                  Column("bytes", Text("bytes per window"), unit="B")), rows)


def rounds_table(rounds: list, letters: str) -> Table:
    """Every verify round, its tokens as characters."""
    rows = []
    for index, r in enumerate(rounds):
        parts = r.drafted, r.drafted[: r.accepted], r.rejected, (r.bonus,)
        rows.append((index + 1, *(view.glyphs(part, letters) for part in parts), len(r.tokens), r.margin))
    return Table((Column("round", Text("round")), Column("drafted", Text("drafted")),
                  Column("accepted", Text("accepted")), Column("rejected", Text("rejected")),
                  Column("bonus", Text("bonus")), Column("gained", Text("tokens gained")),
                  Column("margin", Text("smallest logit margin"), "float", scale=10.0, tolerance=1e-5)),
                 rows, Text("The rounds"))


def stores_table(log: list, held: dict, deviations: dict) -> Table:
    """What each store keeps and what its rollbacks touched."""
    flushes = sum(entry["flushed"] for entry in log)
    rows = [(f"store:{name}", view.STORE_WORDS[name], held[name], view.COMMIT_WORDS[name],
             flushes if name == "ring" else len(log), deviations[name]) for name in STORES]
    return Table((Column("id", Text("id")), Column("store", Text("store")),
                  Column("held", Text("held, one head"), unit="B"),
                  Column("commit", Text("what a rollback does")),
                  Column("writes", Text("rounds that write S")),
                  Column("deviation", Text("off plain decoding by"), "float", scale=1.0, tolerance=1e-5)),
                 rows, Text("Four stores, the same drafts, {count} rounds", count=len(log)))


def _checks(p, same: int, deviations: dict, plain: tiny_text.Plain, memory: Table) -> list:
    exact = max(deviations["snapshots"], deviations["projections"])
    close = max(deviations["corrected"], deviations["ring"])
    allowed = ROUNDING * max(1.0, *(float(np.max(np.abs(layers[0]))) for layers in plain.states))
    largest = max(row[4] for row in memory.rows)
    text = Text("all {count} tokens", count=p.tokens) if same == p.tokens else Text(
        "{same} equal tokens, then token {next} differs", same=same, next=same + 1)
    return [
        Check("text_equal", Text("the text with drafts equals plain decoding"), same == p.tokens, text,
              Text("{count} equal tokens", count=p.tokens)),
        Check("states_bit_equal", Text("after every round, snapshots and replayed projections hold the state "
              "of plain decoding to the bit (first layer)"), exact == 0, exact, Text("a difference of 0")),
        Check("states_close", Text("corrected values and ring hold it within rounding"), close <= allowed,
              close, Text("at most {bound}", bound=number(allowed, 2))),
        Check("arrays_as_formula", Text("the arrays of all four sizes are as large as the formula says"),
              all(row[2:4] == row[5:7] for row in memory.rows), sum(row[2] + row[3] for row in memory.rows),
              sum(row[5] + row[6] for row in memory.rows), "B"),
        Check("under_claim", Text("records stay under {share} of the snapshots at every size",
              share=str(CLAIMED_RATIO)), largest < CLAIMED_RATIO, largest,
              Text("less than {bound}", bound=str(CLAIMED_RATIO))),
    ]


def _metrics(p, same: int, mean: float, expected, held: dict, margin: float) -> list:
    best, ratio = acceptance.PUBLISHED[0], held["projections"] / held["snapshots"]
    return [
        Metric("tokens_equal", Text("tokens equal to plain decoding"), same == p.tokens,
               text=Text("{same} of {count}", same=same, count=p.tokens)),
        Metric("accepted_mean", Text("tokens per verify round, bonus included"), mean, kind="float",
               scale=1.0),
        Metric("snapshot_bytes", Text("snapshots of the window, one head"), held["snapshots"], "B"),
        Metric("projection_bytes", Text("projections of the window, one head"), held["projections"], "B"),
        Metric("bytes_ratio", Text("projections / snapshots"), ratio, kind="float", scale=1.0),
        Metric("accepted_expected", Text("tokens per round in theory"), expected, badge="derived",
               kind="float", scale=1.0),
        Metric("published_mean", Text("tokens per round, {name}, {task}", name=best.draft, task=best.task),
               best.mean, badge="published", kind="float", scale=1.0,
               text=Text("{mean} of {most}", mean=number(best.mean), most=best.most)),
        Metric("margin", Text("smallest lead of a chosen token, in logits"), margin, kind="float", scale=10.0,
               tolerance=1e-5, text=tiny_text.margin_words(margin)),
    ]


def _work(p, rounds: list, shown: dict) -> list:
    """What speculation saves and what it costs, counted: passes over the weights, and positions computed in them."""
    positions, plain = sum(1 + len(r.drafted) for r in rounds), p.tokens - 1
    heads = shown["frames"][-1]["lives"]
    return [
        Metric("passes", Text("forward passes after the prompt"), len(rounds),
               text=Text("{passes}, plain decoding {plain}", passes=len(rounds), plain=plain)),
        Metric("positions", Text("token positions computed in them"), positions,
               text=Text("{positions}, plain decoding {plain}", positions=positions, plain=plain)),
        Metric("half_life", Text("half of the gates of layer {layer} forget within", layer=p.layer),
               float(np.median(heads)), "tokens", kind="float", scale=1.0, tolerance=1e-3,
               text=Text("{n} tokens", n=number(float(np.median(heads)), 3))),
    ]


def _answer(p, mean: float, expected) -> Text:
    if p.fault != "none":
        return Text("It is {mean}, and it says nothing about whether the text is right.", mean=number(mean, 3))
    if expected is None:
        return Text("It is {mean}. Looking back helps only where the text repeats itself.",
                    mean=number(mean, 3))
    return Text("It is {mean}. A round ends at the first wrong draft, so of {drafts} drafts {kept} are kept "
                "on average, not {naive}; the bonus token comes on top.", mean=number(mean, 3),
                drafts=p.drafts, kept=number(expected - 1, 3), naive=number(p.acceptance * p.drafts, 3))


_STATE_CHECKS = ("text_equal", "states_bit_equal", "states_close")
EXPERIMENT = Experiment(
    slug="speculative-replay", tab=1, family="state",
    name=Text("Speculative replay"),
    title=Text("Speculative replay: taking drafts back"),
    question=Text("A recurrent state cannot forget a rejected draft. What must be kept during a verify round "
                  "so that the text comes out as if there had been no drafts?"),
    params=(
        tiny_text.source_param(("random", Text("random weights"))),
        Param("prompt", Text("Prompt"), "text", "to be or not to be", max_length=tiny_text.MOST_CHARACTERS,
              multiline=True, help=Text("One token per character. Random weights know a to z, space, and , . ' - ?; "
                                        "the trained model reads ASCII and knows Python.")),
        tiny_text.CHOOSING,
        Param("drafts", Text("Draft tokens per round"), "int", 4, 0, 7, 1,
              help=Text("The window holds one position more: the last chosen token, which is always right.")),
        Param("acceptance", Text("A draft is right with probability"), "float", 0.7, 0, 1, 0.05,
              when=("draft", ("oracle",))),
        Param("draft", Text("Drafts come from"), "choice", "oracle", choices=(
            ("oracle", Text("an oracle with noise")), ("lookup", Text("looking up the text so far")))),
        Param("store", Text("The decoder runs on"), "choice", "projections",
              choices=tuple(view.STORE_WORDS.items()),
              help=Text("The other three get the same inputs and only watch.")),
        Param("head", Text("Head size dk = dv"), "choice", 16, when=("source", ("random",)),
              choices=tuple((size, f"S{index} · {size}") for index, size in enumerate(SIZES))),
        Param("tokens", Text("New tokens"), "int", 24, 8, 48, 1),
        Param("layer", Text("KDA layer whose state is drawn"), "choice", 1, choices=((1, "1"), (2, "2"), (3, "3"))),
        Param("fault", Text("Mistake"), "choice", "none", breaker=True, choices=(
            ("none", Text("none")), ("conv", Text("forget the convolution window")),
            ("drafted", Text("advance by the drafted count")), ("column", Text("always take column 0")))),
    ),
    presets=(
        Preset("real-text", Text("A real text"), Text("The trained model goes on with Python source; drafts are what "
                                                      "followed the same characters before. Fewer passes, more "
                                                      "positions: which of the two is time depends on the machine."),
               {"source": "text", "prompt": "def width(self):\n    return self._width\n\ndef height", "draft": "lookup",
                "tokens": 32}),
        Preset("drawn-text", Text("A real text, drawn"), Text("At temperature 0.8 the text repeats itself less, and "
               "look-up finds less. Noise belongs to the position, so drafts change no letter."),
               {"source": "text", "prompt": "class Queue:\n    def ", "choosing": "sampled", "draft": "lookup",
                "tokens": 32, "layer": 2}, seed=3),
        Preset("gsm8k", Text("An easy task"), Text("Acceptance as implied by the published 4.581 of 6 tokens "
               "per round (K3-DSpark-Block5, GSM8K). Most windows are kept whole."),
               {"drafts": 5, "acceptance": 0.9, "tokens": 30}, seed=5),
        Preset("aime", Text("A hard task"), Text("The same draft model on AIME26: 2.489 of 6. More than half "
               "of what is drafted is taken back."), {"drafts": 5, "acceptance": 0.6, "tokens": 30}),
        Preset("hopeless", Text("Every draft wrong"), Text("One token per round, as without drafts, and the "
               "same text: drafts cost time, never words."), {"acceptance": 0.0}),
        Preset("lookup", Text("Look up the text"), Text("No draft model: what followed the same characters "
               "before. Rounds without a match draft nothing."), {"draft": "lookup", "tokens": 30}),
        Preset("k3-head", Text("A head of K3's size"), Text("At 128 × 128 the records are 0.047 of the "
               "snapshots: beside a state, a record is a line."), {"head": 128}),
        Preset("forget-conv", Text("Forget the convolution"), Text("The recurrent state is right, its inputs "
               "are not. The text departs, and look-up finds more matches in it: acceptance rises while the "
               "output is wrong."), {"draft": "lookup", "tokens": 30, "fault": "conv"}, breaks=_STATE_CHECKS),
        Preset("count-drafts", Text("Count the drafts"), Text("Rejected drafts stay in state and cache. The "
               "text departs soon after the first rejection."), {"fault": "drafted"}, breaks=_STATE_CHECKS),
        Preset("column-zero", Text("Column 0"), Text("Text and cache advance by what was accepted, the state "
               "by one token."), {"fault": "column"}, breaks=_STATE_CHECKS),
    ),
    prediction=Prediction(
        Text("How many tokens does one verify round add to the text on average, the bonus token included?"),
        (Text("up to 1.5"), Text("1.5 to 2.5"), Text("2.5 to 3.5"), Text("3.5 to 5"), Text("more than 5"))),
    function=run,
    draw={"rounds": view.draw_rounds, "state": state_itself.draw},
    code=(Speculation.commit, ProjectionStore.keep, SnapshotStore.keep, StateStore.shift_conv),
    pace=pace.parts,
)

"""Tab `speculative-replay`: a decoder takes its rejected drafts back, with four stores side by side."""

from functools import cache, partial

import numpy as np

from k3core.decode import HybridDecoder, NoisyOracle, PromptLookup, Speculation
from k3core.lab import acceptance
from k3core.lab import speculative_replay_view as view
from k3core.lab.byte_cost import LAYOUTS
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
from k3core.lab.params import Param, ParamError, shown
from k3core.lab.text import Text
from k3core.models import Recurrent
from k3core.replayssm import CorrectedStore, ProjectionStore, RingStore, SnapshotStore
from k3core.replayssm.stores import StateStore
from k3core.sizing import record_bytes, recurrent_state_bytes

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.'-?"  # one token per character
# dk = dv -> seed of the weights, picked so that the text of the default prompt varies and no choice is nearly tied.
WEIGHT_SEEDS = {16: 4, 32: 48, 64: 39, 128: 18}
SIZES = tuple(WEIGHT_SEEDS)  # S0, S1, S2, S3
RING_BUFFER = 8
LEAST_MARGIN = 1e-4  # float32 logits of two platforms differ by about 1e-6
ROUNDING = 2.0**-18  # per element of a state of order 1: tens of float32 roundings, each 2^-24
CLAIMED_RATIO = 0.4
STEPS_PER_PROGRESS = 6  # plain steps between two reports
ANSWERS = (1.5, 2.5, 3.5, 5.0)  # bounds between the options of the prediction


class SmallRing(RingStore):
    """The ring with a buffer so short that it flushes within a few rounds."""

    def __init__(self, state, conv, window):
        super().__init__(state, conv, window, buffer=RING_BUFFER)


STORES = {"snapshots": SnapshotStore, "projections": ProjectionStore, "corrected": CorrectedStore, "ring": SmallRing}


class ForgetsConv:
    """Mistake: the recurrent state is rolled back, the inputs of the short convolution are not looked after."""

    def shift_conv(self, accepted):
        pass


class KeepsColumnZero:
    """Mistake: the next round starts from the state after the first token of the window, whatever was accepted."""

    def keep(self, accepted):
        super().keep(1)


class AdvancesByDrafted(Speculation):
    """Mistake: the memories advance by what was drafted, the text by what was accepted."""

    def count_to_keep(self, round):
        return 1 + len(round.drafted)


MISTAKES = {"conv": (ForgetsConv,), "column": (KeepsColumnZero,)}  # mixed into every store


class SideBySide:
    """The four stores behind one KDA layer, all fed with the same tokens; the decoder hears `answering`."""

    def __init__(self, state, conv, window, answering, fault):
        mixed = MISTAKES.get(fault, ())
        self.stores = {name: type(name, (*mixed, store), {})(state, conv, window) for name, store in STORES.items()}
        self.answering = answering

    @property
    def conv(self):
        return self.stores[self.answering].conv

    def advance(self, tokens):
        return {name: store.advance(tokens) for name, store in self.stores.items()}[self.answering]

    def commit(self, accepted):
        for store in self.stores.values():
            store.commit(accepted)


@cache
def model(size: int) -> HybridDecoder:
    """The decoder of this page: three KDA layers and one MLA layer in K3's shape, one head, float32, exact mode."""
    rng = np.random.default_rng(WEIGHT_SEEDS[size])
    return HybridDecoder.random_k3(rng, hidden=32, heads=1, key_dim=size, value_dim=size, vocab=len(ALPHABET),
                                   dtype=np.float32)


def encode(prompt: str) -> list:
    """A prompt as token ids. Raises ParamError."""
    for character in prompt:
        if character not in ALPHABET:
            raise ParamError("prompt", Text("prompt holds {character}; the model knows only {alphabet} and the space",
                                            character=shown(character), alphabet=ALPHABET.replace(" ", "")))
    if not prompt:
        raise ParamError("prompt", Text("prompt is empty; it takes at least one character"))
    return [ALPHABET.index(character) for character in prompt]


def plain(decoder: HybridDecoder, ids: list, n: int):
    """Plain greedy decoding, a generator of Progress -> (n tokens, states of the first layer, smallest margin).

    states[i] is the first KDA layer's state [1, dk, dv] when prompt and i new tokens have been read."""
    logits, state = decoder.prefill(ids)
    row, tokens, states, margin = logits[-1], [], [], np.inf
    while True:
        second, first = np.sort(row)[-2:]
        margin = min(margin, float(first - second))
        tokens.append(int(np.argmax(row)))
        states.append(state.memories[0].state)
        if len(tokens) == n:
            return tokens, states, margin
        row = decoder.step(tokens[-1], state)
        if len(tokens) % STEPS_PER_PROGRESS == 0:
            yield Progress(len(tokens), 2 * n)


def speculate(speculation: Speculation, n: int, states: list):
    """Decode n tokens in verify rounds, a generator of Progress -> (rounds, their log, deviations).

    deviations: for each store, the largest difference of its first layer's state from plain decoding, after any
    round."""
    stores = speculation.stores[0].stores
    ring, rounds, log = stores["ring"], [], []
    deviations = dict.fromkeys(stores, 0.0)
    while len(speculation.tokens) < n:
        read, base, write_pos, flushing = len(speculation.tokens) - 1, ring.base, ring.write_pos, ring.flushing
        round = speculation.verify(n - len(speculation.tokens) - 1)
        slots = ring.slots_of(write_pos, write_pos + 1 + len(round.drafted)).tolist()
        speculation.commit(round)
        rounds.append(round)
        log.append({
            "read": read, "window": [round.pending, *round.drafted], "choices": list(round.tokens),
            "accepted": round.accepted, "told": speculation.count_to_keep(round), "slots": slots,
            "before": (base, write_pos), "after": (ring.base, ring.write_pos), "flushed": flushing,
        })
        for name, store in stores.items():
            off = float(np.max(np.abs(store.state - states[len(speculation.tokens) - 1])))
            deviations[name] = max(deviations[name], off)
        yield Progress(n + len(speculation.tokens), 2 * n)
    return rounds, log, deviations


def held_bytes(store: StateStore) -> int:
    """Bytes that a store keeps for taking drafts back, one layer: its arrays, and for records the convolution's
    inputs of the window. Snapshots need those inputs too; only the records are charged, as their claim is the
    one at stake."""
    arrays = sum(array.nbytes for array in store.held().values())
    return arrays if "states" in store.held() else arrays + store.conv_rows[len(store.conv):].nbytes


def run(p, seed: int):
    """Decode the prompt plainly and with drafts, compare, and count the bytes of the window at four head sizes."""
    decoder, ids, window = model(p.head), encode(p.prompt), p.drafts + 1
    tokens, states, plain_margin = yield from plain(decoder, ids, p.tokens)
    if p.draft == "lookup":
        draft = PromptLookup()
    else:
        draft = NoisyOracle(ids + tokens, p.acceptance, len(ALPHABET), np.random.default_rng(seed))
    make = AdvancesByDrafted if p.fault == "drafted" else Speculation
    speculation = make(decoder, ids, draft, partial(SideBySide, answering=p.store, fault=p.fault), p.drafts)
    rounds, log, deviations = yield from speculate(speculation, p.tokens, states)
    same = next((i for i in range(p.tokens) if tokens[i] != speculation.tokens[i]), p.tokens)
    margin = min([plain_margin, *(round.margin for round in rounds)])
    stores = speculation.stores[0].stores
    held = {name: held_bytes(store) for name, store in stores.items()}
    memory = memory_table(window)
    mean, expected = (p.tokens - 1) / len(rounds), None if p.draft == "lookup" else acceptance.mean_tokens(p.acceptance, p.drafts)
    said = acceptance.table(mean, expected, p.drafts)
    events = view.events(p, [*ids, *tokens], [*ids, *speculation.tokens], len(ids), same, log, ring_slots=stores["ring"].slots, held=held)
    return Result(
        metrics=_metrics(p, same, mean, expected, held, margin),
        checks=_checks(p, same, deviations, margin, memory),
        tables={"rounds": rounds_table(rounds), "stores": stores_table(log, held, deviations), "memory": memory,
                "shares": shares_table(memory), "acceptance": said, "lengths": acceptance.lengths(said)},
        figures=[view.memory_figure(), acceptance.figure(said)],
        scenes=[Scene("rounds", Text("Verify rounds"), events, view.captions(events), poster=view.poster(events))],
        answer=sum(mean > bound for bound in ANSWERS),
        answer_text=_answer(p, mean),
    )


def memory_table(window: int) -> Table:
    """Bytes of a window at the four head sizes, measured on real arrays and by formula, one head."""
    rows = []
    for index, size in enumerate(SIZES):
        state, conv = np.zeros((1, size, size), np.float32), np.zeros((3, 3 * size), np.float32)
        snapshots, records = (held_bytes(store(state, conv, window)) for store in (SnapshotStore, ProjectionStore))
        head = Recurrent("kda", heads=1, key_heads=1, dk=size, dv=size, conv_kernel=4)
        formula = window * recurrent_state_bytes(head), window * record_bytes(head, LAYOUTS["fp32"].with_conv(True))
        rows.append((f"S{index}", size, snapshots, records, records / snapshots, *formula))
    return Table((Column("size", Text("size")), Column("d", Text("dk = dv")),
                  Column("snapshots", Text("snapshots"), unit="B"), Column("records", Text("records"), unit="B"),
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
                  Column("share", Text("of the snapshots"), "float", scale=1.0), Column("label", Text("of the snapshots")),
                  Column("bytes", Text("bytes per window"), unit="B")), rows)


def rounds_table(rounds: list) -> Table:
    """Every verify round in words."""
    said = view.glyphs
    rows = [(i + 1, said(r.drafted), said(r.drafted[: r.accepted]), said(r.rejected), said([r.bonus]), len(r.tokens), r.margin)
            for i, r in enumerate(rounds)]
    return Table((Column("round", Text("round")), Column("drafted", Text("drafted")), Column("accepted", Text("accepted")),
                  Column("rejected", Text("rejected")), Column("bonus", Text("bonus")), Column("gained", Text("tokens gained")),
                  Column("margin", Text("smallest logit margin"), "float", scale=10.0, tolerance=1e-5)),
                 rows, Text("The rounds"))


def stores_table(log: list, held: dict, deviations: dict) -> Table:
    """What each store keeps and what its rollbacks touched."""
    writes = {name: len(log) for name in STORES} | {"ring": sum(entry["flushed"] for entry in log)}
    rows = [(f"store:{name}", view.STORE_WORDS[name], held[name], view.COMMIT_WORDS[name], writes[name], deviations[name])
            for name in STORES]
    return Table((Column("id", Text("id")), Column("store", Text("store")), Column("held", Text("held, one head"), unit="B"),
                  Column("commit", Text("what a rollback does")), Column("writes", Text("rounds that write S")),
                  Column("deviation", Text("off plain decoding by"), "float", scale=1.0, tolerance=1e-5)),
                 rows, Text("Four stores, the same drafts, {count} rounds", count=len(log)))


def _checks(p, same: int, deviations: dict, margin: float, memory: Table) -> list:
    exact = max(deviations["snapshots"], deviations["projections"])
    close = max(deviations["corrected"], deviations["ring"])
    ratios = [row[4] for row in memory.rows]
    measured = Text("all {count} tokens", count=p.tokens) if same == p.tokens else Text(
        "{same} equal tokens, then token {next} differs", same=same, next=same + 1)
    return [
        Check("tokens_equal", Text("the text with drafts equals plain decoding"), same == p.tokens, measured,
              Text("{count} equal tokens", count=p.tokens)),
        Check("states_bit_equal", Text("after every round, snapshots and replayed projections hold the state of plain "
              "decoding to the bit (first layer)"), exact == 0, exact, Text("a difference of 0")),
        Check("states_close", Text("corrected values and ring hold it within rounding"), close <= ROUNDING, close,
              Text("at most {bound}", bound=number(ROUNDING, 2))),
        Check("margin", Text("no choice was a near tie: the tokens would be the same on another machine"),
              margin >= LEAST_MARGIN, margin, Text("at least {bound}", bound=number(LEAST_MARGIN))),
        Check("arrays_as_formula", Text("the arrays of all four sizes are as large as the formula says"),
              all(row[2:4] == row[5:7] for row in memory.rows), sum(row[2] + row[3] for row in memory.rows),
              sum(row[5] + row[6] for row in memory.rows), "B"),
        Check("under_claim", Text("records stay under {share} of the snapshots at every size", share=str(CLAIMED_RATIO)),
              max(ratios) < CLAIMED_RATIO, max(ratios), Text("less than {bound}", bound=str(CLAIMED_RATIO))),
    ]


def _metrics(p, same: int, mean: float, expected, held: dict, margin: float) -> list:
    best = acceptance.PUBLISHED[0]
    return [
        Metric("tokens_equal", Text("tokens equal to plain decoding"), same == p.tokens,
               text=Text("{same} of {count}", same=same, count=p.tokens)),
        Metric("accepted_mean", Text("tokens per verify round, bonus included"), mean, kind="float", scale=1.0),
        Metric("snapshot_bytes", Text("snapshots of the window, one head"), held["snapshots"], "B"),
        Metric("projection_bytes", Text("projections of the window, one head"), held["projections"], "B"),
        Metric("bytes_ratio", Text("projections / snapshots"), held["projections"] / held["snapshots"], kind="float", scale=1.0),
        Metric("accepted_expected", Text("tokens per round in theory"), expected, kind="float", scale=1.0, badge="derived"),
        Metric("published_mean", Text("tokens per round, {name}, {task}", name=best.draft, task=best.task), best.mean,
               badge="published", kind="float", scale=1.0, text=Text("{mean} of {most}", mean=number(best.mean), most=best.most)),
        Metric("margin", Text("smallest lead of a chosen token, in logits"), margin, kind="float", scale=10.0, tolerance=1e-5),
    ]


def _answer(p, mean: float) -> Text:
    if p.draft == "lookup":
        return Text("It is {mean}. Looking up the prompt helps only where the text repeats itself.", mean=number(mean, 3))
    drafts = acceptance.mean_tokens(p.acceptance, p.drafts) - 1
    return Text("It is {mean}. A round ends at the first wrong draft, so of {drafts} drafts {kept} are kept on average, not "
                "{naive}; the bonus token comes on top.", mean=number(mean, 3), drafts=p.drafts, kept=number(drafts, 3),
                naive=number(p.acceptance * p.drafts, 3))


EXPERIMENT = Experiment(
    slug="speculative-replay", tab=1, family="state",
    name=Text("Speculative replay"),
    title=Text("Speculative replay: taking drafts back"),
    question=Text("A recurrent state cannot forget a rejected draft. What must be kept during a verify round so that the text "
                  "comes out as if there had been no drafts?"),
    params=(
        Param("drafts", Text("Draft tokens per round"), "int", 4, 0, 7, 1,
              help=Text("The window holds one position more: the last chosen token, which is always right.")),
        Param("acceptance", Text("A draft is right with probability"), "float", 0.7, 0, 1, 0.05,
              help=Text("Of the oracle. Prompt look-up has no such setting.")),
        Param("draft", Text("Drafts come from"), "choice", "oracle",
              choices=(("oracle", Text("an oracle with noise")), ("lookup", Text("looking up the text so far")))),
        Param("store", Text("The decoder runs on"), "choice", "projections",
              choices=tuple((name, words) for name, words in view.STORE_WORDS.items()),
              help=Text("The other three get the same inputs and only watch.")),
        Param("head", Text("Head size dk = dv"), "choice", 16,
              choices=tuple((size, f"S{index} · {size}") for index, size in enumerate(SIZES))),
        Param("prompt", Text("Prompt"), "text", "to be or not to be", max_length=32,
              help=Text("One token per character: a to z, space, and , . ' - ?")),
        Param("tokens", Text("New tokens"), "int", 24, 8, 48, 1),
        Param("fault", Text("Mistake"), "choice", "none", breaker=True, choices=(
            ("none", Text("none")), ("conv", Text("forget the convolution window")),
            ("drafted", Text("advance by the drafted count")), ("column", Text("always take column 0")))),
    ),
    presets=(
        Preset("gsm8k", Text("An easy task"), Text("Acceptance as implied by the published 4.581 of 6 tokens per round "
               "(K3-DSpark-Block5, GSM8K). Most windows are kept whole."), {"drafts": 5, "acceptance": 0.9, "tokens": 32}),
        Preset("aime", Text("A hard task"), Text("The same draft model on AIME26: 2.489 of 6. More than half of what is drafted "
               "is taken back."), {"drafts": 5, "acceptance": 0.6, "tokens": 32}),
        Preset("hopeless", Text("Every draft wrong"), Text("One token per round, as without drafts, and the same text: drafts "
               "cost time, never words."), {"acceptance": 0.0}),
        Preset("lookup", Text("Look up the text"), Text("No draft model: what followed the same characters before. Rounds "
               "without a match draft nothing."), {"draft": "lookup", "tokens": 32}),
        Preset("k3-head", Text("A head of K3's size"), Text("At 128 × 128 the records are 0.047 of the snapshots, and the strips "
               "are hard to see."), {"head": 128}),
        Preset("forget-conv", Text("Forget the convolution"), Text("The recurrent state is right, its inputs are not. The text "
               "departs, and look-up finds more matches in it: acceptance rises while the output is wrong."),
               {"draft": "lookup", "tokens": 32, "fault": "conv"}, breaks=("tokens_equal", "states_bit_equal", "states_close")),
        Preset("count-drafts", Text("Count the drafts"), Text("Rejected drafts stay in state and cache. The text departs "
               "soon after the first rejection."), {"fault": "drafted"},
               breaks=("tokens_equal", "states_bit_equal", "states_close")),
        Preset("column-zero", Text("Column 0"), Text("Text and cache advance by what was accepted, the state by one token."),
               {"fault": "column"}, breaks=("tokens_equal", "states_bit_equal", "states_close")),
    ),
    prediction=Prediction(
        Text("How many tokens does one verify round add to the text on average, the bonus token included?"),
        (Text("up to 1.5"), Text("1.5 to 2.5"), Text("2.5 to 3.5"), Text("3.5 to 5"), Text("more than 5"))),
    function=run,
    draw={"rounds": view.draw_rounds},
    code=(Speculation.commit, ProjectionStore.keep, SnapshotStore.keep, StateStore.shift_conv),
)

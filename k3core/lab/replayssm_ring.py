"""Tab `replayssm-ring`: the last tokens' records in a ring, the state written only when it is nearly full."""

from math import log
from types import SimpleNamespace

import numpy as np

from k3core.bf16 import from_bf16, to_bf16
from k3core.kda import KDATokens, gate_lower_bound, kda_recurrent, l2norm
from k3core.lab import replayssm_ring_costs as costs
from k3core.lab import replayssm_ring_text as words
from k3core.lab import replayssm_ring_view as view
from k3core.lab import tiny_text
from k3core.lab.contract import Check, Experiment, Metric, Prediction, Preset, Progress, Result, Scene
from k3core.lab.display import number
from k3core.lab.params import Param, ParamError
from k3core.lab.state_itself import pool
from k3core.lab.text import Text
from k3core.models import Recurrent
from k3core.replayssm import (
    RingStore,
    best_length,
    best_length_approximation,
    fold,
    largest_stable_length,
    ring_bytes,
    ring_cycle,
    snapshot_bytes,
    standard_speedup,
)
from k3core.sizing import RECOVER_RECORD, REPLAY_RECORD, record_bytes, recurrent_state_bytes

STEPS = 40  # verify steps that the scene shows
PREFILL = 24  # tokens that the state has read before the first step
LONG_RUN = 2000  # steps of the cursor alone
DK, DV = 10, 14  # the small head whose state is drawn
CONV = 4  # channels of its convolution window; the ring does not touch it
HEAD = Recurrent("kda", heads=1, key_heads=1, dk=128, dv=128, conv_kernel=4)  # bytes are those of a real head
GDN_HEADS = Recurrent("gdn", heads=2, key_heads=1, dk=128, dv=128, conv_kernel=4)
LAYOUTS = {
    "replay": (Text("k and u in bf16, g in fp32"), HEAD, REPLAY_RECORD),
    "recover": (Text("k and g in bf16, u in fp32"), HEAD, RECOVER_RECORD),
    "bf16": (Text("k, u and g in bf16"), HEAD, {"k": "bf16", "u": "bf16", "g": "bf16"}),
    "fp32": (Text("k, u and g in fp32"), HEAD, {"k": "fp32", "u": "fp32", "g": "fp32"}),
    "gdn": (Text("GDN: one gate per head, k shared by two"), GDN_HEADS, REPLAY_RECORD),
}
STATE_BYTES = recurrent_state_bytes(HEAD)
FLUSH_EVERY = (1, 2.3, 5.5, 14)  # the options of the prediction


def run(p, seed: int):
    """Turn the ring with real records, compare with plain decoding, and count the bytes of a real head."""
    check_sizes(p)
    rng = np.random.default_rng(seed)
    record = bytes_of_record(p.record)
    if p.source == "text":
        start, own, steps, text, margin = yield from words.read_steps(p, seed, CONV)
        law = words.law_of(steps)
        p = SimpleNamespace(**vars(p) | {"accepted": float(sum(kept * share for kept, share in law.items()))})
        accepted = [steps[i][1] for i in rng.integers(len(steps), size=LONG_RUN).tolist()]
        turned = (yield from turn(p, start, steps, own)) | {"letters": tiny_text.glyphs(text)}
        chosen = (tiny_text.margin_line(margin),)
    else:
        accepted = draw_accepted(p.accepted, STEPS + LONG_RUN, rng)
        start, steps = draw_steps(p, accepted[:STEPS], rng)
        law, accepted = costs.neighbours(costs.mean_of(p.accepted)), accepted[STEPS:]
        turned, chosen = (yield from turn(p, start, steps)) | {"letters": ""}, ()
    gaps, fullest = long_run(p, accepted)
    cycle = ring_cycle(costs.flush_buffer(p), p.window, law)
    every, measured = float(1 / cycle.flush_share), float(np.mean(gaps))
    spread = 5 * float(np.std(gaps)) / len(gaps) ** 0.5 + 0.01 * every
    capacity = p.buffer + p.window
    tables = costs.tables(p, STATE_BYTES, record, turned["slots"], LAYOUTS[p.record][2])
    return Result(
        metrics=_metrics(p, record, cycle, turned["moved"], chosen),
        checks=[
            Check("fits", Text("history and drafts never exceed the capacity"), fullest <= capacity, fullest,
                  Text("at most B + T = {n} records", n=capacity)),
            Check("state_restored", Text("state and outputs equal those of plain decoding, within rounding"),
                  turned["error"] <= turned["bound"], turned["error"],
                  Text("at most {bound}", bound=number(turned["bound"], 2))),
            Check("no_allocation", Text("ring, state and cursors stay where they were allocated"),
                  turned["moved"] == 0, turned["moved"], Text("0 arrays moved")),
            Check("flush_agrees", Text("over {steps} steps the cursor flushes as often as the formula says",
                                       steps=number(LONG_RUN)),
                  abs(measured - every) <= spread, measured,
                  Text("every {every} ± {spread} steps", every=number(every), spread=number(spread, 2))),
        ],
        tables=tables,
        figures=costs.figures(p, STATE_BYTES, record, tables),
        scenes=[Scene("ring", Text("The ring, one verify step per frame"),
                      view.events(p, STATE_BYTES, record, cycle, turned), view.captions(p, turned),
                      poster=view.poster(turned["events"]))],
        answer=min(range(len(FLUSH_EVERY)), key=lambda i: (abs(log(every / FLUSH_EVERY[i])), i)),
        answer_text=Text("With the settings shown it is one step in {every}.", every=number(every, 2)),
    )


def check_sizes(p):
    """Raises ParamError where window, buffer and accepted tokens do not go together."""
    if p.buffer < p.window:
        raise ParamError("buffer", Text(
            "{name} is {value}; it must hold at least one window of {window} tokens",
            name="buffer", value=p.buffer, window=p.window))
    if p.source == "text" and p.record == "gdn":
        raise ParamError("record", Text(
            "{name} is {value}; the trained model has a gate per channel, which a record must keep",
            name="record", value="gdn"))
    if p.source == "drawn" and p.accepted > p.window:
        raise ParamError("accepted", Text(
            "{name} is {value}; a window of {window} tokens takes 1 to {window}",
            name="accepted", value=number(p.accepted), window=p.window))


def bytes_of_record(layout: str) -> int:
    """Bytes of one record of one state (head) in a layout of `LAYOUTS`."""
    _, head, fields = LAYOUTS[layout]
    return record_bytes(head, fields) // head.heads


def draw_accepted(mean: float, steps: int, rng) -> list:
    """Accepted tokens of each step: one of the two whole numbers around the mean."""
    law = costs.neighbours(costs.mean_of(mean))
    low, share_above = min(law), float(law.get(min(law) + 1, 0))
    return [low + (draw < share_above) for draw in rng.random(steps).tolist()]


class LabRing(RingStore):
    """The ring with its records rounded as a layout keeps them; on request it flushes one window late."""

    def __init__(self, state, conv, window, buffer, fields, late):
        self.fields, self.late = fields, late
        super().__init__(state, conv, window, buffer)

    def must_flush(self):
        return self.write_pos + self.window > self.capacity if self.late else super().must_flush()

    def verify(self, tokens):
        o = super().verify(tokens)
        slots = self.slots_of(self.write_pos, self.write_pos + len(tokens.v))
        for name, array in self.held().items():
            if self.fields[name] == "bf16":
                array[slots] = from_bf16(to_bf16(array[slots]))
        return o


def draw_steps(p, accepted: list, rng) -> tuple:
    """(state behind a prefill, steps) of random tokens; accepted: tokens kept per step. A step is (KDATokens of the
    window, how many of them stay, no glyphs)."""
    true, wrong = (draw_tokens(len(accepted) * p.window, p, rng) for _ in range(2))
    _, start = kda_recurrent(*draw_tokens(PREFILL, p, rng)[:5])
    steps, done = [], 0
    for step, count in enumerate(accepted):
        right, rest = slice(done, done + count), slice(step * p.window + count, (step + 1) * p.window)
        window = KDATokens(*(np.concatenate([x[right], y[rest]]) for x, y in zip(true, wrong)))
        steps.append((window, count, ""))
        done += count
    return start, steps


def turn(p, start, steps: list, own=None):
    """Run verify steps through the ring and, beside it, plain decoding of the accepted tokens, from state `start`.

    own: the state that plain decoding of real text ended in. Yields Progress; returns the events of every step, the
    largest difference from plain decoding (`error`), what rounding allows (`bound`), how many arrays changed address
    (`moved`).
    """
    _, _, fields = LAYOUTS[p.record]
    ring = LabRing(start, np.zeros((3, CONV), np.float32), p.window, p.buffer, fields, p.flush_late)
    places, moved, events, outputs, done = addresses(ring), 0, [_event(ring, 0, 0, p.window, "")], [], 0
    for step, (window, count, said) in enumerate(steps):
        if step % 8 == 0:
            yield Progress(step, len(steps))
        event = _event(ring, done, count, len(window.v), said)
        o = ring.advance(window)
        ring.commit(count)
        outputs.append(o[:count])
        done += count
        before, places = places, addresses(ring)
        moved += sum(a != b for a, b in zip(before, places))
        events.append(event | _after(ring))
    kept = [[x[:count] for x in window[:5]] for window, count, _ in steps]
    o, state = kda_recurrent(*(np.concatenate(parts) for parts in zip(*kept)), start)
    state = state if own is None else own
    error = max(float(np.abs(np.concatenate(outputs) - o).max()), float(np.abs(ring.state - state).max()))
    scale = max(1.0, float(np.abs(start).max()), float(np.abs(state).max()))
    # A record in bf16 is off by 2^-9 of itself, a gate by up to 5 times that; decay stops it adding up.
    bound = (2.0**-5 if "bf16" in fields.values() else 2.0**-17) * scale
    return {"events": events, "error": error, "bound": bound, "moved": moved, "slots": ring.slots}


def addresses(store) -> list:
    """Where the arrays that a store keeps lie in memory."""
    kept = [store.checkpoint, store.conv_rows, *store.held().values()]
    return [array.__array_interface__["data"][0] for array in kept]


def draw_tokens(count: int, p, rng) -> KDATokens:
    """Random tokens of the small head: float32, keys normalised; most gates remember some 20 tokens."""
    q, k = (l2norm(rng.standard_normal((count, 1, DK), np.float32)) for _ in range(2))
    gates = 1 if p.record == "gdn" else DK
    z = rng.standard_normal((count, 1, gates), np.float32) - np.float32(4.5)
    g = gate_lower_bound(np.broadcast_to(z, (count, 1, DK)), np.zeros(1, np.float32), p.lower_bound)
    v = rng.standard_normal((count, 1, DV), np.float32)
    beta, conv = rng.random((count, 1), np.float32), rng.standard_normal((count, CONV), np.float32)
    return KDATokens(q, k, v, g, beta, conv)


def _event(ring: LabRing, done: int, count: int, read: int, said: str) -> dict:
    """The cursors before a step that will read `read` tokens and keep `count`; `done` tokens were kept before it, and
    `said` are the glyphs of those it reads."""
    before = {"base": ring.base, "write": ring.write_pos, "flush": ring.flushing}
    return before | {"done": done, "accepted": count, "read": read, "said": said} | _after(ring)


def _after(ring: LabRing) -> dict:
    return {"next_base": ring.base, "next_write": ring.write_pos, "next_flush": ring.flushing,
            "heat": pool(np.abs(ring.checkpoint), view.MOST_ROWS)[0].tolist()}


def long_run(p, accepted: list) -> tuple:
    """The cursor alone over many steps: (steps from each flush to the next, most records held at once)."""
    write = fullest = 0
    flushing, flushes = False, []
    look_ahead = p.window if p.flush_late else 2 * p.window
    for step, count in enumerate(accepted):
        fullest = max(fullest, write + p.window)
        if flushing:
            flushes.append(step)
        write = count if flushing else write + count
        flushing = write + look_ahead > p.buffer + p.window
    return np.diff(flushes), fullest


def _metrics(p, record: int, cycle, moved: int, chosen: tuple) -> list:
    """chosen: how surely the tokens of a real text were chosen, as lines."""
    baseline = snapshot_bytes(STATE_BYTES, p.window)
    moved_bytes = ring_bytes(STATE_BYTES, record, p.window, cycle)
    best, approximation = best_length(STATE_BYTES, record), best_length_approximation(STATE_BYTES, record)
    return [
        _real("flush_share", Text("steps that write the state"), cycle.flush_share, "share"),
        _real("bytes_per_step", Text("moved per step and head"), moved_bytes, "kB"),
        Metric("baseline_bytes_per_step", Text("with a state per position"), baseline, "kB"),
        _real("times_fewer", Text("fewer bytes than with snapshots"), baseline / moved_bytes, "×"),
        _real("rebuilt_records", Text("records folded again per step, on average"), cycle.mean_write_pos, ""),
        Metric("best_length", Text("best buffer for plain decoding, in tokens; √(2S/r) = {approximation}",
                                   approximation=number(approximation)), best),
        _real("best_speedup", Text("bound on its speed-up"), standard_speedup(STATE_BYTES, record, best),
              "×"),
        _real("accepted_mean", Text("tokens kept per step, on average"), p.accepted, "", chosen),
        Metric("largest_stable_length", Text("longest buffer if keys were stored pre-decayed"),
               largest_stable_length(p.lower_bound)),
        Metric("allocations_after_start", Text("arrays reallocated after the start"), moved),
    ]


def _real(key: str, label: Text, value, unit: str, how: tuple = ()) -> Metric:
    return Metric(key, label, float(value), unit, kind="float", scale=1.0, how=how)


EXPERIMENT = Experiment(
    slug="replayssm-ring", tab=4, family="state",
    name=Text("ReplaySSM ring"),
    title=Text("ReplaySSM: a ring of inputs around one state"),
    question=Text("Drafts may be rejected, and a recurrent state cannot be rolled back. If only the inputs of the last "
                  "tokens are kept, in a ring that never grows, how often must the state itself be written?"),
    params=(
        tiny_text.source_param(("drawn", Text("chance"))),
        tiny_text.prompt_param("def width(self):\n    return self._width\n\ndef height"),
        tiny_text.CHOOSING,
        words.HEAD,
        Param("window", Text("Window T"), "int", 4, 1, 12, 1,
              help=Text("One certain token and the drafts after it.")),
        Param("buffer", Text("Buffer B"), "int", 16, 1, 32, 1,
              help=Text("Capacity is L = B + T records; the arrays have the next power of two slots.")),
        Param("accepted", Text("Accepted per step, on average"), "float", 2.5, 1, 12, 0.5, when=("source", ("drawn",)),
              help=Text("With the certain token; a step accepts one of the two whole numbers around it.")),
        Param("record", Text("What a record keeps"), "choice", "replay",
              choices=tuple((name, title) for name, (title, _, _) in LAYOUTS.items())),
        Param("branching", Text("Branches of a draft tree"), "int", 2, 1, 4, 1,
              help=Text("For the chart of storage only.")),
        Param("lower_bound", Text("Lower bound of the gate"), "float", -5.0, -10.0, -0.5, 0.5,
              help=Text("K3: −5. It limits the buffer only where keys are stored pre-decayed.")),
        Param("flush_late", Text("Flush one window late"), "bool", False, breaker=True,
              help=Text("Waits until the next window itself no longer fits.")),
    ),
    presets=(
        Preset("real-text", Text("A real text"),
               Text("The trained model writes Python, and drafts are what followed the same characters before. Where "
                    "the text repeats itself whole windows stay; elsewhere there is nothing to draft, and a step keeps "
                    "one."),
               {"source": "text"}),
        Preset("window-4", Text("Window 4"),
               Text("K3 with 3 drafts, 2.5 tokens accepted: 18.13 % of the steps flush, 89.82 kB instead of "
                    "327.7 kB.")),
        Preset("window-8", Text("Window 8"),
               Text("K3 with 7 drafts, 2.5 tokens accepted: 25.40 % of the steps flush, 96.67 kB instead of "
                    "589.8 kB."), {"window": 8}),
        Preset("all-accepted", Text("All accepted"),
               Text("Every draft is right: the ring fills in two steps, every second step flushes, 118.8 kB "
                    "per step."), {"window": 8, "accepted": 8}),
        Preset("none-accepted", Text("No draft accepted"),
               Text("Only the certain token stays. The write cursor creeps, and the same slots are written "
                    "again and again."), {"window": 8, "accepted": 1}),
        Preset("gdn", Text("A scalar gate (GDN)"),
               Text("A record of 388 B: keeping more of them pays, the best buffer is 18 tokens instead of 11."),
               {"record": "gdn"}),
        Preset("late", Text("Flush late"),
               Text("Up to 23 records where 20 may be. Nothing is damaged, only because the ring has 32 "
                    "slots; and it looks cheaper."), {"flush_late": True}, breaks=("fits",)),
        Preset("late-tight", Text("Flush late, no slack"),
               Text("B = 12: 16 records in 16 slots. Now drafts overwrite records that no flush has saved, "
                    "and the state is wrong."),
               {"buffer": 12, "flush_late": True}, breaks=("fits", "state_restored")),
    ),
    prediction=Prediction(
        Text("A window of 4 tokens, a buffer of 16, 2.5 tokens accepted per step. How often must the state "
             "be written?"),
        (Text("every step"), Text("every second or third step"), Text("every fifth or sixth step"),
         Text("hardly ever"))),
    function=run,
    draw={"ring": view.draw_ring},
    code=(RingStore.must_flush, RingStore.keep, fold, ring_cycle, turn),
)

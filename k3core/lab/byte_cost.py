"""Tab `byte-cost`: what one draft token costs when states are snapshotted, and when its inputs are recorded."""

from dataclasses import dataclass

import numpy as np

from k3core.bf16 import from_bf16, to_bf16
from k3core.kda import gate_lower_bound, kda_update, l2norm
from k3core.lab import byte_cost_view as view
from k3core.lab.contract import Check, Column, Experiment, Metric, Prediction, Preset, Result, Scene, Table
from k3core.lab.display import binary_bytes, number
from k3core.lab.params import Param
from k3core.lab.text import Text
from k3core.models import Recurrent, load
from k3core.sizing import record_bytes, recurrent_state_bytes

ARTICLE_RATIO = 7.9  # the ratio a public demonstration of this mechanism reported, without its settings
SIZES = range(1, 257)
RATIOS = (4, 10, 40, 200)  # the options of the prediction


@dataclass(frozen=True)
class Layout:
    """What a record of one token keeps: field -> dtype. With u, the corrected value beta (v - S^T k), beta goes."""

    name: str
    title: Text
    fields: dict
    source: Text | str

    def with_conv(self, conv: bool) -> dict:
        """The fields, and on request the raw q, k, v that the short convolution needs after a rollback."""
        return self.fields | ({"conv": self.fields["k"]} if conv else {})


LAYOUTS = {layout.name: layout for layout in (
    Layout("fp32", Text("k, v, g, β in fp32"), {"k": "fp32", "v": "fp32", "g": "fp32", "beta": "fp32"},
           Text("the recurrence itself")),
    Layout("mixed", Text("k, v, β in bf16, g in fp32"), {"k": "bf16", "v": "bf16", "g": "fp32", "beta": "bf16"},
           Text("gate kept exact")),
    Layout("bf16", Text("k, v, g, β in bf16"), {"k": "bf16", "v": "bf16", "g": "bf16", "beta": "bf16"},
           Text("everything rounded")),
    Layout("recover", Text("u in fp32, k and g in bf16"), {"u": "fp32", "k": "bf16", "g": "bf16"},
           "vllm #51855 (RecoverSSM)"),
    Layout("sglang", Text("k and v in bf16, g and β in fp32"), {"k": "bf16", "v": "bf16", "g": "fp32", "beta": "fp32"},
           "sglang kda_replayssm_spec_decode.py"),
)}


def run(p, seed: int) -> Result:
    """Count the bytes of a window by formula and on real arrays, replay the records, and scale up to a model."""
    head = Recurrent("kda", heads=1, key_heads=1, dk=p.dk, dv=p.dv, conv_kernel=4)
    layout, window = LAYOUTS[p.layout], p.drafts + 1
    kept = layout.with_conv(p.conv)
    counted = kept if p.count_gate else {name: dtype for name, dtype in kept.items() if name != "g"}
    state, record = recurrent_state_bytes(head, dtype=p.state_dtype), record_bytes(head, counted)
    measured = measure(head, kept, p.state_dtype, window, np.random.default_rng(seed))
    best, best_ratio = nearest_size(layout, p.conv, p.state_dtype, ARTICLE_RATIO)
    times = state / record
    sizes, growth = view.sizes_table(p, layout, window), view.growth_table(p, layout, window)
    return Result(
        metrics=_metrics(window, state, record, best, best_ratio),
        checks=[
            Check("snapshots_measured", Text("the snapshot arrays are as large as the formula says"),
                  measured["snapshots"] == window * state, measured["snapshots"], window * state, "B"),
            Check("records_measured", Text("the record arrays are as large as the formula says"),
                  measured["records"] == window * record, measured["records"], window * record, "B"),
            Check("replay_restores", Text("replaying the records gives the last snapshot again"),
                  measured["error"] <= measured["bound"], measured["error"],
                  Text("at most {bound}", bound=number(measured["bound"], 2))),
        ],
        tables={
            "sizes": sizes,
            "growth": growth,
            "model_scale": model_scale_table(p, window),
            "ratio_7_9_at": ratio_table(p),
        },
        figures=[view.sizes_figure(sizes, p), view.growth_figure(growth)],
        scenes=[Scene("window", Text("A window of drafts, to scale"), view.events(p, kept, window, state, record),
                      view.captions(window, state, record), poster=window)],
        answer=int(np.argmin([abs(np.log(times / option)) for option in RATIOS])),
        answer_text=Text("It is {times} times: {state} against {record} per position.", times=number(times, 3),
                         state=binary_bytes(state), record=binary_bytes(record)),
    )


def measure(head: Recurrent, kept: dict, state_dtype: str, window: int, rng) -> dict:
    """Decode `window` random tokens, keep every state and every record in real arrays, replay the records.

    Returns bytes held (`snapshots`, `records`), the largest difference between the replayed and the last state
    (`error`) and what the rounding of the records allows (`bound`; 0 where everything is kept in fp32).
    """
    k = l2norm(rng.standard_normal((window, 1, head.dk), np.float32))
    v = rng.standard_normal((window, 1, head.dv), np.float32)
    g = gate_lower_bound(rng.standard_normal((window, 1, head.dk), np.float32), np.zeros(1, np.float32))
    beta = rng.random((window, 1), np.float32)
    start = rng.standard_normal((1, head.dk, head.dv), np.float32)
    inputs = {"k": k, "v": v, "g": g, "beta": beta, "u": np.empty_like(v),
              "conv": rng.standard_normal((window, 2 * head.dk + head.dv), np.float32)}

    snapshots, state = [], start
    for t in range(window):
        state, inputs["u"][t] = kda_update(k[t], v[t], g[t], beta[t], state)
        snapshots.append(store(state, state_dtype))
    records = {name: store(inputs[name], dtype) for name, dtype in kept.items()}
    replayed = replay({name: recall(array) for name, array in records.items()}, start)
    rounded = any(dtype == "bf16" for dtype in kept.values())
    # One bf16 rounding is 2^-9 relative; a gate of -5 turns it into 2^-7 of what it decays, at every token.
    scale = float(max(np.abs(state).max(), np.abs(v).max(), 1.0))
    bound = window * 2.0**-7 * scale if rounded else (window * 2.0**-20 * scale if "u" in kept else 0.0)
    return {"snapshots": sum(array.nbytes for array in snapshots),
            "records": sum(array.nbytes for array in records.values()),
            "error": float(np.abs(replayed - state).max()), "bound": bound}


def replay(records: dict, state):
    """The state after the recorded tokens: [1, dk, dv]. Raw values go through the recurrence again; corrected
    ones (u) only decay and add up."""
    for t, (k, g) in enumerate(zip(records["k"], records["g"])):
        if "u" in records:
            state = state * np.exp(g)[:, :, None] + k[:, :, None] * records["u"][t][:, None, :]
        else:
            state, _ = kda_update(k, records["v"][t], g, records["beta"][t], state)
    return state


def store(x, dtype: str):
    """A float32 array as it is kept: itself, or its bfloat16 bits."""
    return to_bf16(x) if dtype == "bf16" else x.copy()


def recall(array):
    """A kept array as float32."""
    return from_bf16(array) if array.dtype == np.uint16 else array


def ratio_at(layout: Layout, conv: bool, state_dtype: str, d: int) -> float:
    """Snapshot over record bytes of one head with dk = dv = d."""
    head = Recurrent("kda", heads=1, key_heads=1, dk=d, dv=d, conv_kernel=4)
    return recurrent_state_bytes(head, dtype=state_dtype) / record_bytes(head, layout.with_conv(conv))


def nearest_size(layout: Layout, conv: bool, state_dtype: str, ratio: float) -> tuple:
    """The d = dk = dv whose snapshot/record ratio is nearest to `ratio`, and that ratio; the smaller d on a tie."""
    best = min(SIZES, key=lambda d: (abs(ratio_at(layout, conv, state_dtype, d) - ratio), d))
    return best, ratio_at(layout, conv, state_dtype, best)


def ratio_table(p) -> Table:
    """For each record layout, bare and with the convolution's inputs: the head size whose ratio is nearest to 7.9."""
    rows = []
    for layout in LAYOUTS.values():
        for conv in (False, True):
            size, ratio = nearest_size(layout, conv, p.state_dtype, ARTICLE_RATIO)
            name = Text("{layout}, with conv inputs", layout=layout.title) if conv else layout.title
            rows.append((f"layout:{layout.name}{'+conv' if conv else ''}", name, size, ratio, layout.source))
    return Table((Column("id", Text("id")), Column("layout", Text("record layout")), Column("size", Text("dk = dv")),
                  Column("ratio", Text("snapshot / record"), "float", scale=1.0), Column("source", Text("after"))),
                 rows, Text("Where a snapshot comes nearest to {wanted} records", wanted=number(ARTICLE_RATIO)))


def model_scale_table(p, window: int) -> Table:
    """The window of a whole model: every KDA layer and head, per sequence and per tensor-parallel rank."""
    model, ranks = load(p.model), int(p.tp)
    layers = [layer for layer in model.recurrent if layer.kind == "kda"]
    rows = [("design:snapshot", Text("{count} state snapshots, {dtype}", count=window, dtype=p.state_dtype),
             *(window * sum(recurrent_state_bytes(layer, tp, p.state_dtype) for layer in layers) for tp in (1, ranks)))]
    for layout in LAYOUTS.values():
        fields = layout.with_conv(p.conv)
        rows.append((f"layout:{layout.name}", Text("{count} records: {layout}", count=window, layout=layout.title),
                     *(window * sum(record_bytes(layer, fields, tp) for layer in layers) for tp in (1, ranks))))
    return Table((Column("id", Text("id")), Column("design", Text("kept for the window")),
                  Column("sequence", Text("per sequence"), unit="B"),
                  Column("rank", Text("per rank at TP{tp}", tp=ranks), unit="B")),
                 rows, Text("{model}: {layers} KDA layers of {heads} heads", model=model.title, layers=len(layers),
                            heads=layers[0].heads))


def _metrics(window: int, state: int, record: int, best: int, best_ratio: float) -> list:
    return [
        Metric("snapshot_bytes", Text("snapshots of {window} positions, one head", window=window), window * state, "B"),
        Metric("projection_bytes", Text("records of {window} positions, one head", window=window), window * record,
               "B"),
        Metric("times_smaller", Text("fewer bytes with records"), state / record, "×", kind="float", scale=1.0),
        Metric("bytes_ratio", Text("record / snapshot, per position"), record / state, "share",
               kind="float", scale=1.0),
        Metric("record_bytes", Text("one record"), record, "B", text=Text("{count} B", count=number(record))),
        Metric("ratio_7_9_at", Text("dk = dv where a snapshot comes nearest to {wanted} records, with {ratio}",
                                    wanted=number(ARTICLE_RATIO), ratio=number(best_ratio)), best),
    ]


EXPERIMENT = Experiment(
    slug="byte-cost", tab=2, family="state",
    name=Text("Byte cost"),
    title=Text("Byte cost: the state, or what made it"),
    question=Text("A draft token may be rejected, so its effect on the recurrent state must be undoable. How many "
                  "bytes does each position of the window cost if the state is copied, and how many if only its "
                  "inputs are kept?"),
    params=(
        Param("dk", Text("Key size dk"), "int", 128, 1, 256, 1),
        Param("dv", Text("Value size dv"), "int", 128, 1, 256, 1),
        Param("drafts", Text("Draft tokens"), "int", 7, 0, 16, 1,
              help=Text("The window holds one position more: the token that is always kept.")),
        Param("layout", Text("What a record keeps"), "choice", "fp32",
              choices=tuple((layout.name, layout.title) for layout in LAYOUTS.values())),
        Param("conv", Text("Keep the convolution's inputs too"), "bool", False,
              help=Text("The short convolution looks back three tokens; its raw q, k, v are 2 dk + dv values.")),
        Param("state_dtype", Text("State dtype"), "choice", "fp32", choices=(("fp32", "fp32"), ("bf16", "bf16"))),
        Param("model", Text("Model for the table below"), "choice", "kimi-k3",
              choices=(("kimi-k3", "Kimi K3"), ("kimi-linear-48b", "Kimi-Linear-48B"))),
        Param("tp", Text("Tensor parallel ranks"), "choice", 8, choices=tuple((n, str(n)) for n in (1, 2, 4, 8, 16))),
        Param("count_gate", Text("Count the gate"), "bool", True, breaker=True,
              help=Text("Off: the formula forgets that a record needs its gate, and no longer matches the arrays.")),
    ),
    presets=(
        Preset("k3-vllm", Text("K3 as vLLM keeps it"),
               Text("1,024 B per token and head, 64 times less than a snapshot; 51.75 MiB instead of 3.23 GiB per "
                    "sequence."), {"layout": "recover"}),
        Preset("small-head", Text("dk = dv = 16"),
               Text("A window of 4 at fp32, conv inputs kept: 4,096 B of snapshots, 1,552 B of records. The gap of "
                    "small heads is small."),
               {"dk": 16, "dv": 16, "drafts": 3, "conv": True}),
        Preset("seven-point-nine", Text("A ratio near 7.9"), Text("At dk = dv = 16 with k, v, β in bf16 and g in fp32 "
               "a snapshot costs 7.88 records."), {"dk": 16, "dv": 16, "drafts": 3, "layout": "mixed"}),
        Preset("no-gate", Text("Forget the gate"), Text("The formula says 1,028 B, the arrays hold 1,540 B: the check "
               "fails by the 512 B of every gate."), {"count_gate": False}, breaks=("records_measured",)),
    ),
    prediction=Prediction(Text("A window of 8 positions, one head of 128 × 128. How many times smaller are the records "
                               "than the snapshots?"),
                          tuple(Text("about {times} times", times=times) for times in RATIOS)),
    function=run,
    draw={"window": view.draw_window},
    code=(measure, replay, nearest_size),
)

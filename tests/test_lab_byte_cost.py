"""Tab `byte-cost`: published figures first, then the formula against real arrays over the whole range."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_values import settings_of

from k3core.lab.byte_cost import EXPERIMENT, LAYOUTS, measure, nearest_size, recall, replay, store
from k3core.lab.display import binary_bytes, number
from k3core.models import Recurrent
from sitegen import content

MIB = 2**20
WHOLE = {"count_gate": True}


def metrics(params: dict, seed: int = 0) -> dict:
    return {metric.key: metric.value for metric in EXPERIMENT.run(params, seed).metrics}


def model_scale(params: dict) -> dict:
    """Mark -> (bytes per sequence, bytes per rank)."""
    return {row[0]: row[2:] for row in EXPERIMENT.run(params).tables["model_scale"].rows}


def failing(params: dict) -> dict:
    return {check.key: (check.measured, check.bound) for check in EXPERIMENT.run(params).checks if not check.passed}


# --- published figures ------------------------------------------------------------------------------------------


def test_k3_keeps_snapshots_of_3_23_gib_or_records_of_51_75_mib_per_sequence():
    """vllm #51855: 8 fp32 slots of 69 layers x 96 heads x 128 x 128, against 1,024 B per token and head."""
    rows = model_scale({})
    assert rows["design:snapshot"] == (8 * 69 * 96 * 65_536, 8 * 69 * 12 * 65_536)
    assert rows["layout:recover"] == (8 * 69 * 96 * 1_024, 8 * 69 * 12 * 1_024)
    assert rows["design:snapshot"][1] == 414 * MIB
    assert rows["layout:recover"] == (51.75 * MIB, 6.46875 * MIB)
    assert [f"{count / unit:.2f}" for count, unit in zip((*rows["design:snapshot"], *rows["layout:recover"]),
                                                         (2**30, MIB, MIB, MIB), strict=True)] \
        == ["3.23", "414.00", "51.75", "6.47"]
    assert [binary_bytes(count) for count in rows["layout:recover"]] == ["51.75 MiB", "6.469 MiB"]


def test_a_record_of_k3_costs_1024_bytes_in_vllm_and_64_times_less_than_a_snapshot():
    found = metrics({"layout": "recover"})
    assert found["record_bytes"] == 1_024
    assert found["snapshot_bytes"] == 64 * found["projection_bytes"] == 8 * 65_536


def test_the_figures_of_a_public_demonstration_can_be_found():
    """"About 5,000 bytes" are 5 fp32 states of 16 x 16, "about 1,500" are 4 records of 97 fp32 values."""
    small = {"dk": 16, "dv": 16, "conv": True}
    assert metrics(small | {"drafts": 4})["snapshot_bytes"] == 5_120
    assert metrics(small | {"drafts": 3})["projection_bytes"] == 1_552
    assert metrics(small)["record_bytes"] == 97 * 4
    mixed = metrics({"dk": 16, "dv": 16, "drafts": 0, "layout": "mixed"})
    assert (mixed["snapshot_bytes"], mixed["projection_bytes"]) == (1_024, 130)
    assert f"{mixed['times_smaller']:.2f}" == "7.88"


@pytest.mark.parametrize("layout, size, ratio", [
    ("fp32", 24, 576 / 73), ("mixed", 16, 1024 / 130), ("bf16", 12, 576 / 74),
])
def test_the_head_size_at_which_the_ratio_is_7_9(layout, size, ratio):
    found = EXPERIMENT.run({"layout": layout})
    assert {metric.key: metric.value for metric in found.metrics}["ratio_7_9_at"] == size
    row = next(row for row in found.tables["ratio_7_9_at"].rows if row[0] == f"layout:{layout}")
    assert row[2] == size and row[3] == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize("preset", [preset.name for preset in EXPERIMENT.presets])
def test_the_ratio_that_is_looked_for_and_the_one_found_are_told_apart(preset):
    """No whole head size gives 7.9 exactly: metric and table say "nearest", and the metric what it comes to."""
    chosen = EXPERIMENT.preset(preset)
    found = EXPERIMENT.run(chosen.params)
    table, layout = found.tables["ratio_7_9_at"], f"layout:{found.params['layout']}{'+conv' * found.params['conv']}"
    ratio = next(row[3] for row in table.rows if row[0] == layout)
    label = next(metric.label for metric in found.metrics if metric.key == "ratio_7_9_at").render("en")
    assert label == f"dk = dv where a snapshot comes nearest to 7.9 records, with {number(ratio)}"
    assert table.title.render("en") == "Where a snapshot comes nearest to 7.9 records" and ratio != 7.9


def test_the_table_of_7_9_names_every_layout_with_and_without_conv_inputs():
    rows = EXPERIMENT.run().tables["ratio_7_9_at"].rows
    assert [row[0] for row in rows] == [f"layout:{name}{conv}" for name in LAYOUTS for conv in ("", "+conv")]
    assert all(abs(row[3] - 7.9) < 0.2 for row in rows)


def test_the_nearest_size_is_the_nearest_of_all():
    for name, ratio in (("fp32", 7.9), ("mixed", 7.9), ("bf16", 100.0), ("fp32", 0.0)):
        fields = LAYOUTS[name].fields

        def ratio_of(d, fields=fields):
            width = {"fp32": 4, "bf16": 2}
            elements = {"k": d, "v": d, "g": d, "beta": 1}
            return 4 * d * d / sum(elements[field] * width[dtype] for field, dtype in fields.items())

        best = nearest_size(LAYOUTS[name], False, "fp32", ratio)[0]
        assert abs(ratio_of(best) - ratio) == min(abs(ratio_of(d) - ratio) for d in range(1, 257))


# --- formula and arrays -----------------------------------------------------------------------------------------


@given(settings_of(EXPERIMENT), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_formula_arrays_and_elementary_arithmetic_agree(params, seed):
    p = params | WHOLE
    found = EXPERIMENT.run(p, seed)
    measured = {check.key: check.measured for check in found.checks}
    values = {metric.key: metric.value for metric in found.metrics}
    dk, dv, window = p["dk"], p["dv"], p["drafts"] + 1
    width = {"fp32": 4, "bf16": 2}
    elements = {"k": dk, "v": dv, "u": dv, "g": dk, "beta": 1, "conv": 2 * dk + dv}
    record = sum(elements[name] * width[dtype] for name, dtype in LAYOUTS[p["layout"]].with_conv(p["conv"]).items())
    assert values["snapshot_bytes"] == measured["snapshots_measured"] == window * dk * dv * width[p["state_dtype"]]
    assert values["projection_bytes"] == measured["records_measured"] == window * record
    assert values["bytes_ratio"] * values["times_smaller"] == pytest.approx(1)
    assert all(check.passed for check in found.checks)


def test_what_is_kept_per_token_grows_with_the_sequence_and_a_window_does_not():
    rows = EXPERIMENT.run().tables["growth"].rows
    by_design = {name: {tokens: count for tokens, design, count in rows if design == name}
                 for name in ("every", "snapshot", "record")}
    longest, window = max(by_design["every"]), 8
    assert by_design["every"][longest] == longest * 69 * 96 * 65_536 > 2**40  # beyond 32 bits
    assert by_design["snapshot"][longest] == window * 69 * 96 * 65_536
    assert by_design["record"][longest] == by_design["record"][64] == window * 69 * 96 * 1_540


# --- replay -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["fp32"])
@pytest.mark.parametrize("seed", range(5))
def test_raw_fp32_records_restore_the_state_to_the_bit(layout, seed):
    error = next(check for check in EXPERIMENT.run({"layout": layout, "dk": 24, "dv": 40}, seed).checks
                 if check.key == "replay_restores")
    assert error.measured == 0 and error.passed


def test_rounded_records_come_close_but_not_to_the_bit():
    for layout in ("mixed", "bf16", "recover", "sglang"):
        found = measured_error(LAYOUTS[layout].fields)
        assert 0 < found["error"] <= found["bound"]


def test_a_record_of_something_else_breaks_the_bound():
    """The check can fail: replaying without the gate leaves far more than rounding allows."""
    rng = np.random.default_rng(3)
    records = {"k": rng.standard_normal((8, 1, 16)), "v": rng.standard_normal((8, 1, 12)), "beta": rng.random((8, 1))}
    start = rng.standard_normal((1, 16, 12))
    right = replay(records | {"g": np.full((8, 1, 16), -0.5)}, start)
    wrong = replay(records | {"g": np.zeros((8, 1, 16))}, start)
    assert np.abs(right - wrong).max() > measured_error(LAYOUTS["bf16"].fields)["bound"]


def measured_error(fields: dict) -> dict:
    return measure(Recurrent("kda", heads=1, key_heads=1, dk=16, dv=12, conv_kernel=4), fields, "fp32", 8,
                   np.random.default_rng(3))


def test_storing_and_recalling():
    x = np.array([1.0, 1.00390625, -3.0], np.float32)
    assert np.array_equal(recall(store(x, "fp32")), x) and store(x, "fp32") is not x
    assert store(x, "bf16").nbytes == 6 and np.array_equal(recall(store(x, "bf16")), np.array([1, 1, -3], np.float32))


# --- the breaker ------------------------------------------------------------------------------------------------


@given(settings_of(EXPERIMENT))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_without_the_gate_the_check_fails_by_the_bytes_of_the_gates(params):
    p = params | {"count_gate": False}
    gate = p["dk"] * {"fp32": 4, "bf16": 2}[LAYOUTS[p["layout"]].fields["g"]]
    (key, (measured, bound)), = failing(p).items()
    assert key == "records_measured" and measured - bound == (p["drafts"] + 1) * gate


def test_the_preset_that_forgets_the_gate_says_what_happens():
    preset = EXPERIMENT.preset("no-gate")
    assert failing(preset.params) == {"records_measured": (8 * 1_540, 8 * 1_028)}
    assert "1,028 B" in preset.expect.render("en") and "1,540 B" in preset.expect.render("en")


# --- what is said -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, key, value", [
    ("k3-vllm", "record_bytes", 1_024), ("small-head", "snapshot_bytes", 4_096),
    ("small-head", "projection_bytes", 1_552),
    ("seven-point-nine", "ratio_7_9_at", 16),
])
def test_presets_show_what_they_announce(name, key, value):
    preset = EXPERIMENT.preset(name)
    assert metrics(preset.params)[key] == value


def test_the_prediction_has_one_right_answer_and_says_why():
    result = EXPERIMENT.run()
    assert EXPERIMENT.prediction.options[result.answer].render("en") == "about 40 times"
    assert result.answer_text.render("en") == "It is 42.6 times: 64 KiB against 1.504 KiB per position."


def test_captions_count_up_to_the_whole_window():
    scene = EXPERIMENT.run({"drafts": 3}).scenes[0]
    assert scene.frames == 5 and scene.poster == 4
    last = scene.captions[4].render("en")
    assert last.startswith("Position 4 of 4. The snapshot design has copied the whole state 4 times, 256 KiB.")


def test_the_page_counts_the_vectors_of_its_own_formula():
    """A record is k, v and g beside one number, beta: 2 dk + dv + 1."""
    for lang, words in (("en", "Three vectors and one number"), ("zh", "三个向量加一个数")):
        after = content.prose(lang, "byte-cost").split("<h2>")[1]
        assert words in after and "and a half" not in after

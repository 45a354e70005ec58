"""Tab replayssm-ring: published figures first, then what the ring must do at every setting."""

import numpy as np
import pytest
from hypothesis import given, settings
from lab_values import settings_of

from k3core.decode import START, Greedy, Gumbel, PromptLookup, Speculation, encode, tiny_model
from k3core.lab import replayssm_ring as lab
from k3core.lab import replayssm_ring_costs as costs
from k3core.lab import replayssm_ring_text as words
from k3core.lab import tiny_text
from k3core.lab.contract import Result
from k3core.lab.params import ParamError
from k3core.replayssm import ProjectionStore

EXPERIMENT = lab.EXPERIMENT


def metrics(params=None, seed=0) -> dict:
    return {metric.key: metric.value for metric in EXPERIMENT.run(params, seed).metrics}


def checks(params=None, seed=0) -> dict:
    return {check.key: check for check in EXPERIMENT.run(params, seed).checks}


def rows(name: str, params=None) -> list:
    return EXPERIMENT.run(params).tables[name].rows


# --- figures of the byte-traffic model: S = 65,536 B, r = 1,024 B, B = 16 ---


@pytest.mark.parametrize(
    ("params", "share", "moved", "baseline", "times"),
    [
        ({}, 0.1813, 89_820, 327_680, 3.65),
        ({"window": 8}, 0.2540, 96_670, 589_824, 6.10),
        ({"window": 8, "accepted": 8}, 0.5, 118_784, 589_824, 4.97),
    ],
)
def test_speculative_steps_move_the_published_bytes(params, share, moved, baseline, times):
    found = metrics(params)
    assert found["flush_share"] == pytest.approx(share, abs=5e-5)
    assert found["bytes_per_step"] == pytest.approx(moved, abs=5)
    assert found["baseline_bytes_per_step"] == baseline
    assert found["times_fewer"] == pytest.approx(times, abs=0.005)
    assert found["allocations_after_start"] == 0


@pytest.mark.parametrize(
    ("record", "size", "best", "approximation"),
    [("replay", 1024, 11, "11.31"), ("recover", 1024, 11, "11.31"), ("bf16", 768, 13, "13.06"),
     ("gdn", 388, 18, "18.38")],
)
def test_best_buffer_of_plain_decoding(record, size, best, approximation):
    assert lab.bytes_of_record(record) == size
    metric = next(m for m in EXPERIMENT.run({"record": record}).metrics if m.key == "best_length")
    assert metric.value == best
    assert approximation in metric.label.render("en")


def test_speed_up_bounds_of_plain_decoding():
    table = {length: 2 * lab.STATE_BYTES / moved for length, moved, _ in rows("length")}
    for length, bound in ((4, 1.556), (8, 1.676), (11, 1.690), (16, 1.675), (32, 1.552)):
        assert table[length] == pytest.approx(bound, abs=5e-4)
    assert metrics()["best_speedup"] == pytest.approx(1.690, abs=5e-4)
    assert metrics({"record": "bf16"})["best_speedup"] == pytest.approx(1.726, abs=1.5e-3)
    gdn = {length: 2 * lab.STATE_BYTES / moved for length, moved, _ in rows("length", {"record": "gdn"})}
    assert gdn[16] == pytest.approx(1.798, abs=5e-4)


def test_another_law_of_the_same_mean_gives_another_share():
    assert [row[1] for row in rows("laws")][:2] == pytest.approx([0.1813, 0.180], abs=5e-4)
    assert [row[1] for row in rows("laws", {"window": 8})][:2] == pytest.approx([0.2540, 0.250], abs=5e-4)


def test_k3_at_tp8():
    kept = [row[2] for row in rows("model_scale", {"window": 8})]
    mib = 2**20
    assert kept[0] == 414 * mib
    assert [size / mib for size in kept[1:3]] == pytest.approx([6.47, 25.9], abs=0.05)
    assert kept[1] == 8 * 847_872
    assert kept[3] == kept[0] // 8


def test_storage_grows_by_a_constant_factor_for_chains_and_trees():
    size = {(depth, design): count for depth, design, count in rows("storage", {"branching": 3})}
    assert size[8, "snapshot-chain"] == 8 * 65_536
    assert size[4, "record-tree"] == (3 + 9 + 27 + 81) * 1024
    for depth in costs.DEPTHS:
        for shape in ("chain", "tree"):
            assert size[depth, f"snapshot-{shape}"] == 64 * size[depth, f"record-{shape}"]


# --- keys stored pre-decayed ---


def test_stability_bound_at_k3():
    assert metrics()["largest_stable_length"] == 17
    outcome = {row[0]: (row[3].template, row[5].template) for row in rows("stability")}
    assert outcome[17] == ("yes", "equal within rounding")
    assert outcome[18] == ("no", "equal within rounding")  # 85 still fits float32: the bound keeps a margin
    assert outcome[19] == ("no", "not finite")


@pytest.mark.parametrize("lower_bound", [-0.5, -1.0, -2.5, -5.0, -8.0, -10.0])
def test_whatever_keeps_the_bound_folds_right(lower_bound):
    for length in range(2, lab.largest_stable_length(lower_bound) + 1, 3):
        assert costs.predecayed_error(length, lower_bound) < 1e-4


# --- the ring itself ---


def test_cursors_of_the_scene_follow_the_rule():
    log = EXPERIMENT.run().scenes[0].events
    for before, after in zip(log["steps"], log["steps"][1:]):
        for name in ("base", "write", "flush"):
            assert after[name] == before[f"next_{name}"]
        moved = after["write"] if after["flush"] else 0
        assert after["next_base"] == (after["base"] + moved) % log["slots"]
        assert after["next_write"] == after["accepted"] + (0 if after["flush"] else after["write"])
        assert after["next_flush"] == (after["next_write"] + 2 * log["window"] > log["capacity"])
        assert (after["heat"] != before["heat"]) == after["flush"]


def test_largest_occupancy_seen():
    """19 of 20 at T = 4 and 19 of 24 at T = 8."""
    assert checks()["fits"].measured == 19
    assert checks({"window": 8})["fits"].measured == 19


def test_late_flush_damages_only_a_ring_without_slack():
    slack, tight = checks({"flush_late": True}), checks({"flush_late": True, "buffer": 12})
    assert (slack["fits"].measured, slack["fits"].passed, slack["state_restored"].passed) == (23, False, True)
    assert not tight["fits"].passed and not tight["state_restored"].passed


def test_a_wrong_formula_is_seen(monkeypatch):
    monkeypatch.setattr(lab, "ring_cycle", lambda buffer, window, law: costs.ring_cycle(buffer + 1, window, law))
    assert not checks()["flush_agrees"].passed


def test_rounded_records_cost_accuracy():
    error = {record: checks({"record": record})["state_restored"].measured for record in ("fp32", "bf16")}
    assert error["fp32"] < 1e-5 < 1e-3 < error["bf16"]


def test_an_array_that_moves_is_counted():
    class Moving(lab.LabRing):
        def keep(self, accepted):
            super().keep(accepted)
            self.u = np.concatenate([self.u, self.u[:1]])

    original, lab.LabRing = lab.LabRing, Moving
    try:
        assert metrics()["allocations_after_start"] > 0 and not checks()["no_allocation"].passed
    finally:
        lab.LabRing = original


@settings(max_examples=25, deadline=None, derandomize=True)
@given(settings_of(EXPERIMENT))
def test_every_valid_setting_holds_unless_it_is_broken(params):
    try:
        result = EXPERIMENT.run(params | {"flush_late": False})
    except ParamError as error:
        assert error.name in ("buffer", "accepted", "record")
        return
    assert isinstance(result, Result) and all(check.passed for check in result.checks)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"buffer": 3}, "buffer is 3; it must hold at least one window of 4 tokens"),
        ({"accepted": 4.5}, "accepted is 4.5; a window of 4 tokens takes 1 to 4"),
        ({"window": 0}, "window is 0; it takes a whole number from 1 to 12"),
        ({"lower_bound": 0}, "lower_bound is 0; it takes a number from -10.0 to -0.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(params, words):
    with pytest.raises(ParamError) as caught:
        EXPERIMENT.run(params)
    assert str(caught.value) == words


# --- real text ---

TEXT = {"source": "text", "prompt": "a = [0, 1]\nb = [0, "}


@pytest.mark.parametrize("choosing", ["greedy", "sampled"])
@pytest.mark.parametrize("window", [1, 4, 8])
def test_the_ring_holds_what_speculation_on_the_text_keeps(choosing, window):
    sampler = Gumbel(2, 0.8) if choosing == "sampled" else Greedy()
    decoder, ids = tiny_model(), [START, *encode(TEXT["prompt"])]
    run = Speculation(decoder, ids, PromptLookup(), ProjectionStore, window - 1, sampler)
    rounds = run.run(words.NEW)
    result = EXPERIMENT.run(TEXT | {"choosing": choosing, "window": window, "head": "2.3"}, 2)
    assert all(check.passed for check in result.checks)
    log = result.scenes[0].events
    assert log["letters"] == tiny_text.glyphs(decoder.generate(ids, words.NEW, sampler)) == tiny_text.glyphs(run.tokens)
    kept_and_read = [(1 + r.accepted, 1 + len(r.drafted)) for r in rounds]
    assert [(event["accepted"], event["read"]) for event in log["steps"][1:]] == kept_and_read
    kept = "".join(event["said"][: event["accepted"]] for event in log["steps"])
    assert kept == log["letters"][: words.NEW - 1]  # the last one has not been read
    assert {m.key: m.value for m in result.metrics}["accepted_mean"] == pytest.approx((words.NEW - 1) / len(rounds))


def test_the_state_drawn_is_of_the_chosen_head():
    log = EXPERIMENT.run(TEXT | {"head": "3.2", "record": "fp32"}).scenes[0].events
    _, state = tiny_model().prefill([START, *encode(TEXT["prompt"])])
    heat = np.abs(state.memories[2].state[1]).reshape(16, 2, 16, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(log["steps"][0]["heat"], heat, rtol=1e-6)


def test_late_flush_damages_the_ring_on_real_text_too():
    tight = checks(TEXT | {"flush_late": True, "buffer": 12})
    assert not tight["fits"].passed


def test_a_gate_per_head_is_not_the_models():
    with pytest.raises(ParamError, match="the trained model has a gate per channel"):
        EXPERIMENT.run(TEXT | {"record": "gdn"})


def test_prediction_follows_the_settings():
    assert EXPERIMENT.run().answer == 2
    assert EXPERIMENT.run({"window": 8, "accepted": 8}).answer == 1

"""Tab speculative-replay: published figures first, then what must hold at every setting."""

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_values import settings_of

from k3core.decode import NoisyOracle
from k3core.lab import acceptance
from k3core.lab import speculative_replay as lab
from k3core.lab import speculative_replay_run as machine
from k3core.lab.params import ParamError
from k3core.lab.text import Text

EXPERIMENT = lab.EXPERIMENT
BREAKS = {"text_equal", "states_bit_equal", "states_close"}


def metrics(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def failed(result) -> set:
    return {check.key for check in result.checks if not check.passed}


def check(result, key: str):
    return next(check for check in result.checks if check.key == key)


# --- figures from outside ---


def test_projections_stay_under_the_claimed_share():
    """The claim of a public demonstration: under 0.4 of the snapshots over four head sizes."""
    table = EXPERIMENT.run().tables["memory"]
    shares = [row[4] for row in table.rows]
    assert [row[1] for row in table.rows] == [16, 32, 64, 128]
    assert max(shares) < 0.4
    # 2 d + d + 1 values of the recurrence and 3 d of the convolution, against d^2, all in fp32
    assert shares == [(6 * d + 1) / d**2 for d in (16, 32, 64, 128)]


def test_window_of_a_k3_head():
    """fp32 state of 128 x 128: 65,536 B; eight of them for a window with 7 drafts."""
    found = metrics(EXPERIMENT.run({"head": 128, "drafts": 7, "tokens": 8}))
    assert found["snapshot_bytes"] == 8 * 65_536
    assert found["projection_bytes"] == 8 * 4 * 769


def test_window_of_the_demonstration():
    """Four records of 97 fp32 values are 1,552 B, five states of 16 x 16 are 5,120 B."""
    assert metrics(EXPERIMENT.run({"drafts": 3, "tokens": 8}))["projection_bytes"] == 1_552
    assert metrics(EXPERIMENT.run({"drafts": 4, "tokens": 8}))["snapshot_bytes"] == 5_120


def test_per_position_acceptance_of_k3_1_falls_like_powers():
    """Inferact/Kimi-K3.1-Pro-DSpark-preview, GSM8K: seven positions and the mean were published."""
    positions, mean = [0.86, 0.71, 0.59, 0.48, 0.39, 0.32, 0.26], 4.597
    assert 1 + sum(positions) == pytest.approx(mean, abs=0.02)
    p = acceptance.implied_acceptance(mean, 7)
    assert [p ** (i + 1) for i in range(7)] == pytest.approx(positions, abs=0.03)
    assert acceptance.mean_tokens(p, 7) == pytest.approx(mean, abs=1e-12)


def test_published_aggregate_as_a_share():
    """Block5: a mean of 3.305 of 6 was published as 46.10 % of the drafts."""
    assert (3.305 - 1) / 5 == pytest.approx(0.461, abs=5e-5)
    listed = {(one.draft, one.task): (one.mean, one.most) for one in acceptance.PUBLISHED}
    assert listed["K3-DSpark-Block5", "GSM8K"] == (4.581, 6)
    assert listed["kimi-k3-eagle3-mla", "AIME26"] == (2.208, 4)
    assert all(1 <= one.mean <= one.most for one in acceptance.PUBLISHED)


def test_presets_are_near_the_figures_they_quote():
    for name, task in (("gsm8k", "GSM8K"), ("aime", "AIME26")):
        params = EXPERIMENT.preset(name).params
        named = "K3-DSpark-Block5", task
        published = next(one for one in acceptance.PUBLISHED if (one.draft, one.task) == named)
        assert params["drafts"] == published.most - 1
        implied = acceptance.implied_acceptance(published.mean, params["drafts"])
        assert params["acceptance"] == pytest.approx(implied, abs=0.025)


# --- acceptance: closed form against drawn drafts ---


@pytest.mark.parametrize(("p", "drafts"), [(0.0, 4), (0.5, 3), (0.7, 4), (1.0, 7), (0.9, 0)])
def test_mean_tokens_against_drawn_drafts(p, drafts):
    rng, truth, gained = np.random.default_rng(4), [0] * (drafts + 1), []
    oracle = NoisyOracle(truth, p, 32, rng)
    for _ in range(4000):
        right = [token == 0 for token in oracle.propose([0], drafts)]
        gained.append(1 + (right.index(False) if False in right else drafts))
    error = np.std(gained) / 4000**0.5
    assert np.mean(gained) == pytest.approx(acceptance.mean_tokens(p, drafts), abs=4 * error + 1e-12)


@given(p=st.floats(0.01, 1), drafts=st.integers(1, 8))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_implied_acceptance_inverts_the_mean(p, drafts):
    mean = acceptance.mean_tokens(p, drafts)
    assert acceptance.implied_acceptance(mean, drafts) == pytest.approx(p, abs=1e-9)
    assert acceptance.implied_acceptance(1.0, 0) is None


# --- the tab ---


def test_defaults_and_presets_pass_and_break_as_declared():
    assert not failed(EXPERIMENT.run())
    for preset in EXPERIMENT.presets:
        assert failed(EXPERIMENT.run(preset.params, preset.seed)) == set(preset.breaks), preset.name


@given(settings_of(EXPERIMENT), st.integers(0, 99))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_text_equals_plain_decoding_for_every_store_and_draft(params, seed):
    """Without a mistake no check may fail."""
    params = params | {"fault": "none"}
    result = EXPERIMENT.run(params, seed)
    assert not failed(result)
    assert metrics(result)["tokens_equal"] is True
    log = result.scenes[0].events
    assert log["text"] == log["plain"] and len(log["text"]) == log["prompt"] + params["tokens"]
    assert 1 + sum(len(r["choices"]) for r in log["rounds"]) == params["tokens"]
    for r in log["rounds"]:
        assert r["after"][1] <= machine.RING_BUFFER + params["drafts"] + 1 and r["told"] == 1 + r["accepted"]


@pytest.mark.parametrize("store", list(machine.STORES))
@pytest.mark.parametrize("head", lab.SIZES)
def test_snapshots_and_projections_are_exact_whatever_the_decoder_runs_on(store, head):
    result = EXPERIMENT.run({"store": store, "head": head})
    deviations = {row[0]: row[5] for row in result.tables["stores"].rows}
    assert deviations["store:snapshots"] == deviations["store:projections"] == 0
    assert 0 < deviations["store:ring"] < 1e-6


def test_text_depends_on_neither_drafts_nor_store():
    many = {}, {"drafts": 0}, {"drafts": 7, "acceptance": 0.3}, {"draft": "lookup"}, {"store": "ring"}
    texts = {tuple(EXPERIMENT.run(params).scenes[0].events["text"]) for params in many}
    assert len(texts) == 1


@pytest.mark.parametrize("head", lab.SIZES)
@pytest.mark.parametrize("draft", ["oracle", "lookup"])
@pytest.mark.parametrize("fault", ["conv", "drafted"])
def test_the_named_mistakes_change_the_text_at_every_size(head, draft, fault):
    result = EXPERIMENT.run({"head": head, "draft": draft, "fault": fault, "tokens": 32})
    assert failed(result) >= BREAKS
    said = check(result, "text_equal").measured
    log = result.scenes[0].events
    first = next(i for i, (a, b) in enumerate(zip(log["text"], log["plain"])) if a != b)
    assert isinstance(said, Text) and said.args["next"] == first - log["prompt"] + 1


def test_a_wrong_text_can_be_easier_to_guess():
    right, wrong = (EXPERIMENT.run(EXPERIMENT.preset(name).params) for name in ("lookup", "forget-conv"))
    assert round(metrics(right)["accepted_mean"], 2) == 1.38
    assert round(metrics(wrong)["accepted_mean"], 2) == 2.07


def test_a_mistake_without_a_rejection_does_no_harm():
    assert not failed(EXPERIMENT.run({"acceptance": 1.0, "fault": "drafted"}))
    assert not failed(EXPERIMENT.run({"acceptance": 0.0, "fault": "column"}))


@given(settings_of(EXPERIMENT))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_every_frame_is_drawn_inside_its_box(params):
    result = EXPERIMENT.run(params)
    scene = result.scenes[0]
    assert 0 <= scene.poster < scene.frames
    for frame in {0, scene.poster, scene.frames - 1}:
        for narrow in (False, True):
            picture = EXPERIMENT.picture(result, "rounds", frame, "zh", narrow)
            root = ElementTree.fromstring(picture.svg)
            wide, high = (float(x) for x in root.get("viewBox").split()[2:])
            for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
                x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
                assert 0 <= x and x + width <= wide + 0.01, (frame, narrow, rect.attrib)
                assert 0 <= y and y + height <= high, (frame, narrow, rect.attrib)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("To be", "prompt holds 'T'; the model knows only"), ("", "prompt is empty")],
)
def test_bad_prompts_are_named(prompt, words):
    with pytest.raises(ParamError, match=words):
        EXPERIMENT.run({"prompt": prompt})

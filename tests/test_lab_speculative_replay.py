"""Tab speculative-replay: published figures first, then what must hold at every setting."""

from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_values import settings_of

from k3core.decode import START, Greedy, Gumbel, NoisyOracle, encode, tiny_model
from k3core.lab import acceptance, state_itself
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
@settings(max_examples=12, deadline=None, derandomize=True)
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
@settings(max_examples=5, deadline=None, derandomize=True)
def test_every_frame_is_drawn_inside_its_box(params):
    result = EXPERIMENT.run(params)
    scene = result.scenes[0]
    assert 0 <= scene.poster < scene.frames
    for frame in {0, scene.poster, scene.frames - 1}:
        for name, narrow in product(("rounds", "state"), (False, True)):
            picture = EXPERIMENT.picture(result, name, frame, "zh", narrow)
            root = ElementTree.fromstring(picture.svg)
            wide, high = (float(x) for x in root.get("viewBox").split()[2:])
            for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
                x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
                assert 0 <= x and x + width <= wide + 0.01, (frame, narrow, rect.attrib)
                assert 0 <= y and y + height <= high, (frame, narrow, rect.attrib)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("To be", "prompt holds 'T'; the model knows only"), ("", "prompt has 0 characters"), ("a" * 33, "1 to 32")],
)
def test_bad_prompts_are_named(prompt, words):
    with pytest.raises(ParamError, match=words):
        EXPERIMENT.run({"prompt": prompt})


# --- the trained model ---

TEXT = {"source": "text", "prompt": "x = [1, 2]\nx = [1, ", "draft": "lookup", "tokens": 16}


@pytest.mark.parametrize("store", list(machine.STORES))
@pytest.mark.parametrize("choosing", ["greedy", "sampled"])
def test_real_text_with_drafts_is_plain_decoding(store, choosing):
    result = EXPERIMENT.run(TEXT | {"store": store, "choosing": choosing}, 5)
    assert not failed(result)
    ids = [START, *encode(TEXT["prompt"])]
    plain = tiny_model().generate(ids, 16, Gumbel(5, 0.8) if choosing == "sampled" else Greedy())
    log = result.scenes[0].events
    assert log["text"] == log["plain"] == [*ids, *plain]
    exact = {row[0]: row[5] for row in result.tables["stores"].rows}
    assert exact["store:snapshots"] == exact["store:projections"] == 0 < exact["store:ring"]


@pytest.mark.parametrize("fault", ["conv", "drafted", "column"])
def test_the_mistakes_spoil_the_state_of_real_text(fault):
    params = TEXT | {"draft": "oracle", "acceptance": 0.7, "fault": fault}
    assert {"states_bit_equal", "states_close"} <= failed(EXPERIMENT.run(params, 1))


def test_passes_and_positions_are_counted():
    found = metrics(EXPERIMENT.run({"source": "text", "draft": "oracle", "acceptance": 0.0, "drafts": 3, "tokens": 9}))
    assert found["passes"] == 8  # nothing is ever right: one token a pass, and behind the end nothing is drafted
    assert found["positions"] == sum(1 + min(3, left - 1) for left in range(8, 0, -1))
    found = metrics(EXPERIMENT.run({"source": "text", "draft": "oracle", "acceptance": 1.0, "drafts": 3, "tokens": 9}))
    assert (found["passes"], found["positions"]) == (2, 8)


def test_acceptance_by_position_counts_a_run_and_quotes_the_published():
    rows = EXPERIMENT.run({"acceptance": 1.0, "drafts": 3, "tokens": 9}).tables["positions"].rows
    assert [row[3:] for row in rows if row[2] == "run"] == [(1.0, 2, 2)] * 3
    assert [row[3] for row in rows if row[2] == "published"] == [0.86, 0.71, 0.59, 0.48, 0.39, 0.32, 0.26]


# --- the state itself ---


def test_half_life_of_a_constant_gate():
    """exp(g) = 1/2 forgets half at every token, exp(g) = 2^(-1/10) in ten; a gate that lets all through is capped."""
    g = np.log([[[0.5, 2**-0.1, 1.0]]] * 4)
    assert state_itself.half_lives(g)[0] == pytest.approx([1.0, 10.0, state_itself.FOREVER])


@pytest.mark.parametrize("params", [{}, {"head": 128, "layer": 3}, TEXT | {"layer": 2}])
def test_the_state_drawn_is_the_state_of_plain_decoding(params):
    result = EXPERIMENT.run(params)
    log, frames = result.scenes[1].events, result.scenes[1].events["frames"]
    assert len(frames) == len(result.scenes[0].events["rounds"]) + 1
    assert all(frame["off"] == 0 for frame in frames)
    heads, size = (4, 32) if "source" in params else (1, params.get("head", 16))
    assert len(frames[0]["heat"]) == heads and len(frames[0]["lives"][0]) == size
    assert log["side"] * len(frames[0]["heat"][0]) == size
    assert max(max(row) for frame in frames for head in frame["heat"] for row in head) == "9"
    if "source" in params:
        ids = result.scenes[0].events["plain"][: frames[-1]["read"]]
        state = tiny_model().prefill(ids)[1].memories[1].state
        assert frames[-1]["peak"] == np.abs(state).max(axis=(1, 2)).tolist()


def test_every_square_of_a_map_is_drawn_once():
    heat = ["0190", "9911"]
    squares = [(i, j + k, level) for level in "19" for i, j, n in state_itself._runs(heat, level) for k in range(n)]
    assert sorted(squares) == [(i, j, c) for i, row in enumerate(heat) for j, c in enumerate(row) if c != "0"]

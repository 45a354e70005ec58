"""The tab `unified-pool`: published figures, a decode and a move redone another way, and the drawing."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from k3core.lab import unified_pool
from k3core.lab.unified_pool import EXPERIMENT
from k3core.models import load
from k3core.paged_cache import StatePage

GIB = 2**30


def run(preset=None, **params):
    return EXPERIMENT.run((EXPERIMENT.preset(preset).params if preset else {}) | params)


def values(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


# --- figures of others ---


@pytest.mark.parametrize(("params", "crossover", "rows", "state"), [
    ({}, 16_253, 27.0 * GIB, 449_372_160),  # K3: rows of unslothai/unsloth #7616, state of the day-0 figures
    ({"kv_dtype": "fp8"}, 32_507, 13.5 * GIB, 449_372_160),
    ({"tp": 8}, 2_032, 27.0 * GIB, 56_171_520),
    ({"tp": 8, "kv_dtype": "fp8"}, 4_063, 13.5 * GIB, 56_171_520),  # SGLang measured about 4,080
    ({"model": "kimi-linear-48b"}, 5_384, 7.875 * GIB, 43_417_600),
])
def test_crossover_and_a_million_tokens(params, crossover, rows, state):
    shown = values(run(**params))
    assert (shown["crossover_tokens"], shown["bytes_at_context"], shown["state_bytes"]) == (crossover, rows,
                                                                                            state)


def test_rows_are_copied_to_every_rank_and_states_are_split():
    for row in run().tables["ranks"].rows:
        _, tp, state, per_token, _, _, rank, together = row
        assert (state, per_token, together) == (449_372_160 // tp, 27_648, tp * rank)


def test_models_against_their_published_bytes_per_token():
    rows = {(name, tokens): size for name, tokens, size in run().tables["curve"].rows}
    grown = {name: rows[name, 2**20] - rows[name, 2**19] for name, _ in rows}
    assert grown["deepseek-v3"] == 2**19 * 70_272  # 61 layers of 1,152 B
    assert grown["llama-3.3-70b"] == 2**19 * 80 * 2 * 8 * 128 * 2
    fp8 = {(name, tokens): size for name, tokens, size in run(kv_dtype="fp8").tables["curve"].rows}
    pro = (fp8["deepseek-v4-pro", 2**20] - fp8["deepseek-v4-pro", 2**19]) / 2**19
    flash = (fp8["deepseek-v4-flash", 2**20] - fp8["deepseek-v4-flash", 2**19]) / 2**19
    assert pro == pytest.approx(4_521 + 990, abs=1) and flash == pytest.approx(3_157 + 693, abs=1)


# --- the decode and the move ---


@pytest.mark.parametrize("seed", range(5))
def test_the_decode_from_pages_agrees_and_the_breaker_does_not(seed):
    whole = unified_pool.decode_from_pages(np.random.default_rng(seed), forget_rope=False)
    broken = unified_pool.decode_from_pages(np.random.default_rng(seed), forget_rope=True)
    assert whole["error"] <= 1e-14 and whole["changed"] == 0
    assert broken["error"] > 0.01 and broken["changed"] == 0
    assert sorted(whole["blocks"]) != list(range(min(whole["blocks"]), min(whole["blocks"]) + 4))  # scattered


def test_the_pages_of_all_ranks_hold_the_heads_in_order():
    rng, whole = np.random.default_rng(3), StatePage(6, 4, 6, 3)
    state, window = rng.standard_normal((6, 4, 6), np.float32), rng.standard_normal((3, 6 * 14), np.float32)
    read = [whole.shard(3).read(page) for page in unified_pool.pages_of(whole, state, window, 3)]
    np.testing.assert_array_equal(np.concatenate([part for part, _ in read]), state)
    for channels, width in ((slice(0, 24), 4), (slice(24, 48), 4), (slice(48, 84), 6)):  # q, k, v
        expected = window[:, channels].reshape(3, 6, width)
        start = {0: 0, 24: 8, 48: 16}[channels.start]
        parts = [conv[:, start:start + 2 * width].reshape(3, 2, width) for _, conv in read]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), expected)


@pytest.mark.parametrize("a", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("b", [1, 2, 4, 8, 16])
def test_a_move_is_right_between_any_numbers_of_ranks_and_wrong_without_heads(a, b):
    def moved(forget):
        settings = SimpleNamespace(tp=a, to_tp=b, forget=forget)
        return unified_pool.move_state(load("kimi-k3"), settings, np.random.default_rng(1))

    assert moved("nothing")["wrong"] == 0
    assert (moved("heads")["wrong"] > 0) == (a != b)


def test_the_byte_ranges_of_k3_at_full_size():
    rows = run(tp=8, to_tp=4).tables["moves"].rows
    state, conv = 12 * 65_536, 12 * 3 * 384 * 4  # 12 heads of a TP8 rank; windows of 3 columns in fp32
    assert len(rows) == 16 and sum(row[6] for row in rows) == 8 * (state + conv)
    assert rows[1][2:] == (1, 0, 0, state, state)  # the second rank's state follows the first one's
    assert rows[2][2:] == (0, state, 0, 2 * state, conv)


# --- the drawing ---


def shapes(result, scene: str, frame: int, narrow: bool = False):
    root = ElementTree.fromstring(EXPERIMENT.picture(result, scene, frame, "en", narrow).svg)
    return [(node.tag.split("}")[1], node.attrib) for node in root.iter()]


def widths(result, frame: int, mark: str) -> list:
    return [float(node["width"]) for tag, node in shapes(result, "pool", frame) if tag == "rect"
            and node.get("data-id") == mark]


def test_the_state_is_drawn_the_same_at_every_length_and_rows_to_scale():
    result = run()
    lengths = result.scenes[0].events["lengths"]
    assert lengths == [1, *(2**n for n in range(10, 14)), 16253, *(2**n for n in range(14, 21))]
    states = [widths(result, frame, "pool:state") for frame in range(len(lengths))]
    assert all(state == states[0] for state in states)
    for frame, tokens in enumerate(lengths):
        assert widths(result, frame, "pool:rows")[0] == pytest.approx(720 * tokens / 2**20, abs=0.01)
    assert states[0][0] == pytest.approx(720 * 449_372_160 / 27_648 / 2**20, abs=0.01)


@pytest.mark.parametrize("frame", [0, 4, 12])
def test_there_is_one_cell_per_block(frame):
    result = run()
    log = result.scenes[0].events
    paths = {node["class"]: node["d"].count("M") for tag, node in shapes(result, "pool", frame)
             if tag == "path"}
    tokens = log["lengths"][frame]
    assert paths["mla"] == tokens // 5_696
    assert paths["mla"] + paths["free"] == -(-2**20 // 5_696)
    assert log["states"] == 3 and log["filled"] == pytest.approx([23 * 6_512_640 / (24 * 5_696 * 1_152)] * 3)


def test_each_frame_of_the_move_fills_one_range_more():
    result = run(tp=4, to_tp=8)
    scene = result.scenes[1]
    filled = [sum(node.get("data-id", "").startswith("move:") for _,
                  node in shapes(result, "relayout", frame))
              for frame in range(scene.frames)]
    assert filled == list(range(scene.frames)) and scene.frames == 17


def test_the_grip_and_the_numbers_of_the_ruler_set_the_context():
    found = shapes(run(context=300_000), "pool", 0)
    grip = next(node for _, node in found if node.get("data-drag-x") == "context")
    assert float(grip["cx"]) == pytest.approx(300_000 * float(grip["data-per-x"]), abs=0.01)
    clicks = [int(node["data-value"]) for _, node in found if node.get("data-click") == "context"]
    assert clicks and all(1 <= value <= 2**20 for value in clicks)

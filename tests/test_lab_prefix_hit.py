"""Tab `prefix-hit`: published boundaries first, then the boundary against plain comparison of tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.latency import ttft
from k3core.lab.prefix_hit import EXPERIMENT, LENGTHS, hit_for
from k3core.lab.prefix_requests import Server, common, draw_tokens


def metrics(params: dict, seed: int = 0) -> dict:
    return {metric.key: metric.value for metric in EXPERIMENT.run(params, seed).metrics}


def failing(params: dict) -> set:
    return {check.key for check in EXPERIMENT.run(params).checks if not check.passed}


# --- published figures ------------------------------------------------------------------------------------------


def test_the_reports_example_resumes_at_2560():
    """K3 report 5.4.1: 2,800 matching tokens, hash block 512, physical block 6,144."""
    result = EXPERIMENT.run()
    assert (result.params["shared"], result.params["hash_block"]) == (2800, 512)
    assert result.params["page"] * result.params["hash_block"] == 6144
    assert metrics({})["hit_tokens"] == 2560


@pytest.mark.parametrize("params, hit", [
    ({"shared": 4480, "hash_block": 128, "page": 16, "own": 0}, 4480),  # Mooncake blog, recipes #861: unit 128
    ({"shared": 4480, "hash_block": 4096, "page": 1, "own": 0}, 4096),  # the same with the state block of 4,096
    ({"shared": 2050, "hash_block": 128, "page": 8, "own": 0}, 2048),  # ATOM #1759: exactly 2,048 per hit
    ({"shared": 2800, "hash_block": 6144, "page": 1}, 0),
])
def test_published_boundaries(params, hit):
    assert metrics(params)["hit_tokens"] == hit


def test_the_time_is_that_of_the_latency_model():
    """376.3 ms for 8,000 tokens: vLLM blog of 2026-09-13."""
    found = metrics({"shared": 7_300})
    assert found["ttft_miss_ms"] == pytest.approx(376.3, rel=1e-9)
    assert found["ttft_hit_ms"] == pytest.approx(1000 * ttft(8000, found["hit_tokens"]), rel=1e-12)
    assert found["saved_percent"] == pytest.approx(100 * (1 - found["ttft_hit_ms"] / found["ttft_miss_ms"]))


@pytest.mark.parametrize("tokens", LENGTHS)
def test_just_above_the_needed_hit_the_saving_exceeds_40_percent(tokens):
    need = int(hit_for(0.4, tokens))
    assert 1 - ttft(tokens, need) / ttft(tokens) <= 0.4 < 1 - ttft(tokens, need + 1) / ttft(tokens)
    assert 0.4 < need / tokens + 1e-3 < 0.6325  # between h/n and the square root of it


def test_one_group_without_its_state_is_no_hit():
    """vllm #43090 and the report: the final hit is the minimum over the groups."""
    assert metrics({"lost": "2"})["hit_tokens"] == 0
    assert metrics({"lost": "2", "policy": "dense"})["hit_tokens"] == 2048
    assert failing({"lost": "2"}) == set()
    assert failing({"lost": "2", "all_groups": False}) == {"resume", "content"}


# --- properties -------------------------------------------------------------------------------------------------


@given(st.integers(0, 600), st.integers(0, 200), st.integers(1, 300), st.sampled_from((8, 32, 48)), st.integers(1, 5),
       st.integers(1, 5), st.sampled_from(("align", "marconi", "dense")))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_hit_is_the_last_boundary_that_plain_comparison_allows(shared, own, fresh, block, page, grain, policy):
    rng = np.random.default_rng(1)
    start = draw_tokens(rng, shared, 0)
    first, second = start + draw_tokens(rng, own + 1, 1), start + draw_tokens(rng, fresh, 2)
    server = Server(block, page, grain, policy)
    a, b = server.serve(first), server.serve(second)
    limit = min(common(first, second), len(second) - 1)
    assert b.hit.tokens == max((end for end in a.saves if end <= limit), default=0)
    assert b.hit.rows == limit // block * block and not b.wrong
    assert [end for stage, end, found in b.asked if stage == "checkpoint" and found] == (
        [b.hit.tokens] if b.hit.tokens else [])


# --- scene ------------------------------------------------------------------------------------------------------


def test_every_question_of_the_lookup_is_a_frame():
    scene = EXPERIMENT.run().scenes[0]
    said = [caption.render("en") for caption in scene.captions]
    assert "end 3,072: unknown" in said[1] and "end 2,560: known" in said[2]
    assert "At 2,560 every KDA group has a state" in said[3]
    shown = scene.events["frames"][2]["rows"][1]["segments"]
    assert shown == [(0, 2560, "hit"), (2560, 3500, "ghost")]


def test_a_click_on_a_checkpoint_evicts_it_and_the_grips_set_parameters():
    result = EXPERIMENT.run()
    svg = EXPERIMENT.picture(result, "turns", result.scenes[0].poster, "en").svg
    assert svg.count('data-click="lost"') == 3
    assert 'data-drag-x="shared"' in svg and 'data-drag-x="grain"' in svg

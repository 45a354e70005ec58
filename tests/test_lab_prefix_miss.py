"""Tab `prefix-miss`: reported hit rates first, then every miss against plain comparison of tokens."""

import pytest

from k3core.lab.params import ParamError
from k3core.lab.prefix_miss import EXPERIMENT, PAGE_BLOCKS, POLICIES, replayed
from k3core.lab.prefix_requests import Server


def metrics(params: dict) -> dict:
    return {metric.key: metric.value for metric in EXPERIMENT.run(params).metrics}


def failing(params: dict) -> set:
    return {check.key for check in EXPERIMENT.run(params).checks if not check.passed}


def captions(params: dict) -> list:
    return [caption.render("en") for caption in EXPERIMENT.run(params).scenes[0].captions]


# --- reported -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt, share", [(500, 0.0), (527, 0.0), (528, 0.0), (552, 0.957), (979, 0.539)])
def test_a_block_of_528_vllm_40696(prompt, share):
    """Field report B1: floor((n - 1) / 528) 528 / n."""
    found = metrics({"cause": "none", "prompt": prompt})
    assert found["hit_share"] == pytest.approx(share, abs=5e-4)
    assert found["hit_tokens"] == (prompt - 1) // 528 * 528


@pytest.mark.parametrize("block", [1920, 2096])
@pytest.mark.parametrize("prompt", [434, 1900, 2500, 4200, 6400])
def test_hits_of_whole_blocks_only_vllm_53749_omlx_3430(block, prompt):
    """Field reports B2 and B3."""
    assert metrics({"cause": "none", "prompt": prompt, "grain": block})["hit_tokens"] == prompt // block * block


def test_the_last_boundary_only_never_hits_vllm_45238():
    """Field report B4: block 528, prompts of 2,200, 1,500 shared."""
    found = metrics({"policy": "align"})
    assert (found["hit_tokens"], found["recomputed_tokens"], found["next_hit_tokens"]) == (0, 2200, 0)
    assert metrics({"policy": "align", "shared": 1600})["hit_tokens"] == 0
    assert metrics({"policy": "align", "shared": 1600, "prompt": 2100})["hit_tokens"] == 1584


def test_marconi_hits_from_the_third_request_vllm_45238_trtllm_18486():
    found = metrics({})
    assert (found["hit_tokens"], found["checkpoints_written"], found["next_hit_tokens"]) == (0, 2, 1056)
    assert replayed("marconi", 2200, 1500, 528)[0] == [0, 1056, 1056]


def test_a_suffix_behind_a_prompt_shorter_than_a_block_vllm_51198():
    """Field report B6: 561 tokens, then the same with a suffix: 0 of 1,131 where the block is larger."""
    assert metrics({"prompt": 1131, "shared": 561, "grain": 576})["hit_tokens"] == 0


# --- causes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", ["salt", "adapter", "token", "evicted"])
def test_a_miss_leaves_what_the_next_request_hits(cause):
    found = metrics({"cause": cause, "shared": 40})
    assert (found["hit_tokens"], found["recomputed_tokens"], found["next_hit_tokens"]) == (0, 2200, 2112)
    assert found["checkpoints_written"] == 1
    assert found["rows_unused"] == (2112 if cause == "evicted" else 0)


def test_what_is_shorter_than_a_block_leaves_nothing():
    found = metrics({"cause": "none", "prompt": 434, "grain": 2048})
    assert (found["hit_tokens"], found["checkpoints_written"], found["next_hit_tokens"]) == (0, 0, 0)


def test_a_repeat_of_whole_blocks_needs_a_checkpoint_below_the_last_token():
    whole = {"cause": "none", "prompt": 1056}
    assert metrics(whole | {"policy": "align"})["hit_tokens"] == 0
    assert metrics(whole | {"policy": "retain"})["hit_tokens"] == 528


@pytest.mark.parametrize("cause", ["token", "salt", "adapter"])
def test_without_the_parent_in_the_key_another_prefix_is_taken(cause):
    """aibrix #2329: a key must stand for everything before it."""
    broken = {"cause": cause, "shared": 40, "chained": False}
    assert {"resume", "content"} <= failing(broken)
    assert metrics(broken)["hit_tokens"] == 2112
    assert failing(broken | {"chained": True}) == set()


# --- the two counts agree -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shared", [0, 100, 527, 528, 1500, 2112, 2199])
def test_the_table_by_block_numbers_agrees_with_the_cache(policy, shared):
    params = {"policy": policy, "shared": shared}
    found = metrics(params)
    assert replayed(policy, 2200, shared, 528)[0][:2] == [found["hit_tokens"], found["next_hit_tokens"]]
    assert failing(params) == set()


# --- scene and bad input ------------------------------------------------------------------------------------------


def test_the_story_names_the_cause():
    assert "From token 1,500 on request 2 goes its own way" in " ".join(captions({}))
    assert "Rows are there up to 1,056" in " ".join(captions({}))
    assert "there is nothing to ask for" in " ".join(captions({"cause": "none", "prompt": 434, "grain": 2048}))
    assert "of which 2,072 were computed for another prefix" in " ".join(
        captions({"cause": "token", "shared": 40, "chained": False}))


def test_more_shared_than_there_is_is_refused():
    with pytest.raises(ParamError, match="shared is 2300, but the prompt has 2200 tokens; share at most 2199"):
        EXPERIMENT.run({"shared": 2300})
    assert metrics({"shared": 2300, "cause": "none"})["hit_tokens"] == 2112


def test_a_watched_lookup_asks_whole_pages_first():
    server = Server(4, PAGE_BLOCKS, 1, "align")
    tokens = list(range(200))
    server.serve(tokens)
    asked = server.serve(tokens).asked
    assert [question for question in asked if question[0] == "page"] == [
        ("page", end, True) for end in (48, 96, 144, 192)]
    assert asked[4] == ("end", 196, True)
    assert {(stage, found) for stage, _, found in asked[5:]} == {("checkpoint", False)}  # the one is at 200

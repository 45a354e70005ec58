"""Properties of sizing over every preset and any settings, and the settings and layers it must refuse."""

import json
from math import ceil, floor, lcm

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sizing_models import explicit, full, gdn, layout, size, sliding

from k3core import models, sizing
from k3core.sizing import Settings

EXAMPLES = hypothesis_settings(max_examples=60, deadline=None, derandomize=True)
K3, QWEN_4B = models.load("kimi-k3"), models.load("qwen3.5-4b")

# --- properties ---

MODELS = st.sampled_from(models.names())


@st.composite
def situations(draw):
    """A preset with settings it can have."""
    model = models.load(draw(MODELS))
    chosen = Settings(
        tp=draw(st.sampled_from([1, 2, 4, 8])),
        kv_dtype=draw(st.sampled_from(["bf16", "fp8"])),
        state_dtype=draw(st.sampled_from([None, "fp32", "bf16"])),
        drafts=draw(st.integers(0, 16)),
        align=draw(st.sampled_from([None, 1, 16, 48, 64, 128])),
        mode=draw(st.sampled_from(sizing.MODES)),
        grouping=draw(st.sampled_from(sizing.GROUPINGS)),
        max_model_len=draw(st.integers(1, 2**21)),
        num_blocks=draw(st.integers(1, 2**20)),
    )
    return model, chosen


@EXAMPLES
@given(situations())
def test_every_derivation_can_be_redone_from_its_values(situation):
    model, chosen = situation
    functions = {"ceil": ceil, "floor": floor, "min": min, "max": max, "sum": sum, "lcm": lcm}
    for step in sizing.size(model, chosen)["derivation"]:
        if step["formula"].startswith("the size of"):
            continue  # found by a search
        redone = eval(step["formula"], {"__builtins__": {}, **functions}, dict(step["values"]))
        assert redone == pytest.approx(step["result"], rel=1e-12, abs=0), step


@EXAMPLES
@given(situations())
def test_the_answer_is_plain_data_and_consistent(situation):
    model, chosen = situation
    answer = sizing.size(model, chosen)
    assert json.loads(json.dumps(answer)) == answer
    indices = sorted(i for group in answer["groups"] for i in group["layer_indices"])
    assert set(indices) == {i for i, cache in enumerate(model.layers) if cache is not None}
    if not model.name.startswith("deepseek-v4"):  # whose layers appear in several groups
        assert len(indices) == len(set(indices))
        slots = answer["group_size"] * len(answer["groups"])
        assert answer["padding_layers"] == slots - len(indices)
    assert answer["blocks_per_request_replay"] <= answer["blocks_per_request"]
    results = {step["name"]: step["result"] for step in answer["derivation"]}
    for name in ("bytes_per_token", "block_bytes", "page_bytes", "blocks_per_request", "reported_tokens"):
        assert results[name] == answer[name]


@EXAMPLES
@given(situations())
def test_a_page_holds_a_state_and_no_smaller_aligned_block_would(situation):
    model, chosen = situation
    if not model.recurrent:
        return
    pool, chosen = layout(model, **vars(chosen)), sizing.resolve(model, chosen)
    step = chosen.align if chosen.mode != "all" else lcm(pool.chunk, chosen.align)
    assert pool.block_size % step == 0
    assert pool.page_bytes - step * pool.token_bytes < pool.state_bytes <= pool.page_bytes


@EXAMPLES
@given(situations(), st.integers(1, 2**20))
def test_a_longer_request_never_holds_fewer_blocks(situation, tokens):
    model, chosen = situation
    pool, chosen = layout(model, **vars(chosen)), sizing.resolve(model, chosen)
    assert pool.blocks_per_request(tokens, chosen) <= pool.blocks_per_request(tokens + 1, chosen)


@EXAMPLES
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.sampled_from(sizing.GROUPINGS))
def test_grouping_deals_out_every_layer_once(counts, rule):
    size_ = sizing.choose_group_size(tuple(counts), rule, cost=lambda size: size)
    for count in counts:
        groups = sizing.share_out(tuple(range(count)), size_)
        assert sorted(i for group in groups for i in group) == list(range(count))
        assert max(map(len, groups)) <= size_ and max(map(len, groups)) - min(map(len, groups)) <= 1


def test_memory_grouping_never_costs_a_request_more_than_the_default_does():
    for name in ("kimi-k3", "kimi-linear-48b", "qwen3.5-27b", "nemotron-3-nano-30b"):
        for tokens in (1_000, 30_000, 1_000_000):
            costs = {}
            for rule in ("default", "memory"):
                pool = layout(models.load(name), grouping=rule, max_model_len=tokens)
                chosen = sizing.resolve(models.load(name), Settings(max_model_len=tokens))
                costs[rule] = pool.block_bytes * pool.blocks_per_request(tokens, chosen)
            assert costs["memory"] <= costs["default"]
    one_of_eleven = explicit(gdn(22), full(9), sliding(5))
    default, memory = (layout(one_of_eleven, grouping=rule) for rule in ("default", "memory"))
    assert memory.group_size != default.group_size  # there is a model for which the rules differ


# --- settings and layers to refuse ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tp": 0}, "tp is 0; it must be an integer from 1"),
        ({"tp": 7}, "tp 7 does not divide heads 96"),
        ({"tp": True}, "tp is True"),
        ({"kv_dtype": "fp4"}, "kv_dtype is 'fp4'; choose one of bf16, fp8, fp8_ds_mla, int8"),
        ({"state_dtype": "fp8"}, "state_dtype is 'fp8'; choose one of fp32, bf16"),
        ({"mode": "some"}, "mode is 'some'; choose one of none, align, all"),
        ({"drafts": -1}, "drafts is -1"),
        ({"drafts": 2**60}, "drafts is 1152921504606846976"),
        ({"align": 0}, "align is 0"),
        ({"num_blocks": 10, "memory_bytes": 10}, "memory and num_blocks are both given"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        size(K3, **settings)


def test_settings_a_model_cannot_have():
    with pytest.raises(ValueError, match="'fp8_ds_mla' is a row format of MLA"):
        size(QWEN_4B, kv_dtype="fp8_ds_mla")
    with pytest.raises(ValueError, match="'int8' is not known for DeepSeek V4"):
        size(models.load("deepseek-v4-pro"), kv_dtype="int8")
    with pytest.raises(ValueError, match="grouping 'memory' weighs a request of max_model_len"):
        size(models.from_config({"layers": [gdn(3), full(1)]}), grouping="memory")
    with pytest.raises(ValueError, match="cannot share one pool"):
        size(explicit(full(2), sliding(2), full(1, head_dim=48)))


def test_layers_of_different_width_share_a_pool_if_their_rows_divide_a_page():
    model = explicit(full(2), sliding(2), full(1, kv_heads=2))
    assert [group["block_size"] for group in size(model)["groups"]] == [16, 16, 16, 16, 64]


def test_a_model_of_states_only_has_no_block_size():
    answer = size(explicit(gdn(4)), num_blocks=8)
    assert (
        answer["block_size"] is None and answer["bytes_per_token"] == 0 and answer["token_equivalent"] is None
    )
    assert answer["blocks_per_request"] == 2 and answer["max_concurrency"] == 4

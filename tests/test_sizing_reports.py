"""Sizes that users of running engines reported; A1 to A21 name the public report that each test reproduces."""

import pytest
from sizing_models import explicit, full, gdn, layout, size, sliding

from k3core import models, sizing
from k3core.sizing import Settings

GIB, MIB = 2**30, 2**20
K3, KIMI_LINEAR = models.load("kimi-k3"), models.load("kimi-linear-48b")
QWEN_4B, QWEN_27B = models.load("qwen3.5-4b"), models.load("qwen3.5-27b")


def test_a1_kimi_linear_on_two_3090():
    """vllm #28228: TP2, 2.30 GiB, 120,000 tokens."""
    none, align = (
        size(KIMI_LINEAR, tp=2, mode=mode, max_model_len=120_000, memory_bytes=int(2.30 * GIB))
        for mode in ("none", "align")
    )
    assert (none["block_size"], none["group_size"], none["block_bytes"]) == (960, 7, 7_741_440)
    assert none["num_blocks"] == align["num_blocks"] == 319
    assert (none["blocks_per_request"], align["blocks_per_request"]) == (128, 131)
    assert (round(none["max_concurrency"], 2), round(align["max_concurrency"], 2)) == (2.49, 2.44)
    assert (none["reported_tokens"], align["reported_tokens"]) == (299_062, 292_213)
    assert none["reported_tokens_before"] == 75_840
    assert sizing.log_lines(none)[-2:] == [
        "GPU KV cache size: 299,062 tokens",
        "Maximum concurrency for 120,000 tokens per request: 2.49x",
    ]


def test_a2_qwen_27b_reported_tokens():
    """vllm #40691: the log's 290,864 tokens and 33.04x; the right figure is 1,082,800."""
    answer = size(QWEN_27B, mode="none", max_model_len=32_768, num_blocks=1487)
    assert len(answer["groups"]) == 4 and answer["blocks_per_request"] == 42 + 3
    assert answer["reported_tokens_before"] == 290_864
    assert round(answer["max_concurrency"], 2) == 33.04
    assert answer["reported_tokens"] == 1_082_800


def test_a4_a_short_prompt_holds_a_block_of_every_group():
    """vllm #54458: 23 of 70 blocks, 32.9 % of a pool, for 12 tokens; the floor is one block per group."""
    pool, settings = layout(K3, tp=8, kv_dtype="fp8", mode="none"), Settings(mode="none")
    assert pool.blocks_per_request(12, settings) == len(pool.groups) == 4
    assert round(100 * 23 / 70, 1) == 32.9


def test_a5_k3_keeps_one_latent_row_not_k_and_v_per_head():
    """ATOM #1959: 309 KB per token where 27,648 B is right (13,824 in fp8)."""
    row = size(K3)["bytes_per_token"]
    assert row == 24 * 576 * 2 == 27_648 and size(K3, kv_dtype="fp8")["bytes_per_token"] == 13_824


def test_a7_reported_tokens_are_not_a_capacity():
    """vllm #51041: one pool, and K/V bytes per reported token that vary with max_model_len."""
    answer = size(K3, tp=8, kv_dtype="fp8", num_blocks=1000)
    tokens = [row["tokens"] for row in answer["reported_tokens_at"]]
    assert tokens == sorted(tokens) and tokens[0] * 1.5 < tokens[-1] == answer["reported_tokens"]
    plain = size(models.load("llama-3.3-70b"), num_blocks=1000)
    assert {row["tokens"] for row in plain["reported_tokens_at"]} == {16_000}


def test_a8_the_pool_seems_to_shrink_with_max_model_len():
    """DeepSeek V4 Flash: 2.45M tokens at 500K, 398K at 50K, about 6 times; 3.2e9 fixed bytes per request."""
    flash = models.load("deepseek-v4-flash")
    long, short = (size(flash, kv_dtype="fp8", max_model_len=n, num_blocks=20_000) for n in (500_000, 50_000))
    assert 5.5 < long["reported_tokens"] / short["reported_tokens"] < 7
    fixed = short["limit"]["window_blocks"] * short["block_bytes"]
    assert fixed == pytest.approx(3.2e9, rel=0.06)


def test_a9_more_sequences_than_states():
    """vllm #49064: 1,024 sequences on 969 blocks can never run; the ceiling is known before the start."""
    limit = size(QWEN_4B, mode="none", num_blocks=969)["limit"]
    assert limit["requests_at_one_token"] == 969 // 4 < 969 < 1024


@pytest.mark.parametrize(
    ("report", "slots", "per_request", "running"),
    [
        ("A10, sglang #36889", 10, 5, 2),
        ("A11, sglang #38846", 47, 5, 9),
        ("sglang", 257, 5, 51),
        ("sglang", 451, 5, 90),
        ("sglang", 474, 5, 94),
        ("sglang", 40, 5, 8),
    ],
)
def test_a10_a11_running_requests_by_state_slots(report, slots, per_request, running):
    assert sizing.running_limit(32 if slots < 50 else 1000, 1000, slots, per_request) == (running, "state"), (
        report
    )


def test_a13_the_effective_limit_is_the_smallest():
    """sglang #33004."""
    assert sizing.running_limit(8, 87, 440, 5) == (8, "configured")
    assert sizing.running_limit(256, 87, 440, 5) == (87, "kv")
    assert sizing.running_limit(256, 90, 440, 5) == (88, "state")


def test_a14_scratch_for_slots_that_cannot_run():
    """sglang #23643: 32 requests, 64 slots allocated ahead: two thirds wasted, 12 GB."""
    scratch = sizing.speculative_scratch(slots=96, running=32, drafts=5, state_bytes=MIB)
    assert round(100 * scratch["wasted_share"], 1) == 66.7
    assert scratch["wasted_bytes"] == 64 * 5 * MIB


def test_a16_grouping_waste():
    """vllm #29303: 17 padding layers, 89.47 %, became 1 of 18, 5.56 %."""
    model = explicit(full(19), sliding(18))
    before, after = size(model, grouping="min"), size(model)
    assert before["padding_layers"] == 17 and round(100 * 17 / 19, 2) == 89.47
    assert sizing.log_lines(before)[0].endswith("waste at most 89.47% KV cache memory")
    assert after["padding_layers"] == 1
    assert sizing.log_lines(after)[0].endswith("waste at most 5.56% KV cache memory")


def test_a16_group_explosion():
    """vllm #51742: 30 recurrent, 10 full, 5 sliding and 1 full of its own kind: 46 groups, or 10."""
    model = explicit(gdn(30), full(10), sliding(5), full(1, kv_heads=4, head_dim=128))
    assert len(size(model)["groups"]) == 46
    balanced = size(model, grouping="balanced")
    assert len(balanced["groups"]) == 10 and balanced["group_size"] == 5


def test_a18_calculators_that_count_all_layers():
    """LMCache #3080: 4 times too much for Qwen3.5; vllm #37124: 8 of 32 layers hold K/V."""
    assert size(QWEN_4B)["bytes_per_token"] * 4 == 32 * 2 * 4 * 256 * 2
    assert size(QWEN_4B)["state_bytes_per_sequence"] > 0


def test_a21_a_request_that_can_never_fit_is_said_so():
    """vllm-ascend #17074."""
    limit = size(K3, tp=8, kv_dtype="fp8", num_blocks=600)["limit"]
    assert limit["requests_at_max_model_len"] == 0 and limit["binds"] == "none fits"


# --- two pools ---


@pytest.mark.parametrize(
    ("tokens", "ratio"),
    [(2_048, 10.0), (4_096, 5.0), (8_192, 2.5), (32_768, 0.62), (65_536, 0.31), (131_072, 0.16)],
)
def test_sglang_two_pool_ratio(tokens, ratio):
    """Five slots, and the 4,080 tokens per state that SGLang measured on K3 at TP8 with fp8 K/V."""
    assert round(sizing.two_pool_ratio(5, 0, 4080, tokens), 2 if ratio < 1 else 1) == ratio


def test_two_pool_ratio_worked_example():
    answer = size(K3, tp=8, kv_dtype="fp8", max_model_len=9216)["two_pool_ratio"]["extra_buffer_lazy"]
    assert answer["slots"] == 4 and round(answer["replay"], 1) == 1.8
    assert round(sizing.two_pool_ratio(4, 0, 4063, 9216, dcp=8)) == 14

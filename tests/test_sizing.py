"""Bytes, block size, groups and whole requests against published figures and log lines."""

from dataclasses import replace
from math import floor

import pytest
from sizing_models import explicit, full, layout, size, sliding

from k3core import models, sizing
from k3core.sizing import Settings
from k3core.sizing.packed import packed_groups

GIB, MIB = 2**30, 2**20
K3, KIMI_LINEAR = models.load("kimi-k3"), models.load("kimi-linear-48b")
QWEN_4B, QWEN_27B = models.load("qwen3.5-4b"), models.load("qwen3.5-27b")

# --- published bytes (Kimi K3 config and report; FlashMLA; SGLang and ATOM logs) ---


@pytest.mark.parametrize(
    ("model", "state", "conv", "checkpoint", "per_token"),
    [
        (K3, 434_110_464, 15_261_696, 449_372_160, 27_648),
        (KIMI_LINEAR, 41_943_040, 1_474_560, 43_417_600, 8_064),
    ],
)
def test_bytes_of_a_sequence_and_a_token(model, state, conv, checkpoint, per_token):
    answer = size(model)
    assert answer["state_bytes_per_sequence"] == state
    assert answer["conv_bytes_per_sequence"] == conv
    assert answer["checkpoint_bytes"] == checkpoint
    assert answer["bytes_per_token"] == per_token


@pytest.mark.parametrize(
    ("dtype", "k3", "kimi_linear"),
    [("bf16", 27_648, 8_064), ("fp8", 13_824, 4_032), ("int8", 13_824, 4_032), ("fp8_ds_mla", 15_744, 4_592)],
)
def test_mla_rows_by_dtype(dtype, k3, kimi_linear):
    assert size(K3, kv_dtype=dtype)["bytes_per_token"] == k3
    assert size(KIMI_LINEAR, kv_dtype=dtype)["bytes_per_token"] == kimi_linear


def test_state_and_convolution_of_one_layer():
    layer = K3.recurrent[0]
    assert sizing.recurrent_state_bytes(layer) == 6_291_456
    assert sizing.recurrent_state_bytes(layer, dtype="bf16") * 69 == 207 * MIB
    assert sizing.recurrent_state_bytes(layer, tp=8) == 786_432
    assert sizing.conv_state_bytes(layer) == 221_184
    assert sizing.conv_state_bytes(layer, dtype="fp32") * 69 == 30_523_392
    assert sizing.conv_state_bytes(layer, tp=8) == 27_648
    assert sizing.conv_state_bytes(layer, tp=8, drafts=7) == 92_160


def test_totals_that_llama_cpp_reports_for_k3():
    """unslothai/unsloth PR 7616: 443.11 MiB fixed with fp32 convolution, 27.0 GiB of rows at 1M tokens."""
    assert round(size(K3, conv_dtype="fp32")["checkpoint_bytes"] / MIB, 2) == 443.11
    assert size(K3)["bytes_per_token"] * 1_048_576 == 27 * GIB
    assert size(KIMI_LINEAR)["bytes_per_token"] * 1_048_576 == 7.875 * GIB


@pytest.mark.parametrize(
    ("model", "tp", "dtype", "tokens"),
    [
        (K3, 1, "bf16", 16_253),
        (K3, 1, "fp8", 32_507),
        (K3, 8, "bf16", 2_032),
        (K3, 8, "fp8", 4_063),
        (KIMI_LINEAR, 1, "bf16", 5_384),
    ],
)
def test_tokens_that_weigh_as_much_as_a_checkpoint(model, tp, dtype, tokens):
    assert size(model, tp=tp, kv_dtype=dtype)["token_equivalent"] == tokens


def test_snapshots_against_replay_records():
    """8 fp32 states of K3 against RecoverSSM records of 1,024 B per head and token (vllm #51855)."""
    layer = K3.recurrent[0]
    assert sizing.record_bytes(layer, sizing.RECOVER_RECORD) == 96 * 1024
    assert round(8 * 69 * sizing.recurrent_state_bytes(layer) / GIB, 2) == 3.23
    assert 8 * 69 * sizing.record_bytes(layer, sizing.RECOVER_RECORD) == 51.75 * MIB
    assert 8 * 69 * sizing.recurrent_state_bytes(layer, tp=8) == 414 * MIB
    assert 69 * sizing.record_bytes(layer, sizing.RECOVER_RECORD, tp=8) == 847_872
    assert round(size(K3, tp=8, drafts=7)["record_bytes_per_sequence"] / MIB, 2) == 6.47


def test_gdn_record_is_388_bytes_per_value_head():
    assert sizing.record_bytes(QWEN_4B.recurrent[0], sizing.REPLAY_RECORD) == 32 * 388


def test_record_fields_have_the_width_of_what_they_hold():
    layer = models.Recurrent("kda", 6, 3, 5, 7, 4)
    one = {
        name: sizing.record_bytes(layer, {name: "bf16"}) // 2 for name in ("k", "v", "u", "g", "beta", "conv")
    }
    assert one == {"k": 15, "v": 42, "u": 42, "g": 30, "beta": 6, "conv": 72}
    with pytest.raises(ValueError, match="record field 'q' is not known"):
        sizing.record_bytes(layer, {"q": "bf16"})
    with pytest.raises(ValueError, match="fields is empty"):
        sizing.record_bytes(layer, {})


def test_atom_1883_slots_with_seven_drafts():
    """8 slots of 57.81 MiB for each of 64 sequences are 28.91 GiB per rank; replay needs one slot, not 8."""
    answer = size(K3, tp=8, drafts=7, mode="none")
    assert round(answer["slot_bytes"] / MIB, 2) == 57.81
    assert answer["slots_per_request"] == {"snapshots": 8, "replay": 1}
    assert round(8 * 64 * answer["slot_bytes"] / GIB, 2) == 28.91


def test_deepseek_bytes():
    assert size(models.load("deepseek-v3"))["bytes_per_token"] == 70_272
    v32 = models.from_config(
        {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128}
    )
    assert size(v32, kv_dtype="fp8_ds_mla")["bytes_per_token"] == 61 * (656 + 132)
    pro, flash = models.load("deepseek-v4-pro"), models.load("deepseek-v4-flash")
    assert sizing.compressed_row_bytes(pro.layers[0], "fp8") == 584
    assert floor(size(pro, kv_dtype="fp8")["bytes_per_token"]) == 4_521 + 990
    assert floor(size(flash, kv_dtype="fp8")["bytes_per_token"]) == 3_157 + 693
    assert size(pro, kv_dtype="fp8")["window_bytes_per_sequence"] == 128 * 584 * 61
    assert size(flash, kv_dtype="fp8")["window_bytes_per_sequence"] == 128 * 584 * 43


def test_deepseek_v4_block_strides():
    """vllm #48993 names 1,315,008 B for Pro with 4-bit indexer keys; a Flash server prints 1,002,240 B."""
    pro, flash = models.load("deepseek-v4-pro"), models.load("deepseek-v4-flash")
    fp8 = Settings(kv_dtype="fp8")
    assert max(packed_groups(pro, sizing.resolve(pro, fp8), "mxfp4")[1]) == 1_315_008
    assert size(flash, kv_dtype="fp8")["block_bytes"] == 1_002_240


def test_vla_policy_prefix():
    answer = size(models.load("pi0.5"))
    assert answer["bytes_per_token"] == 18_432
    assert answer["policy"]["prefix_bytes"] == 17_842_176
    assert answer["policy"]["tokens_with_cache"] == 968 + 50 * 10
    assert answer["policy"]["tokens_without_cache"] == (968 + 50) * 10
    unpublished = size(models.load("pi0.7"))
    assert unpublished["bytes_per_token"] == 139_264
    assert unpublished["blocks_per_request"] is None and unpublished["policy"]["prefix_bytes"] is None


# --- the unified page: log lines of running engines ---


@pytest.mark.parametrize(
    ("report", "model", "settings", "block", "padding"),
    [
        ("vllm #28228, Kimi-Linear TP2", KIMI_LINEAR, {"tp": 2}, 960, 1.89),
        ("Kimi-Linear TP2, align 32", KIMI_LINEAR, {"tp": 2, "align": 32}, 960, 1.89),
        ("Kimi-Linear TP2, align 16", KIMI_LINEAR, {"tp": 2, "align": 16}, 944, 0.19),
        ("Kimi-Linear TP1", KIMI_LINEAR, {}, 1920, 1.89),
        ("Kimi-Linear TP4", KIMI_LINEAR, {"tp": 4}, 512, 8.68),
        ("vllm #40696 and #37467, Qwen3.5-4B", QWEN_4B, {}, 528, 0.76),
        ("vllm #40691, Qwen3.5-27B", QWEN_27B, {}, 784, 0.13),
        ("vllm #32492, Qwen3-Next", models.load("qwen3-next-80b"), {}, 544, 1.49),
        ("Qwen3.5-27B fp8 KV", QWEN_27B, {"kv_dtype": "fp8"}, 1568, 0.13),
        (
            "syv-ai #102, Qwen3.8-27B, bf16 state, 15 drafts",
            QWEN_27B,
            {"state_dtype": "bf16", "drafts": 15},
            480,
            1.27,
        ),
        (
            "vLLM recipes #861, K3 TP8 fp8, 7 drafts",
            K3,
            {"tp": 8, "kv_dtype": "fp8", "drafts": 7},
            1536,
            0.70,
        ),
        (
            "K3 TP8 fp8, 7 drafts, align 32",
            K3,
            {"tp": 8, "kv_dtype": "fp8", "drafts": 7, "align": 32},
            1536,
            0.70,
        ),
        (
            "K3 TP8 fp8, 7 drafts, align 128",
            K3,
            {"tp": 8, "kv_dtype": "fp8", "drafts": 7, "align": 128},
            1536,
            0.70,
        ),
        ("K3 TP8 fp8, align 128", K3, {"tp": 8, "kv_dtype": "fp8", "align": 128}, 1536, 8.68),
        ("K3 TP8 fp8, align 32", K3, {"tp": 8, "kv_dtype": "fp8", "align": 32}, 1440, 1.89),
    ],
)
def test_block_size_and_padding(report, model, settings, block, padding):
    answer = size(model, **settings)
    assert answer["block_size"] == block, report
    assert round(answer["padding_percent"], 2) == padding, report


def test_a_state_at_every_block_must_fall_on_a_chunk_of_the_kernel():
    """mode all: 783 tokens hold a Qwen3.5-27B state; chunks of 64 make that 832."""
    assert size(QWEN_27B, mode="all")["block_size"] == 832
    assert size(QWEN_27B, mode="all", align=48)["block_size"] == 960  # lcm(64, 48) = 192


def test_without_a_state_the_block_is_the_kernels():
    assert size(models.load("deepseek-v3"))["block_size"] == 64
    assert size(models.load("llama-3.3-70b"))["block_size"] == 16


# --- groups and whole requests ---


def groups_of(answer):
    return [(group["kind"], group["layers"]) for group in answer["groups"]]


def test_groups_of_k3_and_kimi_linear():
    """One MLA and three KDA groups (TokenSpeed recipe; local-inference-lab/vllm #569)."""
    k3, linear = size(K3), size(KIMI_LINEAR)
    assert groups_of(k3) == [("mla", 24), ("kda", 23), ("kda", 23), ("kda", 23)]
    assert (k3["group_size"], k3["padding_layers"]) == (24, 3)
    assert groups_of(linear) == [("mla", 7), ("kda", 7), ("kda", 7), ("kda", 6)]
    assert linear["padding_layers"] == 1
    assert "Add 3 padding layers, may waste at most 4.35% KV cache memory" in sizing.log_lines(k3)
    assert "Add 1 padding layers, may waste at most 5.00% KV cache memory" in sizing.log_lines(linear)


def test_groups_of_glm_with_34_kda_and_11_mla_layers():
    """local-inference-lab/vllm #602 prints [9, 9, 8, 8, 11]."""
    kda = {"kind": "kda", "count": 34, "heads": 32, "dk": 128, "dv": 128, "conv_kernel": 4}
    model = explicit(kda, {"kind": "mla", "count": 11, "kv_lora_rank": 512, "rope_dim": 64})
    assert groups_of(size(model)) == [("mla", 11), ("kda", 9), ("kda", 9), ("kda", 8), ("kda", 8)]


def test_a_few_draft_layers_pad_the_other_kind_instead_of_adding_a_group():
    """vllm #36684: gpt-oss-20b with a 4-layer drafter, 12 sliding and 17 full layers, is padded to 17."""
    assert [group["layers"] for group in size(explicit(full(17), sliding(12)))["groups"]] == [17, 12]
    assert [group["layers"] for group in size(explicit(full(18), sliding(12)))["groups"]] == [9, 9, 12]


def test_a_window_holds_the_tokens_of_a_step_and_one_block_more():
    """128 - 1 + 8,192 tokens in blocks of 16, which need not start on a block's first token."""
    pool = layout(explicit(sliding(2), full(2)))
    assert [group.window for group in pool.groups] == [128, None]
    assert sizing.blocks_per_request(pool.groups[0], 100_000, Settings()) == 520 + 1
    assert sizing.blocks_per_request(pool.groups[0], 10, Settings()) == 2


def test_a_block_of_k3_and_its_mapping_efficiency():
    settings = sizing.resolve(K3, Settings(tp=8, kv_dtype="fp8", align=128))
    pool = sizing.make_layout(K3, settings)
    assert (pool.page_bytes, pool.block_bytes) == (884_736, 21_233_664)
    shares = sizing.mapping_efficiency(K3, pool, settings, 12)["by_group"]
    assert [round(100 * share, 2) for share in shares] == [100, 88.18, 88.18, 88.18]
    drafts = replace(settings, drafts=7)
    shares = sizing.mapping_efficiency(K3, sizing.make_layout(K3, drafts), drafts, 12)["by_group"]
    assert round(100 * shares[1], 1) == 95.2


@pytest.mark.parametrize(
    ("tokens", "blocks", "align", "none"),
    [
        (12, 7, 37.9, 66.3),
        (1_536, 7, 52.1, 91.1),
        (8_192, 12, 66.5, 88.7),
        (131_072, 92, 95.6, 98.85),
        (1_048_576, 689, 99.46, 99.89),
    ],
)
def test_useful_share_of_a_whole_request(tokens, blocks, align, none):
    settings = sizing.resolve(K3, Settings(tp=8, kv_dtype="fp8", align=128))
    pool = sizing.make_layout(K3, settings)
    measured = sizing.mapping_efficiency(K3, pool, settings, tokens)
    assert measured["blocks"] == blocks
    assert 100 * measured["request"] == pytest.approx(align, abs=0.051)
    measured = sizing.mapping_efficiency(K3, pool, replace(settings, mode="none"), tokens)
    assert 100 * measured["request"] == pytest.approx(none, abs=0.051)

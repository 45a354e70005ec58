"""Presets, and reading a model's own config.json."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core import models
from k3core.models import Attention, Compressed, Latent, Recurrent

KDA = Recurrent("kda", 96, 96, 128, 128, 4)
ISSUED = (
    "kimi-k3",
    "kimi-linear-48b",
    "deepseek-v3",
    "deepseek-v4-pro",
    "deepseek-v4-flash",
    "qwen3.5-4b",
    "qwen3.5-27b",
    "pi0.5",
    "pi0.7",
)

# The configuration keys of Hugging Face's KimiLinearForCausalLM in transformers 5.24.
KIMI_TRANSFORMERS = {
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "kv_lora_rank": 16,
    "q_lora_rank": None,
    "qk_rope_head_dim": 8,
    "linear_head_dim": 16,
    "linear_num_heads": 2,
    "linear_conv_kernel_dim": 4,
    "max_position_embeddings": 1024,
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
}
GQA = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8}
QWEN = {
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}


def config_of(name: str) -> dict:
    """A preset's fields as the config.json they came from."""
    config: dict = {}
    for field in models.load(name).fields:
        *path, last = field.name.split(".")
        inner = config
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = field.value
    return config


def counts(model) -> dict:
    result: dict = {}
    for cache in model.caches():
        result[cache.kind] = result.get(cache.kind, 0) + 1
    return result


# --- presets ---


def test_the_models_a_reader_asks_for_are_there():
    assert set(ISSUED) <= set(models.names())
    assert models.names() == sorted(models.names())


@pytest.mark.parametrize("name", models.names())
def test_every_field_of_a_preset_names_its_source(name):
    model = models.load(name)
    assert model.title and model.fields
    assert all(field.source for field in model.fields)


def test_every_preset_file_is_one_json_object_with_no_unused_source():
    for path in Path(models.__file__).parent.glob("*.json"):
        preset = json.loads(path.read_text(encoding="utf-8"))
        assert {entry["source"] for entry in preset["config"].values()} == set(preset["sources"]), path.name


def test_kimi_k3_is_69_kda_and_24_mla_layers():
    model = models.load("kimi-k3")
    assert counts(model) == {"kda": 69, "mla": 24}
    assert model.recurrent[0] == KDA and KDA.channels == 3 * 12288
    mla = [i for i, cache in enumerate(model.layers) if cache.kind == "mla"]
    assert mla == [*range(3, 92, 4), 92]  # the last two layers are both MLA
    assert model.attention[0].row_elements == 576
    assert model.max_model_len == 1_048_576


def test_kimi_linear_is_20_kda_and_7_mla_layers():
    model = models.load("kimi-linear-48b")
    assert counts(model) == {"kda": 20, "mla": 7}
    assert [i + 1 for i, cache in enumerate(model.layers) if cache.kind == "mla"] == [
        4,
        8,
        12,
        16,
        20,
        24,
        27,
    ]


def test_qwen_geometry():
    small, large = models.load("qwen3.5-4b"), models.load("qwen3.5-27b")
    assert counts(small) == {"gdn": 24, "full": 8} and counts(large) == {"gdn": 48, "full": 16}
    assert small.recurrent[0].channels == 8192 and large.recurrent[0].channels == 10240
    assert small.attention[0] == Attention(4, 256)


@pytest.mark.parametrize("config, dtype, origin", [
    (QWEN, "bf16", "gdn"),  # vllm: gated_delta_net_state_dtype, auto
    ({**QWEN, "torch_dtype": "bfloat16"}, "bf16", "gdn"), ({**QWEN, "dtype": "float32"}, "fp32", "gdn"),
    ({**QWEN, "dtype": "float16"}, "bf16", "gdn"),  # two bytes as well
    ({**QWEN, "mamba_ssm_dtype": "float32"}, "fp32", "file"),
    ({**QWEN, "mamba_ssm_cache_dtype": "bfloat16"}, "bf16", "file"),
    ({**KIMI_TRANSFORMERS, "dtype": "bfloat16"}, "fp32", "kda"),  # vllm: kda_state_dtype
    ({**config_of("nemotron-3-nano-30b"), "torch_dtype": "bfloat16"}, "fp32", "mamba2"),  # vllm: its config
    ({**config_of("nemotron-3-nano-30b"), "mamba_ssm_cache_dtype": "bfloat16"}, "bf16", "file"),
    (GQA, "fp32", ""),
    ({"layers": [{"kind": kind, "heads": 8, "dk": 64, "dv": 64, "conv_kernel": 4} for kind in ("gdn", "kda")]}, "fp32",
     "kda"),
])
def test_the_state_has_the_dtype_that_vllm_gives_it(config, dtype, origin):
    model = models.from_config(config)
    assert (model.state_dtype, model.state_dtype_from) == (dtype, origin)


@pytest.mark.parametrize("name", [name for name in models.names() if name.startswith("qwen3.5")])
def test_qwen_3_5_names_float32_for_its_state(name):
    assert (models.load(name).state_dtype, models.load(name).state_dtype_from) == ("fp32", "file")


def test_deepseek_v4_layers_by_compression():
    pro, flash = models.load("deepseek-v4-pro"), models.load("deepseek-v4-flash")
    ratios = [[cache.ratio for cache in model.layers] for model in (pro, flash)]
    assert [(r.count(4), r.count(128), r.count(0)) for r in ratios] == [(30, 31, 0), (21, 20, 2)]
    assert pro.layers[2] == Compressed(512, 64, 4, 128, 128) and pro.layers[0].index_dim == 0


def test_a_vla_policy_keeps_a_prefix_only():
    model = models.load("pi0.5")
    assert counts(model) == {"full": 18} and model.attention[0] == Attention(1, 256)
    assert model.policy.prefix_tokens == 968 and model.policy.flow_steps == 10
    assert models.load("pi0.7").policy.prefix_tokens is None  # not published, so not made up


def test_nemotron_layers_without_a_cache_are_kept_in_place():
    model = models.load("nemotron-3-nano-30b")
    assert counts(model) == {"mamba2": 23, "full": 6} and len(model.layers) == 52
    assert model.layers[1] is None and model.layers[5] == Attention(2, 128)
    assert model.recurrent[0].channels == 64 * 64 + 2 * 8 * 128


def test_an_unknown_preset_is_refused_with_the_list():
    with pytest.raises(ValueError, match="'kimi-k4' is not a preset; choose one of deepseek-v3"):
        models.load("kimi-k4")


# --- reading config.json ---


@pytest.mark.parametrize("nested", ["text_config", "llm_config"])
def test_a_multimodal_config_is_read_from_its_text_part(nested):
    config = {
        "model_type": "kimi_k3",
        "vision_config": {"num_hidden_layers": 27},
        nested: config_of("kimi-k3"),
    }
    assert models.from_config(config).layers == models.load("kimi-k3").layers


def test_kimi_linear_reads_the_same_from_published_and_transformers_keys():
    transformers = models.from_config(KIMI_TRANSFORMERS)
    published = models.from_config(
        {
            "num_hidden_layers": 4,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "model_max_length": 1024,
            "head_dim": 72,
            "linear_attn_config": {
                "num_heads": 2,
                "head_dim": 16,
                "short_conv_kernel_size": 4,
                "kda_layers": [1, 2, 3],
                "full_attn_layers": [4],
            },
        }
    )
    assert transformers.layers == published.layers
    assert transformers.max_model_len == published.max_model_len == 1024


def test_qwen_layers_from_interval_and_from_layer_types_agree():
    types = ["full_attention" if i % 4 == 3 else "linear_attention" for i in range(8)]
    assert models.from_config(QWEN).layers == models.from_config({**QWEN, "layer_types": types}).layers


def test_plain_attention_with_and_without_windows():
    assert models.from_config(GQA).layers == (Attention(8, 128),) * 80
    gemma = models.from_config(
        {
            "num_hidden_layers": 34,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "sliding_window": 1024,
            "sliding_window_pattern": 6,
        }
    )
    assert counts(gemma) == {"sliding": 29, "full": 5} and gemma.layers[5] == Attention(4, 256)
    unused = models.from_config({**GQA, "sliding_window": 4096, "use_sliding_window": False})
    assert counts(unused) == {"full": 80}
    upper = models.from_config(
        {**GQA, "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 70}
    )
    assert counts(upper) == {"full": 70, "sliding": 10} and upper.layers[70].window == 4096


def test_an_indexer_key_is_part_of_the_row():
    v32 = models.from_config({**config_of("deepseek-v3"), "index_head_dim": 128})
    assert v32.layers[0] == Latent(512, 64, 128)


def test_an_unknown_hybrid_is_answered_from_explicit_layers():
    model = models.from_config(
        {
            "max_position_embeddings": 4096,
            "layers": [
                {"kind": "kda", "count": 3, "heads": 4, "dk": 64, "dv": 32, "conv_kernel": 4},
                {"kind": "mla", "kv_lora_rank": 512, "rope_dim": 64},
                {"kind": "none", "count": 2},
                {"kind": "sliding", "kv_heads": 2, "head_dim": 128, "window": 1024},
            ],
        }
    )
    assert model.layers == (Recurrent("kda", 4, 4, 64, 32, 4),) * 3 + (
        Latent(512, 64),
        None,
        None,
        Attention(2, 128, 1024),
    )


def test_a_lerobot_policy_counts_its_cameras():
    config = {
        "type": "pi05",
        "paligemma_variant": "gemma_2b",
        "chunk_size": 50,
        "empty_cameras": 1,
        "tokenizer_max_length": 200,
        "input_features": {"a": {"type": "VISUAL"}, "s": {"type": "STATE"}},
    }
    assert models.from_config(config).policy.prefix_tokens == 2 * 256 + 200


K3 = config_of("kimi-k3")
WRONG = [
    ([], "is a list; a model config is a JSON object"),
    ({}, "neither num_hidden_layers nor an explicit list 'layers'"),
    ({"num_hidden_layers": 12}, "'hidden_size' is missing"),
    ({**GQA, "num_hidden_layers": "80"}, "'num_hidden_layers' is '80'; it must be an integer from 1"),
    ({**GQA, "num_hidden_layers": 10**18}, "'num_hidden_layers' is 1000000000000000000"),
    ({**GQA, "num_hidden_layers": True}, "'num_hidden_layers' is True"),
    (
        {**GQA, "num_attention_heads": 60},
        "'hidden_size' = 8192 is not a multiple of num_attention_heads = 60",
    ),
    ({**GQA, "mamba_d_state": 128}, "'mamba_d_state' belongs to a hybrid"),
    ({**GQA, "sliding_window": 4096}, "'sliding_window' is set, but neither"),
    ({**GQA, "layer_types": ["full_attention"]}, "'layer_types' has 1 entries for num_hidden_layers = 80"),
    ({**GQA, "layer_types": ["chunked_attention"] * 80}, "'layer_types' holds 'chunked_attention'"),
    ({**K3, "num_hidden_layers": 94}, "kda_layers' and full_attn_layers give no kind for layer 94"),
    ({**K3, "num_hidden_layers": 90}, "give layer 91, which is beyond num_hidden_layers = 90"),
    (
        {**K3, "linear_attn_config": {**K3["linear_attn_config"], "kda_layers": list(range(1, 92))}},
        "'linear_attn_config.kda_layers' and full_attn_layers both name layer 4",
    ),
    ({**K3, "linear_attn_config": {"num_heads": 96}}, "'linear_attn_config.head_dim' is missing"),
    ({**K3, "linear_attn_config": 3}, "'linear_attn_config' must be an object"),
    ({**K3, "kv_lora_rank": None}, "'kv_lora_rank' is missing"),
    ({**QWEN, "linear_num_value_heads": 24}, "'linear_num_value_heads' = 24 is not a multiple"),
    ({**QWEN, "mamba_ssm_dtype": "float8"}, "'mamba_ssm_dtype' is 'float8'"),
    ({**config_of("deepseek-v4-pro"), "compress_ratios": [4]}, "'compress_ratios' has 1 entries"),
    ({**config_of("deepseek-v4-pro"), "compress_ratios": [16] * 61}, r"'compress_ratios' holds \[16\]"),
    ({**config_of("nemotron-3-nano-30b"), "hybrid_override_pattern": "M*"}, "has 2 entries"),
    ({**config_of("nemotron-3-nano-30b"), "hybrid_override_pattern": "X" * 52}, "holds 'X'"),
    ({**config_of("pi0.5"), "paligemma_variant": "gemma_9b"}, "'paligemma_variant' is 'gemma_9b'"),
    ({**config_of("pi0.5"), "type": "pi0"}, "'type' is 'pi0'; known are pi05 and pi07"),
    ({"layers": 3}, "'layers' must be a list"),
    ({"layers": [{"kind": "none"}]}, "no layer that keeps a cache"),
    ({"layers": [{"kind": "rnn"}]}, r"'layers\[0\].kind' is 'rnn'; known are full, gdn, kda"),
    ({"layers": [{"kind": "full", "kv_heads": 2}]}, r"'layers\[0\].head_dim' is missing"),
    (
        {"layers": [{"kind": "full", "kv_heads": 2, "head_dim": 64, "dk": 3}]},
        r"'layers\[0\].dk' is not a field",
    ),
]


@pytest.mark.parametrize(("config", "message"), WRONG)
def test_a_wrong_file_says_which_field(config, message):
    with pytest.raises(ValueError, match=message):
        models.from_config(config)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_a_damaged_config_is_read_or_refused_but_never_crashes(data):
    config = dict(config_of(data.draw(st.sampled_from(models.names()))))
    junk = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=3)
        | st.lists(st.integers(), max_size=2)
        | st.dictionaries(st.text(max_size=2), st.integers(), max_size=1)
    )
    for key in data.draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=3)):
        config[key] = data.draw(junk)
    try:
        model = models.from_config(config)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        assert model.caches()

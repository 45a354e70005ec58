"""The hybrid decoder: against Hugging Face's KimiLinearForCausalLM first, then against itself."""

import json
from pathlib import Path

import numpy as np
import pytest
from decoder_states import assert_same_state
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.decode import HybridDecoder, NoisyOracle, PromptLookup, Speculation, parameter_shapes
from k3core.decode import random_weights, read_config
from k3core.replayssm import SnapshotStore

HF = np.load(Path(__file__).parent / "data" / "hf_kimi_linear_tiny.npz")
CONFIG = json.loads(bytes(HF["config"]))
WEIGHTS = {name[2:]: HF[name] for name in HF.files if name.startswith("w.")}
PUBLISHED = {
    **{k: v for k, v in CONFIG.items() if not k.startswith(("linear_", "layer_types"))},
    "mla_use_nope": True,
    "linear_attn_config": {
        "num_heads": 2, "head_dim": 16, "short_conv_kernel_size": 4,
        "full_attn_layers": [4], "kda_layers": [1, 2, 3],
    },
}  # fmt: skip


def published_names(weights):
    """The same parameters under the names of the published checkpoints."""
    renamed = {}
    for name, array in weights.items():
        if name.endswith("self_attn.conv1d.weight"):
            for part, taps in zip("qkv", np.split(array, 3)):
                renamed[name.replace("conv1d", f"{part}_conv1d")] = taps
        else:
            renamed[name.replace("forget_gate.", "")] = array
    return renamed


def tiny(seed=0, **options):
    return HybridDecoder.random_k3(np.random.default_rng(seed), **options)


# --- Hugging Face ---


@pytest.mark.parametrize("exact", [True, False])
def test_equals_hugging_face(exact):
    decoder = HybridDecoder.from_huggingface(WEIGHTS, CONFIG, exact=exact)
    logits, state = decoder.prefill(HF["ids"])
    assert logits.shape == (80, 64) and logits.dtype == np.float32
    assert np.abs(logits - HF["logits"]).max() <= 1e-4
    for i in range(3):
        assert np.abs(state.memories[i].state - HF[f"state_{i}"]).max() <= 1e-5
        # Hugging Face keeps all 4 inputs of the kernel, channels first; the next token needs the last 3.
        assert np.abs(state.memories[i].conv.T - HF[f"conv_{i}"][:, 1:]).max() <= 1e-5


@pytest.mark.parametrize("exact", [True, False])
def test_greedy_tokens_equal_hugging_face(exact):
    decoder = HybridDecoder.from_huggingface(WEIGHTS, CONFIG, exact=exact)
    prompt, expected = HF["greedy"][:16], HF["greedy"][16:].tolist()
    np.testing.assert_array_equal(prompt, HF["ids"][:16])
    assert decoder.generate(prompt, 32) == expected


def test_speculation_gives_the_tokens_of_hugging_face():
    decoder = HybridDecoder.from_huggingface(WEIGHTS, CONFIG)
    draft = NoisyOracle(HF["greedy"], 0.6, 64, np.random.default_rng(3))
    speculation = Speculation(decoder, HF["greedy"][:16], draft, SnapshotStore, num_drafts=4)
    rounds = speculation.run(32)
    assert speculation.tokens == HF["greedy"][16:].tolist()
    assert 8 < len(rounds) < 31 and min(r.margin for r in rounds) > 1e-3


def test_published_names_and_keys_mean_the_same():
    decoder = HybridDecoder.from_huggingface(WEIGHTS, CONFIG)
    weights = {f"language_model.{name}": array for name, array in published_names(WEIGHTS).items()}
    for name in weights:  # K3's A_log is padded behind the heads
        if name.endswith("A_log"):
            weights[name] = np.concatenate([weights[name].ravel(), np.zeros(30, np.float32)])
    other = HybridDecoder.from_huggingface(weights, {"text_config": PUBLISHED})
    np.testing.assert_array_equal(other.logits(HF["ids"]), decoder.logits(HF["ids"]))


# --- K3's shape ---

K3_TINY = {
    "vocab_size": 50, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 5,
    "mla_use_nope": True, "mla_use_output_gate": True, "hidden_act": "situ", "rms_norm_eps": 1e-5,
    "linear_attn_config": {
        "num_heads": 3, "head_dim": 8, "short_conv_kernel_size": 4,
        "full_attn_layers": [3, 4], "kda_layers": [1, 2],
        "gate_lower_bound": -5.0, "use_full_rank_gate": True,
    },
}  # fmt: skip


def test_k3_config_is_read():
    config = read_config(K3_TINY)
    assert config.layers == ("kda", "kda", "mla", "mla")  # the last two layers of K3 are both MLA
    assert config.gate_lower_bound == -5 and config.full_rank_gate and config.mla_output_gate
    shapes = parameter_shapes(config)
    assert shapes["layers.0.self_attn.g_proj.weight"] == (24, 24)
    assert shapes["layers.2.self_attn.q_b_proj.weight"] == (20, 12)
    assert "layers.0.self_attn.g_a_proj.weight" not in shapes


def test_k3_layers_written_out():
    """A K3-shaped model against the report's equations, token by token and head by head."""
    config = read_config(K3_TINY)
    drawn = random_weights(config, np.random.default_rng(5))
    decoder = HybridDecoder.from_huggingface({f"model.{n}": a for n, a in drawn.items()}, K3_TINY, np.float64)
    ids = np.random.default_rng(6).integers(0, 50, 9)
    np.testing.assert_allclose(decoder.logits(ids), plain_k3(drawn, ids), atol=1e-12)


def sig(x):
    return 1 / (1 + np.exp(-x))


def rms(x, weight, eps=1e-5):
    return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + eps) * weight


def under(w, prefix):
    return {name.removeprefix(prefix): array for name, array in w.items() if name.startswith(prefix)}


def plain_k3(w, ids):
    x = w["embed_tokens.weight"][ids]
    for i in range(4):
        p = under(w, f"layers.{i}.")
        attention = under(p, "self_attn.")
        h = rms(x, p["input_layernorm.weight"])
        out = plain_kda(attention, h) if i < 2 else plain_mla(attention, h)
        x = x + out.reshape(len(h), -1) @ attention["o_proj.weight"].T
        h = rms(x, p["post_attention_layernorm.weight"])
        g, u = h @ p["mlp.gate_proj.weight"].T, h @ p["mlp.up_proj.weight"].T
        x = x + (4 * np.tanh(g / 4) * sig(g) * 25 * np.tanh(u / 25)) @ p["mlp.down_proj.weight"].T
    return rms(x, w["norm.weight"]) @ w["lm_head.weight"].T


def plain_kda(a, h):
    T, mixed = len(h), {}
    for name in "qkv":
        raw = np.concatenate([np.zeros((3, 24)), h @ a[f"{name}_proj.weight"].T])
        taps = a[f"{name}_conv1d.weight"][:, 0]
        y = np.array([sum(taps[:, j] * raw[t + j] for j in range(4)) for t in range(T)])
        mixed[name] = (y * sig(y)).reshape(T, 3, 8)
    q, k = (mixed[n] / np.sqrt(np.sum(mixed[n] ** 2, -1, keepdims=True) + 1e-6) for n in "qk")
    z = (h @ a["f_a_proj.weight"].T @ a["f_b_proj.weight"].T + a["dt_bias"]).reshape(T, 3, 8)
    decay = np.exp(-5 * sig(np.exp(a["A_log"])[:, None] * z))
    beta, gate = sig(h @ a["b_proj.weight"].T), sig(h @ a["g_proj.weight"].T).reshape(T, 3, 8)
    out = np.zeros((T, 3, 8))
    for head in range(3):
        S = np.zeros((8, 8))
        for t in range(T):
            S = decay[t, head][:, None] * S
            S = S + beta[t, head] * np.outer(k[t, head], mixed["v"][t, head] - S.T @ k[t, head])
            out[t, head] = rms(S.T @ q[t, head] / np.sqrt(8), a["o_norm.weight"]) * gate[t, head]
    return out


def plain_mla(a, h):
    T, eps = len(h), 1e-6
    q = rms(h @ a["q_a_proj.weight"].T, a["q_a_layernorm.weight"], eps) @ a["q_b_proj.weight"].T
    q, kv = q.reshape(T, 2, 10), h @ a["kv_a_proj_with_mqa.weight"].T
    both = (rms(kv[:, :10], a["kv_a_layernorm.weight"], eps) @ a["kv_b_proj.weight"].T).reshape(T, 2, 11)
    gate, out = sig(h @ a["g_proj.weight"].T).reshape(T, 2, 5), np.zeros((T, 2, 5))
    for head in range(2):
        for t in range(T):
            keys = np.concatenate([both[: t + 1, head, :6], kv[: t + 1, 10:]], axis=1)
            e = np.exp(keys @ q[t, head] / np.sqrt(10))
            out[t, head] = (e / e.sum()) @ both[: t + 1, head, 6:] * gate[t, head]
    return out


# --- bits ---


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_does_not_depend_on_its_company(dtype):
    decoder = tiny(dtype=dtype)
    ids = np.random.default_rng(1).integers(0, 64, 64)
    full = decoder.logits(ids)
    for T in range(1, 65):
        np.testing.assert_array_equal(decoder.logits(ids[:T]), full[:T])


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    cuts=st.lists(st.integers(1, 39), max_size=5, unique=True),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_prefill_in_any_pieces_has_the_bits_of_one_pass(cuts, dtype):
    decoder = tiny(dtype=dtype)
    ids = np.random.default_rng(2).integers(0, 64, 40)
    full, end = decoder.prefill(ids)
    state, rows = decoder.new_state(), []
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 40]):
        rows.append(decoder.forward(ids[start:stop], state))
    np.testing.assert_array_equal(np.concatenate(rows), full)
    assert_same_state(state, end)


def test_prefill_plus_steps_equals_one_pass_and_copies_are_independent():
    decoder = tiny(dtype=np.float32)
    ids = np.random.default_rng(3).integers(0, 64, 30)
    full, end = decoder.prefill(ids)
    _, state = decoder.prefill(ids[:11])
    saved = state.copy()
    for t in range(11, 30):
        np.testing.assert_array_equal(decoder.step(ids[t], state), full[t])
    assert_same_state(state, end)
    assert_same_state(saved, decoder.prefill(ids[:11])[1])


def test_fast_mode_is_close():
    exact, fast = tiny(), tiny(exact=False)
    ids = np.random.default_rng(4).integers(0, 64, 150)
    assert np.abs(exact.logits(ids) - fast.logits(ids)).max() <= 1e-12
    _, state = fast.prefill(ids[:70])
    rows = [fast.step(i, state) for i in ids[70:]]
    assert np.abs(np.array(rows) - exact.logits(ids)[70:]).max() <= 1e-12


# --- drafts ---


def test_prompt_lookup_takes_the_latest_longest_match():
    draft = PromptLookup(longest=2)
    assert draft.propose([1, 2, 9, 1, 2, 8, 5, 1, 2], 2) == [8, 5]
    assert draft.propose([7, 2, 4, 6, 2], 3) == [4, 6, 2]  # no pair before, but a single token
    assert draft.propose([1, 2, 3], 3) == []
    assert draft.propose([1], 3) == []


def test_noisy_oracle_accepts_as_often_as_it_should():
    draft = NoisyOracle(range(4000), 0.7, 64, np.random.default_rng(0))
    drafted = draft.propose([], 4000)
    right = np.mean([a == b for a, b in zip(drafted, range(4000))])
    assert abs(right - 0.7) < 0.03  # about 4 standard deviations
    assert draft.propose(range(3990), 20) and len(draft.propose(range(3990), 20)) == 10
    for acceptance, expected in ((0, 0), (1, 4000)):
        sure = NoisyOracle([5] * 4000, acceptance, 64, np.random.default_rng(1)).propose([], 4000)
        assert sure.count(5) == expected


def test_a_round_says_what_happened():
    decoder = tiny()
    plain = decoder.generate([1, 2, 3], 8)

    class OneWrong:
        def propose(self, ids, n):
            right = plain[len(ids) - 3 :][:n]
            return [right[0], (right[1] + 1) % 64, right[2]]

    speculation = Speculation(decoder, [1, 2, 3], OneWrong(), SnapshotStore, num_drafts=3)
    r = speculation.verify()
    assert speculation.tokens == plain[:1]
    assert (r.position, r.pending, r.accepted) == (3, plain[0], 1)
    assert r.drafted == (plain[1], (plain[2] + 1) % 64, plain[3])
    assert r.rejected == r.drafted[1:] and r.bonus == plain[2] and r.tokens == (plain[1], plain[2])
    assert speculation.state.length == 7 and [c.length for c in speculation.caches] == [7]
    speculation.commit(r)
    assert speculation.tokens == plain[:3]
    assert speculation.state.length == 5 and [c.length for c in speculation.caches] == [5]
    top = np.sort(decoder.logits([1, 2, 3, plain[0], plain[1]]), axis=1)[3:]
    assert r.margin == pytest.approx(min(top[:, -1] - top[:, -2]))


# --- bad input ---


@pytest.mark.parametrize("ids", [[], [64], [-1], [0.5], [[1, 2]], "ab"])
def test_bad_ids(ids):
    with pytest.raises(ValueError, match="ids must be"):
        tiny().logits(ids)


def test_bad_counts():
    decoder = tiny()
    assert decoder.generate([1], 0) == []
    with pytest.raises(ValueError, match="n must not be negative"):
        decoder.generate([1], -1)
    with pytest.raises(ValueError, match="num_drafts"):
        Speculation(decoder, [1], PromptLookup(), SnapshotStore, -1)
    with pytest.raises(ValueError, match="longest must be at least 1 token, not 0"):
        PromptLookup(0)
    with pytest.raises(ValueError, match="acceptance"):
        NoisyOracle([1], 1.5, 64, np.random.default_rng(0))


def without(mapping, key):
    return {k: v for k, v in mapping.items() if k != key}


@pytest.mark.parametrize(
    "weights, config, words",
    [
        (WEIGHTS, ["kv_lora_rank"], "must be a mapping of names to values, not list"),
        (WEIGHTS, without(CONFIG, "kv_lora_rank"), "no 'kv_lora_rank'"),
        (WEIGHTS, {**CONFIG, "mla_use_nope": False}, "no rotary embedding"),
        (WEIGHTS, {**CONFIG, "attn_res_block_size": 12}, "attention residuals"),
        (WEIGHTS, {**CONFIG, "layer_types": ["sliding"]}, "layers must be"),
        (WEIGHTS, {**CONFIG, "hidden_act": "gelu"}, "activation must be"),
        (WEIGHTS, {**CONFIG, "hidden_size": 0}, "hidden_size must be a positive integer"),
        (WEIGHTS, {**CONFIG, "linear_head_dim": 8}, "must have shape"),
        (WEIGHTS, {**CONFIG, "layer_types": CONFIG["layer_types"][:3]}, "does not use"),
        (without(WEIGHTS, "model.norm.weight"), CONFIG, "no 'norm.weight'"),
        (without(WEIGHTS, "model.embed_tokens.weight"), CONFIG, "embed_tokens"),
        ({**WEIGHTS, "model.layers.1.mlp.experts.0.w1": np.zeros(1)}, CONFIG, "does not use.*experts"),
        ({**WEIGHTS, "model.norm.weight": np.full(32, np.nan, np.float32)}, CONFIG, "not finite"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_named(weights, config, words):
    with pytest.raises(ValueError, match=words):
        HybridDecoder.from_huggingface(weights, config)


def test_tied_embeddings():
    tied = HybridDecoder.from_huggingface(without(WEIGHTS, "lm_head.weight"), CONFIG)
    same = HybridDecoder.from_huggingface(
        {**WEIGHTS, "lm_head.weight": WEIGHTS["model.embed_tokens.weight"]}, CONFIG
    )
    np.testing.assert_array_equal(tied.logits([1, 2, 3]), same.logits([1, 2, 3]))

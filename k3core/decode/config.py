"""The shape of a hybrid decoder, read from a model's configuration, and the parameters that shape implies."""

from dataclasses import dataclass

# fmt: off
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "kda_heads", "kda_key_dim", "kda_value_dim",
         "conv_kernel", "gate_rank", "heads", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim")
# fmt: on


@dataclass(frozen=True)
class DecoderConfig:
    """What `HybridDecoder` needs to know; field names follow the published config.json where it has one."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: tuple[str, ...]  # "kda" or "mla", from the input up
    kda_heads: int
    kda_key_dim: int
    kda_value_dim: int
    conv_kernel: int
    gate_rank: int  # inner width of the decay gate, and of the output gate unless that is full rank
    gate_lower_bound: float | None  # None: softplus gate
    full_rank_gate: bool
    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    mla_output_gate: bool
    activation: str = "silu"  # or "situ"
    situ_beta: float = 4.0
    situ_linear_beta: float = 25.0
    rms_norm_eps: float = 1e-5

    def __post_init__(self):
        for name in SIZES:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, not {value!r}")
        if not self.layers or not set(self.layers) <= {"kda", "mla"}:
            raise ValueError(f"layers must be a non-empty list of 'kda' and 'mla', not {self.layers!r}")
        if self.activation not in ("silu", "situ"):
            raise ValueError(f"activation must be silu or situ, not {self.activation!r}")


def read_config(config):
    """DecoderConfig from the mapping in a config.json, published style or transformers style.

    Published (Kimi-Linear-48B, Kimi-K3): `linear_attn_config` with 1-based layer lists, perhaps inside
    `text_config`. Transformers 5: `linear_head_dim`, `linear_num_heads`, `linear_conv_kernel_dim`,
    `layer_types`. Raises ValueError for a key that is missing and for what this decoder does not do: rotary
    embedding, attention residuals.
    """
    if not isinstance(config, dict):
        raise ValueError(f"the configuration must be a mapping of names to values, not {type(config).__name__}")
    config = config.get("text_config", config)
    layers, source, (heads, dim, conv) = _linear_attention(config)
    if config.get("mla_use_nope") is False:
        raise ValueError("mla_use_nope must be true: this decoder has no rotary embedding")
    if config.get("attn_res_block_size"):
        raise ValueError("attn_res_block_size must be unset: this decoder has no attention residuals")
    dim = _need(source, dim)
    return DecoderConfig(
        vocab_size=_need(config, "vocab_size"),
        hidden_size=_need(config, "hidden_size"),
        intermediate_size=_need(config, "intermediate_size"),
        layers=layers,
        kda_heads=_need(source, heads),
        kda_key_dim=dim,
        kda_value_dim=dim,
        conv_kernel=_need(source, conv),
        gate_rank=dim,
        gate_lower_bound=source.get("gate_lower_bound"),
        full_rank_gate=bool(source.get("use_full_rank_gate")),
        heads=_need(config, "num_attention_heads"),
        q_lora_rank=config.get("q_lora_rank"),
        kv_lora_rank=_need(config, "kv_lora_rank"),
        qk_nope_head_dim=_need(config, "qk_nope_head_dim"),
        qk_rope_head_dim=_need(config, "qk_rope_head_dim"),
        v_head_dim=_need(config, "v_head_dim"),
        mla_output_gate=bool(config.get("mla_use_output_gate")),
        activation=config.get("hidden_act", "silu"),
        situ_beta=config.get("activation_situ_beta", 4.0),
        situ_linear_beta=config.get("activation_situ_linear_beta", 25.0),
        rms_norm_eps=config.get("rms_norm_eps", 1e-5),
    )


def _linear_attention(config):
    """(kinds of the layers, the mapping that describes KDA, its keys for heads, head size and convolution)."""
    published = config.get("linear_attn_config")
    if published is not None:
        full = set(_need(published, "full_attn_layers"))
        layers = tuple("mla" if i + 1 in full else "kda" for i in range(_need(config, "num_hidden_layers")))
        return layers, published, ("num_heads", "head_dim", "short_conv_kernel_size")
    kinds = {"linear_attention": "kda", "full_attention": "mla"}
    layers = tuple(kinds.get(kind, kind) for kind in _need(config, "layer_types"))
    return layers, config, ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")


def _need(config, key):
    if key not in config:
        raise ValueError(f"the configuration has no {key!r}")
    return config[key]


def parameter_shapes(config):
    """Published name of every parameter -> shape; matrices [out, in], convolutions [channels, 1, kernel].

    Names and shapes as in the checkpoints moonshotai/Kimi-Linear-48B-A3B-Base and moonshotai/Kimi-K3.
    """
    d, ff = config.hidden_size, config.intermediate_size
    shapes = {
        "embed_tokens.weight": (config.vocab_size, d),
        "norm.weight": (d,),
        "lm_head.weight": (config.vocab_size, d),
    }
    for i, kind in enumerate(config.layers):
        attention = _kda_shapes(config) if kind == "kda" else _mla_shapes(config)
        layer = {f"self_attn.{name}": shape for name, shape in attention.items()}
        layer |= {"input_layernorm.weight": (d,), "post_attention_layernorm.weight": (d,)}
        layer |= {"mlp.gate_proj.weight": (ff, d), "mlp.up_proj.weight": (ff, d), "mlp.down_proj.weight": (d, ff)}
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def _kda_shapes(c):
    d, keys, values = c.hidden_size, c.kda_heads * c.kda_key_dim, c.kda_heads * c.kda_value_dim
    shapes = {}
    for name, width in (("q", keys), ("k", keys), ("v", values)):
        shapes |= {f"{name}_proj.weight": (width, d), f"{name}_conv1d.weight": (width, 1, c.conv_kernel)}
    shapes |= {"f_a_proj.weight": (c.gate_rank, d), "f_b_proj.weight": (keys, c.gate_rank), "dt_bias": (keys,)}
    shapes |= {"A_log": (c.kda_heads,), "b_proj.weight": (c.kda_heads, d)}
    if c.full_rank_gate:
        shapes |= {"g_proj.weight": (values, d)}
    else:
        shapes |= {"g_a_proj.weight": (c.gate_rank, d), "g_b_proj.weight": (values, c.gate_rank)}
    return shapes | {"o_norm.weight": (c.kda_value_dim,), "o_proj.weight": (d, values)}


def _mla_shapes(c):
    d, rank, values = c.hidden_size, c.q_lora_rank, c.heads * c.v_head_dim
    q_width = c.heads * (c.qk_nope_head_dim + c.qk_rope_head_dim)
    if rank is None:
        shapes = {"q_proj.weight": (q_width, d)}
    else:
        shapes = {"q_a_proj.weight": (rank, d), "q_a_layernorm.weight": (rank,), "q_b_proj.weight": (q_width, rank)}
    shapes |= {
        "kv_a_proj_with_mqa.weight": (c.kv_lora_rank + c.qk_rope_head_dim, d),
        "kv_a_layernorm.weight": (c.kv_lora_rank,),
        "kv_b_proj.weight": (c.heads * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank),
    }
    if c.mla_output_gate:
        shapes |= {"g_proj.weight": (values, d)}
    return shapes | {"o_proj.weight": (d, values)}

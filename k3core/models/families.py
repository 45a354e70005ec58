"""Which cache each layer keeps: one reader per family of models, and which file each reader recognises."""

from .source import MAX_LAYERS, Source
from .spec import Attention, Cache, Compressed, Latent, Policy, Recurrent

# Fields that belong to a recurrent or other stateful layer. Left over in a file no reader knows, they mean
# a hybrid.
HYBRID_PREFIXES = (
    "mamba",
    "ssm_",
    "linear_",
    "rwkv",
    "lru_",
    "rglru",
    "attn_layer_",
    "conv_L_cache",
    "attn_type_list",
)

# layers, KV heads, head size. gemma_2b: openpi models/gemma.py; gemma3_4b: Gemma 3 4B config.json.
POLICY_BACKBONES = {"gemma_2b": (18, 1, 256), "gemma3_4b": (34, 4, 256)}
POLICY_CAMERAS = 3  # openpi: base and two wrist cameras
POLICY_IMAGE_TOKENS = 256  # SigLIP So400m/14 at 224 x 224 pixels: 16 x 16 patches


def read_explicit(source: Source):
    """Any hybrid, as a list of {"kind", "count", and the fields of that kind}."""
    entries = source.value("layers")
    if not isinstance(entries, list):
        raise source.error("layers", "must be a list of objects with 'kind' and 'count'")
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise source.error(f"layers[{i}]", "must be an object with 'kind' and 'count'")
        item = Source(entry, source.name, f"layers[{i}].")
        kind, count = item.text("kind"), item.count("count", default=1, most=MAX_LAYERS)
        if kind not in EXPLICIT_FIELDS:
            raise item.error("kind", f"is {kind!r}; known are {', '.join(sorted(EXPLICIT_FIELDS))}")
        allowed = EXPLICIT_FIELDS[kind]
        for key in entry:
            if key not in allowed and key not in ("kind", "count"):
                raise item.error(
                    key, f"is not a field of kind '{kind}', which has {', '.join(allowed) or 'none'}"
                )
        yield from [_explicit(item, kind)] * count


EXPLICIT_FIELDS = {
    "kda": ("heads", "key_heads", "dk", "dv", "conv_kernel", "chunk"),
    "gdn": ("heads", "key_heads", "dk", "dv", "conv_kernel", "chunk"),
    "mamba2": ("heads", "key_heads", "dk", "dv", "conv_kernel", "chunk"),
    "mla": ("kv_lora_rank", "rope_dim", "index_dim"),
    "full": ("kv_heads", "head_dim"),
    "sliding": ("kv_heads", "head_dim", "window"),
    "none": (),
}


def _explicit(item: Source, kind: str) -> Cache | None:
    if kind in ("kda", "gdn", "mamba2"):
        heads = item.count("heads")
        return Recurrent(
            kind,
            heads,
            item.count("key_heads", default=heads),
            item.count("dk"),
            item.count("dv"),
            item.count("conv_kernel"),
            item.count("chunk", default=64),
        )
    if kind == "mla":
        return Latent(
            item.count("kv_lora_rank"),
            item.count("rope_dim", least=0),
            item.count("index_dim", default=0, least=0),
        )
    if kind == "none":
        return None
    return Attention(
        item.count("kv_heads"), item.count("head_dim"), item.count("window") if kind == "sliding" else None
    )


def read_kimi(source: Source):
    """Kimi K3 and Kimi-Linear: KDA and MLA layers; published lists are 1-based."""
    mla = _latent(source)
    layers = source.layers()
    if source.has("linear_attn_config"):
        linear = source.inside("linear_attn_config")
        heads, dim = linear.count("num_heads"), linear.count("head_dim")
        conv = linear.count("short_conv_kernel_size")
        full = _one_based(linear, layers)
    else:
        heads, dim = source.count("linear_num_heads"), source.count("linear_head_dim")
        conv = source.count("linear_conv_kernel_dim")
        full = {
            i
            for i, kind in enumerate(_layer_types(source, layers, ("linear_attention", "full_attention")))
            if kind == "full_attention"
        }
    kda = Recurrent("kda", heads, heads, dim, dim, conv)
    return [mla if i in full else kda for i in range(layers)]


def _one_based(linear: Source, layers: int) -> set[int]:
    """0-based indices of the full-attention layers; the two published lists must share out all layers."""
    full, kda = (set(linear.list(key, int)) for key in ("full_attn_layers", "kda_layers"))
    if full & kda:
        raise linear.error("kda_layers", f"and full_attn_layers both name layer {min(full & kda)}")
    expected = set(range(1, layers + 1))
    if full | kda != expected:
        odd = min((full | kda) ^ expected)
        problem = f"layer {odd}, which is beyond" if odd not in expected else f"no kind for layer {odd} of"
        raise linear.error("kda_layers", f"and full_attn_layers give {problem} num_hidden_layers = {layers}")
    return {i - 1 for i in full}


def _latent(source: Source) -> Latent:
    return Latent(
        source.count("kv_lora_rank"),
        source.count("qk_rope_head_dim", least=0),
        source.count("index_head_dim", default=0, least=0),
    )


def read_mla(source: Source):
    """DeepSeek V3, V3.2 and relatives: MLA in every layer."""
    return [_latent(source)] * source.layers()


def read_compressed(source: Source):
    """DeepSeek V4. Entries of compress_ratios beyond num_hidden_layers belong to the MTP layers."""
    layers, ratios = source.layers(), source.list("compress_ratios", int)
    if len(ratios) < layers:
        raise source.error("compress_ratios", f"has {len(ratios)} entries for num_hidden_layers = {layers}")
    head, rope = source.count("head_dim"), source.count("qk_rope_head_dim")
    window, index = source.count("sliding_window"), source.count("index_head_dim")
    if not any(ratios[:layers]) or set(ratios[:layers]) - {0, 4, 128}:
        raise source.error(
            "compress_ratios",
            f"holds {sorted(set(ratios[:layers]))}; known are 4 and 128, and 0 for "
            "a layer without compression",
        )
    # Only ratio 4 keeps an indexer: the rows left at ratio 128 are few enough to attend to all of them.
    return [Compressed(head, rope, ratio, window, index if ratio == 4 else 0) for ratio in ratios[:layers]]


def read_qwen(source: Source):
    """Qwen3-Next and Qwen3.5: gated delta net, full attention every full_attention_interval-th layer."""
    layers = source.layers()
    gdn = Recurrent(
        "gdn",
        source.count("linear_num_value_heads"),
        source.count("linear_num_key_heads"),
        source.count("linear_key_head_dim"),
        source.count("linear_value_head_dim"),
        source.count("linear_conv_kernel_dim"),
    )
    if gdn.heads % gdn.key_heads:
        raise source.error(
            "linear_num_value_heads",
            f"= {gdn.heads} is not a multiple of linear_num_key_heads = {gdn.key_heads}",
        )
    full = _gqa(source)
    if source.has("layer_types"):
        kinds = _layer_types(source, layers, ("linear_attention", "full_attention"))
    else:
        interval = source.count("full_attention_interval")
        kinds = ["linear_attention" if (i + 1) % interval else "full_attention" for i in range(layers)]
    return [gdn if kind == "linear_attention" else full for kind in kinds]


def read_nemotron(source: Source):
    """Nemotron-H: Mamba-2 and attention layers between layers without a cache."""
    mamba = Recurrent(
        "mamba2",
        source.count("mamba_num_heads"),
        source.count("n_groups"),
        source.count("ssm_state_size"),
        source.count("mamba_head_dim"),
        source.count("conv_kernel"),
        source.count("chunk_size"),
    )
    layers, full = source.layers(), _gqa(source)
    if source.has("hybrid_override_pattern"):
        key, kinds = "hybrid_override_pattern", source.text("hybrid_override_pattern")
    else:
        key, kinds = "layers_block_type", source.list("layers_block_type", str)
    caches = {
        "M": mamba,
        "*": full,
        "-": None,
        "E": None,
        "mamba": mamba,
        "attention": full,
        "mlp": None,
        "moe": None,
    }
    if len(kinds) != layers:
        raise source.error(key, f"has {len(kinds)} entries for num_hidden_layers = {layers}")
    for kind in kinds:
        if kind not in caches:
            raise source.error(
                key, f"holds {kind!r}; known are M (mamba), * (attention), - (mlp) and E (moe)"
            )
    return [caches[kind] for kind in kinds]


def _gqa(source: Source, window: int | None = None) -> Attention:
    if source.has("head_dim", "attention_head_dim"):
        head = source.count("head_dim", "attention_head_dim")
    else:
        hidden, heads = source.count("hidden_size"), source.count("num_attention_heads")
        if hidden % heads:
            raise source.error(
                "hidden_size", f"= {hidden} is not a multiple of num_attention_heads = {heads}; give head_dim"
            )
        head = hidden // heads
    return Attention(source.count("num_key_value_heads", "num_attention_heads"), head, window)


def read_gqa(source: Source):
    """Full or sliding-window attention in every layer."""
    for key, value in source.data.items():
        if value and key.startswith(HYBRID_PREFIXES):
            raise source.error(
                key,
                "belongs to a hybrid this reader does not know; describe its layers as "
                '"layers": [{"kind": "gdn", "count": 30, ...}, ...]',
            )
    layers = source.layers()
    full = _gqa(source)
    slides = _sliding(source, layers)
    if not any(slides):
        return [full] * layers
    local = _gqa(source, source.count("sliding_window"))
    return [local if slide else full for slide in slides]


def _sliding(source: Source, layers: int) -> list[bool]:
    """Which layers look back over a window only."""
    if source.has("layer_types"):
        kinds = _layer_types(source, layers, ("full_attention", "sliding_attention"))
        return [kind == "sliding_attention" for kind in kinds]
    if not source.has("sliding_window") or source.data.get("use_sliding_window") is False:
        return [False] * layers
    if source.has("sliding_window_pattern"):  # Gemma 3: every n-th layer is global
        pattern = source.count("sliding_window_pattern")
        return [(i + 1) % pattern != 0 for i in range(layers)]
    if source.data.get("use_sliding_window") and source.has(
        "max_window_layers"
    ):  # Qwen2: the upper layers slide
        first = source.count("max_window_layers", least=0)
        return [i >= first for i in range(layers)]
    if source.data.get("model_type") == "mistral":
        return [True] * layers
    raise source.error(
        "sliding_window",
        "is set, but neither layer_types nor sliding_window_pattern says which layers it applies to",
    )


def _layer_types(source: Source, layers: int, known: tuple[str, ...]) -> list[str]:
    kinds = source.list("layer_types", str)
    if len(kinds) != layers:
        raise source.error("layer_types", f"has {len(kinds)} entries for num_hidden_layers = {layers}")
    for kind in kinds:
        if kind not in known:
            raise source.error("layer_types", f"holds {kind!r}; known here are {' and '.join(known)}")
    return kinds


def read_policy(source: Source):
    """pi0.5 and pi0.7: the backbone's K/V over the prefix; the action expert reads it and adds none of its
    own."""
    variant = source.text("paligemma_variant", "backbone_variant")
    if variant not in POLICY_BACKBONES:
        raise source.error("paligemma_variant", f"is {variant!r}; known are {', '.join(POLICY_BACKBONES)}")
    layers, kv_heads, head_dim = POLICY_BACKBONES[variant]
    return [Attention(kv_heads, head_dim)] * layers


def read_policy_use(source: Source) -> Policy:
    kind = source.text("type", default="pi05")
    if kind not in ("pi05", "pi07") or source.data.get("pi05") is False:
        raise source.error("type", f"is {kind!r}; known are pi05 and pi07")
    suffix = source.count("action_horizon", "chunk_size")
    if kind == "pi07":  # how many prefix tokens and flow steps it uses is not published
        prefix = source.count("prefix_tokens") if source.has("prefix_tokens") else None
        steps = source.count("num_inference_steps") if source.has("num_inference_steps") else None
        return Policy(prefix, suffix, steps)
    text = source.count("max_token_len", "tokenizer_max_length", default=200)
    return Policy(
        _cameras(source) * POLICY_IMAGE_TOKENS + text, suffix, source.count("num_inference_steps", default=10)
    )


def _cameras(source: Source) -> int:
    """Camera images in an observation: lerobot lists them, openpi always takes three."""
    features = source.value("input_features", default={})
    if not isinstance(features, dict):
        raise source.error("input_features", "must be an object")
    images = sum(isinstance(f, dict) and f.get("type") == "VISUAL" for f in features.values())
    if not images:
        return POLICY_CAMERAS
    return images + source.count("empty_cameras", default=0, least=0)


def _has(*keys: str):
    return lambda config: any(config.get(key) is not None for key in keys)


# In order: the first family that recognises the file reads it.
READERS = (
    (_has("layers"), read_explicit),
    (_has("paligemma_variant", "backbone_variant"), read_policy),
    (_has("linear_attn_config", "linear_num_heads"), read_kimi),
    (_has("linear_num_value_heads"), read_qwen),
    (_has("hybrid_override_pattern", "layers_block_type"), read_nemotron),
    (_has("compress_ratios"), read_compressed),
    (_has("kv_lora_rank"), read_mla),
    (_has("num_hidden_layers"), read_gqa),
)

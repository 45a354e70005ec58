"""Read a model's config.json (Hugging Face, openpi/lerobot, or an explicit list of layers) into a Model.

Only what a serving cache depends on is read; everything else in the file is ignored. A file that cannot be
read for certain is refused: a hybrid taken for a plain transformer is wrong by a factor of four.
"""

from .families import READERS, read_policy, read_policy_use
from .source import Source
from .spec import Field, Model, Policy, Recurrent


def from_config(
    config: dict, name: str = "config.json", title: str = "", fields: tuple[Field, ...] = (), note: str = ""
) -> Model:
    """The Model that a parsed config.json describes.

    Known: Kimi K3 and Kimi-Linear (published and transformers-style keys), DeepSeek V3 and V4, Qwen3-Next
    and Qwen3.5, Nemotron-H, grouped-query attention with or without sliding windows, pi0.5, pi0.7, and any
    hybrid given as `"layers": [{"kind": ..., "count": ..., ...}]`. Raises ValueError naming the field that
    is missing, malformed or contradicts another.
    """
    if not isinstance(config, dict):
        raise ValueError(f"{name} is a {type(config).__name__}; a model config is a JSON object")
    for nested in ("text_config", "llm_config"):
        if isinstance(config.get(nested), dict):
            config = config[nested]
    read = next((read for recognises, read in READERS if recognises(config)), None)
    if read is None:
        raise ValueError(
            f"{name} names no layers a cache could be sized from: it has neither num_hidden_layers "
            "nor an explicit list 'layers'"
        )
    source = Source(config, name)
    policy = read_policy_use(source) if read is read_policy else None
    layers = tuple(read(source))
    if not any(layers):
        raise ValueError(f"{name} describes no layer that keeps a cache")
    state_dtype, state_dtype_from = _state_dtype(source, layers)
    return Model(
        name=name,
        title=title or name,
        layers=layers,
        max_model_len=_max_len(source, policy),
        state_dtype=state_dtype,
        state_dtype_from=state_dtype_from,
        policy=policy,
        fields=fields,
        note=note,
    )


def _max_len(source: Source, policy: Policy | None) -> int | None:
    if policy is not None:
        return policy.prefix_tokens
    if source.has("max_position_embeddings", "model_max_length"):
        return source.count("max_position_embeddings", "model_max_length")
    return None


def _state_dtype(source: Source, layers: tuple) -> tuple[str, str]:
    """The dtype of the recurrent state, and why: "file" where the file names it, else the kind whose default it is.

    Defaults are vLLM's for mamba_ssm_cache_dtype=auto (layers/mamba/mamba_utils.py and models/config.py): the
    model's dtype for a gated delta net, which gives Qwen3-Next the block of 544 in vllm #32492; float32 for KDA
    whatever the model's, and for Nemotron-H. A layer of float32 next to gated delta nets decides for both. A model
    in float16 counts as bf16: two bytes as well.
    """
    names = {"float32": "fp32", "bfloat16": "bf16"}
    if source.has("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        dtype = source.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
        if dtype not in names:
            raise source.error("mamba_ssm_dtype", f"is {dtype!r}; known are float32 and bfloat16")
        return names[dtype], "file"
    kinds = sorted({layer.kind for layer in layers if isinstance(layer, Recurrent)})
    if kinds != ["gdn"]:
        return "fp32", next((kind for kind in kinds if kind != "gdn"), "")
    return names.get(source.text("dtype", "torch_dtype", default="bfloat16"), "bf16"), "gdn"

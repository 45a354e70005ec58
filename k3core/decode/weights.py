"""Parameters by published name: taken from a checkpoint's arrays, or drawn at random."""

import numpy as np

from .config import parameter_shapes

# Names that transformers 5 gives to what the published checkpoints call otherwise.
TRANSFORMERS_NAMES = {
    name: f"forget_gate.{name}" for name in ("A_log", "dt_bias", "f_a_proj.weight", "f_b_proj.weight")
}


def read_weights(weights, config, dtype):
    """The parameters of `config` out of a checkpoint: {published name: array of `dtype`}.

    weights maps full names ("model.layers.0...", any prefix) to arrays. Both naming styles are read, one
    joint conv1d or three, A_log in any layout (K3's is padded behind the heads). Raises ValueError on a
    parameter that is missing, has the wrong shape, or that this decoder would ignore (experts, attention
    residuals).
    """
    prefix = _prefix(weights)
    named = {name.removeprefix(prefix): array for name, array in weights.items() if name.startswith(prefix)}
    for name in [n for n in weights if n.endswith("lm_head.weight")]:
        named["lm_head.weight"] = weights[name]
    for name in [n for n in named if n.endswith("self_attn.conv1d.weight")]:
        _split_conv(named, name, config)
    if "lm_head.weight" not in named:
        named["lm_head.weight"] = named["embed_tokens.weight"]  # tied
    read = {}
    for name, shape in parameter_shapes(config).items():
        array = _take(named, name)
        if name.endswith("A_log"):
            array = array.ravel()[: shape[0]]
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
        read[name] = array.astype(dtype)
        if not np.isfinite(read[name]).all():
            raise ValueError(f"{name} holds a value that is not finite")
    if named:
        raise ValueError(f"the weights hold parameters this decoder does not use, such as {min(named)!r}")
    return read


def _prefix(weights):
    for name in weights:
        if name.endswith("embed_tokens.weight"):
            return name.removesuffix("embed_tokens.weight")
    raise ValueError("the weights have no 'embed_tokens.weight'")


def _split_conv(named, name, config):
    """Transformers keeps the q, k and v convolutions as one; the published checkpoints as three."""
    joint = np.asarray(named.pop(name))
    keys = config.kda_heads * config.kda_key_dim
    for part, array in zip("qkv", np.split(joint, [keys, 2 * keys])):
        named[name.replace("conv1d", f"{part}_conv1d")] = array


def _take(named, name):
    layer, _, last = name.rpartition("self_attn.")
    for candidate in (name, f"{layer}self_attn.{TRANSFORMERS_NAMES.get(last, last)}"):
        if candidate in named:
            return np.asarray(named.pop(candidate))
    raise ValueError(f"the weights have no {name!r}")


def random_weights(config, rng, dtype=np.float64):
    """Parameters drawn from `rng` (numpy.random.Generator): {published name: array of `dtype`, shaped as
    `parameter_shapes` says}, scaled so that activations stay of order 1."""
    drawn = {}
    for name, shape in parameter_shapes(config).items():
        if name.endswith(("norm.weight", "layernorm.weight")):
            array = 1 + 0.1 * rng.standard_normal(shape)
        elif name.endswith(("A_log", "dt_bias")):
            array = 0.5 * rng.standard_normal(shape)
        elif name.endswith("embed_tokens.weight"):
            array = rng.standard_normal(shape)
        else:
            array = rng.standard_normal(shape) / np.sqrt(shape[-1])
        drawn[name] = array.astype(dtype)
    return drawn

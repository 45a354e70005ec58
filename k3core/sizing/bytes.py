"""Bytes one layer keeps: recurrent state, convolution window, attention rows, replay records.

All results are Python ints and per tensor-parallel rank; TP splits a layer by heads.
"""

from ..models import Attention, Compressed, Latent, Recurrent

ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1}
KV_DTYPES = ("bf16", "fp8", "fp8_ds_mla", "int8")
STATE_DTYPES = ("fp32", "bf16")

# Replay records: dtype per recorded field, per token.
RECOVER_RECORD = {"u": "fp32", "k": "bf16", "g": "bf16"}  # vllm #51855 (RecoverSSM, K3)
REPLAY_RECORD = {"u": "bf16", "k": "bf16", "g": "fp32"}  # Johnny-Liou/ReplaySSM, fused_recurrent_replayssm.py


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def recurrent_state_bytes(layer: Recurrent, tp: int = 1, dtype: str = "fp32") -> int:
    """Bytes of one recurrent state: heads/tp * dk * dv elements. One layer, one sequence, one rank."""
    return (
        _shard(layer.heads, tp, "heads") * layer.dk * layer.dv * _element(dtype, STATE_DTYPES, "state dtype")
    )


def conv_state_bytes(layer: Recurrent, tp: int = 1, dtype: str = "bf16", drafts: int = 0) -> int:
    """Bytes of one short-convolution window: (conv_kernel - 1 + drafts) columns of channels/tp inputs.

    drafts: draft tokens per step; their inputs stay in the window until it is known how many were accepted
    (vLLM model_executor/layers/mamba/mamba_utils.py).
    """
    q_and_k = 2 * _shard(layer.key_heads, tp, "key_heads", replicate=True) * layer.dk
    channels = q_and_k + _shard(layer.heads, tp, "heads") * layer.dv
    return (layer.conv_kernel - 1 + drafts) * channels * _element(dtype, STATE_DTYPES, "conv dtype")


def latent_row_bytes(layer: Latent, dtype: str = "bf16") -> int:
    """Bytes of one MLA row (one token, one layer) and its indexer's key. Every TP rank keeps the whole row.

    fp8_ds_mla: fp8 latent, one fp32 scale per 128 of it, bf16 rope part (FlashMLA, sparse decode): 656 B
    for 512 + 64.
    """
    index = index_row_bytes(layer.index_dim)
    if dtype == "fp8_ds_mla":
        if layer.kv_lora_rank % 128:
            raise ValueError(
                f"kv dtype 'fp8_ds_mla' scales 128 elements at a time; kv_lora_rank "
                f"{layer.kv_lora_rank} is not a multiple of 128"
            )
        return layer.kv_lora_rank + 4 * (layer.kv_lora_rank // 128) + 2 * layer.rope_dim + index
    return layer.row_elements * _element(dtype, KV_DTYPES, "kv dtype") + index


def attention_row_bytes(layer: Attention, tp: int = 1, dtype: str = "bf16") -> int:
    """Bytes of K and V of one token in one layer: 2 * kv_heads/tp * head_dim elements.

    A KV head is never split: with fewer heads than ranks each rank keeps one.
    """
    if dtype == "fp8_ds_mla":
        raise ValueError(
            "kv dtype 'fp8_ds_mla' is a row format of MLA; choose bf16, fp8 or int8 for K and V per head"
        )
    heads = _shard(layer.kv_heads, tp, "kv_heads", replicate=True)
    return 2 * heads * layer.head_dim * _element(dtype, KV_DTYPES, "kv dtype")


def compressed_row_bytes(layer: Compressed, dtype: str = "bf16") -> int:
    """Bytes of one row of DeepSeek V4 (K and V in one), plain or compressed. Every TP rank keeps it whole.

    fp8 and fp8_ds_mla are one layout: fp8 values, bf16 rope part, one scale byte per 64 values, padded to 8
    (FlashMLA tests/quant.py): 584 B for 448 + 64.
    """
    if dtype in ("fp8", "fp8_ds_mla"):
        values = layer.head_dim - layer.rope_dim
        return values + 2 * layer.rope_dim + ceil_div(ceil_div(values, 64), 8) * 8
    if dtype != "bf16":
        raise ValueError(f"kv dtype {dtype!r} is not known for DeepSeek V4; choose bf16, fp8 or fp8_ds_mla")
    return 2 * layer.head_dim


def index_row_bytes(index_dim: int, dtype: str = "fp8") -> int:
    """Bytes of an indexer's key of that width, which is kept beside a row; 0 without indexer.

    fp8: one fp32 scale per 128 elements (132 B for 128); mxfp4: a scale byte per 32 (68 B; vllm #48993).
    """
    if dtype == "mxfp4":
        return index_dim // 2 + index_dim // 32
    return index_dim + 4 * ceil_div(index_dim, 128)


def record_bytes(layer: Recurrent, fields: dict[str, str], tp: int = 1) -> int:
    """Bytes a replay record takes per token: one layer, one rank.

    fields: name -> dtype, of k (dk), v or u (dv), g (dk for KDA, else 1), beta (1) per head, and conv (all
    convolved inputs). RECOVER_RECORD is 1,024 B per KDA head of 128 x 128.
    """
    if not fields:
        raise ValueError("fields is empty; a replay record holds at least one of k, v, u, g, beta, conv")
    return sum(
        _record_elements(layer, name, tp) * _element(dtype, STATE_DTYPES, f"dtype of record field {name}")
        for name, dtype in fields.items()
    )


def _record_elements(layer: Recurrent, name: str, tp: int) -> int:
    heads = _shard(layer.heads, tp, "heads")
    key_elements = _shard(layer.key_heads, tp, "key_heads", replicate=True) * layer.dk
    widths = {
        "k": key_elements,
        "v": heads * layer.dv,
        "u": heads * layer.dv,
        "g": heads * (layer.dk if layer.kind == "kda" else 1),
        "beta": heads,
        "conv": 2 * key_elements + heads * layer.dv,
    }
    if name not in widths:
        raise ValueError(f"record field {name!r} is not known; choose from {', '.join(widths)}")
    return widths[name]


def _element(dtype: str, known: tuple[str, ...], what: str) -> int:
    if dtype not in known or dtype not in ELEMENT_BYTES:
        raise ValueError(
            f"{what} {dtype!r} is not known here; choose one of "
            f"{', '.join(d for d in known if d in ELEMENT_BYTES)}"
        )
    return ELEMENT_BYTES[dtype]


def _shard(heads: int, tp: int, what: str, replicate: bool = False) -> int:
    """Heads one rank keeps. With `replicate`, fewer heads than ranks are copied instead of split."""
    if tp < 1:
        raise ValueError(f"tp is {tp}; it must be at least 1")
    if heads % tp == 0:
        return heads // tp
    if replicate and tp % heads == 0:
        return 1
    raise ValueError(f"tp {tp} does not divide {what} {heads}" + (f", nor {what} it" if replicate else ""))

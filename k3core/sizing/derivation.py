"""The derivation of an answer as plain data, and the byte counts every answer starts with."""

from fractions import Fraction

from ..models import Attention, Compressed, Model, Recurrent
from .bytes import (ELEMENT_BYTES, RECOVER_RECORD, REPLAY_RECORD, attention_row_bytes, compressed_row_bytes,
                    conv_state_bytes, index_row_bytes, latent_row_bytes, record_bytes, recurrent_state_bytes)
from .settings import Settings


class Derivation:
    """Steps in order, each {name, formula, values, result}. `name` is the answer's key where there is one."""

    def __init__(self):
        self.steps: list[dict] = []

    def add(self, name: str, formula: str, result, **values):
        """Record a step and return its result."""
        self.steps.append({"name": name, "formula": formula, "values": values, "result": result})
        return result

    def total(self, name: str, terms: list[tuple[str, int, int | Fraction]]) -> int | float:
        """Record the sum of `layers * bytes` over kinds of layers; terms: (kind, layers, bytes)."""
        values = {}
        for kind, layers, size in terms:
            values |= {f"layers_{kind}": layers, f"bytes_{kind}": plain(size)}
        formula = " + ".join(f"layers_{kind} * bytes_{kind}" for kind, _, _ in terms) or "no such layers"
        return self.add(name, formula, plain(sum(layers * size for _, layers, size in terms)), **values)


def plain(number: int | Fraction) -> int | float:
    """An int where the number is whole, else the nearest float."""
    return int(number) if Fraction(number).denominator == 1 else float(number)


def kinds(caches: list) -> list[tuple[str, object, int]]:
    """(label, specification, layers) of each distinct specification; the label is its kind, numbered if needed."""
    counts: dict = {}
    for cache in caches:
        counts[cache] = counts.get(cache, 0) + 1
    labels: list[str] = []
    for cache in counts:
        label = f"{cache.kind}_{cache.ratio}" if isinstance(cache, Compressed) else cache.kind
        labels.append(f"{label}_{labels.count(label) + 1}" if label in labels else label)
    return [(label, cache, count) for label, (cache, count) in zip(labels, counts.items(), strict=True)]


def byte_answers(model: Model, settings: Settings, steps: Derivation) -> dict:
    """What a token and a sequence cost, per rank."""
    attention, recurrent = kinds(model.attention), kinds(model.recurrent)
    per_token = steps.total("bytes_per_token", [
        (label, count, _per_token(label, cache, settings, steps)) for label, cache, count in attention
        if cache.kind != "sliding"])
    window = _window(attention, settings, steps)
    state = steps.total("state_bytes_per_sequence", [
        (label, count, _state(label, cache, settings, steps)) for label, cache, count in recurrent])
    conv = steps.total("conv_bytes_per_sequence", [
        (label, count, _conv(label, cache, settings, steps)) for label, cache, count in recurrent])
    bare = sum(conv_state_bytes(cache, settings.tp, settings.conv_dtype) for cache in model.recurrent)
    checkpoint = steps.add("checkpoint_bytes", "state_bytes + conv_bytes without draft columns", state + bare,
                           state_bytes=state, conv_bytes=bare)
    slot = steps.add("slot_bytes", "state_bytes + conv_bytes with draft columns", state + conv, state_bytes=state,
                     conv_bytes=conv)
    records = steps.total("record_bytes_per_token", [
        (label, count, record_bytes(cache, RECOVER_RECORD if cache.kind == "kda" else REPLAY_RECORD, settings.tp))
        for label, cache, count in recurrent])
    window_records = steps.add("record_bytes_per_sequence", "(1 + drafts) * record_bytes_per_token",
                               (1 + settings.drafts) * records, drafts=settings.drafts, record_bytes_per_token=records)
    return {"bytes_per_token": per_token, "window_bytes_per_sequence": window, "state_bytes_per_sequence": state,
            "conv_bytes_per_sequence": conv, "checkpoint_bytes": checkpoint, "slot_bytes": slot,
            "token_equivalent": _token_equivalent(checkpoint, per_token, steps),
            "record_bytes_per_sequence": window_records}


def _token_equivalent(checkpoint: int, per_token: int | float, steps: Derivation) -> int | None:
    if not checkpoint or not per_token:
        return None
    return steps.add("token_equivalent", "round(checkpoint_bytes / bytes_per_token)",
                     int(Fraction(checkpoint) / Fraction(per_token) + Fraction(1, 2)), checkpoint_bytes=checkpoint,
                     bytes_per_token=per_token)


def _per_token(label: str, cache, settings: Settings, steps: Derivation) -> int | Fraction:
    """Bytes a token adds to one layer that keeps every token."""
    name, dtype = f"{label}_bytes_per_token", settings.kv_dtype
    if isinstance(cache, Compressed):
        row, index = compressed_row_bytes(cache, dtype), index_row_bytes(cache)
        if not cache.ratio:
            return 0
        size = Fraction(row + index, cache.ratio)
        steps.add(name, "(row_bytes + indexer_bytes) / ratio", plain(size), row_bytes=row, indexer_bytes=index,
                  ratio=cache.ratio)
        return size
    if isinstance(cache, Attention):
        return steps.add(name, "2 * max(1, kv_heads / tp) * head_dim * element_bytes",
                         attention_row_bytes(cache, settings.tp, dtype), kv_heads=cache.kv_heads, tp=settings.tp,
                         head_dim=cache.head_dim, element_bytes=ELEMENT_BYTES[dtype])
    size, fields = latent_row_bytes(cache, dtype), {"kv_lora_rank": cache.kv_lora_rank, "rope_dim": cache.rope_dim}
    if dtype == "fp8_ds_mla":
        return steps.add(name, "kv_lora_rank + 4 * kv_lora_rank / 128 + 2 * rope_dim", size, **fields)
    return steps.add(name, "(kv_lora_rank + rope_dim) * element_bytes", size, **fields,
                     element_bytes=ELEMENT_BYTES[dtype])


def _window(attention: list, settings: Settings, steps: Derivation) -> int:
    """Bytes of all sliding windows of a sequence."""
    terms = []
    for label, cache, count in attention:
        if isinstance(cache, Compressed):
            terms.append((label, count, cache.window * compressed_row_bytes(cache, settings.kv_dtype)))
        elif isinstance(cache, Attention) and cache.window is not None:
            terms.append((label, count, cache.window * attention_row_bytes(cache, settings.tp, settings.kv_dtype)))
    return steps.total("window_bytes_per_sequence", terms) if terms else 0


def _state(label: str, cache: Recurrent, settings: Settings, steps: Derivation) -> int:
    return steps.add(f"{label}_state_bytes", "heads / tp * dk * dv * element_bytes",
                     recurrent_state_bytes(cache, settings.tp, settings.state_dtype), heads=cache.heads,
                     tp=settings.tp, dk=cache.dk, dv=cache.dv, element_bytes=ELEMENT_BYTES[settings.state_dtype])


def _conv(label: str, cache: Recurrent, settings: Settings, steps: Derivation) -> int:
    return steps.add(f"{label}_conv_bytes",
                     "(conv_kernel - 1 + drafts) * (2 * key_heads * dk + heads * dv) / tp * element_bytes",
                     conv_state_bytes(cache, settings.tp, settings.conv_dtype, settings.drafts),
                     conv_kernel=cache.conv_kernel, drafts=settings.drafts, key_heads=cache.key_heads, dk=cache.dk,
                     heads=cache.heads, dv=cache.dv, tp=settings.tp, element_bytes=ELEMENT_BYTES[settings.conv_dtype])

"""The derivation of an answer as plain data, and the byte counts every answer starts with."""

from ..models import Attention, Compressed, Latent, Model, Recurrent
from .bytes import (
    ELEMENT_BYTES,
    RECOVER_RECORD,
    REPLAY_RECORD,
    attention_row_bytes,
    compressed_row_bytes,
    conv_state_bytes,
    index_row_bytes,
    latent_row_bytes,
    record_bytes,
    recurrent_state_bytes,
)
from .settings import Settings


class Derivation:
    """Steps in order, each {name, formula, values, result}. `name` is the answer's key where there is one.

    A formula is arithmetic over its values (with ceil, floor, round, min, max, sum, lcm), so that a reader
    can redo it.
    """

    def __init__(self):
        self.steps: list[dict] = []

    def add(self, name: str, formula: str, result, **values):
        """Record a step and return its result."""
        self.steps.append({"name": name, "formula": formula, "values": values, "result": result})
        return result

    def total(self, name: str, terms: list[tuple[str, int, int | float]]) -> int | float:
        """Record the sum of `layers * bytes` over kinds of layers; terms: (kind, layers, bytes)."""
        values = {}
        for kind, layers, size in terms:
            values |= {f"layers_{kind}": layers, f"bytes_{kind}": plain(size)}
        formula = " + ".join(f"layers_{kind} * bytes_{kind}" for kind, _, _ in terms) or "0"
        return self.add(name, formula, plain(sum(layers * size for _, layers, size in terms)), **values)


def plain(number: int | float) -> int | float:
    """An int where the number is whole."""
    return int(number) if number == int(number) else number


def byte_answers(model: Model, settings: Settings, steps: Derivation) -> dict:
    """What a token and a sequence cost, per rank."""
    attention, recurrent = _kinds(model.attention), _kinds(model.recurrent)
    growing = [kind for kind in attention if kind[1].kind != "sliding"]
    answer = {
        "bytes_per_token": steps.total("bytes_per_token", _terms(growing, _per_token, settings, steps)),
        "window_bytes_per_sequence": steps.total(
            "window_bytes_per_sequence", _terms(attention, _window, settings, steps)
        ),
        "state_bytes_per_sequence": steps.total(
            "state_bytes_per_sequence", _terms(recurrent, _state, settings, steps)
        ),
        "conv_bytes_per_sequence": steps.total(
            "conv_bytes_per_sequence", _terms(recurrent, _conv, settings, steps)
        ),
    }
    state, conv = answer["state_bytes_per_sequence"], answer["conv_bytes_per_sequence"]
    bare = sum(conv_state_bytes(cache, settings.tp, settings.conv_dtype) for cache in model.recurrent)
    checkpoint = steps.add("checkpoint_bytes", "state_bytes + conv_bytes_without_drafts", state + bare,
                           state_bytes=state, conv_bytes_without_drafts=bare)
    slot = steps.add("slot_bytes", "state_bytes + conv_bytes", state + conv, state_bytes=state,
                     conv_bytes=conv)
    record = steps.total("record_bytes_per_token", _terms(recurrent, _record, settings, steps))
    records = steps.add("record_bytes_per_sequence", "(1 + drafts) * record_bytes_per_token",
                        (1 + settings.drafts) * record, drafts=settings.drafts, record_bytes_per_token=record)
    equivalent = _token_equivalent(checkpoint, answer["bytes_per_token"], steps)
    return answer | {"checkpoint_bytes": checkpoint, "slot_bytes": slot, "token_equivalent": equivalent,
                     "record_bytes_per_sequence": records}


def _kinds(caches: list) -> list[tuple[str, object, int]]:
    """(label, specification, layers) of each distinct specification; the label is its kind."""
    counts: dict = {}
    for cache in caches:
        counts[cache] = counts.get(cache, 0) + 1
    kinds, seen = [], {}
    for cache, count in counts.items():
        label = f"{cache.kind}_{cache.ratio}" if isinstance(cache, Compressed) else cache.kind
        seen[label] = seen.get(label, 0) + 1
        kinds.append((label if seen[label] == 1 else f"{label}_no{seen[label]}", cache, count))
    return kinds


def _terms(kinds: list, of, settings: Settings, steps: Derivation) -> list[tuple[str, int, int | float]]:
    """The terms of a total: of(label, specification, settings, steps) bytes per layer, left out where 0."""
    sizes = [(label, count, of(label, cache, settings, steps)) for label, cache, count in kinds]
    return [term for term in sizes if term[2]]


def _per_token(label: str, cache, settings: Settings, steps: Derivation) -> int | float:
    """Bytes a token adds to one layer that keeps every token; exact, as ratios are powers of two."""
    name, dtype = f"{label}_bytes_per_token", settings.kv_dtype
    if isinstance(cache, Compressed):
        if not cache.ratio:
            return 0
        row, index = compressed_row_bytes(cache, dtype), index_row_bytes(cache.index_dim)
        size = (row + index) / cache.ratio
        steps.add(name, "(row_bytes + indexer_bytes) / ratio", plain(size), row_bytes=row,
                  indexer_bytes=index, ratio=cache.ratio)
        return size
    if isinstance(cache, Attention):
        return _kv_row(name, cache, settings, steps)
    values = {"kv_lora_rank": cache.kv_lora_rank, "rope_dim": cache.rope_dim}
    if dtype == "fp8_ds_mla":
        formula = "kv_lora_rank + 4 * kv_lora_rank / 128 + 2 * rope_dim"
    else:
        formula = "(kv_lora_rank + rope_dim) * element_bytes"
        values["element_bytes"] = ELEMENT_BYTES[dtype]
    if cache.index_dim:
        formula += " + indexer_bytes"
        values["indexer_bytes"] = index_row_bytes(cache.index_dim)
    return steps.add(name, formula, latent_row_bytes(cache, dtype), **values)


def _kv_row(name: str, cache: Attention, settings: Settings, steps: Derivation) -> int:
    return steps.add(name, "2 * max(1, kv_heads / tp) * head_dim * element_bytes",
                     attention_row_bytes(cache, settings.tp, settings.kv_dtype), kv_heads=cache.kv_heads,
                     tp=settings.tp, head_dim=cache.head_dim, element_bytes=ELEMENT_BYTES[settings.kv_dtype])


def _window(label: str, cache, settings: Settings, steps: Derivation) -> int:
    """Bytes of one layer's full sliding window."""
    if isinstance(cache, Latent) or cache.window is None:
        return 0
    if isinstance(cache, Compressed):
        row = compressed_row_bytes(cache, settings.kv_dtype)
    else:
        row = _kv_row(f"{label}_row_bytes", cache, settings, steps)
    return steps.add(f"{label}_window_bytes", "window * row_bytes", cache.window * row, window=cache.window,
                     row_bytes=row)


def _state(label: str, cache: Recurrent, settings: Settings, steps: Derivation) -> int:
    return steps.add(f"{label}_state_bytes", "heads / tp * dk * dv * element_bytes",
                     recurrent_state_bytes(cache, settings.tp, settings.state_dtype), heads=cache.heads,
                     tp=settings.tp, dk=cache.dk, dv=cache.dv,
                     element_bytes=ELEMENT_BYTES[settings.state_dtype])


def _conv(label: str, cache: Recurrent, settings: Settings, steps: Derivation) -> int:
    return steps.add(
        f"{label}_conv_bytes",
        "(conv_kernel - 1 + drafts) * (2 * max(1, key_heads / tp) * dk + heads / tp * dv) * element_bytes",
        conv_state_bytes(cache, settings.tp, settings.conv_dtype, settings.drafts),
        conv_kernel=cache.conv_kernel, drafts=settings.drafts, key_heads=cache.key_heads, dk=cache.dk,
        heads=cache.heads, dv=cache.dv,
        tp=settings.tp, element_bytes=ELEMENT_BYTES[settings.conv_dtype])


def _record(label: str, cache: Recurrent, settings: Settings, steps: Derivation) -> int:
    """Bytes of one replay record: the layout an engine uses for this kind of layer."""
    return record_bytes(cache, RECOVER_RECORD if cache.kind == "kda" else REPLAY_RECORD, settings.tp)


def _token_equivalent(checkpoint: int, per_token: int, steps: Derivation) -> int | None:
    """Tokens whose attention rows weigh as much as one checkpoint."""
    if not checkpoint or not per_token:
        return None
    return steps.add("token_equivalent", "floor(checkpoint_bytes / bytes_per_token + 1 / 2)",
                     (2 * checkpoint + per_token) // (2 * per_token),
                     checkpoint_bytes=checkpoint, bytes_per_token=per_token)

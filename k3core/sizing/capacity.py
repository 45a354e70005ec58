"""How much a pool holds: blocks, concurrency, the figure engines print, and how much of it is useful."""

from ..models import Model
from .groups import Group, blocks_per_request
from .layout import Layout, row_bytes, slot_bytes
from .settings import Settings


def reported_tokens(num_blocks: int, per_request: int, max_model_len: int) -> int:
    """The "KV cache size" an engine prints: concurrency at max_model_len, times max_model_len.

    Not a capacity: requests hold some blocks whatever their length, so the figure falls with max_model_len
    although the pool stays the same (vllm #51041).
    """
    return num_blocks * max_model_len // per_request


def reported_tokens_before(num_blocks: int, groups: tuple[Group, ...]) -> int:
    """The same figure as engines printed it before: wrong for hybrids, as if each group took an equal
    share."""
    return num_blocks // len(groups) * min(group.block_size for group in groups)


def mapping_efficiency(model: Model, layout: Layout, settings: Settings, tokens: int) -> dict:
    """Share of the allocated bytes that hold a request's data, and the same for a full block of each group.

    Counted as useful: the request's attention rows, and one state per recurrent layer (a second one, kept
    for prefix reuse, is overhead). Packed layouts and windows are not covered. Returns request, blocks, and
    by_group: one share per group, in the order of layout.groups.
    """
    if any(group.window for group in layout.groups) or layout.block_size is None:
        raise ValueError("mapping efficiency is defined for full attention, MLA and recurrent layers only")
    if tokens < 1:
        raise ValueError(f"tokens is {tokens}; a request has at least 1")
    useful = blocks = 0
    shares = []
    for group in layout.groups:
        caches = [model.layers[i] for i in group.layers]
        if group.recurrent:
            state = sum(slot_bytes(cache, settings) for cache in caches)
            useful += state
            shares.append(state / layout.block_bytes)
        else:
            row = sum(row_bytes(cache, settings) for cache in caches)
            useful += tokens * row
            shares.append(group.block_size * row / layout.block_bytes)
        blocks += blocks_per_request(group, tokens, settings)
    return {"request": useful / (blocks * layout.block_bytes), "blocks": blocks, "by_group": shares}

"""Layers shared out into groups with one block table each, and the blocks a request holds in a group."""

from dataclasses import dataclass

from .bytes import ceil_div
from .settings import Settings

MAX_MEMORY_GROUPS = 8  # grouping "memory" trades bytes for block tables, and stops here


@dataclass(frozen=True)
class Group:
    """Layers that share one block table.

    layers: 0-based indices. block_size: tokens a block stands for. window: tokens looked back, None for all.
    """

    kind: str
    layers: tuple[int, ...]
    block_size: int | None
    window: int | None = None
    recurrent: bool = False


def choose_group_size(counts: tuple[int, ...], rule: str, cost=None) -> int:
    """Layers per group, from the number of layers of each kind.

    default: the smallest count, or the largest if that is under 1.5 times the smallest (vLLM
    v1/core/kv_cache_utils.py); min: the smallest (vLLM before #29303); balanced: least padding layers +
    groups (vllm #49472); memory: least cost(size), with at most MAX_MEMORY_GROUPS groups
    (local-inference-lab/vllm #602). Ties: fewer groups, then the smaller size.
    """
    if rule == "min":
        return min(counts)
    if rule == "default":
        return max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    sizes = range(1, max(counts) + 1)
    groups = {size: sum(ceil_div(n, size) for n in counts) for size in sizes}
    if rule == "balanced":
        padding = {size: size * groups[size] - sum(counts) for size in sizes}
        return min(sizes, key=lambda size: (padding[size] + groups[size], groups[size], size))
    few = [size for size in sizes if groups[size] <= max(MAX_MEMORY_GROUPS, len(counts))]
    return min(few, key=lambda size: (cost(size), groups[size], size))


def share_out(layers: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    """Cut the layers of one kind into groups of at most `size`, dealing them out in turn (as vLLM does)."""
    groups = ceil_div(len(layers), size)
    return [layers[i::groups] for i in range(groups)]


def state_slots(mode: str, drafts: int, tokens: int, block_size: int | None, replay: bool = False) -> int:
    """State blocks one request holds in one recurrent group (vLLM v1/kv_cache_interface.py, MambaSpec).

    none: the running state. align: and the last aligned one. all: one per block. Without replay every draft
    token needs one more, to be there if it is accepted.
    """
    held = {"none": 1, "align": 2, "all": ceil_div(tokens, block_size or tokens)}[mode]
    return held + (0 if replay else drafts)


def blocks_per_request(group: Group, tokens: int, settings: Settings, replay: bool = False) -> int:
    """Blocks that one request of `tokens` tokens holds in a group at most."""
    if group.recurrent:
        return state_slots(settings.mode, settings.drafts, tokens, group.block_size, replay)
    if group.window is None:
        return ceil_div(tokens, group.block_size)
    held = min(group.window - 1 + settings.batched_tokens, tokens)
    return ceil_div(held, group.block_size) + 1  # a window need not start at a block's first token

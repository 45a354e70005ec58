"""DeepSeek V4's cache: layers with pages of different sizes, packed into one slab per block.

After vLLM: models/deepseek_v4/attention.py and compressor.py, v1/attention/backends/mla/sparse_swa.py
(block sizes, rows) and #48993 (dense packing). Block strides agree with the published ones; how the window
layers are cut into groups is derived: as few groups as fit beside the compressed rows.
"""

from ..models import Compressed, Model
from .bytes import ceil_div, compressed_row_bytes, index_row_bytes
from .groups import Group, share_out
from .settings import Settings

BLOCK = 256  # tokens a block of compressed rows stands for
WINDOW_BLOCK = 64  # plain rows in a block of a sliding window
STATE_BLOCK = {4: 4, 128: 8}  # ratio -> tokens whose fp32 partial sums fill a compressor block
STATE_WINDOW = {4: 8, 128: 128}  # ratio 4 compresses overlapping spans of two times four tokens
PAGE_ALIGN = 576  # FlashMLA reads fp8 pages at multiples of this


def packed_groups(model: Model, settings: Settings,
                  index_dtype: str = "fp8") -> tuple[tuple[Group, ...], list[int], int]:
    """Groups of a DeepSeek V4 model, the bytes each takes per block, and the bytes of a row.

    First the compressed rows with their indexer keys, then the sliding windows, then the compressors'
    partial states.
    """
    layers = {i: cache for i, cache in enumerate(model.layers) if isinstance(cache, Compressed)}
    row = max(compressed_row_bytes(cache, settings.kv_dtype) for cache in layers.values())
    align = PAGE_ALIGN if settings.kv_dtype in ("fp8", "fp8_ds_mla") else 1
    compressed = {i: cache for i, cache in layers.items() if cache.ratio}
    sizes = [sum(_padded(BLOCK // cache.ratio * row, align)
                 + _padded(BLOCK // cache.ratio * index_row_bytes(cache.index_dim, index_dtype), align)
                 for cache in compressed.values())]
    groups = [Group("compressed", tuple(compressed), BLOCK)]
    states = [_state_group(compressed, ratio, align) for ratio in (4, 128)]
    window_page = _padded(WINDOW_BLOCK * row, align)
    fit = max(1, max(sizes[0], *(size for _, size in states)) // window_page)
    window = max(cache.window for cache in layers.values())
    for share in share_out(tuple(layers), fit):
        groups.append(Group("sliding", share, WINDOW_BLOCK, window))
        sizes.append(len(share) * window_page)
    for group, size in states:
        if group.layers:
            groups.append(group)
            sizes.append(size)
    return tuple(groups), sizes, row


def _state_group(compressed: dict[int, Compressed], ratio: int, align: int) -> tuple[Group, int]:
    """Partial sums of the compressors of one ratio: value and score in fp32, for rows and indexer keys."""
    layers = tuple(i for i, cache in compressed.items() if cache.ratio == ratio)
    spans = STATE_WINDOW[ratio] // ratio
    per_element = STATE_BLOCK[ratio] * spans * 2 * 4
    size = sum(_padded(per_element * compressed[i].head_dim, align)
               + _padded(per_element * compressed[i].index_dim, align) for i in layers)
    return Group(f"compressor-{ratio}", layers, STATE_BLOCK[ratio], STATE_WINDOW[ratio]), size


def _padded(size: int, align: int) -> int:
    return ceil_div(size, align) * align

"""One page size for two kinds of cache: block size, padding, groups.

After vLLM's hybrid cache: vllm/platforms/interface.py (block size), v1/core/kv_cache_utils.py (groups).
"""

from dataclasses import dataclass, replace
from math import lcm

from ..models import Attention, Cache, Compressed, Latent, Model, Recurrent
from .bytes import attention_row_bytes, ceil_div, conv_state_bytes, latent_row_bytes, recurrent_state_bytes
from .groups import Group, blocks_per_request, choose_group_size, share_out
from .packed import packed_groups
from .settings import Settings


@dataclass(frozen=True)
class Layout:
    """How the pool is cut: num_blocks blocks, each one page in each of `group_size` tensors.

    token_bytes, state_bytes: one attention row and one state slot (0 if there is none), per layer and rank.
    page_bytes: what each takes in the pool, per layer. block_bytes: a whole block. layers: layers of each
    kind before grouping. group_bytes: what each group uses of a block where layers have pages of different
    sizes, else empty. chunk: see unified_block.
    """

    block_size: int | None
    token_bytes: int
    state_bytes: int
    page_bytes: int
    block_bytes: int
    group_size: int
    groups: tuple[Group, ...]
    layers: tuple[int, ...]
    padding_layers: int = 0
    group_bytes: tuple[int, ...] = ()
    chunk: int = 1

    @property
    def padding_percent(self) -> float:
        """Padding of a state page relative to the state, as engines log it."""
        return 100 * (self.page_bytes - self.state_bytes) / self.state_bytes if self.state_bytes else 0.0

    def blocks_per_request(self, tokens: int, settings: Settings, replay: bool = False) -> int:
        """Blocks one request of `tokens` tokens holds, over all groups."""
        return sum(blocks_per_request(group, tokens, settings, replay) for group in self.groups)


def make_layout(model: Model, settings: Settings) -> Layout:
    """The layout of a model's pool; `settings` must be resolved.

    Raises ValueError if the layers' pages cannot be made equal.
    """
    if any(isinstance(cache, Compressed) for cache in model.layers):
        groups, sizes, token = packed_groups(model, settings)
        return Layout(groups[0].block_size, token, 0, sizes[0], max(sizes), len(groups[0].layers), groups,
                      (len(groups[0].layers),), group_bytes=tuple(sizes))
    rows = {cache: row_bytes(cache, settings) for cache in model.attention}
    token = max(rows.values(), default=0)
    state = max((slot_bytes(cache, settings) for cache in model.recurrent), default=0)
    chunk = lcm(*(cache.chunk for cache in model.recurrent))
    block = unified_block(state, token, settings, chunk)
    page = block * token if token else state
    whole = [Group(cache.kind, layers, page // rows[cache] if cache in rows else block, _window(cache),
                   isinstance(cache, Recurrent)) for cache, layers in _buckets(model).items()]
    if not state and not any(group.window for group in whole):
        return _single_group(model, block, page, rows)
    _check_pages(page, rows)
    counts = tuple(len(group.layers) for group in whole)
    size = choose_group_size(counts, settings.grouping,
                             lambda size: _pages_per_request(whole, size, settings))
    groups = tuple(replace(group, layers=layers)
                   for group in whole for layers in share_out(group.layers, size))
    return Layout(block, token, state, page, page * size, size, groups, counts,
                  size * len(groups) - sum(counts), chunk=chunk)


def unified_block(state: int, token: int, settings: Settings, chunk: int = 64) -> int | None:
    """Tokens per block so that a page of attention rows holds one recurrent state.

    state, token: bytes of a state slot and of an attention row, per layer and rank, 0 if there is none.
    chunk: tokens a prefill kernel takes at once, which a state at every block (mode all) must fall on. None
    without attention.
    """
    if not token:
        return None
    if not state:
        return settings.align
    if settings.mode == "all":
        step = lcm(chunk, settings.align)
        return step * ceil_div(ceil_div(state, token), step)
    return settings.align * ceil_div(state, settings.align * token)


def slot_bytes(layer: Recurrent, settings: Settings) -> int:
    """Bytes of one slot of one layer: state and convolution window, with the columns that drafts need."""
    return (recurrent_state_bytes(layer, settings.tp, settings.state_dtype)
            + conv_state_bytes(layer, settings.tp, settings.conv_dtype, settings.drafts))


def row_bytes(cache: Attention | Latent, settings: Settings) -> int:
    """Bytes of one token's row in one attention layer."""
    if isinstance(cache, Latent):
        return latent_row_bytes(cache, settings.kv_dtype)
    return attention_row_bytes(cache, settings.tp, settings.kv_dtype)


def _window(cache: Cache) -> int | None:
    return cache.window if isinstance(cache, Attention) else None


def _buckets(model: Model) -> dict[Cache, tuple[int, ...]]:
    """Layers of identical specification: attention first, else in order of appearance."""
    buckets: dict[Cache, tuple[int, ...]] = {}
    for recurrent in (False, True):
        for index, cache in enumerate(model.layers):
            if cache is not None and isinstance(cache, Recurrent) == recurrent:
                buckets[cache] = (*buckets.get(cache, ()), index)
    return buckets


def _check_pages(page: int, rows: dict[Attention | Latent, int]) -> None:
    for cache, row in rows.items():
        if page % row:
            raise ValueError(f"a page of {page} bytes does not hold a whole number of the {row}-byte rows of "
                             f"{cache.kind} attention, so these layers cannot share one pool")


def _single_group(model: Model, block: int, page: int, rows: dict) -> Layout:
    """Every layer keeps every token: one block table for all, each layer with pages of its own size."""
    layers = tuple(i for i, cache in enumerate(model.layers) if cache is not None)
    kind = "+".join(dict.fromkeys(cache.kind for cache in rows))
    size = sum(block * rows[cache] for cache in model.attention)
    return Layout(block, max(rows.values()), 0, page, size, len(layers), (Group(kind, layers, block),),
                  (len(layers),), group_bytes=(size,))


def _pages_per_request(whole: list[Group], size: int, settings: Settings) -> int:
    """Pages a request of max_model_len takes if groups have `size` layers: `whole` are the uncut groups."""
    if settings.max_model_len is None:
        raise ValueError("grouping 'memory' weighs a request of max_model_len tokens, which the model's "
                         "config does not name; give max_model_len")
    return size * sum(ceil_div(len(group.layers), size)
                      * blocks_per_request(group, settings.max_model_len, settings) for group in whole)

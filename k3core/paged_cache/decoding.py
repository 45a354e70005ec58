"""The hybrid decoder on pages: its memories are blocks of one pool, reached through page tables."""

from collections.abc import Hashable

import numpy as np

from ..decode import DecoderState, HybridDecoder, KDAMemory
from ..sizing import choose_group_size, share_out
from .blocks import BlockPool, PoolExhausted
from .pages import PageStorage, RowPage, StatePage
from .tables import PageTables


class PagedDecoder:
    """Requests of one decoder over one pool of `num_blocks` blocks.

    Group 0 is the MLA layers; the KDA layers follow in groups of equal size, one block per request each.
    block_size: tokens in a block; by default just enough that a page holds a KDA state.
    """

    def __init__(self, decoder: HybridDecoder, num_blocks: int, block_size: int | None = None):
        config = decoder.config
        kinds = {kind: tuple(i for i, k in enumerate(config.layers) if k == kind) for kind in ("mla", "kda")}
        if not all(kinds.values()):
            raise ValueError("the decoder needs layers of both kinds, kda and mla, to share a pool")
        dtype = str(decoder.dtype)
        self.decoder = decoder
        self.state_page = StatePage(config.kda_heads, config.kda_key_dim, config.kda_value_dim,
                                    config.conv_kernel - 1, dtype)
        row = RowPage(1, config.kv_lora_rank + config.qk_rope_head_dim, dtype)
        least = -(-self.state_page.nbytes // row.nbytes)
        self.block_size = least if block_size is None else block_size
        if self.block_size < least:
            raise ValueError(f"block_size is {block_size}; a page needs {least} rows to hold a KDA state")
        self.row_page = RowPage(self.block_size, row.width, dtype)
        self.group_size = choose_group_size(tuple(map(len, kinds.values())), "default")
        self.groups = [*share_out(kinds["mla"], self.group_size), *share_out(kinds["kda"], self.group_size)]
        self.mla_groups = len(share_out(kinds["mla"], self.group_size))
        self.pool = BlockPool(num_blocks)
        self.storage = PageStorage(self.group_size, num_blocks, self.row_page.nbytes)
        self.tables = PageTables(self.pool, len(self.groups))
        self.states: dict[Hashable, DecoderState] = {}

    def start(self, request: Hashable) -> None:
        """Begin a request: a zeroed state block in each KDA group. Raises PoolExhausted."""
        kda_groups = len(self.groups) - self.mla_groups
        fresh = self.tables.allocate(request, [0] * self.mla_groups + [1] * kda_groups)
        self.storage.data[:, [block for group in fresh for block in group]] = 0
        self.states[request] = DecoderState(0, self._memories(request, 0))

    def forward(self, request: Hashable, ids) -> np.ndarray:
        """Read more tokens of a request -> logits [T, vocab]. Raises PoolExhausted and changes nothing."""
        ids = self.decoder.check_ids(ids)
        self._reserve(request, len(ids))
        return self.decoder.forward(ids, self.states[request])

    def fork(self, request: Hashable, new_request: Hashable) -> None:
        """Continue a request in two ways: the new one shares all blocks until either writes."""
        self.tables.fork(request, new_request)
        length = self.states[request].length
        self.states[new_request] = DecoderState(length, self._memories(new_request, length))

    def release(self, request: Hashable) -> None:
        """End a request, or preempt it: it must then be read again from its first token."""
        self.tables.release(request)
        del self.states[request]

    def _memories(self, request: Hashable, length: int) -> list:
        memories: list = [None] * len(self.decoder.config.layers)
        for group, layers in enumerate(self.groups):
            for tensor, layer in enumerate(layers):
                place = self, request, group, tensor
                memories[layer] = PagedRows(*place, length) if group < self.mla_groups else PagedState(*place)
        return memories

    def _reserve(self, request: Hashable, tokens: int) -> None:
        """Blocks for `tokens` more, and blocks of the request's own wherever they will write."""
        length, tables = self.states[request].length, self.tables.tables[request]
        first, blocks = length // self.block_size, -(-(length + tokens) // self.block_size)
        counts = [blocks - len(table) if group < self.mla_groups else 0 for group, table in enumerate(tables)]
        written = [(group, index) for group, table in enumerate(tables)
                   for index in range(first if group < self.mla_groups else 0, len(table))]
        shared = [place for place in written if self.pool.references[tables[place[0]][place[1]]] > 1]
        if len(shared) + sum(counts) > self.pool.free_blocks:
            raise PoolExhausted(f"{len(shared) + sum(counts)} blocks needed for {tokens} more tokens, "
                                f"{self.pool.free_blocks} are free")
        for group, index in shared:
            block, source = self.tables.writable(request, group, index)
            self.storage.copy_block(source, block)
        self.tables.allocate(request, counts)


class PagedState:
    """One KDA layer's memory in a page; see `decode.KDAMemory`."""

    def __init__(self, owner: PagedDecoder, request: Hashable, group: int, tensor: int):
        self._owner, self._request, self._group, self._tensor = owner, request, group, tensor

    @property
    def _page(self) -> np.ndarray:
        block = self._owner.tables.tables[self._request][self._group][0]
        return self._owner.storage.page(self._tensor, block)

    @property
    def state(self) -> np.ndarray:
        """The recurrent state [heads, dk, dv]."""
        return self._owner.state_page.read(self._page)[0]

    @property
    def conv(self) -> np.ndarray:
        """The convolution window [kernel - 1, channels]."""
        return self._owner.state_page.read(self._page)[1]

    def advance(self, tokens) -> np.ndarray:
        """Take in T tokens -> o [T, heads, dv]."""
        memory = KDAMemory(*self._owner.state_page.read(self._page), self._owner.decoder.exact)
        o = memory.advance(tokens)
        self._owner.state_page.write(self._page, memory.state, memory.conv)
        return o


class PagedRows:
    """One MLA layer's memory in pages; see `mla.LatentCache`."""

    def __init__(self, owner: PagedDecoder, request: Hashable, group: int, tensor: int, length: int):
        self._owner, self._request, self._group, self._tensor = owner, request, group, tensor
        self.length = length

    @property
    def _blocks(self) -> list[int]:
        return self._owner.tables.tables[self._request][self._group]

    @property
    def rows(self) -> np.ndarray:
        """The rows held [length, r + p], gathered from the request's blocks."""
        return self._owner.storage.rows(self._owner.row_page, self._tensor, self._blocks, self.length)

    def append(self, rows: np.ndarray) -> None:
        """Add rows [T, r + p] into blocks that were reserved for them."""
        self._owner.storage.write_rows(self._owner.row_page, self._tensor, self._blocks, self.length, rows)
        self.length += len(rows)

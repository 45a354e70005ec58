"""Pages: the same bytes read as attention rows or as a recurrent state.

One tensor per layer of the widest group, each num_blocks pages of page_bytes; a block is one page in each.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class RowPage:
    """A page of attention rows [tokens, width]."""

    tokens: int
    width: int
    dtype: str = "float32"

    @property
    def nbytes(self) -> int:
        return self.tokens * self.width * np.dtype(self.dtype).itemsize

    def view(self, page: np.ndarray) -> np.ndarray:
        """The rows of a page [page_bytes] as a writable view [tokens, width]."""
        return page[: self.nbytes].view(self.dtype).reshape(self.tokens, self.width)


@dataclass(frozen=True)
class StatePage:
    """A page of one KDA state: [heads, dk, dv], then the convolution window [heads, columns, 2 dk + dv].

    Head by head (q, k and v channels of a head together), so that splitting heads over ranks moves whole
    ranges of bytes (Kimi K3 report, section 5.4.1).
    """

    heads: int
    dk: int
    dv: int
    columns: int
    dtype: str = "float32"

    @property
    def state_bytes_per_head(self) -> int:
        return self.dk * self.dv * np.dtype(self.dtype).itemsize

    @property
    def conv_bytes_per_head(self) -> int:
        return self.columns * (2 * self.dk + self.dv) * np.dtype(self.dtype).itemsize

    @property
    def nbytes(self) -> int:
        return self.heads * (self.state_bytes_per_head + self.conv_bytes_per_head)

    def view(self, page: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Writable views of a page [nbytes]: state [heads, dk, dv], window [heads, columns, 2 dk + dv]."""
        middle = self.heads * self.state_bytes_per_head
        state = page[:middle].view(self.dtype).reshape(self.heads, self.dk, self.dv)
        window = page[middle : self.nbytes].view(self.dtype)
        return state, window.reshape(self.heads, self.columns, 2 * self.dk + self.dv)

    def write(self, page: np.ndarray, state: np.ndarray, conv: np.ndarray) -> None:
        """Store a state [heads, dk, dv] and a window [columns, channels], channels ordered q, k, v."""
        held, window = self.view(page)
        held[...] = state
        for part, channels in zip(self._parts(window), self._channels(conv), strict=True):
            part[...] = channels

    def read(self, page: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Copies of the state [heads, dk, dv] and the window [columns, channels]."""
        state, window = self.view(page)
        conv = np.empty((self.columns, self.heads * (2 * self.dk + self.dv)), self.dtype)
        for part, channels in zip(self._parts(window), self._channels(conv), strict=True):
            channels[...] = part
        return state.copy(), conv

    def shard(self, tp: int) -> "StatePage":
        """The page of one of `tp` ranks."""
        if tp < 1 or self.heads % tp:
            raise ValueError(f"tp {tp} does not divide heads {self.heads}")
        return replace(self, heads=self.heads // tp)

    def _parts(self, window: np.ndarray) -> list[np.ndarray]:
        return np.split(window, [self.dk, 2 * self.dk], axis=2)

    def _channels(self, conv: np.ndarray) -> list[np.ndarray]:
        """q, k and v columns of a window [columns, channels] as views [heads, columns, dk or dv]."""
        q, k, v = np.split(conv, [self.heads * self.dk, 2 * self.heads * self.dk], axis=1)
        return [part.reshape(self.columns, self.heads, -1).swapaxes(0, 1) for part in (q, k, v)]


class PageStorage:
    """The bytes of a pool [tensors, num_blocks, page_bytes], zero at first."""

    def __init__(self, tensors: int, num_blocks: int, page_bytes: int):
        for name, value in (("tensors", tensors), ("num_blocks", num_blocks), ("page_bytes", page_bytes)):
            if value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        self.data = np.zeros((tensors, num_blocks, page_bytes), np.uint8)

    def page(self, tensor: int, block: int) -> np.ndarray:
        """The bytes of one page [page_bytes], a writable view."""
        return self.data[tensor, block]

    def rows(self, spec: RowPage, tensor: int, blocks: list[int], length: int) -> np.ndarray:
        """The first `length` rows that a page table's blocks hold in one tensor, gathered [length, width]."""
        pages = self.data[tensor, blocks, : spec.nbytes]
        return pages.reshape(-1).view(spec.dtype).reshape(-1, spec.width)[:length]

    def write_rows(self, spec: RowPage, tensor: int, blocks: list[int], start: int, rows: np.ndarray) -> None:
        """Write rows [n, width] at token positions start ... start + n - 1 of a page table."""
        for position, row in enumerate(rows, start):
            page = self.page(tensor, blocks[position // spec.tokens])
            spec.view(page)[position % spec.tokens] = row

    def copy_block(self, source: int, target: int) -> None:
        """Copy a block, in every tensor."""
        self.data[:, target] = self.data[:, source]

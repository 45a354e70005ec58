"""Chained hashes of a prefix: one key per hash block, which stands for everything up to the block's end.

As in vLLM v1/core/kv_cache_utils.py: H(parent key, tokens of the block, extra keys). Every field carries a
tag and its length, so that no kind of key can pose as another, nor a field run into the next.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Hasher = Callable[[bytes], bytes]


def sha256(data: bytes) -> bytes:
    """The default hasher; another one (data -> key) may be short and weak, see `Link`."""
    return hashlib.sha256(data).digest()


@dataclass(frozen=True)
class Extra:
    """What the content of a cache depends on besides the tokens.

    adapter: name of the LoRA adapter. salt: keeps those apart who must not share. media: (start, length, id)
    of token ranges that stand for an image or other medium. None is not the same as "".
    """

    adapter: str | None = None
    salt: str | None = None
    media: tuple[tuple[int, int, str], ...] = ()


class Link:
    """One hash block of a chain: its parent, what was hashed, and the key. `end` is in tokens.

    Two links can have the same key by accident or malice; `same` compares what they stand for.
    """

    __slots__ = ("parent", "payload", "key", "end")

    def __init__(self, parent: "Link | None", payload: bytes, key: bytes, end: int):
        self.parent, self.payload, self.key, self.end = parent, payload, key, end

    def same(self, other: "Link") -> bool:
        """Whether both stand for the same prefix: every payload back to where the chains join."""
        a, b = self, other
        while a is not b:
            if a is None or b is None or a.payload != b.payload:
                return False
            a, b = a.parent, b.parent
        return True


class Chain:
    """The tokens of a request, with a link for each full hash block."""

    def __init__(self, tokens: Sequence[int], hash_block: int, extra: Extra | None = None,
                 hasher: Hasher = sha256):
        self.hash_block, self.extra, self.hasher = hash_block, extra or Extra(), hasher
        root = _field(b"R") + _field(b"A", self.extra.adapter) + _field(b"S", self.extra.salt)
        self.root = Link(None, root, hasher(root), 0)
        self.tokens: list[int] = []
        self.links: list[Link] = []
        self.append(tokens)

    def append(self, tokens: Sequence[int]) -> None:
        """Add tokens at the end."""
        self.tokens += [int(token) for token in tokens]
        for start in range(len(self.links) * self.hash_block, len(self.tokens) - self.hash_block + 1,
                           self.hash_block):
            self.links.append(self._link(start))

    def copy(self) -> "Chain":
        """An independent chain over the same links."""
        other = Chain((), self.hash_block, self.extra, self.hasher)
        other.root, other.tokens, other.links = self.root, list(self.tokens), list(self.links)
        return other

    def _link(self, start: int) -> Link:
        end = start + self.hash_block
        payload = _field(b"T", np.array(self.tokens[start:end], "<i8").tobytes())
        for first, length, name in self.extra.media:
            if first < end and first + length > start:
                place = np.array([first - start, length], "<i8")
                payload += _field(b"M", place.tobytes()) + _field(b"I", name)
        parent = self.links[-1] if self.links else self.root
        return Link(parent, payload, self.hasher(_field(b"P", parent.key) + payload), end)


def _field(tag: bytes, content: bytes | str | None = None) -> bytes:
    """tag, length, content; a tag in lower case and no more for None."""
    if content is None:
        return tag.lower()
    data = content.encode() if isinstance(content, str) else content
    return tag + len(data).to_bytes(8, "little") + data

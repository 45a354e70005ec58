"""What can be found by hash: which blocks hold the prefix that a link stands for."""

from collections.abc import Iterator, Sequence

from .hashing import Link


class Entry:
    """The prefix up to `link.end` is in these blocks: one page of rows, or a state in every KDA group."""

    __slots__ = ("link", "blocks")

    def __init__(self, link: Link, blocks: tuple[int, ...]):
        self.link, self.blocks = link, blocks


class Index:
    """Entries by key and by block.

    verify: compare the whole prefix, not only the key, so that a collision is a miss and never a wrong hit.
    """

    def __init__(self, verify: bool):
        self.verify = verify
        self._by_key: dict[bytes, list[Entry]] = {}
        self._by_block: dict[int, list[Entry]] = {}

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entries in self._by_key.values() for entry in entries)

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))

    def find(self, link: Link) -> Entry | None:
        """The entry of this prefix that was added first."""
        for entry in self._by_key.get(link.key, ()):
            if not self.verify:
                return entry
            if entry.link.same(link):
                link.parent = entry.link.parent  # join the chains, so that the next comparison is short
                return entry
        return None

    def add(self, entry: Entry, alive: Sequence[bool] = ()) -> None:
        """Add an entry behind others of its key. alive: which blocks lead back to it, by default all."""
        self._by_key.setdefault(entry.link.key, []).append(entry)
        for block, leads in zip(entry.blocks, alive or (True,) * len(entry.blocks), strict=True):
            if leads:
                self._by_block.setdefault(block, []).append(entry)

    def remove(self, entry: Entry) -> None:
        """Forget an entry under its key and under those of its blocks that `pop` has not taken out."""
        _take(self._by_key, entry.link.key, entry)
        for block in entry.blocks:
            _take(self._by_block, block, entry)

    def of_key(self, key: bytes) -> list[Entry]:
        """The entries under a key, in the order in which they were added."""
        return self._by_key.get(key, [])

    def of_block(self, block: int) -> list[Entry]:
        """The entries that name a block, in the order in which they were added."""
        return list(self._by_block.get(block, ()))

    def forget_block(self, block: int) -> None:
        """Forget which entries name a block; under their keys they stay."""
        self._by_block.pop(block, None)


def _take(lists: dict, key, entry: Entry) -> None:
    if key in lists and entry in lists[key]:
        lists[key].remove(entry)
        if not lists[key]:
            del lists[key]

"""Requests served one after another by the prefix cache, with a note of what every block really holds."""

from dataclasses import dataclass

from k3core.lab.contract import Metric
from k3core.lab.text import Text
from k3core.paged_cache import NULL, BlockPool, PageTables
from k3core.prefix_cache import Chain, Extra, Hit, Policy, PrefixCache, Rules, sha256
from k3core.prefix_cache.entries import Index

GROUPS = 3  # KDA groups beside the one of MLA rows: K3's 69 KDA layers in three times 23
BLOCKS = 4096  # more than any run here takes, so that nothing is evicted unasked
PARENT_FIELD = 41  # bytes of a hashed parent: tag, length, SHA-256
POLICIES = ("align", "marconi", "dense")


@dataclass(frozen=True)
class Served:
    """One request: where it resumed, what the lookup asked, where it left checkpoints.

    asked: (stage, position, found), stages "page", "end" and "checkpoint", in the order of the lookup.
    wrong: tokens of the hit whose cached content is that of another prefix; 0 in a cache that is right.
    """

    tokens: int
    hit: Hit
    asked: tuple
    saves: tuple
    wrong: int


def without_parent(data: bytes) -> bytes:
    """A broken hasher: the key of a block does not depend on the blocks before it."""
    return sha256(data[PARENT_FIELD:] if data[:1] == b"P" else data)


class Watched(Index):
    """An index that writes down what it was asked, and what was added to it."""

    def __init__(self, verify: bool, kind: str, asked: list):
        super().__init__(verify)
        self.kind, self.asked, self.added = kind, asked, []

    def find(self, link):
        entry = super().find(link)
        self.asked.append((self.kind, link.end, entry is not None))
        return entry

    def add(self, entry, alive=()):
        super().add(entry, alive)
        self.added.append(entry)


class Server:
    """A prefix cache and its only request at a time. Sizes as for PrefixCache, in hash blocks."""

    def __init__(self, hash_block: int, page_blocks: int, grain_blocks: int, policy: str,
                 chained: bool = True, rules: Rules = Rules()):
        self.hash_block, self.page = hash_block, page_blocks * hash_block
        self.hasher = sha256 if chained else without_parent
        self.cache = self._cache(Policy(policy), grain_blocks * hash_block,
                                 {"rules": rules, "hasher": self.hasher, "verify": chained})
        self.asked = []
        self.cache.rows = Watched(chained, "rows", self.asked)
        self.cache.checkpoints = Watched(chained, "checkpoint", self.asked)
        self.holds = {}  # block -> (extra, tokens, how many of them), None for what must not be read
        self.requests = 0

    def _cache(self, policy: Policy, grain: int, options: dict) -> PrefixCache:
        tables = PageTables(BlockPool(BLOCKS), 1 + GROUPS)
        return PrefixCache(tables, self.page, self.hash_block, policy, grain, **options)

    def serve(self, tokens: list, extra: Extra | None = None) -> Served:
        """Look a request up, prefill what is missing, leave rows and checkpoints behind."""
        cache, name, extra = self.cache, self.requests, extra or Extra()
        self.requests += 1
        self.asked.clear()
        hit, _ = cache.start(name, tokens, extra)
        asked = self._stages(len(tokens))
        wrong = self._wrong(hit, tokens, extra)
        cache.landed(name)
        done, saves = hit.tokens, []
        while done < len(tokens):
            step = cache.plan(name, len(tokens) - done)
            done = step.end
            cache.commit(name, tokens[step.start : done])
            for save in step.saves:
                self.holds[save.target] = None if wrong else (extra, tokens, done)
            saves += [done] if step.saves else []
        for index, block in enumerate(cache.tables.tables[name][0][len(hit.pages) :], len(hit.pages)):
            end = min(len(tokens), (index + 1) * self.page)
            self.holds[block] = None if wrong else (extra, tokens, end)
        cache.release(name)
        return Served(len(tokens), hit, asked, tuple(saves), wrong)

    def evict_checkpoint(self, tokens: list, groups: tuple, extra: Extra | None = None) -> int:
        """Evict the checkpoint these tokens would resume from, in these groups -> its position, 0 without one."""
        found = self.cache.lookup(Chain(tokens, self.hash_block, extra, self.hasher))
        for group in groups if found.tokens else ():
            block = found.states[group]
            if self.cache.pool.is_findable(block):  # with the first group's part the others have gone already
                self.cache.evict(block)
            self.holds[block] = None
        return found.tokens

    def _stages(self, tokens: int) -> tuple:
        """What was asked, by stage: first whole pages from the left, then ends inside the next page."""
        rows = [(end, found) for kind, end, found in self.asked if kind == "rows"]
        first = 0
        while first < (tokens - 1) // self.hash_block * self.hash_block // self.page:
            first += 1
            if not rows[first - 1][1]:
                break
        stages = ["page"] * first + ["end"] * (len(rows) - first)
        checkpoints = [asked for asked in self.asked if asked[0] == "checkpoint"]
        return (*((stage, *row) for stage, row in zip(stages, rows)), *checkpoints)

    def _wrong(self, hit: Hit, tokens: list, extra: Extra) -> int:
        """Tokens of the hit that are not, in every block it takes, the request's own first tokens."""
        pages = hit.pages + ((hit.partial,) if hit.partial != NULL else ())
        needs = [(block, min(hit.tokens, (i + 1) * self.page)) for i, block in enumerate(pages)]
        needs += [(block, hit.tokens) for block in hit.states if block != NULL]
        return max((need - self._agrees(self.holds.get(block), tokens[:need], extra) for block, need in needs),
                   default=0)

    @staticmethod
    def _agrees(content, wanted: list, extra: Extra) -> int:
        """How many of the first tokens are those that the block's content was computed from."""
        if content is None or content[0] != extra:
            return 0
        return common(content[1][: content[2]], wanted)


def common(a: list, b: list) -> int:
    """Length of the common beginning."""
    shorter = min(len(a), len(b))
    if a[:shorter] == b[:shorter]:  # the usual case, and many times faster than the loop
        return shorter
    return next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)


def draw_tokens(rng, count: int, kind: int) -> list:
    """Random token ids; those of different kinds (0 to 3) differ at every position."""
    return (rng.integers(0, 40_000, count) * 4 + kind).tolist()


def token_metric(key: str, label: Text, tokens: int) -> Metric:
    """A number of tokens."""
    return Metric(key, label, tokens, "tokens")

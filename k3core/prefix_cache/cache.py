"""The prefix cache of a hybrid model: pages of attention rows, and KDA checkpoints, found by chained hash.

After the Kimi K3 report (arXiv 2607.24653) section 5.4.1. Hash blocks are finer than pages: a page of rows
can be found under every full hash block in it, more of them as it fills, and a state is kept at a few of
those positions only. A hit is the longest position at which both the rows and a state of every KDA group
are there.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from ..paged_cache import NULL, PageTables, PoolExhausted
from .entries import Entry, Index
from .hashing import Chain, Extra, Hasher, Link, sha256
from .policy import Policy


@dataclass(frozen=True)
class Rules:
    """The three consistency rules. Switching one off makes the cache wrong; that is what the switch is for.

    pin_first: all blocks of a hit, in all groups, are pinned before any block is taken (vllm #33775).
    publish_on_commit: what a step allocates or writes cannot be matched before it has landed (vllm #56525).
    evict_together: when one group's part of a checkpoint is evicted, the other groups' parts go at once.
    """

    pin_first: bool = True
    publish_on_commit: bool = True
    evict_together: bool = True


@dataclass(frozen=True)
class Hit:
    """What a lookup found: resume behind `tokens`.

    rows: tokens whose rows are cached, at least `tokens`. pages: the whole pages to share. partial: the page
    of which only the first rows are wanted, or NULL. states: one block per KDA group, NULL without a hit.
    """

    tokens: int
    rows: int
    pages: tuple[int, ...]
    partial: int
    states: tuple[int, ...]


@dataclass(frozen=True)
class Copy:
    """Copy a block's content in all tensors; from NULL, whose content is zero, means clearing."""

    source: int
    target: int


@dataclass(frozen=True)
class Step:
    """One step of a request: compute tokens start to end - 1, then carry out `saves`, state to checkpoint."""

    start: int
    end: int
    saves: tuple[Copy, ...]


@dataclass
class Running:
    """What the cache knows of a running request. `computed` tokens are in its pages and states."""

    chain: Chain
    prompt: int
    computed: int
    boundaries: list[int]  # where checkpoints are still to be written in the prompt, the next one last
    lasting: frozenset[int]  # those among them that are never recycled
    pinned: list[int]  # sources of the copies under way
    copying: bool = True  # until `landed`
    step: Step | None = None
    passing: Entry | None = None  # its last checkpoint, if that can be recycled


class PrefixCache:
    """Prefix cache over page tables whose group 0 holds rows and whose other groups hold KDA states.

    One request goes through
        start -> carry out the copies -> landed -> (plan -> compute, save -> commit) ... -> release
    and may be released at any point (end, abort, preemption). Its state blocks are the first of each KDA
    group's table. Checkpoints are never written again; a hit copies them.

    page_tokens: rows in a block, a multiple of hash_block. grain: checkpoints lie at multiples of it, by
    default hash_block. decode: also keep a checkpoint at each multiple of the grain that an answer passes.
    recycle: give up a request's checkpoint at the end of a chunk, or inside an answer, when its next one is
    written (vllm #56794). hasher, verify: see Link and Index.
    """

    def __init__(self, tables: PageTables, page_tokens: int, hash_block: int, policy: Policy,
                 grain: int | None = None, *, decode: bool = False, recycle: bool = False,
                 rules: Rules = Rules(), hasher: Hasher = sha256, verify: bool = True):
        grain = hash_block if grain is None else grain
        if hash_block < 1:
            raise ValueError(f"hash_block is {hash_block}; it must be at least 1 token")
        for name, value in (("page_tokens", page_tokens), ("grain", grain)):
            if value < 1 or value % hash_block:
                raise ValueError(f"{name} is {value}; it must be a multiple of the hash block of {hash_block}")
        if tables.groups < 2:
            raise ValueError("tables has 1 group; a prefix cache needs one of rows and one or more of states")
        policy.check(grain)
        self.tables, self.pool = tables, tables.pool
        self.page_tokens, self.hash_block, self.grain = page_tokens, hash_block, grain
        self.policy, self.decode, self.recycle = policy, decode, recycle
        self.rules, self.hasher = rules, hasher
        self.rows, self.checkpoints = Index(verify), Index(verify)
        self.running: dict[Hashable, Running] = {}
        self.prompt_tokens = self.hit_tokens = 0
        self.pool.on_evict = self._evicted

    @property
    def state_groups(self) -> int:
        return self.tables.groups - 1

    # --- lookup ---

    def lookup(self, chain: Chain) -> Hit:
        """The longest prefix that is cached and leaves the last token or more to compute; changes nothing."""
        links = chain.links[: max(0, len(chain.tokens) - 1) // self.hash_block]
        pages, rows = self._whole_pages(links)
        partial, inside = self._inside_next_page(links, len(pages))
        pages, rows = (pages + [partial], inside) if partial else (pages, rows)
        for end in range(rows // self.grain * self.grain, 0, -self.grain):
            entry = self.checkpoints.find(links[end // self.hash_block - 1])
            if entry is not None:
                whole, rest = divmod(end, self.page_tokens)
                return Hit(end, rows, tuple(pages[:whole]), pages[whole] if rest else NULL, entry.blocks)
        return Hit(0, rows, (), NULL, (NULL,) * self.state_groups)

    def _whole_pages(self, links: list[Link]) -> tuple[list[int], int]:
        """First stage: whole pages from the left, until one is missing -> (blocks, tokens)."""
        per_page, pages = self.page_tokens // self.hash_block, []
        for link in links[per_page - 1 :: per_page]:
            entry = self.rows.find(link)
            if entry is None:
                break
            pages.append(entry.blocks[0])
        return pages, len(pages) * self.page_tokens

    def _inside_next_page(self, links: list[Link], whole: int) -> tuple[int, int]:
        """Second stage: the last position inside the first missing page -> (block, tokens), or NULL."""
        per_page = self.page_tokens // self.hash_block
        for link in reversed(links[whole * per_page : (whole + 1) * per_page]):
            entry = self.rows.find(link)
            if entry is not None:
                return entry.blocks[0], link.end
        return NULL, 0

    # --- a request's life ---

    def start(self, request: Hashable, tokens: Sequence[int],
              extra: Extra | None = None) -> tuple[Hit, list[Copy]]:
        """Begin a request -> the hit, and the copies to carry out before `landed`.

        A hit that does not fit beside its own sources is given up. Raises PoolExhausted and changes nothing.
        """
        if request in self.running:
            raise ValueError(f"request {request!r} is already running")
        if not len(tokens):
            raise ValueError("tokens is empty; a request has at least one token")
        chain = Chain(tokens, self.hash_block, extra, self.hasher)
        hit = self.lookup(chain)
        if hit.tokens and not self._fits(hit):
            hit = Hit(0, hit.rows, (), NULL, (NULL,) * self.state_groups)
        if not self._fits(hit):
            raise PoolExhausted(f"request {request!r} needs {self.state_groups} blocks to start, "
                                f"{self.pool.free_blocks} are free")
        pinned, copies = self._take_blocks(request, hit)
        place = len(tokens), hit.tokens, hit.rows // self.grain * self.grain, self.grain
        lasting = frozenset(replace(self.policy, chunk=None).boundaries(*place))
        self.running[request] = Running(chain, len(tokens), hit.tokens, self.policy.boundaries(*place)[::-1],
                                        lasting, pinned)
        self.prompt_tokens += len(tokens)
        self.hit_tokens += hit.tokens
        if not self.rules.publish_on_commit:
            self._publish_copied_page(request)
        return hit, copies

    def _fits(self, hit: Hit) -> bool:
        """Whether the blocks that a request needs at its start are free besides those that it hit."""
        kept = [block for block in (*hit.pages, hit.partial, *hit.states) if self.pool.is_findable(block)
                and not self.pool.references[block]]
        return self.state_groups + (hit.partial != NULL) <= self.pool.free_blocks - len(kept)

    def _take_blocks(self, request: Hashable, hit: Hit) -> tuple[list[int], list[Copy]]:
        """Pin what was hit, take blocks of the request's own -> (the pins to undo later, what to copy)."""
        sources = (hit.partial, *hit.states)
        counts = [int(hit.partial != NULL)] + [1] * self.state_groups
        hits = [hit.pages, *([] for _ in hit.states)]
        if self.rules.pin_first:
            pinned = self._pin(sources)
            own = self.tables.allocate(request, counts, hits)
        else:
            pinned, own = [], []
            self.tables.allocate(request, [0] * len(counts), hits)
            for group, source in enumerate(sources):
                pinned += self._pin([source])
                wanted = [count * (group == other) for other, count in enumerate(counts)]
                own.append(self.tables.allocate(request, wanted)[group])
        copies = [Copy(source, blocks[0]) for source, blocks in zip(sources, own, strict=True) if blocks]
        return pinned, copies

    def _pin(self, blocks: Sequence[int]) -> list[int]:
        """Pin what there is to pin: without rule 3 an entry may name a block that is long unused."""
        pool = self.pool
        pinned = [block for block in blocks
                  if block != NULL and (pool.references[block] or pool.is_findable(block))]
        pool.touch(pinned)
        return pinned

    def landed(self, request: Hashable) -> None:
        """The copies of `start` or `fork` have been carried out: their sources need not stay."""
        running = self._of(request)
        self.pool.free(running.pinned)
        running.pinned, running.copying = [], False
        if self.rules.publish_on_commit:
            self._publish_copied_page(request)

    def plan(self, request: Hashable, count: int) -> Step:
        """Reserve blocks for up to `count` more tokens, fewer where a checkpoint comes first.

        Raises PoolExhausted and changes nothing. A checkpoint for which there is no room is left out.
        """
        running = self._of(request)
        if running.copying or running.step is not None:
            raise ValueError(f"request {request!r} has copies under way or a step that is not committed")
        if count < 1:
            raise ValueError(f"count is {count}; a step computes at least 1 token")
        start = running.computed
        boundary = self._next_boundary(running)
        end = start + count if boundary is None else min(start + count, boundary)
        table = self.tables.tables[request]
        pages = -(-end // self.page_tokens) - len(table[0])
        self.tables.allocate(request, [max(0, pages)] + [0] * self.state_groups)
        saves = ()
        if end == boundary and self.pool.free_blocks >= self.state_groups:
            slots = self.pool.allocate(self.state_groups)
            saves = tuple(Copy(group[0], slot) for group, slot in zip(table[1:], slots, strict=True))
        running.step = Step(start, end, saves)
        if not self.rules.publish_on_commit:
            self._publish(request, min(end, len(running.chain.tokens)))
        return running.step

    def _next_boundary(self, running: Running) -> int | None:
        """Where the next checkpoint is due: as the policy said for the prompt, then on the grain."""
        while running.boundaries and running.boundaries[-1] <= running.computed:
            running.boundaries.pop()
        if running.boundaries:
            return running.boundaries[-1]
        if self.decode and running.computed >= running.prompt:
            return (running.computed // self.grain + 1) * self.grain
        return None

    def commit(self, request: Hashable, tokens: Sequence[int]) -> None:
        """The step is done and `tokens` stay, all or the accepted first ones: publish what that completes.

        Rows and states are found under the tokens given here and no others.
        """
        running = self._of(request)
        step, chain = running.step, running.chain
        if step is None or not 0 < len(tokens) <= step.end - step.start:
            raise ValueError(f"request {request!r} cannot commit {len(tokens)} tokens: its step is {step}")
        known = chain.tokens[step.start : step.start + len(tokens)]
        if list(tokens)[: len(known)] != known:
            raise ValueError(f"request {request!r} commits tokens that are not those of its prompt")
        chain.append(tokens[len(known) :])
        if self.rules.publish_on_commit:
            self._publish(request, step.start + len(tokens))
        self.pool.free([save.target for save in step.saves])
        running.computed += len(tokens)
        running.step = None

    def _publish(self, request: Hashable, end: int) -> None:
        """Make findable what the step completes up to `end`: positions inside pages, and the checkpoint."""
        running = self.running[request]
        self._publish_rows(request, running.step.start, end)
        if running.step.saves and end == running.step.end:
            self._publish_checkpoint(running, running.chain.links[end // self.hash_block - 1])

    def _publish_copied_page(self, request: Hashable) -> None:
        """A copied page holds its first rows as well as its source does."""
        computed = self.running[request].computed
        self._publish_rows(request, computed // self.page_tokens * self.page_tokens, computed)

    def _publish_rows(self, request: Hashable, start: int, end: int) -> None:
        pages = self.tables.tables[request][0]
        for link in self.running[request].chain.links[start // self.hash_block : end // self.hash_block]:
            block = pages[(link.end - 1) // self.page_tokens]
            self.rows.add(Entry(link, (block,)))
            self.pool.register([block])

    def _publish_checkpoint(self, running: Running, link: Link) -> None:
        known = self.checkpoints.find(link)
        if known is not None:  # another request was faster: keep that one, as if used just now
            self.pool.touch(known.blocks)
            self.pool.free(known.blocks)
            return
        entry = Entry(link, tuple(save.target for save in running.step.saves))
        self.checkpoints.add(entry)
        self.pool.register(entry.blocks)
        if self.recycle:
            if running.passing is not None:
                self._withdraw(running.passing)
            running.passing = None if link.end in running.lasting else entry

    def _withdraw(self, entry: Entry) -> None:
        """Give up a checkpoint that is still found."""
        if self.checkpoints.find(entry.link) is entry:
            self.checkpoints.remove(entry)
            self.pool.unregister(entry.blocks)

    def fork(self, request: Hashable, new_request: Hashable) -> list[Copy]:
        """Continue a request in two ways -> copies to carry out before either goes on, and then `landed`.

        Whole pages are shared. Raises PoolExhausted and changes nothing.
        """
        parent, table = self._of(request), self.tables.tables[request]
        if parent.copying or parent.step is not None:
            raise ValueError(f"request {request!r} has copies under way or a step that is not committed")
        if new_request in self.running:
            raise ValueError(f"request {new_request!r} is already running")
        whole, rest = divmod(parent.computed, self.page_tokens)
        hit = Hit(parent.computed, parent.computed, tuple(table[0][:whole]),
                  table[0][whole] if rest else NULL, tuple(group[0] for group in table[1:]))
        if not self._fits(hit):
            raise PoolExhausted(f"no room to fork request {request!r}: {self.pool.free_blocks} blocks are free")
        pinned, copies = self._take_blocks(new_request, hit)
        self.running[new_request] = Running(parent.chain.copy(), parent.prompt, parent.computed,
                                            list(parent.boundaries), parent.lasting, pinned)
        return copies

    def release(self, request: Hashable) -> None:
        """The request ended, was aborted or preempted, at any point. What it published stays findable."""
        running = self._of(request)
        self.pool.free(running.pinned)
        if running.step is not None:
            self.pool.free([save.target for save in running.step.saves])
        self.tables.release(request)
        del self.running[request]

    def _of(self, request: Hashable) -> Running:
        if request not in self.running:
            raise ValueError(f"request {request!r} is not running")
        return self.running[request]

    # --- eviction ---

    def evict(self, block: int) -> None:
        """Give up what a findable block that nobody uses holds, as if the pool had reused it."""
        if self.pool.references[block] or not self.pool.is_findable(block):
            raise ValueError(f"block {block} is in use or not findable, so it cannot be evicted")
        self.pool.unregister([block])
        self._evicted([block])

    def _evicted(self, blocks: list[int]) -> None:
        """The pool reuses these blocks: forget all positions in a page, and the checkpoints they are part of."""
        for block in blocks:
            for entry in self.rows.of_block(block):
                self.rows.remove(entry)
            for entry in self.checkpoints.of_block(block):
                if self.rules.evict_together:
                    self.checkpoints.remove(entry)
                    self.pool.unregister(entry.blocks)
                elif not any(self.pool.is_findable(other) for other in entry.blocks):
                    self.checkpoints.remove(entry)
            self.checkpoints.forget_block(block)

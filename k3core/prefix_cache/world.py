"""A small world around a prefix cache, in which every interleaving can be tried: see `model_checker`.

The cache, its pool and its page tables are the real ones. What blocks hold is symbolic: the prefix that a row
or a state was computed from. Hash blocks are one token long.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, permutations

from ..paged_cache import NULL, BlockPool, PageTables
from .cache import Copy, PrefixCache, Rules
from .hashing import Chain, Link
from .policy import Policy, read_policy

ZERO = ("zero",)  # a cleared block: the state before the first token


@dataclass(frozen=True)
class Scope:
    """How small the world is. A prompt is `shared` tokens, the same for all requests, and `own` others."""

    requests: int = 2
    shared: int = 2
    own: int = 1
    page_tokens: int = 2
    state_groups: int = 2
    blocks: int = 7
    policy: Policy = field(default_factory=lambda: read_policy("retain:0"))
    rules: Rules = Rules()

    def __post_init__(self):
        for name, most in (("requests", 4), ("shared", 8), ("own", 8), ("page_tokens", 8),
                           ("state_groups", 4), ("blocks", 32)):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}; a small world has 1 to {most}")

    @property
    def tokens(self) -> int:
        """Length of each prompt."""
        return self.shared + self.own

    @cached_property
    def chains(self) -> list[Chain]:
        """Each request's prompt, hashed."""
        prompts = [(*range(self.shared), *range(100 * (request + 1), 100 * (request + 1) + self.own))
                   for request in range(self.requests)]
        return [Chain(prompt, 1) for prompt in prompts]

    @cached_property
    def links(self) -> dict[tuple[int, int], Link]:
        """The link of each prefix, by the prefix's name: (request, or -1 where all have it, length)."""
        return {self.prefix(request, length): self.chains[request].links[length - 1]
                for request in reversed(range(self.requests)) for length in range(1, self.tokens + 1)}

    def prefix(self, request: int, length: int) -> tuple[int, int]:
        """The name of a prefix of a request's prompt."""
        return (request if length > self.shared else -1), length


@dataclass(frozen=True)
class Event:
    """What happens next: schedule (start or plan), copy, forward, commit, release, or evict.

    victims: the idle blocks that leave first if scheduling has to evict any.
    """

    kind: str
    request: int | None = None
    victims: tuple[int, ...] = ()


class World:
    """Requests in some phase, a cache, and what every block holds.

    content: a state block holds (group, prefix), a page ("rows", a prefix for each row); None where it is
    nobody's prefix.
    """

    def __init__(self, scope: Scope):
        self.scope = scope
        self.pool = BlockPool(scope.blocks + 1)
        self.tables = PageTables(self.pool, 1 + scope.state_groups)
        self.cache = PrefixCache(self.tables, scope.page_tokens, 1, scope.policy, rules=scope.rules)
        self.phases = ["idle"] * scope.requests
        self.copies: list[list[Copy]] = [[] for _ in self.phases]
        self.content: dict[int, tuple | None] = {NULL: ZERO}

    # --- what can happen, and what it does ---

    def events(self) -> Iterator[Event]:
        """Everything that can happen now. Any idle block may be the next victim, so no order of eviction is
        assumed."""
        following = {"started": "copy", "planned": "forward", "computed": "commit"}
        for request, phase in enumerate(self.phases):
            if phase in following:
                yield Event(following[phase], request)
            elif phase == "idle" or self.cache.running[request].computed < self.scope.tokens:
                for victims in self._victims(self._blocks_needed(request)):
                    yield Event("schedule", request, victims)
            if phase != "idle":
                yield Event("release", request)
        for block in self._idle():
            yield Event("evict", None, (block,))

    def _idle(self) -> list[int]:
        pool = self.pool
        return [block for block in range(1, pool.num_blocks)
                if pool.is_findable(block) and not pool.references[block]]

    def _blocks_needed(self, request: int) -> int:
        """At least as many blocks as scheduling this request takes."""
        if self.phases[request] == "idle":
            return 1 + self.scope.state_groups
        held = len(self.tables.tables[request][0])
        return -(-self.scope.tokens // self.scope.page_tokens) - held + self.scope.state_groups

    def _victims(self, needed: int) -> Iterator[tuple[int, ...]]:
        """Choices of blocks to evict first. The order matters only where blocks of the hit may be among them."""
        idle = self._idle()
        short = min(len(idle), max(0, needed - (self.pool.free_blocks - len(idle))))
        if not self.scope.rules.pin_first:
            return permutations(idle, short)
        return chain.from_iterable(combinations(idle, count) for count in range(short + 1))

    def apply(self, event: Event) -> str | None:
        """Let an event happen -> what went wrong for the request, if anything. Raises PoolExhausted."""
        problem = None
        if event.kind == "evict":
            self.cache.evict(event.victims[0])
        elif event.kind == "release":
            self.cache.release(event.request)
            self.phases[event.request], self.copies[event.request] = "idle", []
        else:
            problem = getattr(self, f"_{event.kind}")(event)
        self._forget_unused()
        return problem

    def _forget_unused(self) -> None:
        """Assume the worst of blocks that hold nothing for anyone, so that worlds differ in nothing else."""
        pool, cache = self.pool, self.cache
        unused = [block for block in self.content
                  if block != NULL and not pool.references[block] and not pool.is_findable(block)]
        if unused:
            named = {block for index in (cache.rows, cache.checkpoints) for entry in index
                     for block in entry.blocks}
            for block in unused:
                if block not in named:
                    del self.content[block]

    def _schedule(self, event: Event) -> None:
        request = event.request
        for block in (*event.victims, *(block for block in self._idle() if block not in event.victims)):
            self.pool.touch([block])
            self.pool.free([block])
        if self.phases[request] == "idle":
            _, self.copies[request] = self.cache.start(request, self.scope.chains[request].tokens)
            self.phases[request] = "started"
        else:
            self.cache.plan(request, self.scope.tokens - self.cache.running[request].computed)
            self.phases[request] = "planned"

    def _copy(self, event: Event) -> None:
        for copy in self.copies[event.request]:
            self.content[copy.target] = self.content.get(copy.source)
        self.cache.landed(event.request)
        self.phases[event.request], self.copies[event.request] = "ready", []

    def _forward(self, event: Event) -> str | None:
        request = event.request
        step, table = self.cache.running[request].step, self.tables.tables[request]
        problem = self._misread(request, step.start)
        for position in range(step.start, step.end):
            prefix = None if problem else self.scope.prefix(request, position + 1)
            self._write_row(table[0][position // self.scope.page_tokens], position, prefix)
        for group, [block] in enumerate(table[1:], 1):
            self.content[block] = None if problem else (group, self.scope.prefix(request, step.end))
        for save in step.saves:
            self.content[save.target] = self.content[save.source]
        self.phases[request] = "computed"
        return problem

    def _misread(self, request: int, length: int) -> str | None:
        """What a request that continues at `length` finds in its blocks instead of its own prefix."""
        table = self.tables.tables[request]
        for group, [block] in enumerate(table[1:], 1):
            if not self.holds_state(block, group, self.scope.prefix(request, length)):
                return (f"request {request} reads block {block} as its state of group {group} after {length} "
                        f"tokens, but it holds {self.describe(block)}")
        for position in range(length):
            block = table[0][position // self.scope.page_tokens]
            if not self.holds_row(block, position, self.scope.prefix(request, position + 1)):
                return (f"request {request} reads block {block} as its row of token {position}, but it holds "
                        f"{self.describe(block)}")
        return None

    def holds_state(self, block: int, group: int, prefix: tuple[int, int]) -> bool:
        """Whether a block holds a group's state after a prefix; zeros are the state before the first token."""
        content = self.content.get(block)
        return content == (group, prefix) or (content == ZERO and prefix[1] == 0)

    def holds_row(self, block: int, position: int, prefix: tuple[int, int]) -> bool:
        """Whether a page has, where the row of `position` stands, the last row of a prefix."""
        content = self.content.get(block)
        return _is_page(content) and content[1][position % self.scope.page_tokens] == prefix

    def _write_row(self, block: int, position: int, prefix: tuple[int, int] | None) -> None:
        """Write one row; what lies behind it in the page means nothing any more."""
        content, place = self.content.get(block), position % self.scope.page_tokens
        before = content[1][:place] if _is_page(content) else (None,) * place
        self.content[block] = "rows", (*before, prefix, *(None,) * (self.scope.page_tokens - place - 1))

    def _commit(self, event: Event) -> None:
        step = self.cache.running[event.request].step
        self.cache.commit(event.request, self.scope.chains[event.request].tokens[step.start : step.end])
        self.phases[event.request] = "ready"

    def wrong_entry(self) -> str | None:
        """A registered entry whose blocks do not hold the prefix it stands for, in words."""
        for prefix, link in self.scope.links.items():
            for entry in self.cache.rows.of_key(link.key):
                problem = self.wrong_rows(entry.blocks[0], *prefix)
                if problem:
                    return problem
            for entry in self.cache.checkpoints.of_key(link.key):
                for group, block in enumerate(entry.blocks, 1):
                    if not self.holds_state(block, group, prefix):
                        return (f"the state of {self._name(prefix)} is found in block {block} for group "
                                f"{group}, but it holds {self.describe(block)}")
        return None

    def wrong_rows(self, block: int, request: int, length: int) -> str | None:
        """What is wrong with the page in which the rows up to `length` of a request's prompt end, in words."""
        size = self.scope.page_tokens
        for position in range((length - 1) // size * size, length):
            if not self.holds_row(block, position, self.scope.prefix(request, position + 1)):
                return (f"the rows of {self._name((request, length))} are found in block {block}, but it "
                        f"holds {self.describe(block)}")
        return None

    def describe(self, block: int) -> str:
        """What a block holds, in words."""
        content = self.content.get(block)
        if content is None:
            return "nothing that was written for it"
        if content == ZERO:
            return "zeros"
        if _is_page(content):
            return "rows of " + ", ".join(self._name(row) if row else "nobody" for row in content[1])
        return f"group {content[0]}'s state of {self._name(content[1])}"

    def _name(self, prefix: tuple[int, int]) -> str:
        request, length = prefix
        return f"the first {length} tokens of " + ("all" if request < 0 else f"request {request}")


def _is_page(content: tuple | None) -> bool:
    return content is not None and content[0] == "rows"

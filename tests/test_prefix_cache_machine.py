"""Random lives of a prefix cache against an oracle that remembers every published prefix whole.

What blocks hold is simulated: a row or a state is the list of all tokens it was computed from.
"""

from collections import Counter

import numpy as np
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from k3core.paged_cache import NULL, BlockPool, PageTables, PoolExhausted
from k3core.prefix_cache import Chain, Extra, PrefixCache, read_policy, sha256

BLOCKS, STATES = 24, 2
POLICIES = ("dense", "align", "align+4", "marconi", "marconi+4", "retain:0", "retain:4")
TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=9)


def two_keys(data):
    return bytes([sum(data) % 2])


class WatchedPool(BlockPool):
    """Counts how often each block was handed out."""

    def __init__(self, num_blocks):
        super().__init__(num_blocks)
        self.handed_out = [0] * num_blocks

    def allocate(self, count):
        blocks = super().allocate(count)
        for block in blocks:
            self.handed_out[block] += 1
        return blocks


class Oracle:
    """Every prefix ever published, as (kind, salt, tokens), with the blocks that held it."""

    def __init__(self, pool, page, block, grain):
        self.pool, self.page, self.block, self.grain, self.published = pool, page, block, grain, []

    def publish(self, kind, salt, tokens, blocks):
        stamps = [self.pool.handed_out[block] for block in blocks]
        self.published.append(((kind, salt, tuple(tokens)), blocks, stamps))

    def publish_rows(self, salt, tokens, start, end, pages):
        for position in range(start // self.block * self.block + self.block, end + 1, self.block):
            self.publish("rows", salt, tokens[:position], [pages[(position - 1) // self.page]])

    def alive(self):
        """What is still in all its blocks, all of them findable and not handed out again since."""
        return [(prefix, blocks) for prefix, blocks, stamps in self.published
                if all(map(self.pool.is_findable, blocks))
                and [self.pool.handed_out[block] for block in blocks] == stamps]

    def has(self, kind, salt, tokens):
        return (kind, salt, tuple(tokens)) in [prefix for prefix, _ in self.alive()]

    def hit(self, salt, tokens):
        alive, best = {prefix for prefix, _ in self.alive()}, 0
        for end in range(self.grain, len(tokens), self.grain):
            pages = [*range(self.page, end + 1, self.page), *([end] if end % self.page else [])]
            needed = [("states", salt, end), *(("rows", salt, page) for page in pages)]
            if all((kind, salt, tuple(tokens[:length])) in alive for kind, salt, length in needed):
                best = end
        return best


class CacheMachine(RuleBasedStateMachine):
    """Up to 4 requests at once, each in some phase; `advance` takes one of them a few phases further."""

    def __init__(self):
        super().__init__()
        self.held, self.phases, self.copies, self.names = {}, {}, {}, iter(range(10**6))
        self.contents, self.spoken = {NULL: None}, [[0] * 9]

    @initialize(policy=st.sampled_from(POLICIES), shape=st.sampled_from([(2, 2, 2), (4, 2, 2), (4, 1, 2), (4, 2, 4)]),
                decode=st.booleans(), recycle=st.booleans(), hasher=st.sampled_from([sha256, two_keys]))
    def build(self, policy, shape, decode, recycle, hasher):
        page, block, grain = shape
        self.pool = WatchedPool(BLOCKS + 1)
        self.cache = PrefixCache(PageTables(self.pool, 1 + STATES), page, block, read_policy(policy), grain,
                                 decode=decode, recycle=recycle, hasher=hasher)
        self.oracle = Oracle(self.pool, page, block, grain)

    def running(self):
        return st.sampled_from(sorted(self.phases))

    # --- what an engine does ---

    @precondition(lambda self: len(self.phases) < 4)
    @rule(data=st.data(), salt=st.sampled_from([None, None, None, "s"]), more=st.lists(st.integers(0, 1), max_size=3))
    def start(self, data, salt, more):
        self.begin(data, salt, more)

    def begin(self, data, salt, more):
        """A prompt that goes on from some point of an earlier one -> the request, None without room."""
        before = data.draw(st.sampled_from(self.spoken))
        kept = data.draw(st.one_of(st.just(len(before)), st.integers(0, len(before))))
        tokens = (before[:kept] + more)[:16] or [0]
        self.spoken.append(tokens)
        chain = Chain(tokens, self.cache.hash_block, Extra(salt=salt), self.cache.hasher)
        expected, free = self.oracle.hit(salt, tokens), self.pool.free_blocks
        assert self.cache.lookup(chain).tokens == expected
        request = next(self.names)
        try:
            hit, copies = self.cache.start(request, tokens, Extra(salt=salt))
        except PoolExhausted:
            assert free < STATES and self.pool.free_blocks == free
            return None
        assert hit.tokens in (0, expected)
        if hit.tokens < expected:  # own blocks beside all that was hit
            assert free < STATES + 1 + expected // self.cache.page_tokens + 1 + STATES
        self.copies[request], self.phases[request] = copies, "started"
        self.held[request] = [salt, list(tokens), hit.tokens]
        return request

    @precondition(lambda self: len(self.phases) < 4)
    @rule(data=st.data(), more=st.lists(st.integers(0, 1), max_size=3))
    def serve(self, data, more):
        """A whole request at once."""
        request = self.begin(data, None, more)
        if request is not None:
            self.go_on(request, 25, data)
            self.end(request)

    @precondition(lambda self: self.phases)
    @rule(data=st.data(), phases=st.sampled_from([1, 2, 3, 5, 20]))
    def advance(self, data, phases):
        self.go_on(data.draw(self.running()), phases, data)

    def go_on(self, request, phases, data):
        for _ in range(phases):
            phase = self.phases[request]
            if phase == "started":
                self.carry_out(request, self.copies.pop(request))
            elif phase == "ready":
                self.plan(request, data.draw(st.integers(1, 6)), data)
            elif phase == "planned":
                self.forward(request)
            else:
                self.commit(request, data)

    def plan(self, request, count, data):
        salt, tokens, done = self.held[request]
        if done == len(tokens):  # decode: the last token and drafts, not all of which will be accepted
            count = min(count, 3)
            tokens += data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
        try:
            step = self.cache.plan(request, min(count, len(tokens) - done))
        except PoolExhausted:
            return
        assert step.start == done < step.end <= len(tokens)
        self.phases[request] = "planned"

    def forward(self, request):
        (salt, tokens, done), step = self.held[request], self.cache.running[request].step
        rows, *states = self.cache.tables.tables[request]
        self.check_memory(request)
        for position in range(done, step.end):
            block = rows[position // self.cache.page_tokens]
            if not isinstance(self.contents.get(block), dict):
                self.contents[block] = {}
            self.contents[block][position % self.cache.page_tokens] = (salt, tuple(tokens[: position + 1]))
        for group, [block] in enumerate(states):
            self.contents[block] = (group, salt, tuple(tokens[: step.end]))
        for save in step.saves:
            self.contents[save.target] = self.contents[save.source]
        self.phases[request] = "computed"

    def commit(self, request, data):
        salt, tokens, done = self.held[request]
        running = self.cache.running[request]
        step, prefill = running.step, running.step.end <= running.prompt
        accepted = step.end - done if prefill else data.draw(st.integers(1, step.end - done))
        rows, *states = self.cache.tables.tables[request]
        self.cache.commit(request, tokens[done : done + accepted])
        end = done + accepted
        self.oracle.publish_rows(salt, tokens, done, end, rows)
        if step.saves and end == step.end and not self.oracle.has("states", salt, tokens[:end]):
            self.oracle.publish("states", salt, tokens[:end], [save.target for save in step.saves])
        if not prefill:
            del tokens[end:]
            for group, [state] in enumerate(states):  # the engine rolls the state back
                self.contents[state] = (group, salt, tuple(tokens))
        self.held[request][2] = end
        self.phases[request] = "ready"

    @precondition(lambda self: 0 < len(self.phases) < 4)
    @rule(data=st.data())
    def fork(self, data):
        request = data.draw(self.running())
        if self.phases[request] != "ready":
            return
        new = next(self.names)
        try:
            copies = self.cache.fork(request, new)
        except PoolExhausted:
            return
        salt, tokens, done = self.held[request]
        self.held[new] = [salt, list(tokens), done]
        self.carry_out(new, copies)

    @precondition(lambda self: self.phases)
    @rule(data=st.data())
    def release(self, data):
        """End, abort, preempt: at whatever point."""
        self.end(data.draw(self.running()))

    def end(self, request):
        self.cache.release(request)
        self.copies.pop(request, None)
        salt, tokens, done = self.held.pop(request)
        self.spoken.append(tokens[:done])
        del self.phases[request]

    @rule(data=st.data())
    def evict(self, data):
        idle = [block for block in range(1, BLOCKS + 1)
                if self.pool.is_findable(block) and not self.pool.references[block]]
        if idle:
            self.cache.evict(data.draw(st.sampled_from(idle)))

    def carry_out(self, request, copies):
        for copy in copies:
            content = self.contents.get(copy.source)
            self.contents[copy.target] = dict(content) if isinstance(content, dict) else content
        self.cache.landed(request)
        self.phases[request] = "ready"
        salt, tokens, done = self.held[request]
        page = self.cache.page_tokens
        self.oracle.publish_rows(salt, tokens, done // page * page, done, self.cache.tables.tables[request][0])

    # --- what must hold ---

    def check_memory(self, request):
        """A request that goes on finds its own prefix in its blocks."""
        salt, tokens, done = self.held[request]
        rows, *states = self.cache.tables.tables[request]
        for group, [block] in enumerate(states):
            assert self.contents.get(block) == ((group, salt, tuple(tokens[:done])) if done else None)
        self.check_rows(rows, salt, tokens[:done], 0)

    def check_rows(self, blocks, salt, tokens, start):
        page = self.cache.page_tokens
        for position in range(start, len(tokens)):
            assert self.contents[blocks[position // page]][position % page] == (salt, tuple(tokens[: position + 1]))

    @invariant()
    def everything_findable_is_what_it_says(self):
        page = self.cache.page_tokens
        for (kind, salt, tokens), blocks in self.oracle.alive():
            if kind == "states":
                assert [self.contents[block] for block in blocks] == [(g, salt, tokens) for g in range(STATES)]
            else:
                start = (len(tokens) - 1) // page * page
                self.check_rows({start // page: blocks[0]}, salt, tokens, start)

    @invariant()
    def the_index_is_what_the_oracle_says_is_left(self):
        indexed = [(kind, *said(entry.link), list(entry.blocks)) for kind, index in
                   (("rows", self.cache.rows), ("states", self.cache.checkpoints)) for entry in index]
        alive = [(*prefix, blocks) for prefix, blocks in self.oracle.alive()]
        assert sorted(indexed, key=str) == sorted(alive, key=str)
        named = {block for *_, blocks in indexed for block in blocks}
        assert named == {block for block in range(BLOCKS + 1) if self.pool.is_findable(block)}

    @invariant()
    def every_reference_has_a_holder(self):
        held = Counter(block for table in self.cache.tables.tables.values() for group in table for block in group)
        for running in self.cache.running.values():
            held.update(running.pinned)
            held.update(save.target for save in (running.step.saves if running.step else ()))
        assert held == Counter({block: count for block, count in enumerate(self.pool.references) if count})


def said(link):
    """(salt, tokens) that a link stands for, read back from what was hashed."""
    tokens = []
    while link.parent is not None:
        tokens[:0] = np.frombuffer(link.payload[9:], "<i8").tolist()
        link = link.parent
    return ("s" if link.payload.endswith(b"s" if b"S" in link.payload else b"?") else None), tuple(tokens)


CacheMachine.TestCase.settings = hypothesis_settings(
    max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
TestPrefixCache = CacheMachine.TestCase

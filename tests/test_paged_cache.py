"""The page pool: reference counts, free lists, page tables, real bytes, and moving states between ranks."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from k3core.paged_cache import (
    NULL,
    BlockPool,
    PageStorage,
    PageTables,
    PoolExhausted,
    RowPage,
    StatePage,
    apply_moves,
    relayout,
)

EXAMPLES = hypothesis_settings(max_examples=60, deadline=None, derandomize=True)
MACHINE = hypothesis_settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)


def contents(pool):
    """Everything observable about a pool, in the order in which free blocks would be reused."""
    return list(pool.references), bytes(pool._findable), list(pool._unused), list(pool._cached)


# --- blocks ---


def test_fresh_blocks_come_in_numeric_order_and_never_the_null_block():
    pool = BlockPool(5)
    assert pool.allocate(2) == [1, 2] and pool.allocate(2) == [3, 4]
    assert pool.free_blocks == 0 and pool.usage == 1


def test_unfindable_blocks_are_reused_first_and_findable_ones_least_recently_used_first():
    """vllm #42656: partial blocks in the LRU list pushed out useful ones."""
    evicted = []
    pool = BlockPool(7, evicted.extend)
    chain, partial = pool.allocate(4), pool.allocate(2)
    pool.register(chain)
    pool.free(chain[::-1])
    pool.free(partial)
    assert pool.allocate(2) == partial and evicted == []
    assert pool.allocate(1) == [chain[-1]] and evicted == [chain[-1]]  # the tail of the chain goes first
    pool.touch([chain[2]])
    assert pool.allocate(2) == [chain[1], chain[0]]
    assert pool.references[chain[2]] == 1


def test_a_hit_takes_a_free_block_back_without_evicting_it():
    pool = BlockPool(4, lambda blocks: pytest.fail(f"evicted {blocks}"))
    blocks = pool.allocate(2)
    pool.register(blocks)
    pool.free(blocks)
    pool.touch(blocks)
    assert pool.free_blocks == 1 and [pool.references[b] for b in blocks] == [1, 1]


def test_forgetting_a_free_block_puts_it_first_in_line():
    pool = BlockPool(4)
    blocks = pool.allocate(3)
    pool.register(blocks)
    pool.free(blocks)
    pool.unregister([blocks[2]])
    assert pool.allocate(1) == [blocks[2]]


@pytest.mark.parametrize(("spoil", "error", "message"), [
    (lambda pool: pool.allocate(3), PoolExhausted, "3 blocks asked for, 2 of 5 are free"),
    (lambda pool: pool.allocate(-1), ValueError, "count is -1"),
    (lambda pool: pool.free([1, 4]), ValueError, "block 4 is not in use"),
    (lambda pool: pool.free([1, 1]), ValueError, "block 1 is freed 2 times but has 1 references"),
    (lambda pool: pool.free([1, NULL]), ValueError, "block 0 is not in use"),
    (lambda pool: pool.free([1, 99]), ValueError, "block 99 is not in use"),
    (lambda pool: pool.touch([1, 5]), ValueError, "block 5 is neither in use nor findable"),
    (lambda pool: pool.touch([-1]), ValueError, "block -1 is neither"),
    (lambda pool: pool.register([5]), ValueError, "block 5 is not in use"),
])  # fmt: skip
def test_what_cannot_be_done_changes_nothing(spoil, error, message):
    pool = BlockPool(6)
    pool.free(pool.allocate(5)[3:])
    before = contents(pool)
    with pytest.raises(error, match=message):
        spoil(pool)
    assert contents(pool) == before


def test_a_pool_needs_a_block_beside_the_null_block():
    with pytest.raises(ValueError, match="num_blocks is 1"):
        BlockPool(1)


class PoolMachine(RuleBasedStateMachine):
    """A pool against a plain model: holders per block, and the free ones listed in reuse order."""

    def __init__(self):
        super().__init__()
        self.evicted = []
        self.pool = BlockPool(9, self.evicted.extend)
        self.held, self.findable = Counter(), set()
        self.unused, self.cached = list(range(1, 9)), []

    @rule(count=st.integers(0, 10))
    def allocate(self, count):
        order = self.unused + self.cached
        self.evicted.clear()
        if count > len(order):
            with pytest.raises(PoolExhausted):
                self.pool.allocate(count)
            return
        assert self.pool.allocate(count) == order[:count]
        assert self.evicted == [b for b in order[:count] if b in self.findable]
        self.findable -= set(order[:count])
        self.held.update(order[:count])
        self.unused = [b for b in self.unused if b not in order[:count]]
        self.cached = [b for b in self.cached if b not in order[:count]]

    @rule(data=st.data())
    def free(self, data):
        blocks = data.draw(st.permutations(list(self.held.elements())))
        blocks = blocks[: data.draw(st.integers(0, len(blocks)))]
        self.pool.free(blocks)
        self.held.subtract(blocks)
        self.held += Counter()
        last = [b for i, b in enumerate(blocks) if not self.held[b] and b not in blocks[i + 1 :]]
        self.unused = [b for b in last if b not in self.findable] + self.unused
        self.cached += [b for b in last if b in self.findable]

    @rule(data=st.data())
    def touch(self, data):
        choices = sorted(set(self.held) | set(self.cached))
        if choices:
            blocks = data.draw(st.lists(st.sampled_from(choices), max_size=4))
            self.pool.touch(blocks)
            self.held.update(blocks)
            self.cached = [b for b in self.cached if b not in blocks]

    @rule(data=st.data())
    def register(self, data):
        if self.held:
            blocks = data.draw(st.lists(st.sampled_from(sorted(self.held)), max_size=4))
            self.pool.register(blocks)
            self.findable |= set(blocks)

    @rule(block=st.integers(1, 8))
    def unregister(self, block):
        self.pool.unregister([block])
        self.findable.discard(block)
        if block in self.cached:
            self.cached.remove(block)
            self.unused.insert(0, block)

    @invariant()
    def free_and_used_and_null_are_all(self):
        used = sum(count > 0 for count in self.pool.references)
        assert self.pool.free_blocks + used + 1 == self.pool.num_blocks
        assert [self.pool.references[b] for b in range(9)] == [self.held[b] for b in range(9)]
        assert {b for b in range(9) if self.pool.is_findable(b)} == self.findable


PoolMachine.TestCase.settings = MACHINE
TestPool = PoolMachine.TestCase


def test_nothing_is_lost_in_two_million_random_operations():
    pool, rng = BlockPool(1000), np.random.default_rng(7)
    live, operations = [], 0
    while operations < 2_000_000:
        count = int(rng.integers(1, 200))
        try:
            blocks = pool.allocate(count)
        except PoolExhausted:
            assert count > pool.free_blocks
            chain = live.pop(int(rng.integers(len(live))))
            pool.free(chain[::-1])
            operations += len(chain)
            continue
        if rng.random() < 0.5:
            pool.register(blocks)
            pool.touch(blocks)
            pool.free(blocks)
        live.append(blocks)
        operations += 3 * count
    assert sorted(block for chain in live for block in chain) == sorted(
        block for block, references in enumerate(pool.references) if references == 1)
    assert pool.free_blocks + sum(map(len, live)) + 1 == 1000


# --- page tables ---


def test_hits_of_every_group_are_pinned_before_anything_is_allocated():
    """vllm #33775: one group's allocation evicted the block another group had hit."""
    evicted = []
    pool = BlockPool(4, evicted.extend)
    cached = pool.allocate(3)
    pool.register(cached)
    pool.free(cached)  # all three free, block 1 next in line
    tables = PageTables(pool, 2)
    assert tables.allocate("a", [1, 0], hits=[[], [NULL, 1]]) == [[2], []]
    assert tables.tables["a"] == [[2], [NULL, 1]] and evicted == [2]


def test_exhaustion_leaves_pool_and_tables_as_they_were():
    pool = BlockPool(5)
    cached = pool.allocate(3)
    pool.register(cached)
    pool.free(cached)
    tables = PageTables(pool, 2)
    before = contents(pool)
    with pytest.raises(PoolExhausted, match="3 blocks asked for, 2 are free besides the 2 that"):
        tables.allocate("a", [2, 1], hits=[cached[:2], [cached[0]]])
    assert contents(pool) == before and tables.tables == {}
    tables.allocate("a", [1, 1], hits=[cached[:2], [cached[0]]])


def test_a_released_request_gives_back_the_tail_of_each_chain_first():
    pool = BlockPool(10)
    tables = PageTables(pool, 2)
    tables.allocate("a", [3, 2])
    pool.register(range(1, 6))
    tables.release("a")
    assert list(pool._cached) == [3, 2, 1, 5, 4]


def test_copy_on_write():
    pool = BlockPool(6)
    tables = PageTables(pool, 1)
    tables.allocate("a", [2])
    assert tables.writable("a", 0, 1) == (2, None)
    tables.fork("a", "b")
    assert tables.tables["b"] == [[1, 2]]
    assert tables.writable("b", 0, 1) == (3, 2)
    assert tables.tables == {"a": [[1, 2]], "b": [[1, 3]]} and pool.references[:4] == [0, 2, 1, 1]
    pool.register([2])
    assert tables.writable("a", 0, 1) == (4, 2)  # what a hash names must not change
    assert pool.is_findable(2) and pool.references[2] == 0


def test_tables_refuse_what_makes_no_sense():
    tables = PageTables(BlockPool(6), 2)
    tables.allocate("a", [1, 1])
    for spoil, message in [
        (lambda: tables.allocate("a", [1]), "one entry for each of the 2 groups"),
        (lambda: tables.allocate("a", [0, 0], hits=[[], []]), "'a' is already running; hits are for a new"),
        (lambda: tables.allocate("b", [2, -1]), r"counts is \[2, -1\]"),
        (lambda: tables.allocate("b", [0, 0], hits=[[5], []]), "block 5 is neither in use nor findable"),
        (lambda: tables.fork("a", "a"), "'a' is already running"),
        (lambda: tables.release("z"), "'z' is not running"),
        (lambda: PageTables(BlockPool(2), 0), "groups is 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            spoil()
    assert tables.tables == {"a": [[1], [2]]} and tables.pool.free_blocks == 3


class TablesMachine(RuleBasedStateMachine):
    """Requests that arrive, grow, fork, write, shrink and leave over a small pool."""

    def __init__(self):
        super().__init__()
        self.pool = BlockPool(12)
        self.tables = PageTables(self.pool, 2)

    def some(self, data):
        return data.draw(st.sampled_from(sorted(self.tables.tables))) if self.tables.tables else None

    @rule(request=st.integers(0, 4), first=st.integers(0, 6), second=st.integers(0, 6))
    def allocate(self, request, first, second):
        before = contents(self.pool), {r: [list(t) for t in g] for r, g in self.tables.tables.items()}
        try:
            self.tables.allocate(request, [first, second])
        except PoolExhausted:
            assert first + second > self.pool.free_blocks
            assert before == (contents(self.pool), self.tables.tables)

    @rule(data=st.data(), request=st.integers(0, 4))
    def fork(self, data, request):
        source = self.some(data)
        if source is not None and request not in self.tables.tables:
            self.tables.fork(source, request)

    @rule(data=st.data())
    def write(self, data):
        request = self.some(data)
        if request is None:
            return
        group = data.draw(st.integers(0, 1))
        table = self.tables.tables[request][group]
        if table and self.pool.free_blocks:
            index = data.draw(st.integers(0, len(table) - 1))
            block, _ = self.tables.writable(request, group, index)
            assert self.pool.references[block] == 1 and table[index] == block

    @rule(data=st.data(), group=st.integers(0, 1), length=st.integers(0, 3))
    def truncate(self, data, group, length):
        request = self.some(data)
        if request is not None:
            self.tables.truncate(request, group, length)
            assert len(self.tables.tables[request][group]) <= length

    @rule(data=st.data())
    def release(self, data):
        request = self.some(data)
        if request is not None:
            self.tables.release(request)

    @invariant()
    def references_count_the_tables_that_hold_a_block(self):
        held = Counter(block for groups in self.tables.tables.values() for table in groups for block in table)
        assert [held[block] for block in range(12)] == self.pool.references


TablesMachine.TestCase.settings = MACHINE
TestTables = TablesMachine.TestCase


# --- bytes ---

STATE = StatePage(heads=4, dk=3, dv=5, columns=3)
ROWS = RowPage(tokens=12, width=10)


def test_a_state_written_to_a_page_is_read_back():
    rng = np.random.default_rng(0)
    storage = PageStorage(2, 3, max(STATE.nbytes, ROWS.nbytes))
    state = rng.normal(size=(4, 3, 5)).astype(np.float32)
    conv = rng.normal(size=(3, 4 * 11)).astype(np.float32)
    STATE.write(storage.page(1, 2), state, conv)
    read_state, read_conv = STATE.read(storage.page(1, 2))
    assert np.array_equal(read_state, state) and np.array_equal(read_conv, conv)
    assert not storage.data[0].any() and not storage.data[1, :2].any()


def test_a_page_read_as_the_other_kind_is_garbage():
    storage = PageStorage(1, 2, max(STATE.nbytes, ROWS.nbytes))
    state = np.arange(60, dtype=np.float32).reshape(4, 3, 5)
    STATE.write(storage.page(0, 1), state, np.zeros((3, 44), np.float32))
    rows = ROWS.view(storage.page(0, 1))
    assert rows[0].tolist() == list(range(10))  # head 0 of the state, posing as a token's row


def test_rows_are_gathered_across_blocks_in_order():
    storage = PageStorage(1, 4, ROWS.nbytes)
    rows = np.arange(300, dtype=np.float32).reshape(30, 10)
    storage.write_rows(ROWS, 0, [3, 1, 2], 0, rows[:17])
    storage.write_rows(ROWS, 0, [3, 1, 2], 17, rows[17:])
    assert np.array_equal(storage.rows(ROWS, 0, [3, 1, 2], 30), rows)
    assert np.array_equal(ROWS.view(storage.page(0, 1)), rows[12:24])


def test_copying_a_block_copies_every_tensor():
    storage = PageStorage(3, 3, 16)
    storage.data[:, 1] = np.arange(48).reshape(3, 16)
    storage.copy_block(1, 2)
    assert np.array_equal(storage.data[:, 2], storage.data[:, 1])
    with pytest.raises(ValueError, match="page_bytes is 0"):
        PageStorage(1, 1, 0)


@EXAMPLES
@given(st.sampled_from([(1, 8), (8, 1), (2, 8), (8, 2), (4, 4), (3, 4), (6, 4), (12, 8), (24, 1)]), st.data())
def test_a_state_moves_between_ranks_as_ranges_of_bytes(split, data):
    source_tp, target_tp = split
    page = StatePage(24, data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)), 3, "float32")
    whole = np.random.default_rng(1).integers(0, 256, page.nbytes).astype(np.uint8)
    ranks = {tp: [np.zeros(page.shard(tp).nbytes, np.uint8) for _ in range(tp)] for tp in split}
    apply_moves(relayout(page, 1, source_tp), [whole], ranks[source_tp])
    moves = relayout(page, source_tp, target_tp)
    targets = [np.zeros_like(rank) for rank in ranks[target_tp]]
    apply_moves(moves, ranks[source_tp], targets)
    heads = 24 // target_tp
    for rank, target in enumerate(targets):
        mine = slice(rank * heads, (rank + 1) * heads)
        for part, expected in zip(page.shard(target_tp).view(target), page.view(whole), strict=True):
            assert part.tobytes() == expected[mine].tobytes()
    for side in ("source", "target"):
        covered = sum(move.nbytes for move in moves)
        assert covered == page.nbytes
        starts = sorted((getattr(m, f"{side}_rank"), getattr(m, f"{side}_offset"), m.nbytes) for m in moves)
        assert all(a[0] < b[0] or a[1] + a[2] <= b[1] for a, b in zip(starts, starts[1:], strict=False))


def test_heads_that_a_rank_count_does_not_divide():
    with pytest.raises(ValueError, match="tp 3 does not divide heads 4"):
        relayout(STATE, 2, 3)

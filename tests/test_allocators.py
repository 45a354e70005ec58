"""Four allocators: nothing overlaps, moves keep what they move, refusals change nothing, everything comes back."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.allocators import (
    ROW_BLOCK,
    STEP_BYTES,
    FirstFit,
    Geometry,
    Refused,
    TwoEnds,
    TwoPools,
    UnifiedPool,
    Work,
)
from k3core.allocators.common import row_extents
from k3core.models import load
from k3core.sizing import Settings, make_layout, resolve

EXAMPLES = settings(max_examples=80, deadline=None, derandomize=True)
# Two bytes per token; a state is 1,500 bytes; a unified block of 1,024 tokens holds a third of one, with padding.
SMALL = Geometry(row_bytes=2, state_bytes=1500, block_tokens=1024, block_bytes=2048, groups=3)
MEMORY = 40_000
MAKERS = {
    "unified": lambda: UnifiedPool(SMALL, MEMORY), "two_pools": lambda: TwoPools(SMALL, MEMORY, 15_000),
    "first_fit": lambda: FirstFit(SMALL, MEMORY), "reserve": lambda: FirstFit(SMALL, MEMORY, reserve=True),
    "two_ends": lambda: TwoEnds(SMALL, MEMORY),
}
every_allocator = pytest.mark.parametrize("name", MAKERS)
# (what to do, which request, tokens, further tokens, states)
OPERATIONS = st.lists(st.tuples(st.sampled_from(("admit", "admit", "grow", "grow", "release")), st.integers(0, 5),
                                st.integers(1, 3000), st.integers(0, 3000), st.integers(0, 3)), max_size=40)


def contents(allocator):
    """All that an allocator knows, comparable."""
    pools = {name: (list(pool.references), list(pool._unused)) for name, pool in vars(allocator).items()
             if hasattr(pool, "references")}
    rest = {name: deepcopy(value) for name, value in vars(allocator).items() if name not in pools}
    return pools, rest


def assert_sound(allocator):
    """Extents lie inside the memory, none overlaps another, and none claims more data than it has room for."""
    extents = sorted((e.start, e.nbytes, e.used) for e in allocator.extents())
    end = 0
    for start, nbytes, used in extents:
        assert start >= end and 0 <= used <= nbytes
        end = start + nbytes
    assert end <= MEMORY


class Shadow:
    """A memory that is written and moved as the allocator says; every byte of a request must stay readable."""

    def __init__(self):
        self.memory = np.zeros(MEMORY, np.int64)

    def move(self, work: Work):
        for source, target, nbytes in work.moves:
            self.memory[target : target + nbytes] = self.memory[source : source + nbytes].copy()

    def write(self, extents, rows_from: int):
        """Write a request's rows from a byte position on, and its states, each byte a value of its own."""
        for values, place in self.bytes_of(extents, rows_from):
            self.memory[place] = values

    def check(self, allocator):
        for request in allocator.tokens:
            for values, place in self.bytes_of(allocator._extents(request), 0):
                assert (self.memory[place] == values).all()

    @staticmethod
    def bytes_of(extents, rows_from: int):
        done = {"rows": 0, "state": 0}
        for extent in extents:
            start = done[extent.kind]
            skip = max(0, min(extent.used, rows_from - start)) if extent.kind == "rows" else 0
            done[extent.kind] += extent.used
            tag = (extent.request + 1) * 10**7 + (5 * 10**6 if extent.kind == "state" else 0)
            yield (tag + np.arange(start + skip, start + extent.used),
                   slice(extent.start + skip, extent.start + extent.used))


@every_allocator
@given(OPERATIONS)
@EXAMPLES
def test_memory_stays_sound_and_moves_keep_what_they_move(name, operations):
    allocator, shadow = MAKERS[name](), Shadow()
    for action, request, tokens, more, slots in operations:
        running = request in allocator.tokens
        try:
            if action == "admit" and not running:
                allocator.admit(request, tokens, tokens + more, slots)
                shadow.write(allocator._extents(request), 0)
            elif action == "grow" and running:
                held = allocator.tokens[request]
                shadow.move(allocator.grow(request, min(allocator.final[request], held + more)))
                shadow.write([e for e in allocator._extents(request) if e.kind == "rows"], held * SMALL.row_bytes)
            elif action == "release" and running:
                shadow.move(allocator.release(request))
        except Refused:
            pass
        assert_sound(allocator)
        assert sum(e.nbytes for e in allocator.extents()) + allocator.free_bytes() == MAKERS[name]().free_bytes()
        shadow.check(allocator)
    for request in list(allocator.tokens):
        shadow.move(allocator.release(request))
        shadow.check(allocator)
    fresh = MAKERS[name]()
    assert not allocator.extents() and allocator.free_bytes() == fresh.free_bytes()
    whole = next(size for size in range(60_000, 0, -500) if fresh.can_ever(size, 1))
    allocator.admit(99, whole, whole, 1)  # as much as into a memory that was never used


@every_allocator
@given(OPERATIONS)
@EXAMPLES
def test_a_refusal_changes_nothing_and_what_is_promised_is_kept(name, operations):
    allocator = MAKERS[name]()
    for action, request, tokens, more, slots in operations:
        before = contents(allocator)
        running = request in allocator.tokens
        if action == "admit" and not running:
            try:
                allocator.admit(request, tokens, tokens + more, slots)
            except Refused:
                assert contents(allocator) == before
        elif action == "grow" and running:
            try:
                allocator.grow(request, allocator.final[request])
            except Refused:
                assert name == "first_fit"  # only contiguous memory cannot promise a length
                assert contents(allocator) == before
        elif action == "release" and running:
            allocator.release(request)


@every_allocator
@given(OPERATIONS)
@EXAMPLES
def test_only_contiguous_and_compacted_memory_moves_anything(name, operations):
    allocator, moved = MAKERS[name](), 0
    for action, request, tokens, more, slots in operations:
        running = request in allocator.tokens
        try:
            if action == "admit" and not running:
                work = allocator.admit(request, tokens, tokens + more, slots)
                assert work.moved == 0
            elif action == "grow" and running:
                work = allocator.grow(request, allocator.final[request])
                assert work.moved == 0 or name == "first_fit"
            elif action == "release" and running:
                work = allocator.release(request)
                assert work.moved == 0 or name == "two_ends"
                moved += work.moved
        except Refused:
            pass
    assert moved == 0 or name == "two_ends"


# --- one at a time ----------------------------------------------------------------------------------------------


def test_a_k3_request_takes_seven_blocks_at_least():
    """TP8, fp8: 1 block of 1,536 rows and 2 states in each of 3 groups, 7 of 20.25 MiB (vLLM, mode align)."""
    model = load("kimi-k3")
    geometry = Geometry.of(make_layout(model, resolve(model, Settings(tp=8, kv_dtype="fp8", align=128))))
    assert (geometry.row_bytes, geometry.state_bytes) == (13_824, 69 * 814_080)
    pool = UnifiedPool(geometry, 100 * geometry.block_bytes)
    assert pool.admit(1, 12, 12, 2) == Work(7) and pool.release(1) == Work(7)


def test_two_streams_run_on_ten_slots_of_five():
    """sglang #36889: 10 slots, 5 per request, 2 streams although 8 were configured."""
    pools = TwoPools(SMALL, MEMORY, 10 * SMALL.state_bytes)
    assert pools.state_slots == 10
    for request in range(2):
        pools.admit(request, 100, 100, 5)
    with pytest.raises(Refused):
        pools.admit(2, 100, 100, 5)
    assert pools.row_pool.free_blocks > 20  # although rows are hardly used


def test_a_request_longer_than_the_memory_can_never_fit():
    for name, make in MAKERS.items():
        assert make().can_ever(1000, 1), name
        assert not make().can_ever(25_000, 1) and not make().can_ever(1000, 30), name


def test_holes_of_contiguous_memory_are_too_small_although_their_sum_is_not():
    memory = FirstFit(SMALL, 10 * 1024)
    for request in range(10):
        memory.admit(request, ROW_BLOCK, ROW_BLOCK, 0)
    for request in range(0, 10, 2):
        memory.release(request)
    assert memory.holes == [(start, 1024) for start in range(0, 10 * 1024, 2048)]
    assert memory.stranded(1.0) == 4 * 1024
    with pytest.raises(Refused, match="no hole is large enough"):
        memory.admit(10, 2 * ROW_BLOCK, 2 * ROW_BLOCK, 0)
    memory.release(1)
    assert memory.holes[0] == (0, 3072)  # holes that touch are one
    assert memory.admit(10, 2 * ROW_BLOCK, 2 * ROW_BLOCK, 0) == Work(1)


def test_rows_that_outgrow_their_extent_are_extended_or_moved():
    memory = FirstFit(SMALL, MEMORY)
    memory.admit(0, 512, 4096, 0)
    assert memory.grow(0, 512) == Work(0) and memory.grow(0, 1024) == Work(1)  # a hole follows
    memory.admit(1, 512, 512, 0)
    assert memory.grow(0, 1025) == Work(2, ((0, 3072, 2048),))
    assert memory.holes[0] == (0, 2048)


def test_a_hole_is_filled_with_the_object_at_the_end():
    region = TwoEnds(SMALL, MEMORY)
    for request in range(3):
        region.admit(request, 512, 512, 1)
    work = region.release(0)
    assert work.moves == ((2048, 0, 1024), (MEMORY - 4500, MEMORY - 1500, 1500)) and work.steps == 2
    assert region.release(1) == Work(2)  # the end of either side: nothing to fill
    assert [(e.kind, e.start) for e in region.extents()] == [("rows", 0), ("state", MEMORY - 1500)]


def test_what_one_static_pool_has_left_over_is_stranded():
    pools = TwoPools(SMALL, MEMORY, 15_000)  # 24 blocks of rows, 10 states
    pools.admit(0, 512, 512, 10)
    assert pools.free_bytes() == pools.stranded(0.5) == 23 * 1024
    assert UnifiedPool(SMALL, MEMORY).stranded(0.5) == TwoEnds(SMALL, MEMORY).stranded(0.5) == 0


def test_states_that_come_later():
    for make in MAKERS.values():
        allocator = make()
        allocator.admit(0, 100, 100, 0)
        assert allocator.add_states(0, 2).steps > 0 and allocator.slots[0] == 2
        with pytest.raises(Refused):
            allocator.admit(1, 100, 100, 30)


def test_work_adds_up():
    work = Work(3, ((0, 8, 4),)) + Work(1, ((8, 0, 6),))
    assert (work.steps, work.moved, work.touched) == (4, 10, 4 * STEP_BYTES + 20)


def test_neighbouring_blocks_are_one_extent():
    extents = row_extents(3, [20, 30, 10, 0], 10, 8, 5)
    assert extents == [(3, "rows", 20, 20, 16), (3, "rows", 10, 10, 8), (3, "rows", 0, 10, 5)]
    assert row_extents(3, [0, 10], 10, 10, 1) == [(3, "rows", 0, 20, 11)]


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda: TwoPools(SMALL, MEMORY, 1499), "state_memory is 1499"),
    (lambda: TwoPools(SMALL, MEMORY, MEMORY - 1023), "state_memory is 38977"),
    (lambda: [pool.admit(0, 1, 1, 1) for pool in [UnifiedPool(SMALL, MEMORY)] * 2], "request 0 is already running"),
])
def test_what_makes_no_sense_is_refused_with_a_sentence(spoil, message):
    with pytest.raises(ValueError, match=message):
        spoil()

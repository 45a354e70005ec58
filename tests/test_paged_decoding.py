"""The decoder on pages gives the bits of the decoder on plain arrays, whatever happens to the pool."""

import numpy as np
import pytest
from decoder_states import assert_same_state
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from k3core.decode import HybridDecoder
from k3core.paged_cache import PoolExhausted
from k3core.paged_cache.decoding import PagedDecoder

DECODER = HybridDecoder.random_k3(
    np.random.default_rng(3), layers=8, hidden=8, heads=2, key_dim=2, value_dim=3, vocab=16
)


def plain(ids):
    """Logits and state of the decoder on plain arrays."""
    return DECODER.prefill(ids)


def test_groups_and_pages_of_an_eight_layer_decoder():
    paged = PagedDecoder(DECODER, 10)
    assert paged.groups == [(3, 7), (0, 4), (1, 5), (2, 6)]
    assert paged.state_page.nbytes <= paged.row_page.nbytes
    with pytest.raises(ValueError, match="block_size is 1; a page needs"):
        PagedDecoder(DECODER, 10, block_size=1)
    with pytest.raises(ValueError, match="layers of both kinds"):
        PagedDecoder(HybridDecoder.random_k3(np.random.default_rng(0), layers=3), 10)


def test_prefill_and_steps_have_the_bits_of_plain_arrays():
    ids = np.random.default_rng(5).integers(0, 16, 40)
    paged = PagedDecoder(DECODER, 30)
    paged.start("a")
    logits = [paged.forward("a", ids[:7])] + [paged.forward("a", [token]) for token in ids[7:]]
    expected, state = plain(ids)
    assert np.array_equal(np.concatenate(logits), expected)
    assert_same_state(paged.states["a"], state)


def test_a_recycled_block_brings_nothing_along():
    """vllm #35219: bits of an earlier owner, read as attention or as a state, spread."""
    paged = PagedDecoder(DECODER, 12)
    paged.storage.data[:] = 0xFF  # every float a NaN
    paged.start("a")
    expected, state = plain([1, 2, 3])
    assert np.array_equal(paged.forward("a", [1, 2, 3]), expected)
    assert_same_state(paged.states["a"], state)


def test_exhaustion_is_refused_before_anything_changes():
    paged = PagedDecoder(DECODER, 5, block_size=4)
    paged.start("a")
    paged.forward("a", [1, 2, 3, 4])
    bytes_before, tables = paged.storage.data.copy(), [list(t) for t in paged.tables.tables["a"]]
    with pytest.raises(PoolExhausted, match="1 blocks needed for 1 more tokens, 0 are free"):
        paged.forward("a", [5])
    with pytest.raises(PoolExhausted):
        paged.start("b")
    assert np.array_equal(paged.storage.data, bytes_before) and paged.tables.tables == {"a": tables}
    assert_same_state(paged.states["a"], plain([1, 2, 3, 4])[1])


def test_a_fork_copies_only_what_is_written():
    paged = PagedDecoder(DECODER, 20, block_size=4)
    paged.start("a")
    paged.forward("a", [1, 2, 3, 4, 5])
    paged.fork("a", "b")
    used = paged.pool.usage
    paged.forward("b", [6])
    full, partial = paged.tables.tables["b"][0]
    assert full == paged.tables.tables["a"][0][0] and partial != paged.tables.tables["a"][0][1]
    assert paged.pool.usage == pytest.approx(used + 4 / 19)  # the partial block, 3 states
    assert_same_state(paged.states["a"], plain([1, 2, 3, 4, 5])[1])
    assert_same_state(paged.states["b"], plain([1, 2, 3, 4, 5, 6])[1])


class DecodingMachine(RuleBasedStateMachine):
    """Requests start, read, fork, are preempted and end; each has a twin on plain arrays."""

    def __init__(self):
        super().__init__()
        self.paged = PagedDecoder(DECODER, 21, block_size=4)
        self.read: dict[int, list[int]] = {}
        self.twins: dict = {}

    def some(self, data):
        return data.draw(st.sampled_from(sorted(self.read))) if self.read else None

    @rule(request=st.integers(0, 4), ids=st.lists(st.integers(0, 15), min_size=1, max_size=6))
    def read_more(self, request, ids):
        try:
            if request not in self.read:
                self.paged.start(request)
                self.read[request], self.twins[request] = [], DECODER.new_state()
            logits = self.paged.forward(request, ids)
        except PoolExhausted:
            return
        assert np.array_equal(logits, DECODER.forward(ids, self.twins[request]))
        self.read[request] += ids

    @rule(data=st.data(), new=st.integers(0, 4))
    def fork(self, data, new):
        source = self.some(data)
        if source is not None and new not in self.read:
            self.paged.fork(source, new)
            self.read[new], self.twins[new] = list(self.read[source]), self.twins[source].copy()

    @rule(data=st.data())
    def preempt_and_read_again(self, data):
        request = self.some(data)
        if request is None:
            return
        self.paged.release(request)
        ids, twin = self.read.pop(request), self.twins.pop(request)
        try:
            self.paged.start(request)
            self.read[request], self.twins[request] = [], DECODER.new_state()
            if ids:
                self.paged.forward(request, ids)
                self.read[request], self.twins[request] = ids, twin
        except PoolExhausted:
            pass

    @rule(data=st.data())
    def end(self, data):
        request = self.some(data)
        if request is not None:
            self.paged.release(request)
            del self.read[request], self.twins[request]

    @invariant()
    def every_request_remembers_what_its_twin_remembers(self):
        for request, twin in self.twins.items():
            assert_same_state(self.paged.states[request], twin)


DecodingMachine.TestCase.settings = hypothesis_settings(
    max_examples=30, stateful_step_count=25, deadline=None, derandomize=True)
TestDecoding = DecodingMachine.TestCase

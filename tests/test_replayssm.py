"""State stores, ring and replay against plain decoding."""

from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core import replayssm
from k3core.decode import HybridDecoder, NoisyOracle, PromptLookup, Speculation
from k3core.kda import KDATokens, gate_lower_bound, kda_recurrent, l2norm
from k3core.replayssm import Checkpoint, CorrectedStore, ProjectionStore, RingStore, SnapshotStore

STORES = [SnapshotStore, ProjectionStore, CorrectedStore, RingStore]
EXACT_STORES = [SnapshotStore, ProjectionStore]
PROMPT, N = [1, 2, 3, 1, 2, 3], 40


@cache
def decoder(dtype=np.float64):
    return HybridDecoder.random_k3(np.random.default_rng(0), layers=4, vocab=24, dtype=dtype)


@cache
def plain(dtype=np.float64):
    """N tokens of plain greedy decoding, and the decoder state that has read all but the last."""
    tokens = decoder(dtype).generate(PROMPT, N)
    return tokens, decoder(dtype).prefill(PROMPT + tokens[:-1])[1]


class Scripted:
    """Drafts that are right for as many tokens as the script says, then wrong; the script repeats."""

    def __init__(self, truth, script):
        self.truth, self.script, self.calls = truth, script, 0

    def propose(self, ids, n):
        right = self.script[self.calls % len(self.script)]
        self.calls += 1
        drafts = self.truth[len(ids) : len(ids) + n]
        return [t if i < right else (t + 1) % 24 for i, t in enumerate(drafts)]


def draw_tokens(rng, T, HV=2, dk=6, dv=4, dtype=np.float64):
    k = l2norm(rng.standard_normal((T, HV, dk)))
    g = 0.2 * gate_lower_bound(rng.standard_normal((T, HV, dk)), np.zeros(HV))
    arrays = k, k, rng.standard_normal((T, HV, dv)), g, rng.random((T, HV)), rng.standard_normal((T, 3))
    return KDATokens(*(x.astype(dtype) for x in arrays))


def take(tokens, start, stop):
    return KDATokens(*(x[start:stop] for x in tokens))


# --- speculative decoding ---


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    store=st.sampled_from(STORES), num_drafts=st.integers(0, 7), buffer=st.integers(8, 20),
    script=st.lists(st.integers(0, 7), min_size=1, max_size=6),
)  # fmt: skip
def test_speculative_output_equals_plain_output(store, num_drafts, buffer, script):
    tokens, state = plain()
    make = partial(RingStore, buffer=buffer) if store is RingStore else store
    speculation = Speculation(decoder(), PROMPT, Scripted(PROMPT + tokens, script), make, num_drafts)
    rounds = speculation.run(N)
    assert speculation.tokens == tokens
    assert min(r.margin for r in rounds) > 1e-9  # so that rounding cannot have decided anything
    assert speculation.state.length == state.length == len(PROMPT) + N - 1
    references = [m for m in state.memories if hasattr(m, "state")]
    for ours, reference in zip(speculation.stores, references):
        np.testing.assert_array_equal(ours.conv.shape, reference.conv.shape)
        if store in EXACT_STORES:
            np.testing.assert_array_equal(ours.state, reference.state)
            np.testing.assert_array_equal(ours.conv, reference.conv)
        else:
            np.testing.assert_allclose(ours.state, reference.state, rtol=0, atol=1e-12)
            np.testing.assert_allclose(ours.conv, reference.conv, rtol=0, atol=1e-10)


@pytest.mark.parametrize("store", EXACT_STORES)
@pytest.mark.parametrize("draft", ["lookup", "oracle"])
def test_exact_stores_keep_the_bits_in_float32(store, draft):
    tokens, state = plain(np.float32)
    if draft == "lookup":
        guesses = PromptLookup()
    else:
        guesses = NoisyOracle(PROMPT + tokens, 0.6, 24, np.random.default_rng(7))
    speculation = Speculation(decoder(np.float32), PROMPT, guesses, store, num_drafts=4)
    speculation.run(N)
    assert speculation.tokens == tokens
    for ours, reference in zip(speculation.state.memories, state.memories):
        if hasattr(reference, "rows"):
            np.testing.assert_array_equal(ours.rows, reference.rows)
        else:
            np.testing.assert_array_equal(ours.state, reference.state)
            np.testing.assert_array_equal(ours.conv, reference.conv)


@pytest.mark.parametrize("store", STORES)
def test_fast_mode_gives_the_same_text(store):
    tokens, _ = plain()
    fast = HybridDecoder.random_k3(np.random.default_rng(0), layers=4, vocab=24, exact=False)
    speculation = Speculation(fast, PROMPT, Scripted(PROMPT + tokens, [2, 0, 3]), store, num_drafts=3)
    assert min(r.margin for r in speculation.run(N)) > 1e-9
    assert speculation.tokens == tokens


def test_right_drafts_save_rounds():
    tokens, _ = plain()
    speculation = Speculation(decoder(), PROMPT, Scripted(PROMPT + tokens, [3]), ProjectionStore, 3)
    assert len(speculation.run(N)) == 10  # 39 tokens after the first, 4 a round
    speculation = Speculation(decoder(), PROMPT, Scripted(PROMPT + tokens, [0]), ProjectionStore, 3)
    assert len(speculation.run(N)) == 39


# --- the stores alone ---


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    store=st.sampled_from(STORES), window=st.integers(1, 6), seed=st.integers(0, 99),
    steps=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), max_size=25),
)  # fmt: skip
def test_stores_follow_the_recurrence(store, window, seed, steps):
    rng = np.random.default_rng(seed)
    state, conv = rng.standard_normal((2, 6, 4)), rng.standard_normal((3, 3))
    memory = store(state, conv, window)
    for T, accepted in steps:
        T = min(T, window)
        accepted = min(accepted, T)
        tokens = draw_tokens(rng, T)
        o = memory.advance(tokens)
        expected, _ = kda_recurrent(*tokens[:5], state)
        _, state = kda_recurrent(*take(tokens, 0, accepted)[:5], state)
        np.testing.assert_allclose(o, expected, atol=1e-12)
        memory.commit(accepted)
        conv = np.concatenate([conv, tokens.conv_inputs[:accepted]])[-3:]
        np.testing.assert_array_equal(memory.conv, conv)
        np.testing.assert_allclose(memory.state, state, atol=1e-12)
        if store in EXACT_STORES:
            np.testing.assert_array_equal(memory.state, state)


def test_stores_take_fewer_key_heads_than_value_heads():
    rng = np.random.default_rng(1)
    tokens = draw_tokens(rng, 3, HV=4)
    tokens = tokens._replace(q=tokens.q[:, :2], k=tokens.k[:, :2])
    state = rng.standard_normal((4, 6, 4))
    _, expected = kda_recurrent(*take(tokens, 0, 2)[:5], state)
    for store in STORES:
        memory = store(state, np.zeros((3, 3)), 3)
        memory.advance(tokens)
        memory.commit(2)
        np.testing.assert_allclose(memory.state, expected, atol=1e-14)


def test_corrected_records_of_one_token_fold_to_the_bit():
    tokens = draw_tokens(np.random.default_rng(2), 30, dtype=np.float32)
    memory = CorrectedStore(np.zeros((2, 6, 4), np.float32), np.zeros((3, 3), np.float32), 1)
    for t in range(30):
        memory.advance(take(tokens, t, t + 1))
        memory.commit(1)
    np.testing.assert_array_equal(memory.state, kda_recurrent(*tokens[:5])[1])


def test_bytes_held_are_records_not_states():
    state, conv = np.zeros((1, 16, 16), np.float32), np.zeros((3, 48), np.float32)
    held = {s: sum(a.nbytes for a in s(state, conv, 4).held().values()) for s in STORES}
    assert held[SnapshotStore] == 4 * 1024
    assert held[ProjectionStore] + 4 * 48 * 4 == 1552  # 4 records of 97 values with their convolution inputs
    assert held[CorrectedStore] == 4 * 48 * 4
    assert held[RingStore] == 32 * 48 * 4  # capacity 20, slots 32


# --- the ring ---


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    window=st.integers(1, 8), extra=st.integers(0, 12), seed=st.integers(0, 99),
    accepted=st.lists(st.integers(1, 8), min_size=1, max_size=60),
)  # fmt: skip
def test_ring_never_overfills_or_allocates(window, extra, seed, accepted):
    buffer = window + extra
    rng = np.random.default_rng(seed)
    ring = RingStore(np.zeros((1, 3, 2)), np.zeros((3, 3)), window, buffer)
    arrays = [ring.checkpoint, ring.conv_rows, *ring.held().values()]
    assert ring.capacity == buffer + window <= ring.slots < 2 * ring.capacity
    assert ring.slots & (ring.slots - 1) == 0
    for a in accepted:
        assert ring.write_pos + window <= ring.capacity
        before = ring.base, ring.write_pos, ring.checkpoint.copy()
        flushing = ring.write_pos + 2 * window > buffer + window
        ring.advance(draw_tokens(rng, window, HV=1, dk=3, dv=2))
        a = min(a, window)
        ring.commit(a)
        if flushing:
            assert (ring.base, ring.write_pos) == ((before[0] + before[1]) % ring.slots, a)
        else:  # rolling back is the cursor: nothing else moves
            assert (ring.base, ring.write_pos) == (before[0], before[1] + a)
            np.testing.assert_array_equal(ring.checkpoint, before[2])
    assert all(a is b for a, b in zip(arrays, [ring.checkpoint, ring.conv_rows, *ring.held().values()]))


def test_ring_size_of_the_fork():
    ring = RingStore(np.zeros((1, 3, 2)), np.zeros((3, 3)), window=4, buffer=16)
    assert (ring.capacity, ring.slots) == (20, 32)


# --- replay ---


def straight(tokens, state=None):
    """The state after each token of plain recurrence: {tokens read: state}."""
    states = {}
    for t in range(len(tokens.v)):
        _, state = kda_recurrent(*take(tokens, t, t + 1)[:5], state)
        states[t + 1] = state
    return states


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), T=st.integers(1, 12), dtype=st.sampled_from([np.float32, np.float64]))
def test_replay_from_any_checkpoint_and_any_arrival_is_bit_equal(data, T, dtype):
    tokens = draw_tokens(np.random.default_rng(T), T, dtype=dtype)
    states = {0: np.zeros((2, 6, 4), dtype)} | straight(tokens)
    records = replayssm.make_records(*tokens[1:5])
    arrivals = data.draw(st.permutations(records)) + data.draw(st.lists(st.sampled_from(records), max_size=5))
    start = data.draw(st.integers(0, T))
    replay = replayssm.verify_and_replay(Checkpoint(start, states[start]), arrivals, claims=states)
    assert replay.seq == T and replay.detected_at is None
    assert len(replay.unused) == len(arrivals) - (T - start)
    np.testing.assert_array_equal(replay.state, states[T])
    lost = data.draw(st.integers(0, T - 1))
    partly = replayssm.verify_and_replay(Checkpoint(0, states[0]), [r for r in arrivals if r.seq != lost])
    assert partly.seq == lost  # a gap is not jumped
    np.testing.assert_array_equal(partly.state, states[lost])


def test_a_deviation_is_noticed_where_it_begins_and_does_not_spread():
    tokens = draw_tokens(np.random.default_rng(3), 10)
    states = straight(tokens)
    wrong = {seq: state + (1e-3 if seq >= 6 else 0) for seq, state in states.items()}
    records = replayssm.make_records(*tokens[1:5])
    replay = replayssm.verify_and_replay(Checkpoint(0, np.zeros((2, 6, 4))), records, wrong, tolerance=1e-9)
    assert replay.detected_at == 6
    assert all(replay.deviations[seq] == 0 for seq in range(1, 6))
    assert all(replay.deviations[seq] == pytest.approx(1e-3) for seq in range(6, 11))
    np.testing.assert_array_equal(replay.state, states[10])
    spoiled = {3: np.full((2, 6, 4), np.nan)}
    assert replayssm.verify_and_replay(Checkpoint(0, np.zeros((2, 6, 4))), records, spoiled).detected_at == 3


def test_replay_numbers_records_from_where_they_start():
    tokens = draw_tokens(np.random.default_rng(4), 6)
    states = straight(tokens)
    records = replayssm.make_records(*take(tokens, 4, 6)[1:5], first=4)
    replay = replayssm.verify_and_replay(Checkpoint(4, states[4]), records)
    np.testing.assert_array_equal(replay.state, states[6])


# --- what breaks it, put in from outside ---


class ForgetsConv(ProjectionStore):
    def shift_conv(self, accepted):
        pass


class ReplaysTwice(ProjectionStore):
    def replayed(self, accepted):
        return [0, *range(accepted)]


class AdvancesByDrafted(Speculation):
    def count_to_keep(self, round):
        return 1 + len(round.drafted)


class FlushesLate(RingStore):
    def must_flush(self):
        return self.write_pos + self.window > self.capacity


@pytest.mark.parametrize(
    "speculation, store",
    [
        (Speculation, ForgetsConv),
        (Speculation, ReplaysTwice),
        (AdvancesByDrafted, ProjectionStore),
        (Speculation, partial(FlushesLate, buffer=12)),  # capacity 16 = slots: no slack to hide in
    ],
)
def test_breakers_break(speculation, store):
    tokens, state = plain()
    broken = speculation(decoder(), PROMPT, Scripted(PROMPT + tokens, [1, 2, 0]), store, num_drafts=3)
    while len(broken.tokens) < N:
        broken.commit(broken.verify())
    reference = [m for m in state.memories if hasattr(m, "state")]
    off = max(float(np.abs(ours.state - r.state).max()) for ours, r in zip(broken.stores, reference))
    assert broken.tokens[:N] != tokens or off > 1e-3


# --- bad input ---


def test_bad_use_is_named():
    state, conv = np.zeros((2, 6, 4)), np.zeros((3, 3))
    with pytest.raises(ValueError, match="window must be at least 1"):
        SnapshotStore(state, conv, 0)
    with pytest.raises(ValueError, match="buffer must be at least the window of 4"):
        RingStore(state, conv, 4, buffer=3)
    memory = ProjectionStore(state, conv, 2)
    tokens = draw_tokens(np.random.default_rng(5), 3)
    with pytest.raises(ValueError, match="1 to 2 tokens, not 3"):
        memory.advance(tokens)
    with pytest.raises(ValueError, match="accepted must be 1 to 0"):
        memory.commit(1)
    memory.advance(take(tokens, 0, 2))
    with pytest.raises(ValueError, match="commit the last window"):
        memory.advance(take(tokens, 0, 2))
    for accepted in (0, 3):
        with pytest.raises(ValueError, match="accepted must be 1 to 2"):
            memory.commit(accepted)

"""The tiny model decodes the same text with the same state, however it was interrupted, drafted, paged or cached."""

from functools import cache
from itertools import islice

import numpy as np
import pytest
from decoder_states import assert_same_state

from k3core.decode import Greedy, Gumbel, NoisyOracle, PromptLookup, Speculation, decode, encode, tiny_model
from k3core.paged_cache.decoding import PagedDecoder
from k3core.prefix_cache import read_policy
from k3core.prefix_cache.serving import CachedDecoder
from k3core.replayssm import CorrectedStore, ProjectionStore, RingStore, SnapshotStore

PROMPT = encode("class Queue:\n    def put(self, item):\n        self.items.append(item)\n\n    def get(self):\n")
N = 48
SAMPLERS = {"greedy": Greedy(), "cool": Gumbel(3, 0.5), "warm": Gumbel(4, 1.0)}
samplers = pytest.mark.parametrize("name", SAMPLERS)


@cache
def plain(name):
    """(the new tokens of plain decoding, the state that has read all of them but the last)."""
    state = tiny_model().new_state()
    return list(islice(tiny_model().stream(PROMPT, state, SAMPLERS[name]), N)), state


def test_the_three_texts_differ_and_are_not_one_token():
    """Otherwise the tests here would compare nothing."""
    texts = {name: plain(name)[0] for name in SAMPLERS}
    assert len({tuple(text) for text in texts.values()}) == 3
    assert all(len(set(text)) > 5 for text in texts.values())
    assert texts["greedy"] == tiny_model().generate(PROMPT, N)


@samplers
@pytest.mark.parametrize("cut", [1, 17, N - 1])
def test_resumed_from_a_copy_of_the_state(name, cut):
    tokens, reference = plain(name)
    state = tiny_model().new_state()
    first = list(islice(tiny_model().stream(PROMPT, state, SAMPLERS[name]), cut))
    kept = state.copy()
    tiny_model().forward(encode("something else"), state)
    rest = list(islice(tiny_model().stream(first[-1:], kept, SAMPLERS[name]), N - cut))
    assert first + rest == tokens
    assert_same_state(kept, reference)


@samplers
@pytest.mark.parametrize("cut", [1, 40, len(PROMPT) + 20])
def test_read_again_in_other_pieces(name, cut):
    """A preempted request reads its prompt and its own answer again, however the reading is cut."""
    tokens, reference = plain(name)
    known, state = PROMPT + tokens[:30], tiny_model().new_state()
    tiny_model().forward(known[:cut], state)
    assert list(islice(tiny_model().stream(known[cut:], state, SAMPLERS[name]), N - 30)) == tokens[30:]
    assert_same_state(state, reference)


@samplers
@pytest.mark.parametrize("store", [SnapshotStore, ProjectionStore, CorrectedStore, RingStore])
def test_replayed_in_every_store(name, store):
    tokens, reference = plain(name)
    oracle = NoisyOracle(PROMPT + tokens, 0.7, 128, np.random.default_rng(1))
    rounds = {}
    for draft in (oracle, PromptLookup()):
        speculation = Speculation(tiny_model(), PROMPT, draft, store, 3, SAMPLERS[name])
        rounds[draft] = speculation.run(N)
        assert speculation.tokens == tokens
        if store in (SnapshotStore, ProjectionStore):
            assert_same_state(speculation.state, reference)
        else:  # sums in another order: close, and by the margin no other choice was near
            for kind, mine, theirs in zip(
                tiny_model().config.layers, speculation.state.memories, reference.memories
            ):
                if kind == "kda":
                    assert np.abs(mine.state - theirs.state).max() < 1e-4
            assert min(r.margin for r in rounds[draft]) > 1e-3
    assert 0 < sum(r.accepted for r in rounds[oracle]) < sum(len(r.drafted) for r in rounds[oracle])


@samplers
def test_paged(name):
    tokens, reference = plain(name)
    paged = PagedDecoder(tiny_model(), 24)
    paged.storage.data[:] = 0xFF  # every float a NaN
    paged.start("a")
    position, last, answer = 0, PROMPT, []
    while len(answer) < N:
        logits = paged.forward("a", last)[-1]
        position += len(last)
        answer.append(SAMPLERS[name].choose(logits, position))
        last = answer[-1:]
        if len(answer) == 20:  # goes on as a fork whose blocks are copied when written
            paged.fork("a", "b")
    assert answer == tokens
    assert_same_state(paged.states["a"], reference)
    assert paged.forward("b", answer[19:20])[-1].argmax() == paged.decoder.logits(PROMPT + answer[:20])[-1].argmax()


@samplers
@pytest.mark.parametrize("policy", ["dense", "align", "marconi"])
def test_hit_at_a_checkpoint(name, policy):
    tokens, reference = plain(name)
    server = CachedDecoder(tiny_model(), 60, 96, 12, read_policy(policy))
    assert server.generate("first", PROMPT, N, sampler=SAMPLERS[name]) == tokens
    known = PROMPT + tokens[:-1]
    hit = server.start("again", known).tokens
    assert hit > 0
    server.forward("again", known[hit:])
    assert_same_state(server.states["again"], reference)
    server.release("again")
    assert server.generate("third", PROMPT, N, sampler=SAMPLERS[name]) == tokens


def test_text_is_python_like():
    text = decode(plain("greedy")[0])
    assert all(c == "\n" or c.isprintable() for c in text) and " " in text

"""The decoder on the prefix cache: a request that resumes has the bits of one that read everything."""

import numpy as np
import pytest
from decoder_states import assert_same_state
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from k3core.decode import HybridDecoder
from k3core.paged_cache import PoolExhausted
from k3core.prefix_cache import Extra, Rules, read_policy
from k3core.prefix_cache.serving import CachedDecoder

DECODER = HybridDecoder.random_k3(
    np.random.default_rng(8), layers=8, hidden=8, heads=2, key_dim=2, value_dim=3, vocab=16)
PAGE, BLOCK = 12, 4


def make(blocks=60, policy="dense", **options):
    return CachedDecoder(DECODER, blocks, PAGE, BLOCK, read_policy(policy), **options)


def ids(count, seed=0):
    return np.random.default_rng(seed).integers(0, 16, count)


def resumed_like_new(server, prompt, extra=None, request="probe"):
    """Whether a request for this prompt gets the logits and states of plain decoding; also its hit."""
    hit = server.start(request, prompt, extra).tokens
    logits = server.forward(request, prompt[hit:])
    expected, state = DECODER.prefill(prompt)
    right = np.array_equal(logits, expected[hit:])
    if right:
        assert_same_state(server.states[request], state)
    server.release(request)
    return right, hit


@pytest.mark.parametrize("policy", ["dense", "align", "align+8", "marconi", "marconi+8", "retain:0", "retain:8"])
@pytest.mark.parametrize("options", [{}, {"decode": True}, {"decode": True, "recycle": True}], ids=str)
def test_a_conversation_of_three_turns(policy, options):
    server, prompt, hits = make(policy=policy, **options), list(ids(30)), []
    for turn in range(3):
        answer = server.generate(turn, prompt, 7)
        assert answer == DECODER.generate(prompt, 7)
        prompt += answer + list(ids(6, seed=turn))
        right, hit = resumed_like_new(server, prompt)
        assert right
        hits.append(hit)
    assert 0 < hits[0] < hits[1] < hits[2]


def test_the_answer_is_not_all_one_token():
    """Otherwise the tests here would compare nothing."""
    assert len(set(DECODER.generate(list(ids(30)), 12))) > 3


@pytest.mark.parametrize("tokens", range(1, 30))
def test_c15_the_same_prompt_again_whatever_its_length(tokens):
    """LMCache #5249: on a full hit the last token was applied to the state twice."""
    server, prompt = make(), ids(tokens)
    server.generate("first", prompt, 2)
    right, hit = resumed_like_new(server, prompt)
    assert right and hit == (tokens - 1) // BLOCK * BLOCK


def test_c8_c14_c21_c22_rows_whose_state_is_gone_are_not_used():
    """vllm #43090, LMCache #2845, omlx #2496, ATOM #1759: rows restored, state empty: silent wrong output."""
    server, prompt = make(policy="align"), ids(30)
    server.generate("first", prompt, 2)
    [entry] = server.cache.checkpoints
    server.cache.evict(entry.blocks[1])
    assert resumed_like_new(server, prompt) == (True, 0)
    assert resumed_like_new(server, prompt) == (True, 28)


def test_c11_a_page_found_at_few_tokens_goes_on_filling():
    """vllm #52972: the old name of a part of the page. Its owner writes on, others resume at every position."""
    server, prompt = make(decode=True), ids(23)
    server.start("owner", prompt[:5])
    server.forward("owner", prompt[:5])
    for position in range(5, 23):
        right, hit = resumed_like_new(server, prompt[:position])
        assert right and hit == (position - 1) // BLOCK * BLOCK
        server.forward("owner", prompt[position : position + 1])
    server.release("owner")
    assert resumed_like_new(server, prompt) == (True, 20)


def test_c10_c12_nothing_of_an_earlier_owner_is_read():
    """vllm #35219: bits of a state read as rows. Every byte of every block but the null block is a NaN's."""
    server, prompt = make(), ids(30)
    server.storage.data[:, 1:] = 0xFF
    assert resumed_like_new(server, prompt) == (True, 0)
    assert resumed_like_new(server, prompt) == (True, 28)


def test_c16_c19_a_checkpoint_does_not_change_when_the_request_goes_on():
    """sglang #30243, FreeToken #287: slots given away while writes were still coming."""
    server, prompt = make(), ids(40)
    server.start("a", prompt)
    server.forward("a", prompt[:9])
    copies = {entry.link.end: [server.storage.data[:, block].copy() for block in entry.blocks]
              for entry in server.cache.checkpoints}
    server.forward("a", prompt[9:])
    assert sorted(copies) == [4, 8]
    for entry in server.cache.checkpoints:
        for before, block in zip(copies.get(entry.link.end, ()), entry.blocks):
            assert np.array_equal(before, server.storage.data[:, block])
    assert resumed_like_new(server, prompt[:11]) == (True, 8)


def test_d3_salt_and_adapter_keep_requests_apart():
    server, prompt = make(), ids(30)
    for extra in (None, Extra(salt="a"), Extra(adapter="a")):
        assert resumed_like_new(server, prompt, extra) == (True, 0)
        assert resumed_like_new(server, prompt, extra) == (True, 28)


# --- what goes wrong without a rule, and not with it ---


def unwritten_state(server):
    """C5, vllm #56525: scheduled, aborted by the client before it ran, and sent again."""
    prompt = ids(30)
    server.cache.start("aborted", prompt)
    server.cache.landed("aborted")
    server.cache.plan("aborted", 30)
    server.cache.release("aborted")
    return resumed_like_new(server, prompt)


def same_step(server):
    """C6, vllm #38715, #42359: two requests of one batch, the second found what the first was to write."""
    prompt = ids(30)
    server.start("a", prompt)
    server.cache.plan("a", 4)
    hit = server.start("b", prompt).tokens
    logits = server.forward("b", prompt[hit:])
    return np.array_equal(logits, DECODER.logits(prompt)[hit:]), hit


def evicted_while_hit(server):
    """C7, vllm #33775: taking a block for one group evicted what the next group had hit."""
    prompt = ids(30)
    server.generate("first", prompt, 1)
    pool, cached = server.pool, server.cache
    entry = cached.checkpoints.find(cached_link(server, prompt, 28))
    order = [entry.blocks[2], *(block for block in range(1, pool.num_blocks) if pool.is_findable(block)
                                and block != entry.blocks[2])]
    for block in order:  # the last group's state is the next to go
        pool.touch([block])
        pool.free([block])
    pool.allocate(pool.free_blocks - len(order))  # nothing is left unused
    return resumed_like_new(server, prompt)


def one_part_gone(server):
    """Report section 5.4.1: one group's part of a checkpoint evicted and its block used for something else."""
    prompt = ids(30)
    server.generate("first", prompt, 1)
    entry = server.cache.checkpoints.find(cached_link(server, prompt, 28))
    server.cache.evict(entry.blocks[1])
    while server.pool.references[entry.blocks[1]] == 0:
        server.start(object(), ids(1, seed=99))
    return resumed_like_new(server, prompt)


def cached_link(server, prompt, end):
    return next(entry.link for entry in server.cache.checkpoints if entry.link.end == end)


@pytest.mark.parametrize(("story", "rule", "wrong_hit", "right_hit"), [
    (unwritten_state, "publish_on_commit", 4, 0), (same_step, "publish_on_commit", 4, 0),
    (evicted_while_hit, "pin_first", 28, 28), (one_part_gone, "evict_together", 28, 24),
])  # fmt: skip
def test_c5_c6_c7_wrong_output_without_a_rule_and_right_output_with_it(story, rule, wrong_hit, right_hit):
    assert story(make()) == (True, right_hit)
    assert story(make(rules=Rules(**{rule: False}))) == (False, wrong_hit)


# --- random lives ---


class ServingMachine(RuleBasedStateMachine):
    """Requests start, go on, fork, are preempted and end; each has a twin that reads everything, on plain arrays."""

    @initialize(policy=st.sampled_from(["dense", "align+8", "marconi", "retain:0"]), decode=st.booleans())
    def build(self, policy, decode):
        self.server = make(30, policy, decode=decode, recycle=decode)
        self.read, self.twins, self.prompts, self.number = {}, {}, [[1] * 9], 0

    def name(self):
        self.number += 1
        return self.number

    def some(self):
        return st.sampled_from(sorted(self.read))

    @precondition(lambda self: len(self.read) < 3)
    @rule(data=st.data(), more=st.lists(st.integers(0, 1), max_size=5))
    def start(self, data, more):
        before = data.draw(st.sampled_from(self.prompts))
        kept = data.draw(st.one_of(st.just(len(before)), st.integers(0, len(before))))
        self.serve(self.name(), (before[:kept] + more)[:40] or [0])

    def serve(self, request, prompt):
        self.prompts.append(prompt)
        try:
            hit = self.server.start(request, prompt).tokens
        except PoolExhausted:
            return
        self.read[request], self.twins[request] = prompt[:hit], DECODER.new_state()
        if hit:
            DECODER.forward(prompt[:hit], self.twins[request])
        self.forward(request, prompt[hit:])

    def forward(self, request, tokens):
        try:
            logits = self.server.forward(request, tokens)
        except PoolExhausted:  # some of them may have been read
            came = self.server.states[request].length - len(self.read[request])
            tokens, logits = tokens[:came], None
        if tokens:
            expected = DECODER.forward(tokens, self.twins[request])
            assert logits is None or np.array_equal(logits, expected)
            self.read[request] = self.read[request] + tokens

    @precondition(lambda self: self.read)
    @rule(data=st.data(), tokens=st.lists(st.integers(0, 1), min_size=1, max_size=9))
    def go_on(self, data, tokens):
        self.forward(data.draw(self.some()), tokens)

    @precondition(lambda self: 0 < len(self.read) < 3)
    @rule(data=st.data())
    def fork(self, data):
        request, new = data.draw(self.some()), self.name()
        try:
            self.server.fork(request, new)
        except PoolExhausted:
            return
        self.read[new], self.twins[new] = self.read[request], self.twins[request].copy()

    @precondition(lambda self: self.read)
    @rule(data=st.data(), again=st.booleans())
    def end_or_preempt(self, data, again):
        request = data.draw(self.some())
        self.server.release(request)
        prompt = self.read.pop(request)
        del self.twins[request]
        self.prompts.append(prompt[:40])
        if again and prompt:
            self.serve(request, prompt)

    @invariant()
    def every_request_remembers_what_its_twin_remembers(self):
        for request, twin in self.twins.items():
            assert_same_state(self.server.states[request], twin)


ServingMachine.TestCase.settings = hypothesis_settings(
    max_examples=30, stateful_step_count=20, deadline=None, derandomize=True)
TestServing = ServingMachine.TestCase

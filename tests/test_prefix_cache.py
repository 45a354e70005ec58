"""The prefix cache: lookup, checkpoints, room, and the field reports that one request at a time can show."""

import numpy as np
import pytest
from prefix_serving import found, kept, make, serve

from k3core.paged_cache import NULL, PoolExhausted
from k3core.prefix_cache import Chain

# --- lookup ---


def test_k3_report_2800_tokens_match_and_2560_are_hit():
    """Kimi K3 report, section 5.4.1: hash blocks of 512 tokens in pages of 6,144."""
    cache = make(page=6144, block=512, policy="align", states=3)
    serve(cache, range(2800))
    prompt = [*range(2800), *range(90_000, 90_500)]
    hit = cache.lookup(Chain(prompt, 512))
    assert (hit.tokens, hit.rows, hit.pages) == (2560, 2560, ()) and hit.partial != NULL
    assert serve(cache, prompt) == 2560


def test_a_finer_match_unit_reaches_into_the_block():
    """Mooncake blog on K3: a state block of 4,096, 4,480 tokens shared: 4,480 at a match unit of 128, not 4,096."""
    for unit, hit in ((128, 4480), (4096, 4096)):
        cache = make(page=4096, block=unit, policy="align")
        serve(cache, range(4500))
        assert found(cache, [*range(4480), *range(90_000, 90_100)]) == hit


@pytest.mark.parametrize("tokens", [1, 527, 528, 529, 552, 979, 1056, 1057])
def test_b1_b2_b3_b6_the_hit_of_a_repeated_prompt(tokens):
    """vllm #40696, #53749, #51198: whole blocks of at most n - 1 tokens, here in pages of one block."""
    cache = make(page=528, block=528)
    serve(cache, range(tokens))
    assert serve(cache, range(tokens)) == (tokens - 1) // 528 * 528


def test_b4_marconi_hits_from_the_third_prompt_on():
    """vllm #45238: 1,500 shared tokens of 2,200, block 528."""
    for policy, hits in (("align", [0, 0, 0, 0]), ("marconi", [0, 0, 1056, 1056])):
        cache = make(page=528, block=528, policy=policy)
        prompts = [[*range(1500), *range(10_000 * i, 10_000 * i + 700)] for i in range(1, 5)]
        assert [serve(cache, prompt) for prompt in prompts] == hits


def test_b8_positions_without_a_block_are_not_cached_blocks():
    """vllm #42547: a request that starts on empty places counts none of them as computed."""
    cache = make()
    hit, copies = cache.start("r", range(20))
    assert hit.tokens == 0 and hit.pages == () and hit.states == (NULL, NULL)
    assert [copy.source for copy in copies] == [NULL, NULL]  # states are cleared
    assert cache.tables.tables["r"][0] == []


def test_b9_c15_a_repeated_prompt_resumes_at_the_last_position_below_its_end():
    """sglang #22935: a state at the last grid point is used. LMCache #5249: the last token is computed once."""
    cache = make()
    serve(cache, range(16))
    assert kept(cache) == [4, 8, 12, 16]
    assert found(cache, range(16)) == 12 and found(cache, range(17)) == 16
    one = make(page=4)
    serve(one, range(4))
    assert found(one, range(4)) == 0


def test_b12_a_checkpoint_stays_when_the_answer_passes_it():
    """vllm #57253: decoding beyond the prompt retired the state at its end."""
    cache = make(policy="align")
    serve(cache, range(17), answer=range(100, 140))
    assert kept(cache) == [16] and found(cache, range(18)) == 16


def test_b13_passing_checkpoints_are_given_up_for_the_next():
    """vllm #56794: states in the middle of a prefill pushed out useful ones."""
    cache = make(policy="align+8", recycle=True)
    serve(cache, range(30))
    assert kept(cache) == [28] and cache.pool.free_blocks == 100
    plain = make(policy="align+8")
    serve(plain, range(30))
    assert kept(plain) == [8, 16, 24, 28]
    junction = make(policy="marconi+8", recycle=True)
    serve(junction, range(30))
    serve(junction, [*range(20), *range(90, 110)])
    assert kept(junction) == [20, 28, 40]


def test_b17_an_answer_is_found_only_with_checkpoints_inside_it():
    """vllm #50551: a continuation stopped hitting at the end of the prompt."""
    answer = list(range(500, 521))
    for options, positions, hit in (({}, [16], 16), ({"decode": True}, [16, 20, 24, 28, 32, 36], 36),
                                    ({"decode": True, "recycle": True}, [16, 36], 36)):
        cache = make(policy="align", **options)
        serve(cache, range(18), answer)
        assert kept(cache) == positions
        assert found(cache, [*range(18), *answer, 7, 7]) == hit


def test_b18_the_counters_come_from_the_hits_themselves():
    """vllm-ascend #16639: requests got faster and the counter stayed at 0."""
    cache = make()
    hits = [serve(cache, range(20)) for _ in range(3)]
    assert (cache.prompt_tokens, cache.hit_tokens) == (60, sum(hits)) == (60, 32)


def test_a_page_is_found_at_more_positions_as_it_fills():
    cache = make(page=16, policy="align", decode=True)
    cache.start("r", range(6))
    cache.landed("r")
    positions = []
    for tokens in (range(6), [6], [7], [8, 9, 10], [11], [12]):
        tokens = list(tokens)
        while tokens:
            step = cache.plan("r", len(tokens))
            cache.commit("r", tokens[: step.end - step.start])
            tokens = tokens[step.end - step.start :]
        positions.append(found(cache, range(14)))
    assert positions == [4, 4, 8, 8, 12, 12]
    assert len(cache.tables.tables["r"][0]) == 1


def test_a_hit_shares_whole_pages_and_copies_the_rest():
    cache = make(page=8, block=4)
    serve(cache, range(13))
    hit, copies = cache.start("r", range(20))
    rows, *states = cache.tables.tables["r"]
    assert hit.tokens == 12 and list(hit.pages) == rows[:1] and rows[1] != hit.partial
    pairs = {(copy.source, copy.target) for copy in copies}
    assert pairs == {(hit.partial, rows[1]), *zip(hit.states, [group[0] for group in states])}
    with pytest.raises(ValueError, match="copies under way"):
        cache.plan("r", 1)
    cache.release("r")  # aborted before the copies were carried out
    assert not any(cache.pool.references)


def test_a_copied_page_serves_when_the_page_it_came_from_is_gone():
    cache = make(page=16, policy="dense")
    serve(cache, range(9))
    serve(cache, [*range(9), *range(50, 60)])
    first, second = dict.fromkeys(entry.blocks[0] for entry in cache.rows)
    cache.evict(first)
    assert cache.lookup(Chain(range(9), 4)).partial == second and found(cache, range(9)) == 8


# --- steps, commits, aborts ---


def test_steps_end_where_checkpoints_are_due():
    cache = make(policy="align+8")
    cache.start("r", range(23))
    cache.landed("r")
    ends = []
    while not ends or ends[-1] < 23:
        step = cache.plan("r", min(6, 23 - (ends or [0])[-1]))
        ends.append(step.end)
        cache.commit("r", range(step.start, step.end))
    assert ends == [6, 8, 14, 16, 20, 23]


def test_c1_only_accepted_drafts_are_found():
    """vllm #43559: a state reachable by hash is the state of exactly the committed tokens."""
    cache = make(policy="align", decode=True)
    cache.start("r", range(5))
    cache.landed("r")
    for end in (4, 5):
        assert cache.plan("r", 5 - (end - 1) if end == 5 else 5).end == end
        cache.commit("r", range(4) if end == 4 else [4])
    step = cache.plan("r", 6)  # the last token and drafts; shortened to where a checkpoint is due
    assert (step.start, step.end) == (5, 8) and step.saves
    cache.commit("r", [5, 60])  # one draft refused: what the step saved is not the state after 60
    assert kept(cache) == [4] and found(cache, [0, 1, 2, 3, 4, 5, 6, 7, 8]) == 4
    assert cache.plan("r", 6).end == 8
    cache.commit("r", [70])
    assert found(cache, [0, 1, 2, 3, 4, 5, 60, 70, 8]) == 8 and found(cache, [0, 1, 2, 3, 4, 5, 6, 7, 8]) == 4


def test_c5_c6_nothing_is_found_before_its_commit():
    """vllm #56525: published when scheduled, aborted, and hit by the retry. vllm #42359: in the same step."""
    cache = make()
    cache.start("r", range(9))
    cache.landed("r")
    cache.plan("r", 9)
    assert found(cache, range(9)) == 0
    cache.release("r")
    assert found(cache, range(9)) == 0 and cache.pool.free_blocks == 100


def test_c8_rows_without_states_are_no_hit():
    """vllm #43090: attention's hit was kept although the recurrent layers had none."""
    cache = make(policy="align")
    serve(cache, range(17))
    entry = next(iter(cache.checkpoints))
    cache.evict(entry.blocks[1])
    hit = cache.lookup(Chain(range(20), 4))
    assert (hit.tokens, hit.rows, hit.pages, hit.states) == (0, 16, (), (NULL, NULL))


def test_c11_a_position_inside_a_page_goes_with_the_page():
    """vllm #52972: a name for part of a block outlived the block's content."""
    cache = make(page=16, policy="dense", decode=True, blocks=12)
    serve(cache, range(9), answer=range(9, 15))
    [page] = {entry.blocks[0] for entry in cache.rows}
    assert found(cache, range(14)) == 12
    cache.evict(page)
    assert not len(cache.rows) and found(cache, range(14)) == 0
    serve(cache, range(100, 140))  # reuses the block
    assert found(cache, range(14)) == 0


def test_c16_c20_a_slot_has_one_entry_and_only_if_it_was_written():
    """sglang #30243: donated slots that nobody wrote. lucebox #371: a slot reused under an older name."""
    cache = make(blocks=16)
    rng = np.random.default_rng(4)
    for i in range(60):
        start = int(rng.integers(0, 3))
        serve(cache, range(start, start + int(rng.integers(5, 20))), request=i)
        slots = [block for entry in cache.checkpoints for block in entry.blocks]
        assert len(slots) == len(set(slots)) and not set(slots) & {e.blocks[0] for e in cache.rows}
        assert all(cache.pool.is_findable(block) for block in slots)


def test_rule_3_one_part_evicted_takes_the_others_along():
    cache = make(policy="align", states=3)
    serve(cache, range(17))
    entry = next(iter(cache.checkpoints))
    cache.evict(entry.blocks[2])
    assert not any(cache.pool.is_findable(block) for block in entry.blocks) and not len(cache.checkpoints)


def test_the_end_of_a_chain_is_evicted_before_its_start_and_the_checkpoint_before_both():
    cache = make(page=4, policy="align", blocks=9)
    serve(cache, range(13))  # 4 pages, 2 state blocks, 2 checkpoint slots
    order = []
    for _ in range(6):
        before = {block for index in (cache.rows, cache.checkpoints) for entry in index for block in entry.blocks}
        cache.pool.free(cache.pool.allocate(cache.pool.free_blocks - len(before) + 1))
        after = {block for index in (cache.rows, cache.checkpoints) for entry in index for block in entry.blocks}
        order.append(len(before - after))
        if not after:
            break
    assert order == [2, 1, 1, 1]
    assert cache.pool.free_blocks == 9


def test_b10_a_hit_refreshes_only_the_checkpoint_it_resumes_from():
    """sglang #31643."""
    cache = make(page=16, policy="dense", blocks=20)
    serve(cache, range(17))
    cache.start("r", range(17))
    cache.landed("r")
    cache.release("r")
    used = {e.link.end: e.blocks for e in cache.checkpoints}
    cache.pool.free(cache.pool.allocate(cache.pool.free_blocks - 4))
    assert kept(cache) == [16] and used[16] == next(iter(cache.checkpoints)).blocks


def test_requests_that_compute_the_same_at_once_leave_one_checkpoint():
    cache = make(policy="align")
    for request in "ab":
        cache.start(request, range(9))
        cache.landed(request)
    steps = {request: cache.plan(request, 8) for request in "ab"}
    for request in "ab":
        cache.commit(request, range(8))
    assert len(cache.checkpoints) == 1
    assert next(iter(cache.checkpoints)).blocks == tuple(save.target for save in steps["a"].saves)
    for request in "ab":
        cache.release(request)
    assert cache.pool.free_blocks == 100


def test_of_two_pages_with_the_same_rows_the_second_serves_when_the_first_is_gone():
    cache = make(page=8, policy="dense")
    for request in "ab":
        cache.start(request, range(9))
        cache.landed(request)
    for request in "ab":
        while cache.running[request].computed < 8:
            step = cache.plan(request, 8)
            cache.commit(request, range(step.start, step.end))
    first = cache.tables.tables["a"][0][0]
    cache.release("a")
    cache.release("b")
    assert cache.lookup(Chain(range(9), 4)).pages == (first,)
    cache.evict(first)
    assert found(cache, range(9)) == 8


# --- room ---


def test_what_does_not_fit_is_refused_before_anything_changes():
    cache = make(page=4, blocks=5, policy="align")
    cache.start("a", range(9))
    cache.landed("a")
    cache.plan("a", 8)
    cache.commit("a", range(8))
    before = cache.pool.free_blocks, kept(cache), list(cache.pool.references)
    with pytest.raises(PoolExhausted, match="request 'b' needs 2 blocks to start, 1 are free"):
        cache.start("b", [7])
    cache.plan("a", 1)
    cache.commit("a", [8])
    with pytest.raises(PoolExhausted):
        cache.plan("a", 4)
    assert before[1] == kept(cache) == []  # no room for a checkpoint: left out
    cache.release("a")
    assert cache.pool.free_blocks == 5


def test_a_hit_that_would_not_fit_beside_its_own_copy_is_given_up():
    cache = make(page=8, blocks=5, policy="align")
    assert serve(cache, range(6)) == 0
    assert kept(cache) == [4]
    assert found(cache, range(6)) == 4  # resuming takes a page and 2 states, beside 1 page and 2 states
    assert serve(cache, range(6)) == 0
    assert serve(make(page=8, blocks=6, policy="align"), range(6)) == 0


@pytest.mark.parametrize(("spoil", "problem"), [
    (lambda c: c.start("r", [1]), "request 'r' is already running"),
    (lambda c: c.start("s", []), "tokens is empty"),
    (lambda c: c.plan("s", 1), "request 's' is not running"),
    (lambda c: c.plan("r", 0), "count is 0"),
    (lambda c: c.commit("r", [1]), "its step is None"),
    (lambda c: (c.plan("r", 2), c.plan("r", 2)), "a step that is not committed"),
    (lambda c: (c.plan("r", 2), c.commit("r", [])), "cannot commit 0 tokens"),
    (lambda c: (c.plan("r", 2), c.commit("r", [0, 1, 2])), "cannot commit 3 tokens"),
    (lambda c: (c.plan("r", 2), c.commit("r", [0, 9])), "not those of its prompt"),
    (lambda c: (c.plan("r", 2), c.fork("r", "s")), "a step that is not committed"),
    (lambda c: c.fork("r", "r"), "request 'r' is already running"),
    (lambda c: c.evict(1), "block 1 is in use or not findable"),
])  # fmt: skip
def test_misuse_is_named(spoil, problem):
    cache = make()
    cache.start("r", range(10))
    cache.landed("r")
    with pytest.raises(ValueError, match=problem):
        spoil(cache)


@pytest.mark.parametrize(("options", "problem"), [
    ({"block": 0}, "hash_block is 0"), ({"page": 6}, "page_tokens is 6; it must be a multiple of the hash block of 4"),
    ({"grain": 6}, "grain is 6"), ({"states": 0}, "tables has 1 group"),
    ({"policy": "align+2"}, "chunks shorter than the grain"),
])  # fmt: skip
def test_settings_that_do_not_fit(options, problem):
    with pytest.raises(ValueError, match=problem):
        make(**options)

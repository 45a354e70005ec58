"""Replay of traces: published reference rates, a naive simulation of every token, and field reports."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.paged_cache import BlockPool, PageTables
from k3core.prefix_cache import Policy, PrefixCache, read_policy
from k3core.traces import EVICTIONS, WORKLOADS, Request, TraceCache, finish, generate_trace, read_trace, replay

TRACES = Path(os.environ.get("K3_TRACES", "traces"))
CONVERSATION = TRACES / "conversation_trace.jsonl"
needs_trace = pytest.mark.skipif(not CONVERSATION.exists(), reason=f"{CONVERSATION} is not here")


def serve(requests, policy, grain, hash_block=512, **options):
    """The hit of each request in turn."""
    cache = TraceCache(read_policy(policy), grain, hash_block, **options)
    return [cache.serve(request) for request in requests]


# --- the conversation trace of Mooncake (FAST25-release/traces), 12,031 requests ---


@cache
def conversation():
    with open(CONVERSATION, "rb") as lines:
        return list(read_trace(lines))


@needs_trace
@pytest.mark.parametrize(("grain", "policy", "rate", "checkpoints"), [
    (512, "dense", 0.3734, 170_899), (512, "align", 0.3497, 9_633), (512, "marconi", 0.3586, 10_237),
    (512, "align+8192", 0.3619, None), (512, "marconi+8192", 0.3658, None),
    (1536, "dense", 0.3302, 56_892), (1536, "align", 0.3103, 7_666), (1536, "marconi", 0.3183, 8_010),
    (1536, "align+8192", 0.3217, None), (1536, "marconi+8192", 0.3247, None),
    (2048, "dense", 0.3210, 41_914), (2048, "align", 0.3032, 7_096), (2048, "marconi", 0.3105, 7_359),
    (2048, "align+8192", 0.3133, None), (2048, "marconi+8192", 0.3161, None),
])  # fmt: skip
def test_conversation_trace_gives_the_reference_rates(grain, policy, rate, checkpoints):
    counts = finish(replay(conversation(), TraceCache(read_policy(policy), grain)))
    assert round(counts.hit_rate, 4) == rate
    assert checkpoints is None or counts.checkpoints == checkpoints
    assert (counts.requests, counts.blocks_total, counts.blocks_distinct) == (12_031, 288_500, 182_790)
    assert counts.checkpoints == counts.checkpoints_written and not counts.evicted_blocks


@needs_trace
def test_conversation_trace_share_of_requests_with_a_hit():
    """Every conversation shares the first block of 512 tokens; few share 1,536."""
    shares = [finish(replay(conversation(), TraceCache(read_policy("dense"), grain))).requests_with_hit / 12_031
              for grain in (512, 1536)]
    assert [round(share, 4) for share in shares] == [0.9999, 0.3400]


@needs_trace
def test_conversation_trace_hits_grow_with_capacity_and_the_bytes_stay_below_it():
    rates = []
    for capacity in (2**36, 2**38, 2**40, None):
        counts = finish(replay(conversation(), TraceCache(
            read_policy("marconi"), 1536, capacity=capacity, block_bytes=21_233_664, checkpoint_bytes=56_171_520)))
        rates.append(counts.hit_rate)
        assert capacity is None or 0.99 * capacity < counts.peak_bytes <= capacity
        assert (capacity is None) == (counts.evicted_checkpoints == 0)
    assert rates == sorted(rates) and rates[0] < 0.2 and round(rates[-1], 4) == 0.3183


# --- a simulation that remembers prompts as tokens ---


class Naive:
    """Rows and checkpoints as (kind, prefix of hash ids) in one list, the first to be evicted in front."""

    def __init__(self, policy, grain, hash_block, capacity, block_bytes, checkpoint_bytes, eviction):
        self.policy, self.grain, self.hash_block, self.capacity = policy, grain, hash_block, capacity
        self.bytes_of = {"rows": block_bytes, "checkpoint": checkpoint_bytes}
        self.eviction, self.entries, self.evicted, self.ever = eviction, [], [], set()

    def serve(self, request):
        grain, tokens = self.grain, request.input_length

        def entry(kind, end):
            return kind, tuple(request.hash_ids[: end // self.hash_block])

        ends = range(grain, tokens + 1, grain)
        rows = hit = 0
        for end in ends:
            if end > tokens - 1 or entry("rows", end) not in self.entries:
                break
            rows = end
            hit = end if entry("checkpoint", end) in self.entries else hit
        if hit:
            self.put(entry("checkpoint", hit))
        for end in self.policy.boundaries(tokens, hit, rows, grain):
            self.put(entry("checkpoint", end))
            self.ever.add(entry("checkpoint", end))
        for end in reversed(ends):
            self.put(entry("rows", end))
        while self.capacity is not None and sum(self.bytes_of[kind] for kind, _ in self.entries) > self.capacity:
            first = self.eviction == "checkpoints-first" and any(e[0] == "checkpoint" for e in self.entries)
            victim = next(e for e in self.entries if not first or e[0] == "checkpoint")
            self.entries.remove(victim)
            self.evicted.append(victim)
        return hit

    def put(self, entry):
        if entry in self.entries:
            if self.eviction == "fifo":
                return
            self.entries.remove(entry)
        self.entries.append(entry)


POLICIES = ("dense", "align", "align+8", "marconi", "marconi+12", "retain:0", "retain:12")


@st.composite
def small_traces(draw):
    """Prompts of up to 12 blocks of 2 tokens that often continue one another."""
    requests, prompts = [], [[]]
    for _ in range(draw(st.integers(1, 14))):
        old = draw(st.sampled_from(prompts))
        kept = old[: draw(st.integers(0, len(old)))]
        ids = (kept + draw(st.lists(st.integers(0, 2), min_size=1, max_size=6)))[:12]
        prompts.append(ids)
        requests.append(Request(0, 2 * len(ids) - draw(st.integers(0, 1)), 1, ids))
    return requests


@given(small_traces(), st.sampled_from(POLICIES), st.sampled_from([2, 4]),
       st.one_of(st.none(), st.integers(0, 40)), st.sampled_from(EVICTIONS))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_replay_agrees_with_a_naive_simulation(requests, name, grain, capacity, eviction):
    policy = read_policy(name)
    costs = capacity, 2, 3, eviction
    cache, naive = TraceCache(policy, grain, 2, *costs), Naive(policy, grain, 2, *costs)
    for request in requests:
        assert cache.serve(request) == naive.serve(request)
    counts = cache.counts
    assert counts.evicted_blocks == sum(kind == "rows" for kind, _ in naive.evicted)
    assert counts.evicted_checkpoints == sum(kind == "checkpoint" for kind, _ in naive.evicted)
    assert counts.checkpoints == len(naive.ever)
    assert cache.bytes == sum(naive.bytes_of[kind] for kind, _ in naive.entries)
    assert counts.blocks_distinct == len({tuple(r.hash_ids[: i + 1]) for r in requests
                                          for i in range(len(r.hash_ids))})


@given(small_traces(), st.sampled_from([2, 4]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_what_one_policy_can_hit_another_can_too(requests, grain):
    """Dense hits whatever attention has; with unlimited room a policy that keeps more never hits less."""
    hits = {name: serve(requests, name, grain, 2) for name in POLICIES}
    cache = TraceCache(read_policy("align"), grain, 2)
    finish(replay(requests, cache))
    assert sum(hits["dense"]) == cache.counts.rows_hit_tokens
    for less, more in (("align", "align+8"), ("align", "marconi"), ("marconi", "marconi+12"),
                       ("retain:0", "retain:12"), ("marconi+12", "dense")):
        assert all(a <= b for a, b in zip(hits[less], hits[more], strict=True))


@given(small_traces(), st.sampled_from(POLICIES), st.sampled_from([(2, 2), (4, 4), (4, 8), (2, 12)]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_with_room_for_all_it_hits_what_the_prefix_cache_hits(requests, policy, sizes):
    """Request for request, on the cache that has pages, page tables and real hashes."""
    grain, page = sizes
    cache = PrefixCache(PageTables(BlockPool(4000), 3), page, 2, read_policy(policy), grain)
    hits = []
    for number, request in enumerate(requests):
        tokens = [token for hash_id in request.hash_ids for token in (2 * hash_id, 2 * hash_id + 1)]
        tokens = tokens[: request.input_length]
        hits.append(cache.start(number, tokens)[0].tokens)
        cache.landed(number)
        while cache.running[number].computed < len(tokens):
            step = cache.plan(number, len(tokens) - cache.running[number].computed)
            cache.commit(number, tokens[step.start : step.end])
        cache.release(number)
    trace_cache = TraceCache(read_policy(policy), grain, 2)
    assert [trace_cache.serve(request) for request in requests] == hits
    assert trace_cache.counts.checkpoints == len(cache.checkpoints)


def test_numbers_that_repeat_under_another_parent_are_other_blocks():
    """aibrix #2329: two prompts that end alike are not alike; the chain includes the parent."""
    assert serve([Request(0, 8, 1, [1, 2]), Request(0, 9, 1, [3, 2, 4])], "dense", 4, 4) == [0, 0]
    assert serve([Request(0, 8, 1, [1, 2]), Request(0, 9, 1, [1, 2, 4])], "dense", 4, 4) == [0, 8]


def test_requests_without_prefixes_hit_nothing_and_still_fill_the_cache():
    cache = TraceCache(read_policy("dense"), 1024, 512, 10**6, 100_000, 10_000)
    counts = finish(replay([Request(0, 5000, 1)] * 3, cache))
    assert counts.hit_tokens == 0 and counts.blocks_total == counts.blocks_distinct == 30
    assert counts.evicted_blocks == 3 and counts.peak_bytes <= 10**6


def test_progress_comes_often_and_the_cache_can_be_read_meanwhile():
    requests = list(generate_trace(WORKLOADS["agentic"], 3000, np.random.default_rng(0)))
    cache = TraceCache(read_policy("marconi"), 1536)
    seen = [(done, cache.counts.requests) for done in replay(requests, cache)]
    assert len(seen) >= 5 and all(done == requests for done, requests in seen)
    assert cache.counts.requests == 3000


# --- policies ---


@pytest.mark.parametrize(("name", "expected"), [
    ("dense", [400, 500, 600, 700, 800, 900]), ("retain:none", [400, 500, 600, 700, 800, 900]),
    ("align", [900]), ("marconi", [600, 900]), ("align+250", [500, 700, 900]),
    ("marconi+250", [500, 600, 700, 900]), ("retain:0", [600, 800]), ("retain:400", [400, 600, 800]),
])  # fmt: skip
def test_where_a_prompt_of_900_tokens_leaves_checkpoints(name, expected):
    """300 tokens hit, rows of 600 cached, grain 100. The replay boundary of retain lies below the last token
    (vllm #52216); chunks are whole grains long and counted from the hit."""
    assert read_policy(name).boundaries(900, 300, 600, 100) == expected


@pytest.mark.parametrize("name", ["dense", "align", "align+8192", "marconi", "marconi+8192", "retain:0", "retain:9"])
def test_a_policy_prints_as_its_name(name):
    assert str(read_policy(name)) == name


@pytest.mark.parametrize("name", ["", "all", "align+", "align+0", "align+-1", "align+1e3", "dense+8192", "retain",
                                  "retain:", "retain:-1", "retain:٣", "marconi:4", "align+" + "9" * 10])
def test_unknown_policies(name):
    with pytest.raises(ValueError, match="is not known; choose dense"):
        read_policy(name)


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: TraceCache(read_policy("dense"), 1000), "grain is 1000; it must be a multiple of the hash block of 512"),
    (lambda: TraceCache(read_policy("dense"), 0), "grain is 0"),
    (lambda: TraceCache(read_policy("align+1000"), 1536), r"align\+1000 has chunks shorter than the grain of 1536"),
    (lambda: TraceCache(read_policy("retain:1000"), 512), "retain:1000 must name a multiple of the grain"),
    (lambda: TraceCache(Policy("dense"), 512, capacity=-1), "capacity is -1"),
    (lambda: TraceCache(Policy("dense"), 512, eviction="random"), "eviction 'random' is not known"),
])  # fmt: skip
def test_settings_that_do_not_fit(make, problem):
    with pytest.raises(ValueError, match=problem):
        make()


# --- field reports ---


def prompts(count, shared, tokens, block=4):
    """`count` prompts of `tokens` tokens, of which the first `shared` are the same."""
    assert shared % block == 0
    length = -(-tokens // block)
    return [Request(0, tokens, 1, [*range(shared // block), *range((i + 1) * 10**6, (i + 1) * 10**6 + length
            - shared // block)]) for i in range(count)]


@pytest.mark.parametrize("policy", ["dense", "align", "marconi", "retain:0"])
@pytest.mark.parametrize(("tokens", "percent"), [(527, 0), (528, 0), (552, 95.7), (979, 53.9)])
def test_b1_block_528_hits_whole_blocks_below_the_last_token(tokens, percent, policy):
    """vllm #40696: the same prompt twice."""
    request = Request(0, tokens, 1, list(range(-(-tokens // 4))))
    if tokens == 528:
        policy = "dense"
    hit = serve([request] * 2, policy, 528, 4)[1]
    assert hit == (tokens - 1) // 528 * 528 and round(100 * hit / tokens, 1) == percent


@pytest.mark.parametrize("block", [2096, 1920])
def test_b2_kimi_hits_the_whole_blocks_of_a_shared_prefix(block):
    """vllm #53749: 33 shared lengths, and controls that share nothing."""
    for shared in range(16, 16 + 33 * 208, 208):
        first, second, third = prompts(3, shared, shared + 300, 16)
        assert serve([first, second], "dense", block, 16) == [0, shared // block * block]
        control = third._replace(hash_ids=[number + 10**9 for number in third.hash_ids])
        assert serve([first, control], "dense", block, 16) == [0, 0]


def test_b3_prompts_shorter_than_a_block_are_never_stored():
    """jundot/omlx #3443, #3430: block 4,096 against a median prompt of 1,514; 434 tokens at block 2,048."""
    for tokens, block in ((1514, 4096), (434, 2048)):
        cache = TraceCache(read_policy("dense"), block, 2)
        counts = finish(replay([Request(0, tokens, 1, list(range(tokens // 2)))] * 5, cache))
        assert counts.hit_tokens == counts.checkpoints == counts.peak_bytes == 0


def test_b4_last_boundary_falls_into_tokens_of_the_request_alone():
    """vllm #45238: block 528, 64 prompts of 2,200 tokens that share 1,500 or 1,600.

    Their last boundary is 2,112, so align never hits. Marconi keeps the junction when the second prompt
    passes it: hits from the third on. Prompts of 2,100 tokens have their boundary at 1,584 and do hit.
    """
    for shared in (1500, 1600):
        junction = shared // 528 * 528
        assert serve(prompts(64, shared, 2200), "align", 528, 4) == [0] * 64
        assert serve(prompts(64, shared, 2200), "marconi", 528, 4) == [0, 0] + [junction] * 62
    assert serve(prompts(64, 1600, 2100), "align", 528, 4) == [0] + [1584] * 63


def test_b5_nothing_is_hit_before_chunks_end_inside_the_shared_part():
    """vllm #42317: one checkpoint at the end of each prompt; with chunks of 8,192 the second prompt hits."""
    pair = prompts(2, 10_000, 20_000)
    assert serve(pair, "align", 528, 4) == [0, 0]
    assert serve(pair, "align+8192", 528, 4) == [0, 7920]  # 15 blocks: a chunk in whole blocks


def test_b6_a_prompt_and_its_continuation():
    """vllm #51198: 561 tokens, then 1,131 that start with them: 0 hits if the block is longer than that."""
    first = Request(0, 561, 1, list(range(141)))
    second = Request(0, 1131, 1, [*range(140), *range(900, 1043)])
    assert serve([first, second], "align", 564, 4) == serve([first, second], "align", 1536, 4) == [0, 0]
    assert serve([first, second], "align", 528, 4) == [0, 528]


def test_b10_a_hit_refreshes_only_the_checkpoint_it_resumes_from():
    """sglang #31643: refreshing every checkpoint on the path kept useless ones and pushed out useful ones."""
    long, other = Request(0, 9, 1, [1, 2, 3]), Request(0, 5, 1, [7, 8])
    cache = TraceCache(read_policy("dense"), 4, 4, capacity=10, block_bytes=1, checkpoint_bytes=2)
    assert [cache.serve(request) for request in (long, other, long)] == [0, 0, 8]
    assert cache.serve(Request(0, 5, 1, [9, 9])) == 0  # pushes out one checkpoint: not the one just used
    assert cache.counts.evicted_checkpoints == 1 and cache.counts.evicted_blocks == 0
    assert cache.serve(Request(0, 5, 1, [1, 5])) == 0 and cache.serve(long) == 8


def test_b15_the_hit_ends_at_the_deepest_checkpoint_that_survives():
    """sglang #40680: the rows of a prompt are all there, the checkpoint at its end is not."""
    short, long = Request(0, 21, 1, [0, 1, 2, 3, 4, 50]), Request(0, 41, 1, [*range(10), 51])
    cache = TraceCache(read_policy("align"), 4, 4, capacity=30, block_bytes=1, checkpoint_bytes=9)
    assert [cache.serve(request) for request in (short, long, short)] == [0, 20, 20]
    cache.serve(Request(0, 5, 1, [90, 91]))
    assert cache.counts.evicted_checkpoints == 1 and cache.counts.evicted_blocks == 0
    before = cache.counts.rows_hit_tokens
    assert cache.serve(long) == 20 and cache.counts.rows_hit_tokens - before == 40


@pytest.mark.parametrize(("tokens", "shared", "hit"), [(20_000, 15_000, 10_000), (910_000, 905_000, 900_000)])
def test_checkpoints_every_10_000_tokens_cost_up_to_10_000_tokens(tokens, shared, hit):
    """kvcache-blog, Kimi K3 day-0 support: reuse 10,000 of 15,000, 900,000 of 905,000."""
    assert serve(prompts(2, shared, tokens, 1000), "retain:10000", 1000, 1000) == [0, hit]


def test_a_state_cannot_be_cut_back():
    """The same source: a state at 10,000 is of no use to a prompt that shares 8,000."""
    first, second = Request(0, 10_001, 1, list(range(11))), Request(0, 9_000, 1, [*range(8), 99])
    assert serve([first, second], "retain:10000", 1000, 1000) == [0, 0]


@pytest.mark.parametrize(("interval", "gigabytes"), [(128, 3511), (1536, 293), (8192, 55.3), (10_000, 44.9)])
def test_bytes_of_the_checkpoints_of_a_million_tokens(interval, gigabytes):
    """kvcache-blog gives about 3 TB at 128 and about 40 GB at 10,000; 449,372,160 bytes each.

    It counts the state behind the last token too, where that is not on the grid.
    """
    cache = TraceCache(read_policy("dense"), interval, 16, checkpoint_bytes=449_372_160)
    cache.serve(Request(0, 1_000_000, 1, list(range(62_500))))
    behind = 1_000_000 % interval > 0
    assert (cache.counts.peak_bytes + behind * 449_372_160) / 1e9 == pytest.approx(gigabytes, rel=2e-3)

"""Prefix cache: hashing, a whole request by the fill of the cache, and the model checker. Processor time."""

from time import process_time

import numpy as np

from k3core.paged_cache import BlockPool, PageTables
from k3core.prefix_cache import Chain, PrefixCache, read_policy
from k3core.prefix_cache.model_checker import explore
from k3core.prefix_cache.world import Scope
from k3core.traces import finish

SCOPES = [Scope(requests=requests, blocks=blocks) for requests, blocks in ((2, 7), (2, 8), (3, 6), (3, 7))]


def hashing():
    tokens = np.random.default_rng(0).integers(0, 2**17, 2**17)
    start = process_time()
    Chain(tokens, 512)
    took = process_time() - start
    print(f"  chained SHA-256, blocks of 512: {1e9 * took / len(tokens):.0f} ns per token")


def requests(turns=4000, tokens=8192):
    """Conversations of two turns in a cache that fills up and then evicts."""
    cache = PrefixCache(PageTables(BlockPool(8_000), 4), 1536, 512, read_policy("marconi"))
    costs, start = [], process_time()
    for turn in range(turns):
        prompt = [*range(turn // 2 * 10**6, turn // 2 * 10**6 + tokens + turn % 2 * 600)]
        cache.start(turn, prompt)
        cache.landed(turn)
        while cache.running[turn].computed < len(prompt):
            step = cache.plan(turn, len(prompt))
            cache.commit(turn, prompt[step.start : min(step.end, len(prompt))])
        cache.release(turn)
        if (turn + 1) % (turns // 8) == 0:
            costs.append(1e6 * (process_time() - start) / (turns // 8))
            start = process_time()
    print(f"  requests of {tokens:,} tokens, hit rate {cache.hit_tokens / cache.prompt_tokens:.2f}, us each by "
          "eighths: " + " ".join(f"{cost:,.0f}" for cost in costs))


def checker():
    for scope in SCOPES:
        start = process_time()
        verdict = finish(explore(scope))
        seconds = process_time() - start
        print(f"  model checker, {scope.requests} requests, {scope.blocks} blocks: {verdict.states:>7,} states, "
              f"{verdict.transitions:>7,} events, {seconds:5.1f} s, {verdict.problem or 'none wrong'}")


def main():
    """Print the measurements."""
    hashing()
    requests()
    checker()

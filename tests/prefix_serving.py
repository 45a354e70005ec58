"""A prefix cache over a pool of its own, and one request after another on it."""

from k3core.paged_cache import BlockPool, PageTables
from k3core.prefix_cache import Chain, PrefixCache, read_policy


def make(page=8, block=4, policy="dense", blocks=100, states=2, **options):
    return PrefixCache(PageTables(BlockPool(blocks + 1), 1 + states), page, block, read_policy(policy), **options)


def serve(cache, tokens, answer=(), request="r", extra=None, chunk=10**9):
    """One request from start to end -> the tokens it hit."""
    tokens = list(tokens)
    hit, _ = cache.start(request, tokens, extra)
    cache.landed(request)
    position = hit.tokens
    while position < len(tokens):
        step = cache.plan(request, min(chunk, len(tokens) - position))
        cache.commit(request, tokens[step.start : step.end])
        position = step.end
    for token in answer:
        cache.plan(request, 1)
        cache.commit(request, [token])
    cache.release(request)
    return hit.tokens


def found(cache, tokens, extra=None):
    """The tokens that a request would hit."""
    return cache.lookup(Chain(tokens, cache.hash_block, extra, cache.hasher)).tokens


def kept(cache):
    """The positions at which there is a checkpoint."""
    return sorted(entry.link.end for entry in cache.checkpoints)

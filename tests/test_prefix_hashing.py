"""The keys of a prefix cache: what a block's hash covers, and what happens where hashes collide or forget."""

import numpy as np
from prefix_serving import found, make, serve

from k3core.prefix_cache import Chain, Extra, sha256


def keys(tokens, extra=None, block=4, hasher=sha256):
    return [link.key for link in Chain(tokens, block, extra, hasher).links]


def test_a_key_stands_for_everything_before_it():
    """aibrix #2329: last block and length alone do not tell prompts apart."""
    assert keys([1, 2, 3, 4, 5, 6, 7, 8])[1] != keys([9, 2, 3, 4, 5, 6, 7, 8])[1]
    assert keys([1, 2, 3, 4, 5, 6, 7, 8]) == keys([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert keys([1, 2, 3, 4, 1, 2, 3, 4])[0] != keys([1, 2, 3, 4, 1, 2, 3, 4])[1]


def test_no_kind_of_extra_key_poses_as_another():
    """dynamo #8197: the base model against an adapter, one adapter against another; a salt named like one."""
    tokens = [1, 2, 3, 4]
    image = ((0, 2, "x"),)
    extras = [None, Extra(adapter="x"), Extra(salt="x"), Extra(adapter=""), Extra(salt=""), Extra(media=image),
              Extra(adapter="x", salt="x"), Extra(adapter="xx"), Extra(salt="xx"), Extra(adapter="xS"),
              Extra(media=((1, 2, "x"),)), Extra(media=((0, 3, "x"),)), Extra(media=image * 2)]
    assert len({keys(tokens, extra)[0] for extra in extras}) == len(extras)
    assert keys([0, 0, 0, 0])[0] != keys([2**56, 0, 0, 0])[0] != keys([0, 1, 0, 0])[0]


def test_adapter_and_salt_reach_every_block_and_a_picture_those_from_it_on():
    tokens = list(range(16))
    plain, salted = keys(tokens), keys(tokens, Extra(salt="s"))
    assert not set(plain) & set(salted)
    picture = keys(tokens, Extra(media=((5, 5, "cat"),)))
    assert [a == b for a, b in zip(plain, picture)] == [True, False, False, False]
    assert picture[1:] != keys(tokens, Extra(media=((5, 5, "dog"),)))[1:]


def test_appending_gives_the_same_chain():
    whole, grown = Chain(range(11), 4), Chain([], 4)
    for token in range(11):
        grown.append([token])
    assert [link.key for link in grown.links] == [link.key for link in whole.links]
    assert grown.links[1].same(whole.links[1]) and not grown.links[1].same(whole.links[0])


def weak(data):
    return bytes([sum(data) % 2])


def test_d1_a_hash_that_collides_costs_hits_and_nothing_else():
    """vllm #12621: predictable hashes. Two keys for everything; entries are compared whole."""
    cache = make(hasher=weak)
    rng = np.random.default_rng(0)
    prompts = [list(map(int, rng.integers(0, 9, 30))) for _ in range(3)]
    for prompt in prompts:
        assert serve(cache, prompt) == 0
    assert [serve(cache, [*prompt, 1]) for prompt in prompts] == [28, 28, 28]
    assert found(cache, prompts[0][:12] + prompts[1][:12]) == 12


def test_d1_an_engine_that_trusts_a_weak_hash_hits_what_is_not_there():
    cache = make(hasher=weak, verify=False)
    serve(cache, range(0, 60, 2))
    assert found(cache, range(1, 61, 2)) > 0


def test_d2_a_hasher_that_forgets_the_parent_is_caught():
    """aibrix #2329."""
    def last_block_only(data):
        return sha256(data[data.index(b"T") :] if b"T" in data else data)

    cache = make(hasher=last_block_only)
    serve(cache, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert found(cache, [0, 0, 0, 0, 5, 6, 7, 8, 9]) == 0 and found(cache, [1, 2, 3, 4, 5, 6, 7, 8, 9]) == 8
    trusting = make(hasher=last_block_only, verify=False)
    serve(trusting, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert found(trusting, [0, 0, 0, 0, 5, 6, 7, 8, 9]) == 8


def test_d3_who_is_salted_or_adapted_differently_hits_nothing():
    cache = make()
    for extra in (Extra(), Extra(adapter="a"), Extra(salt="a"), Extra(media=((2, 3, "a"),))):
        assert serve(cache, range(20), extra=extra) == 0
        assert found(cache, range(20), extra) == 16

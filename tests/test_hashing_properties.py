"""What every hashing scheme promises, as properties; and bad input."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.hashing import (
    SCHEMES,
    Bounded,
    Maglev,
    Rendezvous,
    Ring,
    jump_hash,
    load_cap,
    make_scheme,
    mix64,
    node_names,
    xxh64,
)

few = settings(max_examples=40, deadline=None, derandomize=True)
names = st.lists(st.text("abcdefgh", min_size=1, max_size=3), min_size=2, max_size=7, unique=True)
integers = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60)


def uints(*values):
    return np.array(values, dtype=np.uint64)


def small(name, nodes, **options):
    sizes = {"ring": {"vnodes": 8}, "bounded": {"vnodes": 8}, "maglev": {"table_size": 31}}
    return make_scheme(name, nodes, **sizes.get(name, {}), **options)


@pytest.mark.parametrize("name", SCHEMES)
@few
@given(nodes=names, keys=integers)
def test_rank_is_a_permutation_led_by_the_assignment(name, nodes, keys):
    scheme = small(name, nodes)
    rank = scheme.rank(keys, len(nodes))
    assert np.sort(rank, axis=1).tolist() == [list(range(len(nodes)))] * len(keys)
    if name != "bounded":
        assert rank[:, 0].tolist() == scheme.assign(keys).tolist()


@pytest.mark.parametrize("name", ["ring", "rendezvous"])
@few
@given(nodes=names, keys=integers)
def test_secondary_is_where_the_key_goes_without_its_primary(name, nodes, keys):
    """Losing a node moves its keys, and only its keys, each to its secondary."""
    rank = small(name, nodes).rank(keys, 2)
    for lost, gone in enumerate(nodes):
        rest = nodes[:lost] + nodes[lost + 1 :]
        after = [rest[i] for i in small(name, rest).assign(keys)]
        expected = [
            nodes[second] if nodes[first] == gone else nodes[first] for first, second in rank.tolist()
        ]
        assert after == expected


@pytest.mark.parametrize("name", ["ring", "rendezvous", "jump"])
@few
@given(nodes=names, keys=integers)
def test_a_new_last_node_only_takes(name, nodes, keys):
    before = small(name, nodes).assign(keys)
    after = small(name, [*nodes, "zzzz"]).assign(keys)
    moved = before != after
    assert (after[moved] == len(nodes)).all()


@pytest.mark.parametrize("name", ["ring", "rendezvous"])
@few
@given(nodes=names, keys=integers, data=st.data())
def test_a_heavier_node_only_takes(name, nodes, keys, data):
    weights = data.draw(st.lists(st.integers(1, 4), min_size=len(nodes), max_size=len(nodes)))
    node = data.draw(st.integers(0, len(nodes) - 1))
    heavier = [w + (i == node) for i, w in enumerate(weights)]
    before = small(name, nodes, weights=weights).assign(keys)
    after = small(name, nodes, weights=heavier).assign(keys)
    assert (after[before != after] == node).all()


@pytest.mark.parametrize("name", ["ring", "rendezvous", "maglev"])
def test_weights_are_shares(name):
    keys = mix64(np.arange(40_000))
    options = {"ring": {"vnodes": 2000}, "rendezvous": {}, "maglev": {"table_size": 10007}}[name]
    share = np.bincount(make_scheme(name, list("abc"), weights=[1, 2, 5], **options).assign(keys)) / 40_000
    assert share == pytest.approx(np.array([1, 2, 5]) / 8, abs=0.02)


def bounded_loop(ring, keys, cap):
    """Bounded loads key by key, point by point."""
    load, result = [0] * len(ring.nodes), []
    for entry in ring.entry(keys).tolist():
        while load[ring.owners[entry]] >= cap[ring.owners[entry]]:
            entry = (entry + 1) % len(ring.owners)
        node = int(ring.owners[entry])
        load[node] += 1
        result.append(node)
    return result


@few
@given(
    nodes=names,
    keys=integers,
    factor=st.sampled_from([1, 1.1, 1.25, 2.0, 10]),
    data=st.data(),
)
def test_bounded_equals_the_loop_and_keeps_its_cap(nodes, keys, factor, data):
    weights = data.draw(st.lists(st.integers(1, 3), min_size=len(nodes), max_size=len(nodes)))
    ring = small("ring", nodes, weights=weights)
    cap = load_cap(factor, len(keys), weights)
    owners = Bounded(ring, factor).assign(keys)
    assert (np.bincount(owners, minlength=len(nodes)) <= cap).all()
    assert owners.tolist() == bounded_loop(ring, keys, cap.tolist())


def test_load_cap_is_exact_in_decimals():
    assert load_cap(1.1, 100, [1] * 11).tolist() == [10] * 11  # in float64 the ceiling would be 11
    assert load_cap(1.25, 10, [1] * 4).tolist() == [4] * 4


@pytest.mark.parametrize("name", ["jump", "modulo", "maglev"])
def test_failover_from_one_node_spreads_over_all_others(name):
    rank = small(name, node_names(5)).rank(mix64(np.arange(4000)), 2)
    taken = np.bincount(rank[rank[:, 0] == 1, 1], minlength=5)
    assert taken[1] == 0
    assert (taken[[0, 2, 3, 4]] > 150).all()  # 200 each if even


@pytest.mark.parametrize("name", SCHEMES)
def test_texts_and_integers_and_empty(name):
    scheme = small(name, ["a", "b", "c"])
    hashed = xxh64(["one", "two", "three"])
    assert scheme.assign(["one", "two", "three"]).tolist() == scheme.assign(hashed).tolist()
    assert scheme.assign([]).tolist() == []
    assert scheme.assign(hashed).dtype == np.int64


def test_ketama_integer_keys_are_their_decimal_text():
    ring = Ring(["a", "b", "c"], style="ketama", vnodes=40)
    numbers = [random.Random(0).randrange(2**64) for _ in range(50)]
    assert ring.assign(numbers).tolist() == ring.assign([str(n) for n in numbers]).tolist()


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Ring([]), "nodes is empty"),
        (lambda: node_names(0), "nodes is 0"),
        (lambda: Ring(["a", "a"]), "'a' twice"),
        (lambda: Ring(["a", ""]), "non-empty name"),
        (lambda: Ring(["a"], weights=[1, 2]), "weights has 2 values for 1 nodes"),
        (lambda: Ring(["a"], weights=[0]), "weight is 0"),
        (lambda: Ring(["a"], weights=[1.5]), "weight is 1.5"),
        (lambda: Ring(["a"], vnodes=0), "vnodes is 0"),
        (lambda: Ring(["a"], vnodes=True), "vnodes is True"),
        (lambda: Ring(["a"], ring_size=-3), "ring_size is -3"),
        (lambda: Ring(["a"], vnodes=10**9), "vnodes is 1000000000"),
        (lambda: Ring(["a"], vnodes=10**6, weights=[10]), "limit is 8388608"),
        (lambda: Ring(["a"], vnodes=4, ring_size=4), "give it alone"),
        (lambda: Ring(["a"], style="ketama", vnodes=10), "multiple of 4"),
        (lambda: Ring(["a"], style="md5"), "style is 'md5'"),
        (lambda: Maglev(["a", "b", "c"], 2), "integer in 3"),
        (lambda: Maglev(["a"], 5000017), ".. 5000011"),
        (lambda: Maglev(["a"], -7), "table is -7"),
        (lambda: Ring(["a"]).rank([1], 2), "count is 2"),
        (lambda: Ring(["a"]).assign([-1]), "keys holds -1"),
        (lambda: Ring(["a"]).assign([2**64]), "keys holds 18446744073709551616"),
        (lambda: Ring(["a"]).assign(np.array([-1])), "keys holds -1"),
        (lambda: Ring(["a"]).assign([1.5]), "all texts or all integers"),
        (lambda: Ring(["a"]).assign(["x", 1]), "all texts or all integers"),
        (lambda: Ring(["a"]).assign(np.array([1.0])), "array of float64"),
        (lambda: Bounded(Ring(["a"]), 0.9), "load_factor is 0.9"),
        (lambda: Bounded(Ring(["a"]), float("nan")), "load_factor is nan"),
        (lambda: Bounded(Ring(["a", "b"], "ketama", 4, weights=[1, 99])), "owns no entry"),
        (lambda: Rendezvous(["a"], weights=[100_000]), "limit is 65536"),
        (lambda: jump_hash(uints(1), 0), "buckets is 0"),
        (lambda: make_scheme("anchor", ["a"]), "scheme is 'anchor'"),
        (lambda: make_scheme("jump", ["a"], table_size=7), "jump does not take table_size"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Primary, secondary and what a change of clusters costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.affinity import disruption, fail_over
from k3core.fleet.hashing import SCHEMES, Rendezvous, make_scheme, mix64, node_names

few = settings(max_examples=30, deadline=None, derandomize=True)
KEYS = mix64(np.arange(40_000))
TOKENS = 1000 + KEYS.astype(np.int64) % 9000


def change(name, before, after):
    old, new = make_scheme(name, before), make_scheme(name, after)
    return disruption((before, old.assign(KEYS)), (after, new.assign(KEYS)), TOKENS)


@pytest.mark.parametrize(
    "name, moved", [("modulo", 0.9091), ("ring", 0.0909), ("rendezvous", 0.0909), ("jump", 0.0909)]
)
def test_from_10_to_11_replicas(name, moved):
    """A ring moves about 1/(N+1), modulo about N/(N+1) (production-stack #59, kubeai #314)."""
    result = change(name, node_names(10), node_names(11))
    assert result.ideal_fraction == pytest.approx(1 / 11)
    assert result.moved_fraction == pytest.approx(moved, abs=0.02)
    if name != "modulo":
        assert result.moved_between_survivors == 0
        assert result.max_share == 1  # the new node prefills everything that moved


def test_maglev_moves_a_little_more_than_it_must():
    result = change("maglev", node_names(10), node_names(11))
    assert 0 < result.moved_between_survivors < 0.01


@pytest.mark.parametrize("name", ["ring", "rendezvous", "jump", "maglev", "modulo"])
def test_a_lost_node_is_one_victims_burden_or_everyones(name):
    nodes = node_names(10)
    scheme = make_scheme(name, nodes)
    before, tokens = (nodes, scheme.assign(KEYS)), TOKENS
    naive = disruption(before, (nodes, fail_over(scheme, KEYS, ["node3"], "neighbour")), tokens)
    spread = disruption(before, (nodes, fail_over(scheme, KEYS, ["node3"])), tokens)
    assert naive.max_share == 1
    assert naive.nodes[int(naive.reprefill.argmax())] == "node4"
    assert spread.max_share < 0.2  # 1/9 if even
    assert (spread.moved == naive.moved).all()
    assert spread.reprefill.sum() == tokens[before[1] == 3].sum()


@few
@given(st.sampled_from(sorted(SCHEMES)), st.integers(2, 6), st.data())
def test_failover_moves_only_sessions_of_the_down(name, count, data):
    nodes = node_names(count)
    down = data.draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=count - 1, unique=True))
    sizes = {"maglev": {"table_size": 101}, "ring": {"vnodes": 10}, "bounded": {"vnodes": 10}}
    scheme = make_scheme(name, nodes, **sizes.get(name, {}))
    keys = KEYS[:200]
    first = scheme.rank(keys, 1)[:, 0]
    after = fail_over(scheme, keys, down)
    is_down = np.array([node in down for node in nodes])
    assert not is_down[after].any()
    assert (after == first)[~is_down[first]].all()


def test_ideal_fraction_follows_the_weights():
    nodes, even = ["a", "b"], np.array([0, 1, 0, 1])
    shares = ([1, 1], [1, 3])
    assert disruption((nodes, even), (nodes, even), np.ones(4), shares).ideal_fraction == pytest.approx(0.25)
    three = disruption((["a", "b", "c"], even), (nodes, even), np.ones(4))
    assert three.ideal_fraction == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "down, how, message",
    [
        (["x"], "secondary", "'x', which is not among"),
        (["a", "b"], "secondary", "every node"),
        (["a"], "nearest", "how is 'nearest'"),
    ],
)
def test_bad_input_is_named(down, how, message):
    with pytest.raises(ValueError, match=message):
        fail_over(Rendezvous(["a", "b"]), KEYS[:3], down, how)


@pytest.mark.parametrize("before, after, message", [("ab", ["a", "b"], "before are 'ab'"),
                                                    (["a", "b"], "ab", "after are 'ab'")])
def test_a_string_is_no_list_of_nodes(before, after, message):
    owners = np.zeros(4, dtype=np.int64)
    with pytest.raises(ValueError, match=f"the nodes of {message}; they must be a list of names"):
        disruption((before, owners), (after, owners), np.ones(4))

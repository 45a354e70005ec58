"""Tab `consistent-hashing`: published spreads of rings, the closed forms, and what the reader can break."""

from math import sqrt

import numpy as np
import pytest

from k3core.fleet.balance import ring_cv, sampling_cv
from k3core.fleet.hashing import Ring, node_names
from k3core.lab import consistent_hashing as tab
from k3core.lab import consistent_hashing_tables as tables
from k3core.lab.fleet_nodes import LETTERS, node_arcs, parse_nodes, pick
from k3core.lab.params import ParamError

RUN = tab.EXPERIMENT.run
EVEN = {"hot": 0}


def metrics(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def failed(result) -> set:
    return {check.key for check in result.checks if not check.passed}


@pytest.mark.parametrize(
    ("points", "peak", "cv"), [(1, 2.78, 0.81), (10, 1.56, 0.30), (100, 1.29, 0.128), (160, 1.11, 0.058)]
)
def test_ten_nodes_spread_as_measured_elsewhere(points, peak, cv):
    """XXH64 rings over node0 .. node9, one draw each, 200,000 keys there and 40,000 here."""
    found = metrics(RUN({"nodes": LETTERS[:10], "vnodes": points, "sessions": 40000}))
    assert found["peak_to_mean"] == pytest.approx(peak, abs=0.045)
    assert found["cv"] == pytest.approx(cv, abs=0.012)


@pytest.mark.parametrize(
    ("points", "published"), [(1, 0.9979060), (10, 0.3151810), (100, 0.0996996), (1000, 0.0315723)]
)
def test_theory_agrees_with_the_table_of_the_jump_paper(points, published):
    """arXiv 1406.2294 prints the standard error of a bucket's share for many buckets."""
    assert tables.ring_cv_theory([1] * 1000, points) == pytest.approx(published, rel=0.004)


@pytest.mark.parametrize(
    ("points", "published"), [(1, 2.72), (10, 1.49), (40, 1.24), (100, 1.147), (160, 1.116)]
)
def test_mean_peak_of_eight_nodes_over_many_rings(points, published):
    """Mean over 4,000 random rings, continuous keys; here 60 fleets, so a wider tolerance."""
    peaks = [
        8 * Ring([f"{name}-{seed}" for name in node_names(8)], vnodes=points).shares().max()
        for seed in range(60)
    ]
    assert np.mean(peaks) == pytest.approx(published, abs=4 * np.std(peaks) / sqrt(60))


def test_equal_weights_give_the_plain_formulas():
    assert tables.ring_cv_theory([1] * 8, 16) == pytest.approx(ring_cv(8, 16), rel=1e-12)
    assert tables.sampling_cv_theory([1] * 8, 10000) == pytest.approx(sampling_cv(8, 10000), rel=1e-12)


@pytest.mark.parametrize(("degrees", "quantile"), [(1, 15.14), (7, 29.88), (9, 33.72), (11, 37.37)])
def test_chi_square_bound_lies_above_the_exact_quantile(degrees, quantile):
    """99.99 % points of chi-square as printed in tables: safe, and not more than 1.7 times too wide."""
    assert quantile <= tables.chi_square_bound(degrees) <= 1.7 * quantile


def test_defaults_hold_and_teach():
    result = RUN()
    found = metrics(result)
    assert failed(result) == set()
    assert found["cv_theory"] == pytest.approx(sqrt(7 / 129))
    assert found["max_load_bound"] == -(-5 * 11763 // 32)  # ceil(1.25 R / 8)
    assert found["load_peak_to_mean"] > found["peak_to_mean"] > 1


def test_preset_numbers_are_as_promised():
    def at(name):
        return metrics(RUN(tab.EXPERIMENT.preset(name).params))

    assert at("one-point")["peak_to_mean"] == pytest.approx(2.2, abs=0.05)
    assert at("ketama")["peak_to_mean"] == pytest.approx(1.07, abs=0.005)
    assert at("ketama")["cv_theory"] == pytest.approx(0.074, abs=0.0005)
    assert at("hot")["moved_by_bound"] == pytest.approx(0.26, abs=0.02)


def test_checks_hold_for_many_fleets():
    for seed in range(1, 26):
        assert failed(RUN({"vnodes": 40}, seed)) == set(), seed


def test_weights_are_followed_by_ring_rendezvous_and_maglev_only():
    rows = {row[0]: row for row in RUN({"weights": [3, 1, 2], "vnodes": 200, **EVEN}).tables["schemes"].rows}
    for name in ("ring", "rendezvous", "maglev"):
        assert rows[f"scheme:{name}"][2] < 1.25
    for name in ("jump", "modulo"):
        assert rows[f"scheme:{name}"][5] > 10 * rows[f"scheme:{name}"][6]


def test_request_stream_gives_the_hot_session_its_share():
    requests = tab.request_stream(10000, 20, np.random.default_rng(0))
    assert len(requests) == 12499 and (requests == 0).sum() == 2500
    assert (np.bincount(requests)[1:] == 1).all()
    assert len(tab.request_stream(500, 0, np.random.default_rng(0))) == 500


def test_bound_moves_only_what_does_not_fit():
    result = RUN({"load_factor": 3.0})
    assert metrics(result)["moved_by_bound"] == 0
    tight = RUN({"load_factor": 1.0})
    loads = [row[7] for row in tight.tables["nodes"].rows]
    assert max(loads) - min(loads) <= len(loads) and sum(loads) == sum(
        row[6] for row in tight.tables["nodes"].rows
    )


def test_turning_a_node_turns_all_its_points():
    names = node_names(4)
    before, after = Ring(names, vnodes=3), tab.TurnedRing(names, [0, 90, 0, 0], vnodes=3)
    moved = np.sort(before.positions[before.owners == 1] + np.uint64(90 * (2**64 // 360)))
    assert np.array_equal(np.sort(after.positions[after.owners == 1]), moved)
    assert (np.diff(after.positions) > 0).all() and abs(after.shares().sum() - 1) < 1e-12
    kept = after.owners != 1
    assert np.array_equal(after.positions[kept], before.positions[before.owners != 1])


def test_a_ring_that_nobody_turned_is_the_ring():
    keys = np.random.default_rng(5).integers(0, 2**64, 2000, dtype=np.uint64)
    names = node_names(6)
    plain, turned = Ring(names, vnodes=9), tab.TurnedRing(names, [0] * 6, vnodes=9)
    assert np.array_equal(plain.assign(keys), turned.assign(keys))
    edges = np.array([plain.positions[3], plain.positions[-1] + np.uint64(1), 0], dtype=np.uint64)
    assert np.array_equal(plain.assign(edges), turned.assign(edges))


def test_two_moves_by_hand_even_out_a_ring_of_one_point_each():
    """What the text promises: with one point per node dragging helps."""
    plain = RUN({"vnodes": 1, "nodes": "abc"})
    shares = [row[4] for row in plain.tables["nodes"].rows]
    assert max(shares) > 0.5
    ring = Ring(node_names(3), vnodes=1)
    at = {int(owner): float(position) / 2**64 * 360 for owner, position in zip(ring.owners, ring.positions)}
    turns = [round((120 * node - at[node]) % 360) % 360 for node in range(3)]
    assert metrics(RUN({"vnodes": 1, "nodes": "abc", "turns": turns}))["cv"] < 0.05


def test_one_node_takes_everything():
    result = RUN({"nodes": "c"})
    assert (
        failed(result) == set() and metrics(result)["peak_to_mean"] == 1 and metrics(result)["cv_theory"] == 0
    )


def test_arcs_cover_the_circle_once():
    ring = Ring(node_names(5), vnodes=7)
    arcs = node_arcs(ring)
    lengths = [sum((end - begin) % 1 for begin, end in own) for own in arcs]
    assert np.allclose(lengths, ring.shares())


@pytest.mark.parametrize("nodes", ["", "aa", "xyz", "AB", "a,b"])
def test_bad_nodes_are_named(nodes):
    with pytest.raises(ParamError, match="nodes is .* letters a–l, each once"):
        parse_nodes("nodes", nodes)


def test_short_lists_leave_the_rest_at_the_default():
    assert pick([2, 3], "bac", 1) == [3, 2, 1]
    assert metrics(RUN({"weights": [1]})) == metrics(RUN())


@pytest.mark.parametrize("narrow", [False, True])
def test_every_frame_draws_and_a_click_changes_the_nodes(narrow):
    result = RUN({"nodes": "abd"})
    for frame in range(result.scene("ring").frames):
        svg = tab.EXPERIMENT.picture(result, "ring", frame, "zh", narrow).svg
        assert 'data-value="abcd"' in svg and 'data-value="ab"' in svg and svg.count("data-drag-turn") == 3

"""Tab `minimal-disruption`: measured disruption of five schemes, and what the reader can break."""

import numpy as np
import pytest

from k3core.lab import minimal_disruption as tab
from k3core.lab import minimal_disruption_tables as tables
from k3core.lab.fleet_nodes import LETTERS
from k3core.lab.params import ParamError

RUN = tab.EXPERIMENT.run
MANY = {"sessions": 20000}
DEATH = {"after": "abcefghij"}


def metrics(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def failed(result) -> set:
    return {check.key for check in result.checks if not check.passed}


@pytest.mark.parametrize(
    ("params", "added", "removed"),
    [
        ({"vnodes": 1}, 0.0626, 0.0863),
        ({"vnodes": 10}, 0.1123, 0.1267),
        ({"vnodes": 100}, 0.0810, 0.1006),
        ({"vnodes": 160}, 0.0903, 0.1114),
        ({"scheme": "rendezvous"}, 0.0915, 0.1004),
        ({"scheme": "maglev", "table": 251}, 0.1434, 0.1633),
        ({"scheme": "maglev", "table": 1021}, 0.1185, 0.1185),
        ({"scheme": "maglev", "table": 65537}, 0.0937, 0.1019),
    ],
)
def test_ten_nodes_move_what_was_measured_elsewhere(params, added, removed):
    """XXH64 over node0 .. node9, 200,000 keys there and 20,000 here: add node10, remove node3."""
    for change, published in (({}, added), (DEATH, removed)):
        assert metrics(RUN(MANY | params | change))["moved_fraction"] == pytest.approx(published, abs=0.0085)


def test_modulo_and_jump_as_published():
    """Ten to eleven: modulo moves 0.9086 of the keys (10/11 in theory), jump 0.0915 (1/11)."""
    assert metrics(RUN(MANY | {"scheme": "modulo"}))["moved_fraction"] == pytest.approx(0.9086, abs=0.006)
    assert metrics(RUN(MANY | {"scheme": "jump"}))["moved_fraction"] == pytest.approx(0.0915, abs=0.006)


@pytest.mark.parametrize(("table", "extra"), [(251, 0.0637), (1021, 0.0186), (65537, 0.0019)])
def test_maglev_moves_a_little_between_survivors(table, extra):
    """Beyond the removed node's own keys, by size of the table."""
    found = metrics(RUN(MANY | DEATH | {"scheme": "maglev", "table": table}))
    assert found["moved_between_survivors"] == pytest.approx(extra, abs=0.004)


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ("abcdefghij", "abcdefghijk", 10 / 11),
        ("a", "ab", 1 / 2),
        ("ab", "abc", 2 / 3),
        ("abc", "abc", 0.0),
        ("abcd", "ab", 1 / 2),
    ],
)
def test_modulo_by_arithmetic(before, after, share):
    assert tab.modulo_moves(before, after) == pytest.approx(share)


@pytest.mark.parametrize(
    ("before", "after"), [("abcdefg", "abdefg"), ("abc", "abcdefgh"), ("abcdef", "bcde")]
)
def test_measured_modulo_agrees_with_arithmetic(before, after):
    found = metrics(RUN(MANY | {"scheme": "modulo", "before": before, "after": after}))
    assert found["moved_fraction"] == pytest.approx(tab.modulo_moves(before, after), abs=0.015)


def test_defaults_hold_and_teach():
    result = RUN()
    found = metrics(result)
    assert failed(result) == set()
    assert found["ideal_fraction"] == pytest.approx(1 / 11) and found["moved_between_survivors"] == 0
    assert found["reprefill_tokens_max_share"] == 1  # the newcomer prefills everything
    assert result.answer == 3


@pytest.mark.parametrize("scheme", tables.SCHEMES)
def test_secondaries_share_what_a_neighbour_takes_alone(scheme):
    """Primary and secondary per session (Kimi K3 report, section 5.4.3) against the next in the list."""
    many = metrics(RUN(MANY | DEATH | {"scheme": scheme, "failover": "secondary"}))
    one = metrics(RUN(MANY | DEATH | {"scheme": scheme, "mistake": "neighbour"}))
    assert many["moved_between_survivors"] == one["moved_between_survivors"] == 0
    assert many["reprefill_tokens"] == one["reprefill_tokens"]
    assert one["reprefill_tokens_max_share"] == 1 and many["reprefill_tokens_max_share"] < 0.2


@pytest.mark.parametrize("scheme", ["ring", "rendezvous"])
@pytest.mark.parametrize(
    "change", [{}, DEATH, {"after": "abcdefgl"}, {"after": "kl"}, {"before": "abc", "after": "bcdef"}]
)
def test_ring_and_rendezvous_never_move_needlessly(scheme, change):
    for seed in range(3):
        result = RUN({"scheme": scheme, "vnodes": 20} | change, seed)
        assert failed(result) == set() and metrics(result)["moved_between_survivors"] == 0


def test_a_ring_s_own_secondary_is_the_ring_without_the_dead():
    """Walking on from a dead cluster's points and removing those points is the same thing."""
    rebuilt, failed_over = (
        RUN(DEATH | {"failover": how}).tables["clusters"].rows for how in ("rebuild", "secondary")
    )
    assert rebuilt == failed_over


def test_books_balance():
    result = RUN(DEATH | {"scheme": "modulo"})
    rows = result.tables["clusters"].rows
    assert sum(row[2] for row in rows) == sum(row[5] for row in rows) == 5000
    assert (
        sum(row[3] for row in rows)
        == sum(row[4] for row in rows)
        == round(5000 * metrics(result)["moved_fraction"])
    )
    assert all(row[2] - row[3] + row[4] == row[5] for row in rows)
    assert sum(row[6] for row in rows) == metrics(result)["reprefill_tokens"]


def test_no_change_moves_nothing():
    result = RUN({"before": "abc", "after": "abc"})
    found = metrics(result)
    assert failed(result) == set()
    assert found["moved_fraction"] == found["reprefill_tokens"] == found["reprefill_tokens_max_share"] == 0


def test_growth_chart_is_the_schemes_themselves():
    """The chart takes points away from one large ring; that must be the smaller rings."""
    growth = RUN({"sessions": tables.CHART_SESSIONS}).tables["growth"]
    rows = {(row[0], row[1]): row[2] for row in growth.rows}
    for clusters in (2, 7, 10):
        change = {
            "before": LETTERS[:clusters],
            "after": LETTERS[: clusters + 1],
            "sessions": tables.CHART_SESSIONS,
        }
        for scheme in ("ring", "modulo"):
            assert rows[clusters, scheme] == metrics(RUN(change | {"scheme": scheme}))["moved_fraction"]


def test_price_of_a_moved_prefix():
    """K3's list prices, 3.00 and 0.30 dollars per million: a million repeated tokens cost 2.70 more."""
    found = metrics(RUN())
    assert found["extra_cost"] == pytest.approx(found["reprefill_tokens"] * 2.7e-6)


@pytest.mark.parametrize("params", [{"after": ""}, {"before": "aab"}, {"after": "xyz"}])
def test_bad_clusters_are_named(params):
    with pytest.raises(ParamError, match=f"{next(iter(params))} is .* letters a–l"):
        RUN(params)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(
    "params", [{}, DEATH, {"after": "a"}, {"before": "a", "after": "l"}, {"before": LETTERS, "after": "b"}]
)
def test_every_frame_draws_all_sessions(params, narrow):
    result = RUN(params)
    for frame in range(result.scene("move").frames):
        svg = tab.EXPERIMENT.picture(result, "move", frame, "zh", narrow).svg
        assert svg.count('data-id="session:') == (180 if narrow else 360)
        assert svg.count('data-click="scheme"') == 5
        ys = [float(part.split('"')[0]) for part in svg.split(' y="')[1:]]
        assert min(ys) >= 0


def test_tokens_hang_below_the_right_cluster():
    result = RUN(DEATH | {"mistake": "neighbour"})
    log = result.scene("move").events
    assert np.argmax(log["tokens"][-1]) == log["letters"].index("e")
    assert sum(log["tokens"][-1]) == metrics(result)["reprefill_tokens"] and sum(log["tokens"][1]) == 0

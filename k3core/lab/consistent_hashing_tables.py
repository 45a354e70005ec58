"""Theory, tables and charts of the tab `consistent-hashing`."""

from math import sqrt

import numpy as np

from k3core.fleet.balance import balance
from k3core.fleet.hashing import Bounded, Ring
from k3core.lab import charts
from k3core.lab.contract import Column, Figure, Progress, Table
from k3core.lab.fleet_nodes import SCHEMES
from k3core.lab.text import Text

CHART_POINTS = (1, 4, 16, 64, 256)
CHART_FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
CHANCE = 9.21  # -ln of the chance, 1 in 10,000, that an even hash exceeds the chi-square bound


def ring_cv_theory(weights: list, vnodes: int) -> float:
    """Coefficient of variation of the nodes' shares of a ring, each against its fair share.

    A node of weight w owns a Beta(wV, (W-w)V) share, so the variance of share over fair share is
    (W-w) / (w (WV+1)); with equal weights the root of the mean is sqrt((n-1)/(nV+1)).
    """
    total = sum(weights)
    return sqrt(sum((total - w) / (w * (total * vnodes + 1)) for w in weights) / len(weights))


def sampling_cv_theory(weights: list, keys: int) -> float:
    """The same for an ideal hash, where only the draw of the keys is left: multinomial, (W-w) / (w m)."""
    total = sum(weights)
    return sqrt(sum((total - w) / (w * keys) for w in weights) / len(weights))


def cv_bound(theory: float, weights: list, keys: int) -> float:
    """How uneven chance makes n nodes at worst: their variance is about chi-square with n-1 degrees, and
    (1 + 3/sqrt(n-1))^2 times its mean is exceeded about once in 20,000."""
    expected = sqrt(theory**2 + sampling_cv_theory(weights, keys) ** 2)
    return expected * (1 + 3 / sqrt(max(1, len(weights) - 1)))


def chi_square_bound(degrees: int) -> float:
    """What chi-square exceeds at most once in 10,000: d + 2 sqrt(d x) + 2 x.

    Source: Laurent and Massart, "Adaptive estimation of a quadratic functional" (2000), lemma 1.
    """
    return degrees + 2 * sqrt(degrees * CHANCE) + 2 * CHANCE


def schemes_table(owners: dict, requests: np.ndarray, weights: list, ring_theory: float) -> Table:
    """The five schemes side by side: spread of the same sessions, and of their requests."""
    rows, nodes = [], len(weights)
    for name, title in SCHEMES.items():
        keys = balance(np.bincount(owners[name], minlength=nodes), weights)
        load = balance(np.bincount(owners[name][requests], minlength=nodes), weights)
        theory = ring_theory if name == "ring" else sampling_cv_theory(weights, len(owners[name]))
        rows.append(
            (
                f"scheme:{name}",
                title,
                keys.peak_to_mean,
                keys.cv,
                theory,
                keys.chi_square,
                chi_square_bound(keys.degrees),
                load.peak_to_mean,
            )
        )
    return Table(
        (
            Column("id", Text("id")),
            Column("scheme", Text("scheme")),
            Column("peak", Text("sessions, peak / fair"), "float", scale=1.0),
            Column("cv", Text("CV"), "float", scale=1.0),
            Column("theory", Text("CV in theory"), "float", scale=1.0),
            Column("chi", Text("chi-square"), "float", scale=1.0),
            Column("chi_bound", Text("even if at most"), "float", scale=1.0),
            Column("load", Text("requests, peak / fair"), "float", scale=1.0),
        ),
        rows,
        Text("Five schemes, the same sessions"),
    )


def nodes_table(letters, weights, p, ring, owners, requests, bounded) -> Table:
    """What each node owns and serves."""
    shares = ring.shares()
    sessions = np.bincount(owners["ring"], minlength=len(letters))
    load = np.bincount(owners["ring"][requests], minlength=len(letters))
    capped = np.bincount(bounded, minlength=len(letters))
    rows = [
        (
            f"node:{letter}",
            letter,
            weights[i],
            weights[i] * p.vnodes,
            float(shares[i]),
            int(sessions[i]),
            int(load[i]),
            int(capped[i]),
        )
        for i, letter in enumerate(letters)
    ]
    return Table(
        (
            Column("id", Text("id")),
            Column("node", Text("node")),
            Column("weight", Text("weight")),
            Column("points", Text("points")),
            Column("share", Text("of the circle"), "float", "share", scale=1.0),
            Column("sessions", Text("sessions")),
            Column("requests", Text("requests")),
            Column("bounded", Text("requests, bounded")),
        ),
        rows,
        Text("The ring, node by node"),
    )


def points_table(names: list, weights: list) -> Table:
    """CV of the shares against points per node, measured on real rings and in theory, for the first chart."""
    rows = []
    for points in CHART_POINTS:
        shares = Ring(names, vnodes=points, weights=weights).shares()
        rows.append((points, "measured", balance(shares, weights).cv))
        rows.append((points, "theory", ring_cv_theory(weights, points)))
    return Table(
        (
            Column("points", Text("points per node")),
            Column("kind", Text("kind")),
            Column("cv", Text("CV of the shares"), "float", scale=1.0),
        ),
        rows,
    )


def tradeoff_table(ring: Ring, keys: np.ndarray, requests: np.ndarray, owner: np.ndarray):
    """How many requests leave their node at each load factor, for the second chart."""
    rows, home, order = [], owner[requests], keys[requests]
    for factor in CHART_FACTORS:
        node = Bounded(ring, factor).assign(order)
        rows.append((factor, int((node != home).sum()) / len(home)))
        yield Progress(len(rows), len(CHART_FACTORS))
    return Table(
        (
            Column("factor", Text("load factor"), "float", scale=1.0),
            Column("moved", Text("requests that walk on"), "float", "share", scale=1.0),
        ),
        rows,
    )


def points_figure(table: Table, p) -> Figure:
    """More points help with their square root."""
    styles = {"measured": ("ordinary", [1, 0]), "theory": ("snapshot", [5, 4])}
    corner = [row[2] for row in table.rows if row[1] == "theory"]
    most = table.rows[-1][0]
    labels = [
        (most, corner[0], Text("— measured"), "ordinary"),
        (most, corner[1], Text("– – theory"), "snapshot"),
    ]
    x = charts.quantitative("points", Text("points per node"), log=True)
    y = charts.quantitative(
        "cv", None, log=True, axis={"format": "~p", "values": [0.05, 0.1, 0.2, 0.5, 1], "title": None}
    )
    return Figure(
        "points",
        "points",
        Text("How uneven the shares of the circle are"),
        Text(
            "The CV falls with the square root of the number of points: four times as many points halve it."
        ),
        {
            "layer": [
                charts.line_layer(x, y, charts.series("kind", styles), ["points", "cv"]),
                charts.label_layer("points", "cv", labels),
                charts.rule_layer(p.vnodes),
            ]
        },
    )


def tradeoff_figure(p) -> Figure:
    """A tight bound sends many requests away from their prefix."""
    x = charts.quantitative("factor", Text("load factor"), scale={"zero": False}, axis={"tickCount": 5})
    y = charts.quantitative("moved", None, axis={"format": "~p", "title": None, "tickCount": 5})
    layer = charts.line_layer(x, y, {"color": {"value": charts.colour("miss")}}, ["factor", "moved"])
    return Figure(
        "tradeoff",
        "tradeoff",
        Text("What the bound costs: requests away from their prefix"),
        Text(
            "At a load factor of 1 everyone is equally full, and many requests walk on. From "
            "about the fullest node's load upwards the bound does nothing."
        ),
        {"layer": [layer, charts.rule_layer(p.load_factor)]},
    )

"""Tables and charts of the tab `minimal-disruption`."""

import numpy as np

from k3core.fleet.affinity import fail_over
from k3core.fleet.hashing import Modulo, Ring
from k3core.lab import charts
from k3core.lab.contract import Column, Figure, Table
from k3core.lab.fleet_nodes import LETTERS, SCHEMES, hashed_names
from k3core.lab.text import Text

CHART_POINTS = (1, 4, 16, 64, 128)
CHART_SESSIONS = 2000


def schemes_table(changes: dict, after: str) -> Table:
    """The five schemes side by side."""
    rows = []
    for name, change in changes.items():
        total = int(change.reprefill.sum())
        busiest = after[int(change.reprefill.argmax())] if total else "–"
        rows.append(
            (
                f"scheme:{name}",
                SCHEMES[name],
                change.moved_fraction,
                change.ideal_fraction,
                change.moved_between_survivors,
                total,
                change.max_share,
                busiest,
            )
        )
    return Table(
        (
            Column("id", Text("id")),
            Column("scheme", Text("scheme")),
            Column("moved", Text("sessions moved"), "float", "share", scale=1.0),
            Column("ideal", Text("needed for fair shares"), "float", "share", scale=1.0),
            Column("needless", Text("between clusters that stay"), "float", "share", scale=1.0),
            Column("tokens", Text("tokens to prefill again")),
            Column("share", Text("on the busiest"), "float", "share", scale=1.0),
            Column("busiest", Text("busiest")),
        ),
        rows,
        Text("Five schemes, the same change"),
    )


def clusters_table(before: str, after: str, old: np.ndarray, new: np.ndarray, change) -> Table:
    """What each cluster loses, gains and has to prefill again."""
    was, now = np.bincount(old, minlength=len(before)), np.bincount(new, minlength=len(after))
    arrived = np.bincount(new[change.moved], minlength=len(after))
    rows = []
    for letter in before + "".join(other for other in after if other not in before):
        had = int(was[before.index(letter)]) if letter in before else 0
        place = after.find(letter)
        has, came, tokens = (int(x[place]) if place >= 0 else 0 for x in (now, arrived, change.reprefill))
        rows.append((f"node:{letter}", letter, had, had - (has - came), came, has, tokens))
    return Table(
        (
            Column("id", Text("id")),
            Column("cluster", Text("cluster")),
            Column("had", Text("sessions before")),
            Column("left", Text("left")),
            Column("came", Text("arrived")),
            Column("has", Text("sessions after")),
            Column("tokens", Text("tokens to prefill again")),
        ),
        rows,
        Text("Cluster by cluster"),
    )


def growth_table(p, keys: np.ndarray, seed: int) -> Table:
    """Sessions moved when n clusters become n + 1, for the first chart."""
    rows, keys = [], keys[:CHART_SESSIONS]
    ring = Ring(hashed_names(LETTERS, seed), vnodes=p.vnodes)
    entry, each, placed = ring.entry(keys), np.arange(len(LETTERS)), {}
    for clusters in range(2, len(LETTERS) + 1):
        # a ring of fewer clusters is this one without the others' points
        now = {
            "ring": ring.owners_without(each >= clusters)[entry],
            "modulo": Modulo(LETTERS[:clusters]).assign(keys),
        }
        for name, last in placed.items():
            rows.append((clusters - 1, name, int((last != now[name]).sum()) / len(keys)))
        placed = now
    rows += [(n, "least", 1 / (n + 1)) for n in range(2, len(LETTERS))]
    return Table(
        (
            Column("clusters", Text("clusters before one joins")),
            Column("scheme", Text("scheme")),
            Column("moved", Text("sessions moved"), "float", "share", scale=1.0),
        ),
        rows,
    )


def spread_table(keys: np.ndarray, before: str, seed: int) -> Table:
    """A ring's cluster dies: the busiest heir's share against points per cluster, for the second chart."""
    rows, keys = [], keys[:CHART_SESSIONS]
    for points in CHART_POINTS if len(before) > 1 else ():
        ring = Ring(hashed_names(before, seed), vnodes=points)
        dead = len(before) // 3
        orphans = fail_over(ring, keys, [ring.nodes[dead]])[ring.assign(keys) == dead]
        heirs = np.bincount(orphans, minlength=len(before))
        rows.append((points, "ring", int(heirs.max()) / max(1, int(heirs.sum()))))
        rows.append((points, "even", 1 / (len(before) - 1)))
    return Table(
        (
            Column("points", Text("points per cluster")),
            Column("kind", Text("kind")),
            Column("share", Text("share of the busiest"), "float", "share", scale=1.0),
        ),
        rows,
    )


def growth_figure(table: Table, p) -> Figure:
    """Modulo loses more the larger the fleet, a ring less."""
    styles = {"ring": ("ordinary", [1, 0]), "modulo": ("miss", [1, 0]), "least": ("snapshot", [5, 4])}
    rows = {(row[0], row[1]): row[2] for row in table.rows}
    labels = [
        (9, rows[9, "modulo"] - 0.17, Text("modulo"), "miss"),
        (9, 0.36, Text("— ring"), "ordinary"),
        (9, 0.26, Text("– – needed"), "snapshot"),
    ]
    x = charts.quantitative(
        "clusters",
        Text("clusters before one joins"),
        scale={"zero": False},
        axis={"format": "d", "tickMinStep": 1},
    )
    y = charts.quantitative(
        "moved", None, axis={"format": "~p", "title": None, "tickCount": 5}, scale={"domain": [0, 1]}
    )
    return Figure(
        "growth",
        "growth",
        Text("One more cluster: sessions that move"),
        Text("Modulo moves n of n + 1 sessions, so it hurts a large fleet most. A ring moves one of n + 1."),
        {
            "layer": [
                charts.line_layer(x, y, charts.series("scheme", styles), ["clusters", "moved"]),
                charts.label_layer("clusters", "moved", labels),
                charts.rule_layer(len(p.before)),
            ]
        },
    )


def spread_figure(p) -> Figure:
    """With few points a dead cluster's sessions fall on few heirs."""
    styles = {"ring": ("ordinary", [1, 0]), "even": ("snapshot", [5, 4])}
    labels = [(64, 0.86, Text("— ring"), "ordinary"), (64, 0.76, Text("– – spread evenly"), "snapshot")]
    x = charts.quantitative("points", Text("points per cluster"), log=True)
    y = charts.quantitative(
        "share", None, axis={"format": "~p", "title": None, "tickCount": 5}, scale={"domain": [0, 1]}
    )
    return Figure(
        "spread",
        "spread",
        Text("A cluster dies: share of its sessions on the busiest heir"),
        Text(
            "With one point the next cluster clockwise inherits all. With a hundred, nearly all others share."
        ),
        {
            "layer": [
                charts.line_layer(x, y, charts.series("kind", styles), ["points", "share"]),
                charts.label_layer("points", "share", labels),
                charts.rule_layer(p.vnodes),
            ]
        },
    )

"""Tab `minimal-disruption`: which sessions move when clusters join or die, and who prefills again."""

from math import lcm, sqrt

import numpy as np

from k3core.fleet.affinity import disruption, fail_over
from k3core.fleet.hashing import Jump, Maglev, Modulo, Rendezvous, Ring
from k3core.fleet.latency import PRICES, prefill_time
from k3core.lab import minimal_disruption_tables as tables
from k3core.lab import minimal_disruption_view as view
from k3core.lab.contract import (
    Check,
    Experiment,
    Metric,
    Prediction,
    Preset,
    Progress,
    Result,
    Scene,
)
from k3core.lab.display import number, percent
from k3core.lab.fleet_nodes import LETTERS, SCHEMES, hashed_names, parse_nodes, session_keys
from k3core.lab.params import Param
from k3core.lab.text import Text

SHARES = (0.01, 0.09, 0.5, 0.91)  # the options of the prediction


def run(p, seed: int):
    """Place sessions before and after the change with every scheme, and compare the two."""
    before, after = parse_nodes("before", p.before), parse_nodes("after", p.after)
    keys = session_keys(p.sessions, seed)
    tokens = np.random.default_rng(seed).integers(
        p.prefix // 2, p.prefix + p.prefix // 2, p.sessions, dtype=np.int64
    )
    placed, changes = {}, {}
    for name in SCHEMES:
        placed[name] = places(p, name, before, after, keys, seed)
        old, new = placed[name]
        changes[name] = disruption((list(before), old), (list(after), new), tokens)
        yield Progress(len(changes), len(SCHEMES) + 1)
    change, (old, new) = changes[p.scheme], placed[p.scheme]
    growth, spread = tables.growth_table(p, keys, seed), tables.spread_table(keys, before, seed)
    yield Progress(len(SCHEMES) + 1, len(SCHEMES) + 1)

    log = view.events(p, before, after, old, new, tokens, change, changes)
    modulo = modulo_moves(before, after)
    return Result(
        metrics=_metrics(change, tokens),
        checks=_checks(p, before, after, changes, orphan_share(before, after, *placed["rendezvous"], tokens)),
        tables={
            "schemes": tables.schemes_table(changes, after),
            "clusters": tables.clusters_table(before, after, old, new, change),
            "growth": growth,
            "spread": spread,
        },
        figures=[tables.growth_figure(growth, p), tables.spread_figure(p)],
        scenes=[
            Scene(
                "move",
                Text("Sessions and their clusters: remove one, add one"),
                log,
                view.captions(log),
                poster=view.FRAMES - 1,
            )
        ],
        answer=min(range(len(SHARES)), key=lambda i: (abs(SHARES[i] - modulo), i)),
        answer_text=Text(
            "Modulo moves {modulo} of them; fair shares need {ideal}.",
            modulo=percent(modulo, 3),
            ideal=percent(change.ideal_fraction, 3),
        ),
    )


def build(p, name: str, clusters: str, seed: int):
    """A scheme over these clusters, hashed by their own names or, by mistake, by their places in the list."""
    letters = LETTERS[: len(clusters)] if p.mistake == "places" else clusters
    names = hashed_names(letters, seed)
    if name == "ring":
        return Ring(names, vnodes=p.vnodes)
    if name == "maglev":
        return Maglev(names, p.table)
    return {"rendezvous": Rendezvous, "jump": Jump, "modulo": Modulo}[name](names)


def places(p, name: str, before: str, after: str, keys: np.ndarray, seed: int) -> tuple:
    """The cluster of every session before and after -> two int64 [K], indices into `before` and `after`.

    "rebuild" hashes over the clusters that are left; otherwise dead clusters stay in the hash, and only their
    sessions go elsewhere: each to its own secondary or, by mistake, all to the next in the list.
    """
    old = build(p, name, before, seed).assign(keys)
    how = "neighbour" if p.mistake == "neighbour" else p.failover
    if how == "rebuild" or set(before) <= set(after):
        return old, build(p, name, after, seed).assign(keys)
    known = before + "".join(letter for letter in after if letter not in before)
    scheme = build(p, name, known, seed)
    down = [scheme.nodes[place] for place, letter in enumerate(known) if letter not in after]
    landed = fail_over(scheme, keys, down, how)
    return old, np.array([after.find(letter) for letter in known], dtype=np.int64)[landed]


def orphan_share(before: str, after: str, old: np.ndarray, new: np.ndarray, tokens: np.ndarray) -> float:
    """Of the prefix tokens that dead clusters leave behind, the share that the busiest cluster takes over."""
    dead = np.array([letter not in after for letter in before])[old]
    taken = np.zeros(len(after), dtype=np.int64)
    np.add.at(taken, new[dead], tokens[dead])
    return int(taken.max()) / int(taken.sum()) if taken.sum() else 0.0


def most_moved(before: str, after: str, sessions: int) -> float:
    """The most that an ideal hash moves: the share of the clusters that came or went among all, and four
    standard deviations of the draw of sessions."""
    share = 1 - len(set(before) & set(after)) / len(set(before) | set(after))
    return share + 4 * sqrt(share * (1 - share) / sessions)


def modulo_moves(before: str, after: str) -> float:
    """The share of hash values h for which before[h mod n] is not after[h mod m]; n/(n+1) where m = n+1."""
    period = lcm(len(before), len(after))
    return sum(before[h % len(before)] != after[h % len(after)] for h in range(period)) / period


def _checks(p, before: str, after: str, changes: dict, orphans: float) -> list:
    """What consistent hashing promises, whichever scheme is shown: checked on rendezvous and on the ring."""
    needless = sum(int(changes[name].needless.sum()) for name in ("ring", "rendezvous"))
    moved, most = changes["rendezvous"].moved_fraction, most_moved(before, after, p.sessions)
    fair = 3 / len(after)
    return [
        Check(
            "no_needless_moves",
            Text("ring and rendezvous: no session moves between clusters that stay"),
            needless == 0,
            needless,
            0,
        ),
        Check(
            "near_ideal",
            Text("rendezvous: only the share of clusters that came or went moves, up to chance"),
            moved <= most,
            percent(moved, 3),
            Text("at most {bound}", bound=percent(most, 3)),
        ),
        Check(
            "spread",
            Text("rendezvous: no cluster takes over more than three fair shares of what dead ones leave"),
            orphans <= fair,
            percent(orphans, 3),
            Text("at most {bound}", bound=percent(min(1.0, fair), 3)),
        ),
    ]


def _metrics(change, tokens: np.ndarray) -> list:
    total, price = int(change.reprefill.sum()), PRICES["kimi-k3"]
    mean = int(tokens.sum()) // len(tokens)
    seconds = int(change.reprefill.max()) * prefill_time(mean) / mean
    extra = total * (price.miss - price.hit) / 1e9
    share = {"unit": "share", "kind": "float", "scale": 1.0}
    return [
        Metric("moved_fraction", Text("sessions that move"), change.moved_fraction, **share),
        Metric("ideal_fraction", Text("needed for fair shares"), change.ideal_fraction, **share),
        Metric(
            "moved_between_survivors",
            Text("moved between clusters that stay"),
            change.moved_between_survivors,
            **share,
        ),
        Metric(
            "reprefill_tokens_max_share",
            Text("of the repeated prefill, on the busiest cluster"),
            change.max_share,
            **share,
        ),
        Metric("reprefill_tokens", Text("tokens to prefill again"), total, text=f"{number(total / 1e6)} M"),
        Metric(
            "busiest_minutes",
            Text("prefill on the busiest cluster, one K3 on 8 × B300"),
            seconds / 60,
            "min",
            badge="derived",
            kind="float",
            scale=1.0,
        ),
        Metric(
            "extra_cost",
            Text("at list prices, more than hits would have cost"),
            extra,
            "USD",
            badge="derived",
            kind="float",
            scale=1.0,
            text=f"${number(extra, 4)}",
        ),
    ]


EXPERIMENT = Experiment(
    slug="minimal-disruption",
    tab=12,
    family="fleet",
    name=Text("Minimal disruption"),
    title=Text("Minimal disruption: who loses a prefix when clusters change"),
    question=Text(
        "A cluster joins, or dies. Every session that then lands elsewhere has lost its prefix, and some cluster must "
        "prefill it again. How many sessions move, how many had to, and on whom does the work fall?"
    ),
    params=(
        Param(
            "after",
            Text("Clusters after the change"),
            "text",
            LETTERS[:11],
            max_length=len(LETTERS),
            help=Text("One letter each, a to l. In the drawing: × and +."),
        ),
        Param("scheme", Text("Scheme"), "choice", "ring", choices=tuple(SCHEMES.items())),
        Param(
            "failover",
            Text("When a cluster dies"),
            "choice",
            "rebuild",
            choices=(
                ("rebuild", Text("hash over those that are left")),
                ("secondary", Text("each session's own secondary")),
            ),
        ),
        Param("vnodes", Text("Points per cluster on the ring"), "int", 100, 1, 200, 1),
        Param(
            "prefix",
            Text("Prefix of a session, tokens"),
            "int",
            80000,
            2000,
            400000,
            2000,
            help=Text("On average; sessions lie between half and one and a half times this."),
        ),
        Param("before", Text("Clusters before"), "text", LETTERS[:10], max_length=len(LETTERS)),
        Param("sessions", Text("Sessions"), "int", 5000, 1000, 20000, 1000),
        Param(
            "table",
            Text("Maglev table"),
            "choice",
            4093,
            choices=tuple((n, number(n)) for n in (251, 1021, 4093, 65537)),
        ),
        Param(
            "mistake",
            Text("Mistake"),
            "choice",
            "none",
            breaker=True,
            choices=(
                ("none", Text("none")),
                ("neighbour", Text("the next in the list takes over a dead one")),
                ("places", Text("clusters are hashed by place, not by name")),
            ),
        ),
    ),
    presets=(
        Preset(
            "modulo",
            Text("Modulo"),
            Text(
                "Ten clusters become eleven under hash mod n: ten of eleven sessions move, nearly all between clusters "
                "that were there before and after."
            ),
            {"scheme": "modulo"},
        ),
        Preset(
            "death",
            Text("A cluster dies"),
            Text(
                "Cluster d dies and its sessions go to their own secondaries: a tenth of all sessions, spread over "
                "nine clusters, none of which takes more than about a fifth."
            ),
            {"after": "abcefghij", "failover": "secondary"},
        ),
        Preset(
            "victim",
            Text("One victim"),
            Text(
                "Cluster d dies and the next in the list takes everything: one cluster has to prefill it all, and is "
                "likely to be the next to fall."
            ),
            {"after": "abcefghij", "mistake": "neighbour"},
            breaks=("spread",),
        ),
        Preset(
            "one-point",
            Text("One point each"),
            Text(
                "A ring with one point per cluster: as few sessions move as with many, and all of them to the one next "
                "clockwise."
            ),
            {"after": "abcefghij", "vnodes": 1},
        ),
        Preset(
            "jump-middle",
            Text("Jump loses a middle one"),
            Text(
                "Jump knows numbers only. When d goes, e to j move up a place, and with them most sessions: jump is "
                "minimal only at the end of the list."
            ),
            {"after": "abcefghij", "scheme": "jump"},
        ),
        Preset(
            "maglev",
            Text("Maglev's price"),
            Text(
                "A table of 251 entries moves half as many sessions again as fair shares need, one of 65,537 hardly "
                "more. The table buys an even spread and a look-up in one step."
            ),
            {"scheme": "maglev", "table": 251},
        ),
        Preset(
            "places",
            Text("Names that shift"),
            Text(
                "Cluster d dies and clusters are hashed by place, so e to j inherit each other's names. The ring is "
                "innocent and moves most sessions all the same."
            ),
            {"after": "abcefghij", "mistake": "places"},
            breaks=("no_needless_moves", "near_ideal", "spread"),
        ),
    ),
    prediction=Prediction(
        Text(
            "The simplest router takes the hash modulo the number of clusters. How many "
            "sessions land on another cluster after the change shown here?"
        ),
        tuple(Text("about {share}", share=percent(share, 2)) for share in SHARES),
    ),
    function=run,
    draw={"move": view.draw_move},
    code=(places, orphan_share, modulo_moves, fail_over, disruption),
)

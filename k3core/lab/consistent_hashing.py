"""Tab `consistent-hashing`: how evenly five schemes spread sessions, and why even keys are not even load."""

import numpy as np

from k3core.fleet.balance import balance
from k3core.fleet.hashing import Bounded, Jump, Maglev, Modulo, Rendezvous, Ring, load_cap
from k3core.lab import consistent_hashing_tables as tables
from k3core.lab import consistent_hashing_view as view
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
from k3core.lab.display import number
from k3core.lab.fleet_nodes import LETTERS, hashed_names, parse_nodes, pick, session_keys
from k3core.lab.params import Param
from k3core.lab.text import Text

MAGLEV_TABLE = 4093  # a prime; Envoy's default of 65,537 is as even as this one and takes longer to fill
PROMPTS = 5  # how many system prompts all sessions share, where a prompt is the key by mistake
DEGREE = 2**64 // 360
PEAKS = (1.03, 1.15, 1.4, 2.0)  # the options of the prediction


def run(p, seed: int):
    """Place sessions with every scheme, then count requests, with and without a bound on a node's load."""
    letters = parse_nodes("nodes", p.nodes)
    weights, names = pick(p.weights, letters, 1), hashed_names(letters, seed)
    ring = TurnedRing(names, pick(p.turns, letters, 0), vnodes=p.vnodes, weights=weights)
    schemes = {
        "ring": ring,
        "rendezvous": Rendezvous(names, weights),
        "maglev": Maglev(names, MAGLEV_TABLE, weights),
        "jump": Jump(names),
        "modulo": Modulo(names),
    }

    keys = session_keys(p.sessions, seed)
    if p.mistake == "prompt":
        keys = keys[np.arange(p.sessions) % PROMPTS]
    owners = {}
    for name, scheme in schemes.items():
        owners[name] = scheme.assign(keys)
        yield Progress(len(owners), len(schemes) + 1)
    requests = request_stream(p.sessions, p.hot, np.random.default_rng(seed))
    bounded = bounded_owners(ring, keys, requests, p.load_factor, by_session=p.mistake == "sessions")
    yield Progress(len(schemes) + 1, len(schemes) + 1)

    nodes = len(letters)
    caps = load_cap(p.load_factor, len(requests), weights)
    load = np.bincount(bounded, minlength=nodes)
    spread = balance(np.bincount(owners["ring"], minlength=nodes), weights)
    theory = tables.ring_cv_theory(weights, p.vnodes)
    spilled = int((bounded != owners["ring"][requests]).sum())
    table = tables.schemes_table(owners, requests, weights, theory)
    even = {row[0]: row for row in table.rows}["scheme:rendezvous"]
    log = view.events(letters, weights, p, ring, names, keys, owners, requests, bounded, caps)
    tradeoff = yield from tables.tradeoff_table(ring, keys, requests, owners["ring"])
    points = tables.points_table(names, weights)
    return Result(
        metrics=_metrics(spread, theory, caps, table, spilled, len(requests)),
        checks=_checks(spread, theory, weights, p.sessions, even, load, caps),
        tables={
            "schemes": table,
            "nodes": tables.nodes_table(letters, weights, p, ring, owners, requests, bounded),
            "points": points,
            "tradeoff": tradeoff,
        },
        figures=[tables.points_figure(points, p), tables.tradeoff_figure(p)],
        scenes=[Scene("ring", Text("Sessions on a ring: drag a node, remove one, add one"), log,
                      view.captions(log, p), poster=view.STEPS)],
        answer=min(range(len(PEAKS)), key=lambda i: (abs(PEAKS[i] - spread.peak_to_mean), i)),
        answer_text=Text("The fullest node holds {peak} times its fair share.", peak=number(spread.peak_to_mean, 3)),
    )


class TurnedRing(Ring):
    """A ring on which all points of each node have been turned by hand, `degrees` clockwise."""

    def __init__(self, nodes: list, degrees: list, **options):
        super().__init__(nodes, **options)
        shift = np.array([turn * DEGREE for turn in degrees], dtype=np.uint64)
        positions = self.positions + shift[self.owners]  # wraps at 2**64, as the circle does
        order = np.lexsort((self.owners, positions))
        self.positions, self.owners = positions[order], self.owners[order]

    def entry(self, keys) -> np.ndarray:
        """Index of the first point at or after each key -> int64 [K]."""
        return np.searchsorted(self.positions, self.position(keys)).astype(np.int64) % len(self.positions)


def request_stream(sessions: int, hot: int, rng: np.random.Generator) -> np.ndarray:
    """The session of each request, in random order: one request each, and session 0 sends `hot` % of all."""
    extra = max(0, sessions * hot // (100 - hot) - 1) if hot else 0
    return rng.permutation(
        np.concatenate([np.arange(sessions), np.zeros(extra, dtype=np.int64)]).astype(np.int64)
    )


def bounded_owners(ring: Ring, keys: np.ndarray, requests: np.ndarray, load_factor: float, by_session: bool):
    """The node that takes each request when full nodes are walked past -> int64 [R].

    by_session bounds the number of sessions of a node instead, whatever they send: keys are not load.
    """
    bounded = Bounded(ring, load_factor)
    return bounded.assign(keys)[requests] if by_session else bounded.assign(keys[requests])


def _checks(spread, theory, weights, sessions, even, load, caps) -> list:
    bound, worst = tables.cv_bound(theory, weights, sessions), int(np.argmax(load - caps))
    return [
        Check(
            "ring_as_theory",
            Text("the ring is no more uneven than its points let chance make it"),
            spread.cv <= bound,
            spread.cv,
            Text("CV at most {bound}", bound=number(bound)),
        ),
        Check(
            "even_as_chance",
            Text("rendezvous is as even as chance allows (chi-square)"),
            even[5] <= even[6],
            even[5],
            Text("at most {bound}", bound=number(even[6])),
        ),
        Check(
            "cap_holds",
            Text("with bounded loads no node exceeds its cap"),
            bool((load <= caps).all()),
            int(load[worst]),
            Text("at most {bound} requests", bound=number(int(caps[worst]))),
        ),
    ]


def _metrics(spread, theory, caps, table, spilled, requests) -> list:
    times = "×"
    return [
        Metric(
            "peak_to_mean",
            Text("the fullest node, of its fair share of sessions"),
            spread.peak_to_mean,
            times,
            kind="float",
            scale=1.0,
        ),
        Metric("cv", Text("CV of sessions per node"), spread.cv, kind="float", scale=1.0),
        Metric("cv_theory", Text("CV in theory"), theory, kind="float", scale=1.0),
        Metric(
            "load_peak_to_mean",
            Text("the fullest node, of its fair share of requests"),
            table.rows[0][7],
            times,
            kind="float",
            scale=1.0,
        ),
        Metric("max_load_bound", Text("cap with bounded loads, requests"), int(caps.max())),
        Metric(
            "moved_by_bound",
            Text("requests that find their node full"),
            spilled / requests,
            "share",
            kind="float",
            scale=1.0,
        ),
    ]


EXPERIMENT = Experiment(
    slug="consistent-hashing",
    tab=11,
    family="fleet",
    name=Text("Consistent hashing"),
    title=Text("Consistent hashing: even keys, uneven load"),
    question=Text(
        "A session must come back to the cluster that holds its prefix, so a hash picks the "
        "cluster. How evenly do hashes spread sessions, and does that make the load even?"
    ),
    params=(
        Param(
            "vnodes",
            Text("Points per node"),
            "int",
            16,
            1,
            200,
            1,
            help=Text("Virtual nodes. A node of weight 2 has twice as many."),
        ),
        Param("hot", Text("Requests of one hot session"), "int", 15, 0, 40, 1, unit="%"),
        Param(
            "load_factor",
            Text("Load factor of the bound"),
            "float",
            1.25,
            1,
            3,
            0.05,
            help=Text("A full node is walked past. Full: this many times the fair share."),
        ),
        Param("sessions", Text("Sessions"), "int", 10000, 500, 40000, 500),
        Param(
            "nodes",
            Text("Nodes that are up"),
            "text",
            "abcdefgh",
            max_length=len(LETTERS),
            help=Text("One letter each, a to l. In the drawing: × and +."),
        ),
        Param(
            "weights",
            Text("Weights of a, b, c, …"),
            "list",
            [1] * len(LETTERS),
            1,
            4,
            1,
            max_length=len(LETTERS),
        ),
        Param(
            "turns",
            Text("Degrees that a, b, c, … are turned by hand"),
            "list",
            [0] * len(LETTERS),
            0,
            359,
            1,
            max_length=len(LETTERS),
        ),
        Param(
            "mistake",
            Text("Mistake"),
            "choice",
            "none",
            breaker=True,
            choices=(
                ("none", Text("none")),
                ("prompt", Text("the key is the system prompt")),
                ("sessions", Text("the bound counts sessions")),
            ),
        ),
    ),
    presets=(
        Preset(
            "one-point",
            Text("One point each"),
            Text(
                "With one point per node the arcs differ wildly: the fullest node holds 2.2 times the mean, and over "
                "many rings 2.72 times on average, the harmonic number of 8. Drag a node."
            ),
            {"vnodes": 1},
        ),
        Preset(
            "ketama",
            Text("160 points"),
            Text(
                "The usual number of points: a CV of 7.4 % in theory. The fullest node holds 1.07 times the mean here, "
                "1.12 times on average over many rings."
            ),
            {"vnodes": 160, "sessions": 40000},
        ),
        Preset(
            "heavy",
            Text("One heavy node"),
            Text(
                "Node a gets three shares. Ring, rendezvous and Maglev follow; jump and modulo know no weights, and "
                "their chi-square says so."
            ),
            {"weights": [3] + [1] * (len(LETTERS) - 1), "vnodes": 160},
        ),
        Preset(
            "hot",
            Text("A hot session"),
            Text(
                "One session sends 30 % of the requests. No scheme can split it; only the bound can, and a quarter of "
                "the requests walk on to another node."
            ),
            {"hot": 30, "vnodes": 160},
        ),
        Preset(
            "prompt",
            Text("Key by system prompt"),
            Text(
                "All sessions share five prompts, so at most five nodes work. No scheme can repair keys that are not "
                "different."
            ),
            {"mistake": "prompt"},
            breaks=("ring_as_theory", "even_as_chance"),
        ),
        Preset(
            "count-sessions",
            Text("Bound the sessions"),
            Text(
                "The bound counts sessions instead of requests: every node holds few enough, and the one with the hot "
                "session is far over the cap."
            ),
            {"mistake": "sessions", "hot": 20},
            breaks=("cap_holds",),
        ),
    ),
    prediction=Prediction(
        Text(
            "Each node has put its points on the ring, and all sessions are placed. How "
            "much does the fullest node hold?"
        ),
        tuple(Text("about {times} times its fair share", times=number(peak)) for peak in PEAKS),
    ),
    function=run,
    draw={"ring": view.draw_ring},
    code=(bounded_owners, request_stream, tables.ring_cv_theory, tables.cv_bound, TurnedRing),
)

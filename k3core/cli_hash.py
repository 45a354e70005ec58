"""`python -m k3core hash`: which node serves which key, as data and as text."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .fleet.balance import balance
from .fleet.hashing import SCHEMES, Bounded, Maglev, Ring, load_cap, make_scheme, node_names
from .lab.params import shown

SHOWN = 40  # rows of a list that the plain text shows

OPTIONS = {
    "style": "style",
    "ring_size": "ring_size",
    "vnodes": "vnodes",
    "table": "table_size",
    "weights": "weights",
    "load_factor": "load_factor",
}


def add_parser(subparsers) -> None:
    """Add the `hash` command to an argparse subparsers object; values are checked in `run`."""
    parser = subparsers.add_parser(
        "hash",
        help="assign keys to nodes by a consistent hashing scheme",
        description="Assign keys to nodes. Text keys are hashed as the scheme publishes it; if all keys are "
        "decimal numbers they are hash values already (Ketama hashes their digits).",
    )
    parser.add_argument("scheme", metavar="SCHEME", help=", ".join(SCHEMES))
    parser.add_argument("--nodes", metavar="N|a,b,c", required=True, help="how many nodes, or their names")
    parser.add_argument("--keys", metavar="FILE|k1,k2", help="keys, or a file with one key per line")
    parser.add_argument("--style", metavar="envoy|ketama", help="points of a ring (envoy)")
    parser.add_argument("--ring-size", metavar="N", help="least number of points of a whole envoy ring")
    parser.add_argument("--vnodes", metavar="V", help="points per node of a ring (160)")
    parser.add_argument("--table", metavar="M", help="entries of a Maglev table, a prime (65537)")
    parser.add_argument("--weights", metavar="W1,W2,...", help="one whole number per node")
    parser.add_argument("--load-factor", metavar="C", help="cap of bounded loads over the mean (1.25)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run, render=render)


def run(args) -> dict:
    """The answer for parsed arguments. Raises ValueError.

    scheme, nodes; with keys: keys, assignments (index of the node per key), counts per node; ring and
    bounded: points as [position, node name]; maglev: nodes in sorted order, and table, a node index per
    entry; bounded: cap per node.
    """
    nodes, options = _nodes(args.nodes), _options(args)
    if args.scheme == "maglev":
        nodes, options = _sorted(nodes, options)
    scheme = make_scheme(args.scheme, nodes, **options)
    keys = None if args.keys is None else _keys(args.keys)
    answer = {"scheme": args.scheme, "nodes": list(scheme.nodes)}
    ring = scheme.ring if isinstance(scheme, Bounded) else scheme
    if isinstance(ring, Ring):
        owners = [scheme.nodes[owner] for owner in ring.owners.tolist()]
        answer["points"] = [list(point) for point in zip(ring.positions.tolist(), owners, strict=True)]
    elif isinstance(scheme, Maglev):
        answer["table"] = scheme.table.tolist()
    elif keys is None:
        raise ValueError(f"{args.scheme} has no ring or table to show; give --keys")
    if keys is not None:
        assignments = scheme.assign(keys)
        answer["keys"] = keys
        answer["assignments"] = assignments.tolist()
        answer["counts"] = np.bincount(assignments, minlength=len(nodes)).tolist()
        if isinstance(scheme, Bounded):
            answer["cap"] = load_cap(scheme.load_factor, len(keys), ring.weights).tolist()
    return answer


def _nodes(text: str) -> list[str]:
    if text.isdecimal():
        return node_names(int(text))
    return [name.strip() for name in text.split(",")]


def _options(args) -> dict:
    """Options that were given, under the names the schemes use."""
    given = {}
    for name, option in OPTIONS.items():
        value = getattr(args, name)
        if value is None:
            continue
        if name in ("ring_size", "vnodes", "table"):
            value = _integer(f"--{name.replace('_', '-')}", value)
        elif name == "weights":
            value = [_integer("--weights", weight) for weight in value.split(",")]
        elif name == "load_factor":
            value = _number("--load-factor", value)
        given[option] = value
    return given


def _sorted(nodes: list[str], options: dict) -> tuple[list[str], dict]:
    order = sorted(range(len(nodes)), key=lambda i: nodes[i])
    weights = options.get("weights")
    if weights is not None and len(weights) == len(nodes):
        options = {**options, "weights": [weights[i] for i in order]}
    return [nodes[i] for i in order], options


def _keys(text: str) -> list[int] | list[str]:
    """Keys from a file, one per line, or from the text itself; integers if every one is decimal."""
    if "," not in text and re.search(r"/|\.[A-Za-z]", text) and not os.path.exists(text):
        raise ValueError(f"--keys {shown(text)} looks like a file, and there is none of that name; keys are k1,k2,...")
    try:
        keys = Path(text).read_text(encoding="utf-8-sig").splitlines() if os.path.exists(text) else text.split(",")
    except UnicodeDecodeError:
        raise ValueError(f"{text}: this is not text in UTF-8") from None
    keys = [key.strip() for key in keys if key.strip()]
    if not keys:
        raise ValueError(f"--keys {shown(text)} holds no key")
    return [int(key) for key in keys] if all(key.isdecimal() for key in keys) else keys


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} is {shown(text)}; it must be a whole number") from None


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} is {shown(text)}; it must be a number, for example 1.25") from None


def render(answer: dict) -> list[str]:
    """The answer as lines for a terminal."""
    nodes = answer["nodes"]
    lines = [f"{answer['scheme']} over {len(nodes)} nodes"]
    if "points" in answer:
        lines += ["", f"ring of {len(answer['points'])} points"]
        lines += _some([f"{position:>20}  {node}" for position, node in answer["points"]])
    if "table" in answer:
        lines += ["", f"table of {len(answer['table'])} entries"]
        lines += _some([f"{slot:>20}  {nodes[node]}" for slot, node in enumerate(answer["table"])])
    if "keys" in answer:
        spread = balance(answer["counts"])
        lines += [
            "",
            f"{len(answer['keys'])} keys, peak over mean {spread.peak_to_mean:.3f}, "
            f"coefficient of variation {spread.cv:.3f}",
        ]
        caps = [f"  cap {cap}" for cap in answer["cap"]] if "cap" in answer else [""] * len(nodes)
        lines += _some(
            [
                f"{count:>20}  {node}{cap}"
                for count, node, cap in zip(answer["counts"], nodes, caps, strict=True)
            ]
        )
        pairs = zip(answer["keys"], answer["assignments"], strict=True)
        lines += ["", *_some([f"{key:>20}  {nodes[node]}" for key, node in pairs])]
    return lines


def _some(rows: Sequence[str]) -> list[str]:
    more = len(rows) - SHOWN
    return [*rows[:SHOWN], f"... and {more} more; --json prints all"] if more > 0 else list(rows)

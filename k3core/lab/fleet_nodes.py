"""What the tabs about hashing share: nodes named by letters, sessions as keys, and the ring as a drawing."""

from math import cos, pi, sin

import numpy as np

from k3core.fleet.hashing import Ring, mix64
from k3core.lab import drawing as d
from k3core.lab.params import ParamError
from k3core.lab.text import Text

LETTERS = "abcdefghijkl"
SCHEMES = {
    "ring": Text("ring"),
    "rendezvous": Text("rendezvous (HRW)"),
    "maglev": Text("Maglev"),
    "jump": Text("jump"),
    "modulo": Text("modulo"),
}
WHOLE_CIRCLE = 0.9999  # an arc longer than this has no distinct ends


def parse_nodes(name: str, text: str) -> str:
    """The letters of the nodes that are up, in the order given. Raises ParamError."""
    if not text or len(set(text)) != len(text) or not set(text) <= set(LETTERS):
        raise ParamError(
            name,
            Text(
                "{name} is {value}; it takes at least one of the letters {letters}, each once",
                name=name,
                value=repr(text[:20]),
                letters=f"{LETTERS[0]}–{LETTERS[-1]}",
            ),
        )
    return text


def hashed_names(letters: str, seed: int) -> list:
    """The names under which nodes are hashed: node0 for a and so on; another seed is another fleet."""
    return [f"node{LETTERS.index(letter)}" + (f"-{seed}" if seed else "") for letter in letters]


def session_keys(count: int, seed: int) -> np.ndarray:
    """Hash values of `count` sessions -> uint64 [count]."""
    return mix64(np.arange(count, dtype=np.uint64) + np.uint64(seed) * np.uint64(2**32))


def pick(values: list, letters: str, default) -> list:
    """One number per node out of a list that starts at node a; what the list leaves out is `default`."""
    places = [LETTERS.index(letter) for letter in letters]
    return [values[place] if place < len(values) else default for place in places]


def turns_of(positions: np.ndarray) -> np.ndarray:
    """Ring positions uint64 [P] as shares of a full turn float64 [P]."""
    return positions.astype(np.float64) / 2.0**64


def node_arcs(ring: Ring) -> list:
    """Per node the arcs it owns, as (begin, end) in turns; a node's arc ends at its point."""
    ends = turns_of(ring.positions)
    begins = np.roll(ends, 1)
    arcs = [[] for _ in ring.nodes]
    for owner, begin, end in zip(ring.owners.tolist(), begins.tolist(), ends.tolist()):
        arcs[owner].append((begin, end))
    return arcs


def on_circle(centre: tuple, radius: float, turn: float) -> tuple:
    """The place at `turn` of the way round, clockwise from the top."""
    return centre[0] + radius * sin(2 * pi * turn), centre[1] - radius * cos(2 * pi * turn)


def arc(centre: tuple, radius: float, begin: float, end: float) -> str:
    """Path commands of an arc from `begin` clockwise to `end`, in turns."""
    span = (end - begin) % 1.0 or 1.0
    if span > WHOLE_CIRCLE:
        return arc(centre, radius, begin, begin + 0.5) + arc(centre, radius, begin + 0.5, end)
    start, stop = on_circle(centre, radius, begin), on_circle(centre, radius, end)
    r = d.number(radius)
    return (
        f"M{d.number(start[0])} {d.number(start[1])}"
        f"A{r} {r} 0 {int(span > 0.5)} 1 {d.number(stop[0])} {d.number(stop[1])}"
    )


def spokes(centre: tuple, inner: float, outer: float, turns) -> str:
    """Path commands of short radial lines, one per turn."""
    parts = []
    for turn in turns:
        (x1, y1), (x2, y2) = on_circle(centre, inner, turn), on_circle(centre, outer, turn)
        parts.append(f"M{d.number(x1)} {d.number(y1)}L{d.number(x2)} {d.number(y2)}")
    return "".join(parts)


def take_down(x: float, y: float, name: str, left: str) -> str:
    """A × around (x, y): a click leaves the parameter `name` with the nodes `left`."""
    parts = [d.rect(x - 9, y - 9, 18, 18, "hit-area"), d.text(x, y + 4, "×", "on-grip", "middle")]
    return d.group(parts, data_click=name, data_value=left)


def bring_up(x: float, y: float, width: float, letter: str, name: str, nodes: str) -> str:
    """A + around (x, y): a click adds the node `letter` to the `nodes` of the parameter `name`."""
    parts = [
        d.rect(x - width / 2, y - 10, width, 19, "ghost add"),
        d.text(x, y + 4, f"+{letter}", "on-grip", "middle"),
    ]
    return d.group(parts, data_click=name, data_value="".join(sorted(nodes + letter)))

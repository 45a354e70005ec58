"""Which node serves which key: modulo, ring, rendezvous, jump, Maglev, and bounded loads.

One interface for all: `scheme.assign(keys) -> int64 [K]`, indices into `scheme.nodes`, and
`scheme.rank(keys, count) -> int64 [K, count]`, each key's first `count` distinct nodes in order of preference
(primary, secondary, ...). Keys are texts, hashed as the scheme publishes it, or integers that are hash values
already; run small or sequential integers through `mix64` first.
"""

from collections.abc import Sequence

from .bounded import Bounded, load_cap
from .buckets import Jump, Modulo, jump_hash
from .functions import md5_points, mix64, murmur3_32, splitmix64, xxh64, xxh64_rows
from .keys import Keys, node_names
from .maglev import Maglev, maglev_table, maglev_turns
from .rendezvous import Rendezvous
from .ring import Ring, envoy_points

__all__ = [
    "SCHEMES",
    "Bounded",
    "Jump",
    "Keys",
    "Maglev",
    "Modulo",
    "Rendezvous",
    "Ring",
    "Scheme",
    "envoy_points",
    "jump_hash",
    "load_cap",
    "maglev_table",
    "maglev_turns",
    "make_scheme",
    "md5_points",
    "mix64",
    "murmur3_32",
    "node_names",
    "splitmix64",
    "xxh64",
    "xxh64_rows",
]

Scheme = Modulo | Jump | Rendezvous | Ring | Maglev | Bounded

_RING_OPTIONS = ("style", "vnodes", "ring_size", "weights")

SCHEMES = {
    "modulo": (),
    "ring": _RING_OPTIONS,
    "rendezvous": ("weights",),
    "jump": (),
    "maglev": ("table_size", "weights"),
    "bounded": (*_RING_OPTIONS, "load_factor"),
}
"""Name of each scheme and the options it takes."""


def make_scheme(name: str, nodes: Sequence[str], **options) -> Scheme:
    """The scheme of this name over these nodes; ValueError for an unknown name or option."""
    if name not in SCHEMES:
        raise ValueError(f"scheme is {name!r}; it must be one of {', '.join(SCHEMES)}")
    for option in options:
        if option not in SCHEMES[name]:
            takes = ", ".join(SCHEMES[name]) or "no options"
            raise ValueError(f"{name} does not take {option}; it takes {takes}")
    if name == "bounded":
        factor = {"load_factor": options.pop("load_factor")} if "load_factor" in options else {}
        return Bounded(Ring(nodes, **options), **factor)
    classes = {"modulo": Modulo, "ring": Ring, "rendezvous": Rendezvous, "jump": Jump, "maglev": Maglev}
    return classes[name](nodes, **options)

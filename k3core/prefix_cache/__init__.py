"""A prefix cache for attention rows and KDA states: chained hashes, checkpoints, three consistency rules."""

from .cache import Copy, Hit, PrefixCache, Rules, Step
from .hashing import Chain, Extra, Link, sha256
from .policy import Policy, read_policy

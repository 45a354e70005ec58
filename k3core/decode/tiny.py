"""The tiny model that ships with the package, and the text it reads: one token per ASCII character."""

from functools import cache
from importlib import resources

from .decoder import HybridDecoder

NAME = "tiny.npz"  # in k3core/models; trained by tools/train_tiny.py on CPython's standard library
START = 0  # the token (NUL) that came before every file of the training text


class MissingWeights(ValueError):
    """This installation lacks a file of weights: `name`, below k3core/models."""

    def __init__(self, name):
        super().__init__(f"this installation has no k3core/models/{name}")
        self.name = name


@cache
def tiny_model():
    """The packaged model as a HybridDecoder in float32, exact mode; the same object every time.

    Raises MissingWeights where this installation came without them.
    """
    try:
        data = (resources.files("k3core.models") / NAME).read_bytes()
    except FileNotFoundError:
        raise MissingWeights(NAME) from None
    return HybridDecoder.from_npz(data)


def encode(text):
    """Token ids of a text, one per ASCII character (NUL to DEL). Raises ValueError on any other character."""
    for place, character in enumerate(text):
        if character > "\x7f":
            raise ValueError(
                f"text must be ASCII, but character {place + 1} is {character!r} (U+{ord(character):04X})"
            )
    return list(text.encode("ascii"))


def decode(ids):
    """The text of token ids 0 to 127. Raises ValueError on any other id."""
    ids = [int(i) for i in ids]
    if ids and not 0 <= min(ids) <= max(ids) < 128:
        raise ValueError(f"ids must be 0 to 127, not {min(ids)} to {max(ids)}")
    return bytes(ids).decode("ascii")

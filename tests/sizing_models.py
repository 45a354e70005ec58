"""Models made of a few explicit layers, and the two questions that the sizing tests ask of any model."""

from k3core import models, sizing
from k3core.sizing import Settings


def size(model, **settings):
    return sizing.size(model, Settings(**settings))


def layout(model, **settings):
    return sizing.make_layout(model, sizing.resolve(model, Settings(**settings)))


def explicit(*layers):
    return models.from_config({"max_position_embeddings": 100_000, "layers": list(layers)})


def full(count, **more):
    return {"kind": "full", "count": count, "kv_heads": 8, "head_dim": 64, **more}


def sliding(count):
    return {"kind": "sliding", "count": count, "kv_heads": 8, "head_dim": 64, "window": 128}


def gdn(count):
    return {
        "kind": "gdn",
        "count": count,
        "heads": 32,
        "key_heads": 16,
        "dk": 128,
        "dv": 128,
        "conv_kernel": 4,
    }

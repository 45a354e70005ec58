"""Models as data: presets with a source for every field, and the reader for a model's own config.json."""

import json
from importlib import resources

from .config import from_config
from .spec import Attention, Cache, Compressed, Field, Latent, Model, Policy, Recurrent

__all__ = [
    "Attention",
    "Cache",
    "Compressed",
    "Field",
    "Latent",
    "Model",
    "Policy",
    "Recurrent",
    "from_config",
    "load",
    "names",
]


def names() -> list[str]:
    """Names of the presets, sorted."""
    return sorted(
        entry.name[:-5] for entry in resources.files(__name__).iterdir() if entry.name.endswith(".json")
    )


def load(name: str) -> Model:
    """The preset of that name. Raises ValueError naming the presets there are."""
    if name not in names():
        raise ValueError(f"model {name!r} is not a preset; choose one of {', '.join(names())}")
    preset = json.loads((resources.files(__name__) / f"{name}.json").read_text(encoding="utf-8"))
    sources = preset["sources"]
    fields = tuple(
        Field(key, entry["value"], sources[entry["source"]]) for key, entry in preset["config"].items()
    )
    return from_config(
        _nested(fields), name=name, title=preset["title"], fields=fields, note=preset.get("note", "")
    )


def _nested(fields: tuple[Field, ...]) -> dict:
    """Turn dotted names back into the nested objects of a config.json."""
    config: dict = {}
    for field in fields:
        *path, last = field.name.split(".")
        inner = config
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = field.value
    return config

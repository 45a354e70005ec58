"""Charts at build time: the experiments' Vega-Lite specifications as SVG, for reading before any script runs."""

import hashlib
import json
from pathlib import Path

import vl_convert

from sitegen import runtime

CONFIG = json.loads((Path(__file__).parent / "static" / "chart-config.json").read_text(encoding="utf-8"))
SIZES = {"wide": (620, 260), "narrow": (328, 220)}  # CSS pixels; the style sheet picks one


def render(spec: dict, table: dict) -> dict:
    """A specification from `Result.to_json` with its table filled in: {"wide": SVG, "narrow": SVG}."""
    keys = [column["key"] for column in table["columns"]]
    values = [dict(zip(keys, row)) for row in table["rows"]]
    return {name: _svg(_sized(spec, values, *size)) for name, size in SIZES.items()}


def _svg(spec: dict) -> str:
    """The drawing, from the cache if this very chart was drawn before: each one costs a tenth of a second."""
    text = json.dumps(spec, sort_keys=True)
    key = hashlib.sha256(f"{vl_convert.__version__} {text}".encode()).hexdigest()
    cached = runtime.cache_dir() / "charts" / f"{key}.svg"
    if not cached.exists():
        runtime.write_atomically(cached, vl_convert.vegalite_to_svg(text).encode())
    return cached.read_text(encoding="utf-8")


def _sized(spec: dict, values: list, width: int, height: int) -> dict:
    return {"height": height} | spec | {"data": {"name": spec["data"]["name"], "values": values}, "width": width,
                                        "autosize": {"type": "fit-x", "contains": "padding"}, "config": CONFIG}


def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one classic script that defines `vegaEmbed`."""
    return "(() => {" + vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;") + "})();"

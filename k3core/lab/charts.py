"""Pieces of Vega-Lite specifications that several tabs share. Colours are the page's CSS variables."""

from k3core.lab.text import Text

# Axis labels in powers of 1,024, to match `display.binary_bytes`.
_STEPS = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
BYTES_LABEL = " : ".join([f"datum.value >= {size} ? format(datum.value / {size}, ',~r') + ' {unit}'"
                          for size, unit in _STEPS] + ["format(datum.value, ',~r') + ' B'"])
BYTES_AXIS = {"labelExpr": BYTES_LABEL, "title": None, "tickCount": 6}


def colour(meaning: str) -> str:
    """The CSS variable of one of `drawing.MEANINGS`."""
    return f"var(--{meaning})"


def quantitative(field: str, title: Text | None, log: bool = False, axis: dict | None = None, **more) -> dict:
    """An x or y encoding of a number."""
    scale = {"scale": {"type": "log", "base": 2}} if log else {}
    return {"field": field, "type": "quantitative", "title": title} | scale | ({"axis": axis} if axis else {}) | more


def series(field: str, styles: dict) -> dict:
    """Colour and dash by `field`: `styles` maps its values to (meaning, dash pattern); say both, never colour alone."""
    domain = list(styles)
    return {
        "color": {"field": field, "type": "nominal", "legend": None,
                  "scale": {"domain": domain, "range": [colour(meaning) for meaning, _ in styles.values()]}},
        "strokeDash": {"field": field, "type": "nominal", "legend": None,
                       "scale": {"domain": domain, "range": [dash for _, dash in styles.values()]}},
    }


def line_layer(x: dict, y: dict, by: dict, tooltip: list) -> dict:
    """Lines with points; `by` comes from `series`, `tooltip` lists column names."""
    return {"mark": {"type": "line", "point": {"size": 28, "filled": True}, "strokeWidth": 2},
            "encoding": {"x": x, "y": y, **by, "tooltip": [{"field": name} for name in tooltip]}}


def label_layer(x: str, y: str, labels: list) -> dict:
    """Names written at the lines: `labels` are (x value, y value, Text, meaning); the text ends at the point."""
    rows = [{x: at, y: height, "label": words, "colour": colour(meaning)} for at, height, words, meaning in labels]
    return {"data": {"values": rows},
            "mark": {"type": "text", "align": "right", "dx": -6, "dy": -9, "fontSize": 13},
            "encoding": {"x": {"field": x, "type": "quantitative"}, "y": {"field": y, "type": "quantitative"},
                         "text": {"field": "label"}, "color": {"field": "colour", "type": "nominal", "scale": None}}}


def rule_layer(x: float) -> dict:
    """A vertical line at the reader's own setting."""
    return {"mark": {"type": "rule", "strokeDash": [3, 3]},
            "encoding": {"x": {"datum": x, "type": "quantitative"}, "color": {"value": "var(--ink)"}}}

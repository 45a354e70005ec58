"""Small multiples of a report: which parameter goes where, and each panel as SVG."""

import json
import math
import re
from dataclasses import dataclass, field
from html import escape

from ..lab.charts import BYTES_LABEL
from .commands import COMMANDS
from .journal import cell, values_of
from .spec import Sweep

METRICS, FACETS, SERIES = 4, 12, 32  # at most: metrics unasked, panels per metric, lines per panel
# Of the first eight lines each has a colour, dashes and a mark of its own. Marks are paths from -1 to 1.
COLOURS = 8
DASHES = ([1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [16, 4], [4, 2], [10, 3, 2, 3, 2, 3], [1, 6])
MARKS = ("M -1 0 A 1 1 0 1 1 1 0 A 1 1 0 1 1 -1 0 Z", "M -0.9 -0.9 H 0.9 V 0.9 H -0.9 Z", "M 0 -1 L 1 0.8 H -1 Z",
         "M 0 -1.2 L 1.1 0 L 0 1.2 L -1.1 0 Z", "M 0 1 L 1 -0.8 H -1 Z",
         "M -0.4 -1 H 0.4 V -0.4 H 1 V 0.4 H 0.4 V 1 H -0.4 V 0.4 H -1 V -0.4 H -0.4 Z", "M -1 -1 H 1 L -1 1 H 1 Z",
         "M -1 0 L 0.8 -1 V 1 Z")
LINK = "https://point.invalid/"  # stands in a drawing where a point's address comes
LABELS = {"aria": False, "labelColor": "var(--muted)", "titleColor": "var(--muted)", "gridColor": "var(--rule)",
          "tickColor": "var(--rule)", "domain": False, "labelFontSize": 12, "titleFontSize": 12,
          "titleFontWeight": "normal", "labelOverlap": "greedy", "labelSeparation": 8}
CONFIG = {"background": None, "font": "system-ui, sans-serif", "view": {"stroke": None}, "mark": {"aria": False},
          "axis": LABELS, "axisX": {"grid": False, "labelFlush": False}}


@dataclass
class Plan:
    """Where parameters go: x, lines (color), panels (facet). y: metrics. Over `averaged` a line is a mean."""

    x: str
    color: str | None
    facet: str | None
    y: list[str]
    averaged: list[str]


@dataclass
class Panel:
    """One drawing. series: for each line its (x, mean, least, greatest, address or None)."""

    metric: str
    facet: str | None
    series: dict[str, list] = field(default_factory=dict)


def plan(sweep: Sweep, rows: list[dict], metrics: list[str]) -> Plan | None:
    """What to draw, by [report] where it says so; None if there is nothing to draw. Raises ValueError."""
    asked = sweep.report
    values = {name: dict.fromkeys(cell(values_of(one).get(name)) for one in rows) for name in sweep.varying}
    left = [name for name in values if name not in (asked.get("x"), asked.get("color"), asked.get("facet"))]
    y = _metrics(sweep, rows, metrics)
    if not values or not y:
        return None
    # Most values first; of those a number rather than text, the seed last.
    left.sort(key=lambda name: (name == "seed", not _numeric(values[name]), -len(values[name])))
    x = asked.get("x") or (left.pop(0) if left else asked.get("color") or asked["facet"])
    left.sort(key=lambda name: (name == "seed", -len(values[name])))
    lines, panels = asked.get("color"), asked.get("facet")
    others = [name for name in left if name != "seed"]
    if lines is None and others and len(values[others[0]]) <= SERIES:
        lines = others.pop(0)
    if panels is None and others and len(values[others[0]]) <= FACETS:
        panels = others.pop(0)
    return Plan(x, lines, panels, y, [name for name in values if name not in (x, lines, panels)])


def _metrics(sweep: Sweep, rows: list[dict], metrics: list[str]) -> list[str]:
    """Metrics to draw: those asked for, else the first that are numbers and differ."""
    asked = sweep.report.get("y")
    if asked is not None:
        asked = asked if isinstance(asked, list) else [asked]
        for name in asked:
            if name not in metrics and metrics:
                raise ValueError(f"report.y is {name!r}; it must be one of {', '.join(metrics)}")
        return asked if metrics else []
    order = [name for name in COMMANDS[sweep.command].shown if name in metrics]
    found = []
    for name in dict.fromkeys((*order, *metrics)):
        seen = {one["metrics"].get(name) for one in rows if "metrics" in one} - {None}
        if len(seen) > 1 and all(isinstance(value, (int, float)) for value in seen) and len(found) < METRICS:
            found.append(name)
    return found


def panels(chosen: Plan, rows: list[dict], addresses: list) -> list[Panel]:
    """The rows that have a value, gathered into panels and lines in the order of the spec."""
    groups: dict = {}
    for one, address in zip(rows, addresses, strict=True):
        values = values_of(one)
        for metric in chosen.y:
            value = one.get("metrics", {}).get(metric)
            if isinstance(value, (int, float)):
                place = metric, chosen.facet and cell(values.get(chosen.facet)), chosen.color and cell(
                    values.get(chosen.color)), cell(values.get(chosen.x))
                groups.setdefault(place, []).append((value, address))
    found: dict = {}
    for (metric, facet, line, x), members in groups.items():
        panel = found.setdefault((metric, facet), Panel(metric, facet))
        numbers = [value for value, _ in members]
        mean = math.fsum(numbers) / len(numbers)
        panel.series.setdefault(line or "", []).append(
            (x, mean, min(numbers), max(numbers), members[0][1] if len(members) == 1 else None))
    return sorted(found.values(), key=lambda panel: chosen.y.index(panel.metric))


def draw(panel: Panel, chosen: Plan, bounds: tuple, styles: dict) -> str:
    """A panel as SVG that takes its colours from --s0 to --s7."""
    import vl_convert

    points = [{"x": x, "line": line, "mean": mean, "least": least, "greatest": greatest, "place": place}
              for line, series in panel.series.items()
              for place, (x, mean, least, greatest, _) in enumerate(series)]
    addresses = [address for series in panel.series.values() for *_, address in series]
    for number, point in enumerate(points):
        point["href"] = f"{LINK}{number}"
    specification = _specification(points, addresses, panel.metric, chosen, bounds, styles)
    svg = vl_convert.vegalite_to_svg(json.dumps(specification))

    def link(match: re.Match) -> str:
        number = int(match[1])
        point = points[number]
        label = " ".join(filter(None, (point["line"], f"{chosen.x}={point['x']}:", f"{point['mean']:.6g}")))
        # The same link is in the table, for those who do not point at drawings.
        return f'<a href="{escape(addresses[number])}" tabindex="-1"><title>{escape(label)}</title>'

    return re.sub(f'<a xlink:href="{re.escape(LINK)}([0-9]+)">', link, svg)


def styles_of(found: list[Panel]) -> dict:
    """Line -> (number of its colour, dashes, mark): of eight lines no two share any, of 32 no two share all."""
    names = dict.fromkeys(name for panel in found for name in panel.series)
    looks = [(place % COLOURS, (place + place // COLOURS) % len(DASHES)) for place in range(len(names))]
    return {name: (colour, DASHES[look], MARKS[look]) for name, (colour, look) in zip(names, looks, strict=True)}


def bounds_of(found: list[Panel], metric: str) -> tuple[float, float]:
    """The scale that all panels of a metric share: from zero unless that would hide the differences."""
    values = [value for panel in found if panel.metric == metric for series in panel.series.values()
              for point in series for value in point[2:4]]
    low, high = min(values), max(values)
    if 0 <= low and low < 0.8 * high:
        low = 0
    return (low, high) if low < high else (low - 1, high + 1)


def _numeric(values) -> bool:
    try:
        return not any(math.isnan(float(value)) for value in values)
    except ValueError:
        return False


def _specification(points: list, addresses: list, metric: str, chosen: Plan, bounds: tuple, styles: dict) -> dict:
    x, x_scale = _x_axis(points, chosen.x)
    for point in points:
        point["x"] = x_scale(point["x"])
    y = {"field": "mean", "type": "quantitative", "title": None, "axis": _y_axis(metric, bounds[1]),
         "scale": {"domain": list(bounds), "zero": False, "nice": True}}
    lines = {name: styles[name] for name in dict.fromkeys(point["line"] for point in points)}
    colour = {"field": "line", "type": "nominal", "legend": None, "sort": None, "scale": {
        "domain": list(lines), "range": [f"var(--s{number})" for number, *_ in lines.values()]}}
    dash = colour | {"scale": {"domain": list(lines), "range": [dashes for _, dashes, _ in lines.values()]}}
    shape = colour | {"scale": {"domain": list(lines), "range": [mark for *_, mark in lines.values()]}}
    layers = []
    if any(point["least"] < point["greatest"] for point in points):
        layers.append({"mark": {"type": "area", "opacity": 0.16}, "encoding": {
            "x": x, "y": y | {"field": "least"}, "y2": {"field": "greatest"}, "color": colour}})
    if x_scale is not str or _numeric({point["x"] for point in points}):
        layers.append({"mark": {"type": "line", "strokeWidth": 2},
                       "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "order": {"field": "place"}}})
    for linked in (False, True):
        some = [point for point, address in zip(points, addresses, strict=True) if bool(address) == linked]
        href = {"href": {"field": "href", "type": "nominal"}} if linked else {}
        encoding = {"x": x, "y": y, "color": colour, "shape": shape} | href
        if some:
            layers.append({"data": {"values": some}, "encoding": encoding,
                           "mark": {"type": "point", "filled": True, "size": 64, "opacity": 1}})
    return {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "config": CONFIG, "width": 360, "height": 220,
            "autosize": {"type": "fit", "contains": "padding"}, "data": {"values": points}, "layer": layers}


def _x_axis(points: list, name: str) -> tuple:
    """Its encoding, and what turns a parameter's text into its value."""
    texts = list(dict.fromkeys(point["x"] for point in points))
    if not _numeric(texts) or any(math.isinf(float(value)) for value in texts):
        return {"field": "x", "type": "ordinal", "title": name, "sort": texts, "axis": {"labelAngle": 0}}, str
    values = sorted(map(float, texts))
    log = values[0] > 0 and values[-1] >= 30 * values[0] and len(values) > 2
    axis = {"format": ",.6~r"} | ({"values": values} if len(values) <= 12 else {"tickCount": 6})
    return {"field": "x", "type": "quantitative", "title": name, "axis": axis,
            "scale": {"type": "log", "nice": False} if log else {"zero": False, "nice": False, "padding": 6}}, float


def _y_axis(metric: str, most: float) -> dict:
    if metric.endswith("_bytes"):
        return {"labelExpr": BYTES_LABEL, "tickCount": 5}
    if metric.endswith("_rate"):
        return {"format": ".3~%", "tickCount": 5}
    return {"format": "~s" if most >= 100_000 else ",.4~r", "tickCount": 5}

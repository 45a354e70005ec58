"""SVG as text, drawn in Python so that the build, the browser and the tests see the same picture.

Colour comes from classes only (`MEANINGS`): the page's style sheet gives each its one colour and pattern, light and
dark. Coordinates are rounded to 0.01. `mark` names what an element stands for ("block:17", "token:3"): pointing at
it lights everything on the page that carries the same mark.
"""

from html import escape

# One meaning, one colour: the class names of shapes and of legend swatches.
MEANINGS = ("state", "mla", "record", "snapshot", "hit", "miss", "rejected", "padding", "vip", "ordinary", "free",
            "accepted", "gate", "key", "value", "beta", "conv")


def number(value) -> str:
    """A coordinate, rounded to 0.01 without trailing zeros; minus zero is zero."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def element(tag: str, attributes: dict, inner: str = "") -> str:
    """One element; numbers are rounded, text is escaped, attributes that are None are left out."""
    parts = [f' {name}="{number(value) if isinstance(value, (int, float)) else escape(str(value))}"'
             for name, value in attributes.items() if value is not None]
    return f"<{tag}{''.join(parts)}>{inner}</{tag}>" if inner else f"<{tag}{''.join(parts)}/>"


def rect(x, y, width, height, style: str, mark: str | None = None, title: str = "", **more) -> str:
    """A rectangle; `style` is one or more class names, `title` the tooltip and the screen reader's text."""
    attributes = {"x": x, "y": y, "width": max(0, width), "height": max(0, height), "class": style, "data-id": mark}
    return element("rect", attributes | _names(more), _title(title))


def path(d: str, style: str, mark: str | None = None, title: str = "", **more) -> str:
    """A path from ready-made commands (build them with `number`)."""
    return element("path", {"d": d, "class": style, "data-id": mark} | _names(more), _title(title))


def line(x1, y1, x2, y2, style: str = "rule", **more) -> str:
    """A straight line."""
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": style} | _names(more))


def circle(cx, cy, r, style: str, mark: str | None = None, title: str = "", **more) -> str:
    """A circle."""
    attributes = {"cx": cx, "cy": cy, "r": r, "class": style, "data-id": mark}
    return element("circle", attributes | _names(more), _title(title))


def text(x, y, words: str, style: str = "label", anchor: str = "start", **more) -> str:
    """Text at a baseline; `anchor` is start, middle or end."""
    attributes = {"x": x, "y": y, "class": style, "text-anchor": anchor if anchor != "start" else None}
    return element("text", attributes | _names(more), escape(words))


def group(children: list, mark: str | None = None, title: str = "", **more) -> str:
    """A group; `transform="translate(3,4)"` and other attributes as keywords."""
    return element("g", {"data-id": mark} | _names(more), _title(title) + "".join(children))


def handle(x, y, horizontal: str | None, vertical: str | None, pixels_x: float, pixels_y: float, title: str) -> str:
    """A grip that the reader drags: `horizontal` and `vertical` name the parameters it sets, `pixels_x` and
    `pixels_y` are drawing units per unit of the parameter."""
    return circle(x, y, 7, "grip", title=title, data_drag_x=horizontal, data_drag_y=vertical,
                  data_per_x=_precise(pixels_x) if horizontal else None,
                  data_per_y=_precise(pixels_y) if vertical else None)


def svg(width, height, children: list, label: str) -> str:
    """The whole drawing; `label` is what a screen reader says."""
    attributes = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {number(width)} {number(height)}",
                  "width": width, "height": height, "role": "img", "aria-label": label}
    return element("svg", attributes, "".join(children))


def _precise(value: float) -> str:
    """Drawing units per unit of a parameter: there may be a million units on the drawing."""
    return f"{value:.6g}"


def _names(more: dict) -> dict:
    return {name.rstrip("_").replace("_", "-"): value for name, value in more.items()}


def _title(words: str) -> str:
    return element("title", {}, escape(words)) if words else ""

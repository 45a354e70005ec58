"""What an experiment is and what it returns: plain data that the build, the command line and the browser share."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import isgenerator
from types import SimpleNamespace

import numpy as np

from k3core.lab.display import number, quantity
from k3core.lab.params import ParamError, parse_all, parse_seed, shown
from k3core.lab.text import Text, say, say_all

BADGES = ("computed", "derived", "published", "illustrative")
VALUE_KINDS = ("exact", "float", "error")
FAMILIES = ("state", "pages", "prefix", "fleet", "workbench", "home")
BIGGEST_JSON_INTEGER = 2**53


class Needs(ValueError):
    """A run takes a file of weights that this installation came without: `name`, such as "tiny.npz"."""

    def __init__(self, name: str):
        super().__init__(f"this installation has no k3core/models/{name}")
        self.name = name


@dataclass(frozen=True)
class Progress:
    """How far a long run is; `run` yields one at least every 50 ms of work."""

    done: int
    total: int
    note: Text | str | None = None


@dataclass(frozen=True)
class Metric:
    """One number of the result.

    kind   "exact": identical everywhere; "float": two platforms agree to |a - b| <= tolerance * max(|a|, |b|, scale);
           "error": a rounding residue, of which only |value| <= scale is promised
    tolerance   1e-9 for float64 work, 1e-5 for float32 work
    text   replaces the usual rendering
    how    its derivation, line by line: one click away on the page
    """

    key: str
    label: Text
    value: object
    unit: str = ""
    badge: str = "computed"
    kind: str = "exact"
    scale: float = 0.0
    tolerance: float = 1e-9
    text: Text | str | None = None
    how: tuple = ()

    def to_json(self, lang: str) -> dict:
        value = plain(self.value)
        text = say(self.text, lang) if self.text is not None else say_or_quantity(value, self.unit, lang)
        return {"key": self.key, "label": self.label.render(lang), "value": json_value(value), "unit": self.unit,
                "badge": self.badge, "kind": self.kind, "scale": self.scale,
                "tolerance": self.tolerance, "text": text, "how": say_all(self.how, lang)}


@dataclass(frozen=True)
class Column:
    """One column of a table; kinds as for Metric. A column named "id" is not shown: it links the row to every
    drawing that carries the same `data-id`."""

    key: str
    label: Text
    kind: str = "exact"
    unit: str = ""
    scale: float = 0.0
    tolerance: float = 1e-9


@dataclass(frozen=True)
class Table:
    """Rows of plain values or Texts. `title` set: the page shows the table; else it only feeds figures."""

    columns: tuple
    rows: list
    title: Text | None = None

    def to_json(self, lang: str) -> dict:
        rows = [[plain(cell) for cell in row] for row in self.rows]
        out = {
            "title": say(self.title, lang),
            "columns": [{"key": c.key, "label": c.label.render(lang), "kind": c.kind, "unit": c.unit,
                         "scale": c.scale, "tolerance": c.tolerance} for c in self.columns],
            "rows": [[say_all(json_value(cell), lang) for cell in row] for row in rows],
        }
        if self.title is not None:
            out["text"] = [[say_or_quantity(cell, column.unit, lang) for column, cell in zip(self.columns, row)]
                           for row in rows]
        return out


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite specification. `spec["data"]` is filled in from the table called `table`; its words are Texts."""

    name: str
    table: str
    title: Text
    caption: Text
    spec: dict

    def to_json(self, lang: str) -> dict:
        head = {"name": self.name, "description": self.caption.render(lang), "data": {"name": self.table},
                "usermeta": {"title": self.title.render(lang)}}
        return head | say_all(self.spec, lang)


@dataclass(frozen=True)
class Scene:
    """Something that can be stepped through: `events` is its log (plain data), one caption per frame.

    `frames` pictures are drawn from the log by the experiment's `draw[name]`; `poster` is the one shown first."""

    name: str
    title: Text
    events: object
    captions: list
    poster: int = 0

    @property
    def frames(self) -> int:
        return len(self.captions)

    def to_json(self, lang: str) -> dict:
        return {"name": self.name, "title": self.title.render(lang), "frames": self.frames, "poster": self.poster,
                "captions": [caption.render(lang) for caption in self.captions]}


@dataclass(frozen=True)
class Picture:
    """A drawn frame: SVG text, and the legend beside it as (swatch class, Text) pairs, counts included."""

    svg: str
    legend: list

    def to_json(self, lang: str) -> dict:
        return {"svg": self.svg, "legend": [{"swatch": swatch, "text": text.render(lang)}
                                            for swatch, text in self.legend]}


@dataclass(frozen=True)
class Check:
    """An assertion about the mechanism that can fail; `measured` and `bound` say by how much."""

    key: str
    label: Text
    passed: bool
    measured: object
    bound: object
    unit: str = ""

    def to_json(self, lang: str) -> dict:
        measured, bound = plain(self.measured), plain(self.bound)
        text = Text("measured {measured}, required {bound}", measured=say_or_quantity(measured, self.unit, lang),
                    bound=say_or_quantity(bound, self.unit, lang))
        return {"key": self.key, "label": self.label.render(lang), "passed": bool(self.passed),
                "measured": say_all(json_value(measured), lang), "bound": say_all(json_value(bound), lang),
                "text": text.render(lang)}


@dataclass(frozen=True)
class Snippet:
    """Text to copy: a command that gives the same answer, or what a program would print."""

    key: str
    title: Text
    text: str

    def to_json(self, lang: str) -> dict:
        return {"key": self.key, "title": self.title.render(lang), "text": self.text}


@dataclass(frozen=True)
class Prediction:
    """The question a reader answers before the figure is shown; `Result.answer` is the index of the right option."""

    question: Text
    options: tuple


@dataclass
class Result:
    """What a run returns.

    answer, answer_text   index of the right option of the prediction, and why
    suggested   parameter name -> value that fits a file which the reader gave better than the default does
    """

    metrics: list
    checks: list
    tables: dict = field(default_factory=dict)
    figures: list = field(default_factory=list)
    scenes: list = field(default_factory=list)
    snippets: list = field(default_factory=list)
    answer: int = 0
    answer_text: Text | None = None
    suggested: dict = field(default_factory=dict)
    slug: str = ""
    params: dict = field(default_factory=dict)
    seed: int = 0

    def to_json(self, lang: str) -> dict:
        """The result as JSON data in `lang`; the digest does not depend on the language."""
        return {
            "slug": self.slug, "params": {name: json_value(value) for name, value in self.params.items()},
            "seed": self.seed,
            "metrics": [metric.to_json(lang) for metric in self.metrics],
            "tables": {name: table.to_json(lang) for name, table in self.tables.items()},
            "figures": [figure.to_json(lang) for figure in self.figures],
            "scenes": [scene.to_json(lang) for scene in self.scenes],
            "checks": [check.to_json(lang) for check in self.checks],
            "snippets": [snippet.to_json(lang) for snippet in self.snippets],
            "prediction": {"answer": self.answer, "text": say(self.answer_text, lang)},
            "suggested": self.suggested,
            "digest": self.digest(),
        }

    def digest(self) -> str:
        """SHA-256 of the exact values of metrics and tables and of which checks passed; no words, no floats."""
        exact = {
            "metrics": {m.key: json_value(plain(m.value)) for m in self.metrics if m.kind == "exact"},
            "tables": {name: [[c.key for c in table.columns if c.kind == "exact"],
                              [[json_value(plain(cell)) for c, cell in zip(table.columns, row)
                                if c.kind == "exact" and not isinstance(cell, Text)] for row in table.rows]]
                       for name, table in self.tables.items()},
            "checks": {check.key: bool(check.passed) for check in self.checks},
        }
        return hashlib.sha256(dumps(exact, sort_keys=True).encode()).hexdigest()

    def scene(self, name: str) -> Scene:
        """The scene called `name`. Raises ValueError."""
        for scene in self.scenes:
            if scene.name == name:
                return scene
        raise ValueError(f"{self.slug} has no scene {name!r}; there are {[scene.name for scene in self.scenes]}")


@dataclass(frozen=True)
class Input:
    """A text file that the reader may drop on the page; a link names it by its SHA-256. `accept` lists endings.
    `replaces` names the parameter that says nothing while there is a file."""

    name: str
    label: Text
    accept: str
    max_bytes: int
    replaces: str = ""


@dataclass(frozen=True)
class Preset:
    """A named situation: parameters that differ from the defaults, a seed that was looked at, and in words what
    should happen. `breaks` lists the checks that fail here on purpose."""

    name: str
    title: Text
    expect: Text
    params: dict = field(default_factory=dict)
    seed: int = 0
    breaks: tuple = ()


@dataclass(frozen=True)
class Experiment:
    """One tab's computation.

    name      what the list of tabs calls it, two words; `title` is the heading of its page
    function  (SimpleNamespace of parsed parameters, seed) -> Result, or a generator of Progress that returns it;
              where there are inputs, a third argument: input name -> text of the file, for those that were given
    draw      scene name -> function (result, scene, frame, lang, narrow) -> Picture; `narrow` is a 340 px wide drawing
    code      the functions whose source the page shows, the most telling one first
    pace      (parameters, seed) -> generator of dicts, the parts of a job that the page times: see k3core.lab.pace
    """

    slug: str
    tab: int
    family: str
    name: Text
    title: Text
    question: Text
    params: tuple
    presets: tuple
    prediction: Prediction
    function: Callable
    draw: dict = field(default_factory=dict)
    code: tuple = ()
    inputs: tuple = ()
    pace: Callable | None = None

    def steps(self, params: dict | None = None, seed=0, files: dict | None = None) -> Iterator:
        """Run step by step: yields Progress, then the Result last. Raises ParamError before the first step."""
        values, seed = parse_all(self.params, params or {}), parse_seed(seed)
        return self._steps(values, seed, files or {})

    def run(self, params: dict | None = None, seed=0, files: dict | None = None) -> Result:
        """The result for `params` (missing ones at their defaults) and files (name -> text). Raises ParamError."""
        for step in self.steps(params, seed, files):
            last = step
        return last

    def picture(self, result: Result, scene: str, frame: int, lang: str, narrow: bool = False) -> Picture:
        """Frame `frame` (0-based) of a scene, its words in `lang`. Raises ValueError where there is none."""
        found = result.scene(scene)
        if not isinstance(frame, int) or not 0 <= frame < found.frames:
            raise ValueError(f"frame is {frame!r}; {scene} has frames 0 to {found.frames - 1}")
        return self.draw[scene](result, found, frame, lang, narrow)

    def preset(self, name: str) -> Preset:
        """The preset called `name`. Raises ParamError."""
        for preset in self.presets:
            if preset.name == name:
                return preset
        names = ", ".join(preset.name for preset in self.presets)
        raise ParamError("preset", Text("there is no preset {name}; there are {names}", name=shown(name), names=names))

    def to_json(self, lang: str) -> dict:
        """The experiment as the page and `python -m k3core tabs` list it."""
        return {
            "slug": self.slug, "tab": self.tab, "name": self.name.render(lang), "title": self.title.render(lang),
            "family": self.family, "question": self.question.render(lang),
            "params": [param.to_json(lang) for param in self.params],
            "presets": [{"name": p.name, "title": p.title.render(lang), "params": p.params, "seed": p.seed,
                         "expect": p.expect.render(lang)} for p in self.presets],
            "inputs": [{"name": i.name, "label": i.label.render(lang), "accept": i.accept, "max_bytes": i.max_bytes,
                        "replaces": i.replaces} for i in self.inputs],
            "paced": self.pace is not None,
            "prediction": {"question": self.prediction.question.render(lang),
                           "options": [option.render(lang) for option in self.prediction.options]},
        }

    def _steps(self, values: dict, seed: int, files: dict) -> Iterator:
        outcome = self.function(SimpleNamespace(**values), seed, *([files] if self.inputs else []))
        if isgenerator(outcome):
            outcome = yield from outcome
        outcome.slug, outcome.params, outcome.seed = self.slug, values, seed
        yield outcome


def plain(value):
    """NumPy scalars as Python's own; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def say_or_quantity(value, unit: str, lang: str) -> str:
    """A Text in `lang`, or a value with its unit."""
    if unit == "tokens" and isinstance(value, (int, float)):  # the one unit that is a word
        value = Text("{tokens} tokens", tokens=number(value))
    return value.render(lang) if isinstance(value, Text) else quantity(value, unit)


def json_value(value):
    """A value as JSON can carry it: integers above 2**53 as strings. Raises ValueError for what is not finite."""
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > BIGGEST_JSON_INTEGER:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be part of a result; report None or a sentence instead")
    return value


def dumps(data, **options) -> str:
    """JSON text, the same bytes on every platform."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), **options)

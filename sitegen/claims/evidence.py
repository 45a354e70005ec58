"""Where the numbers of a claim come from, and the verdict that follows from them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from urllib.parse import quote

from k3core.lab.contract import Result, plain, say_or_quantity
from k3core.lab.display import number
from k3core.lab.registry import experiment
from k3core.lab.text import say

HOLDS, CONDITIONS, FAILS, OPEN = "holds", "conditions", "fails", "open"
VERDICTS = (HOLDS, CONDITIONS, FAILS, OPEN)


@dataclass(frozen=True)
class Run:
    """One state of a tab: the settings that differ from its defaults, as (name, value) pairs."""

    slug: str
    settings: tuple = ()

    @property
    def fragment(self) -> str:
        """The address's fragment that opens this state, as the page itself would write it."""
        return "&".join(f"{quote(name, safe='')}={quote(_written(value), safe='')}" for name, value in self.settings)


def run(slug: str, **settings) -> Run:
    """A state of a tab, with settings that differ from its defaults."""
    return Run(slug, tuple(settings.items()))


@dataclass(frozen=True)
class Figure:
    """One number: `find` takes it from the result of `run`, as (value, unit, text or None). `exact` bytes are written
    out where the tab rounds them. Without a run, `find` takes nothing, and `source` names what it calls."""

    key: str
    run: Run | None
    find: Callable
    exact: bool = False
    source: str = ""


def metric(key: str, where: Run, name: str, exact: bool = False) -> Figure:
    """A metric of a run, with the words of the tab."""
    def find(result: Result):
        found = next(metric for metric in result.metrics if metric.key == name)
        return found.value, found.unit, found.text

    return Figure(key, where, find, exact)


def check(key: str, where: Run, name: str) -> Figure:
    """What a check of a run has measured."""
    def find(result: Result):
        return next(check for check in result.checks if check.key == name).measured, "", None

    return Figure(key, where, find)


def cell(key: str, where: Run, table: str, row: tuple, column: str) -> Figure:
    """A cell of a table of a run; `row` is how the row begins, words by their English."""
    def find(result: Result):
        found = result.tables[table]
        columns = [column.key for column in found.columns]
        values = next(values for values in found.rows
                      if tuple(getattr(value, "template", value) for value in values[:len(row)]) == row)
        return values[columns.index(column)], found.columns[columns.index(column)].unit, None

    return Figure(key, where, find)


def computed(key: str, source: str, function: Callable) -> Figure:
    """A number that no tab shows: `function` () -> (value, unit, text or None), `source` is the k3core name it uses."""
    return Figure(key, None, function, source=source)


@dataclass(frozen=True)
class Claim:
    """`decide` (figures by key) -> a verdict. `derive` adds numbers that the reason names, key -> text."""

    id: str
    group: str
    figures: tuple
    decide: Callable
    derive: Callable = field(default=lambda n: {})


class Runs:
    """Results of tabs, each computed once."""

    def __init__(self):
        self.results = {}

    def keep(self, result: Result) -> None:
        """The result of a tab with its defaults, which the build has anyway."""
        self.results[Run(result.slug)] = result

    def result(self, where: Run) -> Result:
        """The result of a run, computed the first time."""
        if where not in self.results:
            self.results[where] = experiment(where.slug).run(dict(where.settings))
        return self.results[where]

    def numbers(self, claim: Claim) -> SimpleNamespace:
        """The values of a claim's figures by key."""
        return SimpleNamespace(**{figure.key: plain(self.found(figure)[0]) for figure in claim.figures})

    def found(self, figure: Figure) -> tuple:
        """(value, unit, text or None) of a figure."""
        return figure.find(self.result(figure.run)) if figure.run else figure.find()

    def shown(self, figure: Figure, lang: str) -> dict:
        """The figure as text, and as the tab has it where that is written otherwise."""
        value, unit, text = self.found(figure)
        tab = say(text, lang) if text is not None else say_or_quantity(plain(value), unit, lang)
        exact = f"{number(plain(value))} B" if figure.exact else tab
        return {"text": exact, "tab": tab if tab != exact else ""}


def _written(value) -> str:
    """A setting as text: what the page's controls write."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(_written(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)

"""SPEC.toml as a sweep: its points, made when they are asked for, each with the key of its result."""

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .. import __version__
from ..cli_size import no_model
from ..lab.contract import dumps
from ..lab.params import shown
from .commands import COMMANDS, Command
from .files import File, open_file

MOST = 10_000_000  # points of a sweep, and values of one parameter
RANGE = ("start", "stop", "step", "count", "scale")
KNOWN = ("command", "seeds", "grid", "points", "report")
REPORT = ("x", "y", "color", "facet")


@dataclass(frozen=True)
class Point:
    """One computation. params: name -> value as the spec has it; files: parameter -> file."""

    command: str
    params: dict
    seed: int | None
    files: dict[str, File]

    @property
    def texts(self) -> dict[str, str]:
        """Parameters as the command takes them, without those that are files."""
        return {name: text(name, value) for name, value in self.params.items() if name not in self.files}

    @cached_property
    def key(self) -> str:
        """SHA-256 of all that the result depends on: command, parameters, seed, content of files, version."""
        files = {name: file.sha256 for name, file in self.files.items()}
        parts = {"command": self.command, "params": self.texts, "seed": self.seed, "files": files,
                 "version": __version__}
        return hashlib.sha256(dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def task(self) -> tuple:
        """What a worker needs to compute it."""
        return self.key, self.texts, self.seed, {name: (file.sha256, file.name) for name, file in self.files.items()}


@dataclass(frozen=True)
class Sweep:
    """A command at the product of its axes, in the order of the spec, seeds last.

    axes: one per parameter (or list of points), each a list of {parameter: value}. files: path as written -> file.
    report: the table [report] of the spec. source: its text.
    """

    command: str
    axes: tuple
    seeds: Sequence[int | None]
    files: dict[str, File]
    report: dict
    source: str

    def __len__(self) -> int:
        return math.prod(len(axis) for axis in self.axes) * len(self.seeds)

    def point(self, index: int) -> Point:
        """Point `index`, from 0; the last axis changes fastest."""
        index, place = divmod(index, len(self.seeds))
        seed, parts = self.seeds[place], []
        for axis in reversed(self.axes):
            index, place = divmod(index, len(axis))
            parts.append(axis[place])
        params = {name: value for part in reversed(parts) for name, value in part.items()}
        texts = _texts(params)
        names = COMMANDS[self.command].files(texts)
        return Point(self.command, params, seed, {name: self.files[texts[name]] for name in names})

    @property
    def names(self) -> list[str]:
        """Every parameter that a point may set, in order."""
        return list(dict.fromkeys(name for axis in self.axes for part in axis for name in part))

    @property
    def varying(self) -> list[str]:
        """Parameters that differ between points; the seed among them, last, where there are several."""
        names = dict.fromkeys(name for axis in self.axes if len(axis) > 1 for part in axis for name in part)
        return [*names, *["seed"] * (len(self.seeds) > 1)]


def read_spec(path: Path) -> Sweep:
    """The sweep that a file describes, every parameter and value checked. Raises ValueError, OSError."""
    source = path.read_bytes()
    try:
        return sweep_from(source.decode("utf-8"), path.parent)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def sweep_from(source: str, folder: Path) -> Sweep:
    """The sweep that a TOML text describes; paths in it count from `folder`. Raises ValueError."""
    data = _toml(source)
    _known("a spec", data, KNOWN)
    name = data.get("command")
    if not isinstance(name, str) or name not in COMMANDS:
        raise ValueError(f"command is {shown(name)}; it must be one of {', '.join(COMMANDS)}")
    grid, points, report = data.get("grid", {}), data.get("points"), data.get("report", {})
    for title, table in (("grid", grid), ("report", report)):
        if not isinstance(table, dict):
            raise ValueError(f"{title} is {shown(table)}; write it as a table [{title}]")
    axes = [] if points is None else [_points(points, grid)]
    axes += [[{parameter: value} for value in _values(parameter, given)] for parameter, given in grid.items()]
    command, seeds = COMMANDS[name], _seeds(name, data.get("seeds"))
    size = math.prod(map(len, axes)) * len(seeds)
    if size > MOST:
        raise ValueError(f"these are {size:,} points; a sweep takes at most {MOST:,}")
    paths = _check(name, command, axes)  # path -> parameter
    for path, parameter in paths.items():
        if parameter == "model" and not os.path.lexists(folder / path):
            raise ValueError(no_model(path))
    files = {path: open_file(folder / path, path) for path in paths}
    sweep = Sweep(name, tuple(axes), seeds, files, report, source)
    _check_report(sweep)
    return sweep


def _toml(source: str) -> dict:
    import tomllib

    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError:
        raise  # says line and column
    except ValueError:
        raise ValueError("it holds a number of thousands of digits") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def text(name: str, value) -> str:
    """A value as on the command line. Raises ValueError."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)) and value == value:
        return repr(value)
    if isinstance(value, list) and value:
        return ",".join(text(name, item) for item in value)
    if isinstance(value, str):
        return value
    raise ValueError(f"{name} is {shown(value)}; it must be text, a number, true or false, or a list of these")


def _texts(params: dict) -> dict:
    return {name: text(name, value) for name, value in params.items()}


def _known(where: str, table: dict, names: Sequence[str]) -> None:
    for name in table:
        if name not in names:
            raise ValueError(f"{where} has no {shown(name)}; it has {', '.join(names)}")


def _values(name: str, given) -> list:
    """Values of one parameter: a list, a range, or one value."""
    if isinstance(given, dict):
        return _range(name, given)
    values = given if isinstance(given, list) else [given]
    if not values:
        raise ValueError(f"{name} has no values, so the grid is empty")
    texts = [text(name, value) for value in values]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{name} lists {next(one for one in texts if texts.count(one) > 1)!r} twice")
    return values


def _range(name: str, given: dict) -> list:
    """start to stop (included) by step, or count values on a linear or log scale; whole where both ends are."""
    _known(f"the range of {name}", given, RANGE)
    start, stop, scale = given.get("start"), given.get("stop"), given.get("scale", "linear")
    for key in ("start", "stop", "step"):
        if not _number(given.get(key, 0 if key == "step" else None)):
            raise ValueError(f"the range of {name} needs {key}, a number")
    if ("step" in given) == ("count" in given) or scale not in ("linear", "log"):
        raise ValueError(f"the range of {name} takes either step, or count and scale ('linear' or 'log')")
    whole = all(isinstance(given.get(key, 0), int) for key in ("start", "stop", "step"))
    if "step" in given:
        step = given["step"]
        count = math.floor((stop - start) / step + 1e-9) + 1 if step else 0
    else:
        step, count = None, given["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST:
        raise ValueError(f"the range of {name} has {shown(count)} values; it must have 1 to {MOST:,}")
    if scale == "log" and not (start > 0 and stop > 0):
        raise ValueError(f"the range of {name} is on a log scale; start and stop must be above 0")
    if step is not None:
        values = [start + place * step for place in range(count)]
    elif scale == "log":
        values = [start * (stop / start) ** (place / max(1, count - 1)) for place in range(count)]
    else:
        values = [start + (stop - start) * place / max(1, count - 1) for place in range(count)]
    return list(dict.fromkeys(round(value) if whole else float(f"{value:.12g}") for value in values))


def _number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _points(points, grid: dict) -> list:
    """The list [[points]]: each a table of parameters."""
    if not isinstance(points, list) or not points or not all(isinstance(part, dict) and part for part in points):
        raise ValueError("points must be a list of tables [[points]], each with parameters")
    for part in points:
        for name in part:
            if name in grid:
                raise ValueError(f"{name} is in [grid] and in [[points]]; it must be in one of them")
    texts = [_texts(part) for part in points]
    if double := [one for place, one in enumerate(texts) if one in texts[:place]]:
        raise ValueError(f"points lists {shown(double[0])} twice")
    return points


def _seeds(name: str, given) -> Sequence[int | None]:
    """A number of seeds, from 0 on; a list; a range."""
    if given is None:
        return (None,)
    if not COMMANDS[name].seeded:
        raise ValueError(f"{name} takes no seeds: nothing in it is drawn at random")
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST:
        return range(given)
    values = _values("seeds", given) if isinstance(given, (list, dict)) else [given]
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**32 or values == [given]:
            raise ValueError(f"seeds is {shown(value)}; it must be how many (1 to {MOST:,}), or a list or range of "
                             "whole numbers from 0 to 4294967295")
    return values


def _check(name: str, command: Command, axes: list) -> dict:
    """Check every name and every value by itself -> paths of files, in order, and whose they are. Raises ValueError."""
    base = {parameter: value for axis in axes for parameter, value in axis[0].items()}
    paths = {}
    for parameter in command.needed:
        for axis in axes:
            if any(parameter in part for part in axis) and not all(parameter in part for part in axis):
                raise ValueError(f"{parameter} is missing in one of the points; {name} needs it")
        if parameter not in base:
            raise ValueError(f"{name} needs the parameter {parameter}")
    for axis in axes or [[{}]]:
        others = {parameter: value for parameter, value in base.items() if not any(parameter in part for part in axis)}
        for place, part in enumerate(axis):
            params = _texts(others | part)
            known = command.names(params)
            for parameter in params:
                if parameter not in known and parameter in ("seed", "seeds"):
                    raise ValueError(f"{parameter} is no parameter of a point; above [grid] write seeds = 5 or [0, 7]")
                if parameter not in known:
                    raise ValueError(f"there is no parameter {shown(parameter)}; {name} takes {', '.join(known)}")
            files = command.files(params)
            everything = place == 0 or not set(part).isdisjoint(command.needed)
            for parameter in params if everything else part:
                if parameter in files:
                    paths[params[parameter]] = parameter
                else:
                    command.check(params, parameter)
    return paths


def _check_report(sweep: Sweep) -> None:
    _known("[report]", sweep.report, REPORT)
    for place, value in sweep.report.items():
        names = value if place == "y" and isinstance(value, list) else [value]
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"report.{place} is {shown(value)}; it must be a name")
        if place != "y" and value not in sweep.varying:
            raise ValueError(f"report.{place} is {value!r}; it must be one of {', '.join(sweep.varying) or 'none'}")

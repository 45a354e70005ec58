"""What a sweep leaves on disk: a journal that grows as points finish, and tables in the order of the spec."""

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import __version__
from ..lab.contract import dumps
from .spec import Point, Sweep

JOURNAL, RESULTS, TABLE, REPORT = "journal.jsonl", "results.jsonl", "results.csv", "report.html"
OWN_COLUMNS = ("seed", "digest", "error", "key")
FIRST = 100  # failures that are told


class Journal:
    """One line per finished point: {"key", "metrics", "digest"} or {"key", "error"}; the last one of a key counts.

    A line is whole or not there: what was cut off when a sweep was ended is passed over. Lines of other sweeps and
    versions may be in it; their keys differ.
    """

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / JOURNAL
        self.places: dict[str, tuple[int, bool]] = {}  # key -> (offset of its line, whether it failed)
        self._file = open(self.path, "ab", buffering=0)
        try:
            self._scan()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """No more is appended; `places` stay."""
        self._file.close()

    def append(self, records: list[dict]) -> None:
        """Write what was computed. Raises OSError; what was written before stays."""
        lines = [dumps(record).encode() + b"\n" for record in records]
        start = b"" if self._whole else b"\n"  # ends the line that was cut off
        offset, places = os.fstat(self._file.fileno()).st_size + len(start), {}
        for record, line in zip(records, lines, strict=True):
            places[record["key"]] = offset, "error" in record
            offset += len(line)
        text = b"".join([start, *lines])
        self._whole = False
        try:
            while text:
                text = text[self._file.write(text):]
        except OSError as error:
            raise OSError(f"cannot write {self.path}: {error.strerror}") from None
        self._whole = True
        self.places |= places

    def _scan(self) -> None:
        self._whole, offset = True, 0
        with open(self.path, "rb") as lines:
            for line in lines:
                self._whole = line.endswith(b"\n")
                try:
                    record = json.loads(line)
                    if self._whole:
                        self.places[record["key"]] = offset, "error" in record
                except (ValueError, TypeError, KeyError):
                    pass
                offset += len(line)


def row(point: Point, record: dict) -> dict:
    """A line of results.jsonl."""
    params = {name: value if isinstance(value, (str, list)) or abs(value) < 2**53 else str(value)
              for name, value in point.params.items()}  # "inf" among them
    files = {name: file.sha256 for name, file in point.files.items()}
    head = {"key": point.key, "command": point.command, "version": __version__, "params": params, "seed": point.seed,
            "files": files}
    return head | {name: value for name, value in record.items() if name != "key"}


def rows(sweep: Sweep, journal: Journal) -> Iterator[dict]:
    """Every point that has been computed, in the order of the spec."""
    with open(journal.path, "rb") as lines:
        for index in range(len(sweep)):
            point = sweep.point(index)
            if point.key in journal.places:
                lines.seek(journal.places[point.key][0])
                yield row(point, json.loads(lines.readline()))


@dataclass
class Written:
    """What is in the tables: names of the metrics in order, how many points failed, and the first of them."""

    metrics: list[str]
    failed: int
    errors: list[str]


def write_tables(sweep: Sweep, journal: Journal, folder: Path) -> Written:
    """Write results.jsonl and results.csv. Raises OSError; old files stay then."""
    written, metrics = Written([], 0, []), {}
    with replacing(folder / RESULTS) as file:
        for one in rows(sweep, journal):
            metrics |= dict.fromkeys(one.get("metrics", ()))
            if "error" in one:
                written.failed += 1
                if len(written.errors) < FIRST:
                    written.errors.append(f"{named(sweep, one)}: {one['error']}")
            file.write(dumps(one) + "\n")
    written.metrics = list(metrics)
    names, seeded = sweep.names, sweep.seeds[0] is not None
    titles = [f"metric.{name}" if name in (*names, *OWN_COLUMNS) else name for name in metrics]
    with replacing(folder / TABLE) as file, open(folder / RESULTS, encoding="utf-8") as lines:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*names, *["seed"] * seeded, *titles, "digest", "error", "key"])
        for one in map(json.loads, lines):
            values = [*(one["params"].get(name) for name in names), *[one["seed"]] * seeded,
                      *(one.get("metrics", {}).get(name) for name in metrics),
                      one.get("digest"), one.get("error"), one["key"]]
            table.writerow(map(cell, values))
    return written


def values_of(one: dict) -> dict:
    """Parameters and seed of a row."""
    return one["params"] | {"seed": one["seed"]}


def named(sweep: Sweep, one: dict) -> str:
    """A row by what sets it apart: policy=dense, tp=8."""
    values = values_of(one)
    return ", ".join(f"{name}={cell(values[name])}" for name in sweep.varying if name in values) or sweep.command


def cell(value) -> str:
    """A value in a CSV."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def replacing(path: Path) -> Iterator[io.TextIOBase]:
    """A text file that takes the place of the one at `path` when it is whole, and not before."""
    draft = path.with_name(path.name + ".part")
    try:
        with open(draft, "w", encoding="utf-8", newline="") as file:
            yield file
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise

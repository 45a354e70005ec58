"""Request traces from files: one request a line, read as a stream.

JSON Lines as Mooncake publishes them (FAST25-release/traces: timestamp in ms, input_length, output_length,
hash_ids), or CSV without prefixes as Azure (AzurePublicDataset) and BurstGPT do.
"""

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from k3core import nesting

LONGEST = 2**24  # tokens in one request; more is taken for damage
COLUMNS = {
    "timestamp": ("timestamp",),
    "input_length": ("contexttokens", "request tokens", "input_length"),
    "output_length": ("generatedtokens", "response tokens", "output_length"),
}


class Request(NamedTuple):
    """One request. hash_ids: a number (0 to 2**64 - 1) for each block of the prompt, the last one perhaps not
    full; None: unknown.

    Two prompts share their first blocks as far as their hash_ids begin with the same numbers.
    """

    timestamp: float  # ms
    input_length: int
    output_length: int
    hash_ids: list[int] | None = None


class TraceError(ValueError):
    """A line that is not a request; `line` is its number, counted from 1."""

    def __init__(self, line: int, problem: str):
        super().__init__(f"line {line}: {problem}")
        self.line = line


def read_trace(lines: Iterable[str | bytes], hash_block: int = 512,
               skip: Callable[[TraceError], None] | None = None) -> Iterator[Request]:
    """The requests of a trace, in file order; `lines` may be an open file.

    hash_block: tokens per entry of hash_ids. Blank lines are passed over. A line that is not a request, or
    that goes back in time, raises TraceError; with `skip` that is called instead, and reading goes on. Raises
    ValueError for a trace without a single request.
    """
    if hash_block < 1:
        raise ValueError(f"hash_block is {hash_block}; it must be at least 1 token")
    numbered = _texts(lines, skip)
    first = next(numbered, None)
    if first is None:
        raise ValueError("the trace is empty")
    if first[1].startswith("{"):
        parse, numbered = _jsonl_parser(hash_block), chain([first], numbered)
    else:
        parse = _csv_parser(*first)
    latest = -math.inf
    for line, text in numbered:
        try:
            request = parse(line, text)
            if request.timestamp < latest:
                raise TraceError(line, f"timestamp {request.timestamp} is earlier than the one before, "
                                       f"{latest}")
        except TraceError as error:
            if skip is None:
                raise
            skip(error)
            continue
        latest = request.timestamp
        yield request
    if latest == -math.inf:
        raise ValueError("the trace holds no request")


def _texts(lines, skip) -> Iterator[tuple[int, str]]:
    """Non-blank lines as text, with their numbers."""
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8") if isinstance(line, bytes) else line
            if "\0" in text:
                raise UnicodeError
        except UnicodeError:
            error = TraceError(number, "this is not text; a trace is JSON Lines or CSV in UTF-8")
            if skip is None:
                raise error from None
            skip(error)
            continue
        text = text.strip("\ufeff \t\r\n")
        if text:
            yield number, text


def _jsonl_parser(hash_block: int) -> Callable[[int, str], Request]:
    def parse(line: int, text: str) -> Request:
        try:
            record = nesting.loads(text)
        except (ValueError, RecursionError):
            raise TraceError(line, f"{_shown(text)} cannot be read as JSON") from None
        if not isinstance(record, dict):
            raise TraceError(line, f"{_shown(text)} is not a JSON object")
        for name in COLUMNS:
            if name not in record:
                raise TraceError(line, f"{name} is missing")
        timestamp = record["timestamp"]
        if type(timestamp) not in (int, float) or not 0 <= timestamp < 2**53:
            raise TraceError(line, f"timestamp is {_shown(timestamp)}; it must be 0 or more, in ms")
        length = _tokens(line, "input_length", record["input_length"], 1)
        output = _tokens(line, "output_length", record["output_length"], 0)
        ids = record.get("hash_ids")
        if ids is not None:
            _check_ids(line, ids, length, hash_block)
        return Request(timestamp, length, output, ids)

    return parse


def _check_ids(line: int, ids, length: int, hash_block: int) -> None:
    if not isinstance(ids, list) or set(map(type, ids)) - {int}:
        raise TraceError(line, f"hash_ids is {_shown(ids)}; it must be a list of integers")
    blocks = -(-length // hash_block)
    if len(ids) != blocks:
        raise TraceError(line, f"hash_ids has {len(ids)} entries, but an input_length of {length} makes "
                               f"{blocks} blocks of {hash_block} tokens")
    if min(ids) < 0 or max(ids) >= 2**64:
        raise TraceError(line, "hash_ids has an entry outside 0 to 2**64 - 1")


def _csv_parser(number: int, header: str) -> Callable[[int, str], Request]:
    names = [name.strip().lower() for name in _fields(number, header)]
    places = {}
    for name, known in COLUMNS.items():
        places[name] = next((names.index(other) for other in known if other in names), None)
        if places[name] is None:
            raise TraceError(number, f"{_shown(header)} is neither JSON nor a CSV header with the columns "
                                     "TIMESTAMP, ContextTokens and GeneratedTokens")
    first = None

    def parse(line: int, text: str) -> Request:
        nonlocal first
        fields = _fields(line, text)
        if len(fields) != len(names):
            raise TraceError(line, f"{len(fields)} fields where the header has {len(names)}")
        values = {name: fields[place].strip() for name, place in places.items()}
        moment = _moment(line, values["timestamp"])
        length = _tokens(line, "input_length", _integer(values["input_length"]), 1)
        output = _tokens(line, "output_length", _integer(values["output_length"]), 0)
        first = moment if first is None else first
        try:
            elapsed = (moment - first) / timedelta(milliseconds=1)
        except TypeError:  # one with, one without time zone
            raise TraceError(line, f"timestamp {_shown(values['timestamp'])} differs in kind from the first"
                             ) from None
        return Request(elapsed, length, output)

    return parse


def _fields(line: int, text: str) -> list[str]:
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error:
        raise TraceError(line, f"{_shown(text)} is not CSV") from None


def _moment(line: int, text: str) -> datetime | timedelta:
    """A date and time, or a number of seconds."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < 2**40:
        raise TraceError(line, f"timestamp is {_shown(text)}; it must be a date and time, or seconds")
    return timedelta(seconds=seconds)


def _integer(text: str):
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text


def _tokens(line: int, name: str, value, least: int) -> int:
    if type(value) is not int or not least <= value <= LONGEST:
        raise TraceError(line, f"{name} is {_shown(value)}; it must be an integer from {least} to {LONGEST}")
    return value


def _shown(value) -> str:
    """At most 40 characters of a value."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        text = "beyond reading"
    return repr(text if len(text) <= 40 else text[:37] + "...") if isinstance(value, str) else text[:40]

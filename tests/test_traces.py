"""Reading traces, good and broken, and making them up."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.traces import WORKLOADS, Request, TraceError, Workload, generate_trace, read_trace

MOONCAKE = [
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, '
    '"hash_ids": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}',
    "",
    '{"timestamp": 27, "input_length": 512, "output_length": 3, "hash_ids": [0]}',
]
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""


def read(lines, **options):
    return list(read_trace(lines, **options))


def line(timestamp=0, input_length=512, output_length=1, hash_ids=(7,), **more):
    record = {"timestamp": timestamp, "input_length": input_length, "output_length": output_length,
              "hash_ids": hash_ids}
    return json.dumps(record | more)


def test_mooncake_lines_as_published():
    first, second = read(MOONCAKE)
    assert first == Request(0, 6758, 500, list(range(14)))
    assert second == Request(27, 512, 3, [0])


def test_azure_csv_as_published():
    assert read(AZURE.splitlines()) == [Request(0, 374, 44), Request(pytest.approx(4314.579), 396, 109)]


def test_burstgpt_csv_counts_seconds():
    header = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    lines = [header, "5,ChatGPT,472,18,490,x", "45,GPT-4,87,9,96,x"]
    assert read(lines) == [Request(0, 472, 18), Request(40_000, 87, 9)]


@pytest.mark.parametrize("lines", [
    ["\ufeff" + line(), line()],
    [(line() + "\r\n").encode(), b"\r\n", line().encode()],
    [line(chat_id=3, parent_chat_id=-1, turn=1), line(timestamp=0.5)],
])  # fmt: skip
def test_line_ends_bytes_and_further_fields_do_not_matter(lines):
    assert [request.input_length for request in read(lines)] == [512, 512]


def test_lines_are_read_as_they_come():
    def endless():
        number = 0
        while True:
            yield line(number, hash_ids=[number])
            number += 1

    requests = read_trace(endless())
    assert [next(requests).hash_ids for _ in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize(("bad", "problem"), [
    ("{", "cannot be read as JSON"),
    ("[1, 2]", "not a JSON object"),
    ('{"timestamp": 0, "input_length": 512}', "output_length is missing"),
    (line(input_length=0, hash_ids=[]), "input_length is 0; it must be an integer from 1"),
    (line(input_length=-5), "input_length is -5"),
    (line(input_length=512.0), "input_length is 512.0"),
    (line(input_length=True), "input_length is true"),
    (line(input_length="512"), "input_length is '512'"),
    (line(input_length=10**30), "input_length is 10000"),
    (line().replace("512", "9" * 5000), "cannot be read as JSON"),
    (line(output_length=-1), "output_length is -1"),
    (line(timestamp=-1), "timestamp is -1; it must be 0 or more"),
    (line(timestamp=None), "timestamp is null"),
    (line(timestamp=True), "timestamp is true"),
    (line(timestamp=float("nan")), "timestamp is NaN"),
    (line(timestamp=float("inf")), "timestamp is Infinity"),
    (line(timestamp=3), "timestamp 3 is earlier than the one before, 10"),
    (line(timestamp=10, hash_ids=[]), "hash_ids has 0 entries, but an input_length of 512 makes 1 blocks of 512"),
    (line(timestamp=10, input_length=513), "hash_ids has 1 entries, but an input_length of 513 makes 2 blocks"),
    (line(timestamp=10, hash_ids=7), "hash_ids is 7; it must be a list of integers"),
    (line(timestamp=10, hash_ids=[1.5]), "must be a list of integers"),
    (line(timestamp=10, hash_ids=[True]), "must be a list of integers"),
    (line(timestamp=10, hash_ids=["a"]), "must be a list of integers"),
    (line(timestamp=10, hash_ids=[-1]), "outside 0 to"),
    (line(timestamp=10, hash_ids=[2**64]), "outside 0 to"),
    ("[" * 100_000, "cannot be read as JSON"),
    (b"\xff\xfe\x00rubbish", "this is not text"),
    ("a\0b", "this is not text"),
])  # fmt: skip
def test_a_bad_line_is_named_and_refused_or_skipped(bad, problem):
    lines = [line(), "", line(10), bad, line(20)]
    with pytest.raises(TraceError, match="^line 4: ") as caught:
        read(lines)
    assert caught.value.line == 4 and problem in str(caught.value) and len(str(caught.value)) < 200
    skipped = []
    assert [request.timestamp for request in read(lines, skip=skipped.append)] == [0, 10, 20]
    assert [error.line for error in skipped] == [4]


@pytest.mark.parametrize(("bad", "problem"), [
    ("2023-11-16 18:15:50,396", "2 fields where the header has 3"),
    ("2023-11-16 18:15:50,396,109,1", "4 fields"),
    ("yesterday,396,109", "timestamp is 'yesterday'; it must be a date and time, or seconds"),
    ("12,396,109", "differs in kind from the first"),
    ("2023-11-16 18:15:50+00:00,396,109", "differs in kind from the first"),
    ("2023-11-16 18:15:40,396,109", "is earlier than the one before"),
    ("2023-11-16 18:15:50,many,109", "input_length is 'many'"),
    ("2023-11-16 18:15:50,,109", "input_length is ''"),
    ("2023-11-16 18:15:50,-3,109", "input_length is '-3'"),
    ("2023-11-16 18:15:50," + "9" * 30 + ",109", "input_length is '999"),
    ('2023-11-16 18:15:50,"396,109', "is not CSV"),
    ("inf,396,109", "timestamp is 'inf'"),
])  # fmt: skip
def test_a_bad_csv_line_is_named(bad, problem):
    with pytest.raises(TraceError, match="^line 4: ") as caught:
        read([*AZURE.splitlines(), bad])
    assert problem in str(caught.value)


@pytest.mark.parametrize(("lines", "problem"), [
    ([], "the trace is empty"),
    (["", " \n"], "the trace is empty"),
    (["TIMESTAMP,ContextTokens,GeneratedTokens"], "the trace holds no request"),
    (["a,b,c", "1,2,3"], "line 1: 'a,b,c' is neither JSON nor a CSV header"),
    ([b"\x89PNG\r\n\x1a\n\x00\x00"], "line 1: this is not text"),
])  # fmt: skip
def test_what_is_no_trace_at_all(lines, problem):
    with pytest.raises(ValueError, match=problem):
        read(lines)


@given(st.lists(st.one_of(st.text(max_size=60), st.binary(max_size=60)), max_size=8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_input_breaks_the_reader_otherwise(lines):
    """Only ValueError comes out, with one short line; with `skip`, only for a file that is no trace."""
    try:
        read(lines)
    except ValueError as error:
        assert len(str(error)) < 300 and "\n" not in str(error)
    try:
        read([line(), *lines], skip=lambda error: None)
    except ValueError:
        pytest.fail("a bad line was not skipped")


# --- made-up traces ---


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_made_up_trace_reads_back_as_itself(name):
    requests = list(generate_trace(WORKLOADS[name], 400, np.random.default_rng(5)))
    lines = [json.dumps(request._asdict()) for request in requests]
    assert read(lines) == requests and len(requests) == 400


@pytest.mark.parametrize("name", WORKLOADS)
def test_made_up_prompts_repeat_what_was_read_before(name):
    """The hash ids form a tree: a number has one parent, and a number in the middle stands for a full block."""
    requests = list(generate_trace(WORKLOADS[name], 400, np.random.default_rng(5)))
    parents = {}
    for request in requests:
        for parent, child in zip([None, *request.hash_ids], request.hash_ids):
            assert parents.setdefault(child, parent) == parent
    shared = sum(len(request.hash_ids) for request in requests) - len(parents)
    assert shared > 0.3 * sum(len(request.hash_ids) for request in requests)
    assert all(r.input_length <= WORKLOADS[name].max_tokens for r in requests)


def test_all_sessions_share_exactly_the_full_blocks_of_the_system_prompt():
    workload = Workload(1, 1, 1300, 500, 1, 1, 1)
    requests = list(generate_trace(workload, 50, np.random.default_rng(0)))
    assert all(request.hash_ids[:2] == [0, 1] for request in requests)
    rest = [number for request in requests for number in request.hash_ids[2:]]
    assert len(rest) == len(set(rest))


@pytest.mark.parametrize(("change", "problem"), [
    ({"turns": 0}, "turns is 0"),
    ({"branch": 2}, "branch is 2"),
    ({"first_tokens": float("nan")}, "first_tokens is nan"),
    ({"max_tokens": 10}, "max_tokens is 10; it must exceed system_tokens"),
])  # fmt: skip
def test_a_workload_that_makes_no_sense(change, problem):
    with pytest.raises(ValueError, match=problem):
        Workload(**({"sessions_per_second": 1, "turns": 2, "system_tokens": 100, "first_tokens": 10,
                     "message_tokens": 10, "output_tokens": 10, "pause_seconds": 1} | change))

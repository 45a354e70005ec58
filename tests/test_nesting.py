"""JSON nested too deeply is refused; brackets in strings are no nesting; everything else is as json reads it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.nesting import DEEPEST, EMPTY, REASONS, NotJSON, loads

VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text('[]{}"\\a\n'),
                      lambda inner: st.lists(inner) | st.dictionaries(st.text('[{"\\'), inner), max_leaves=60)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(VALUES, st.sampled_from([None, 1]))
def test_it_reads_what_json_reads(value, indent):
    text = json.dumps([value, "[{" * DEEPEST], indent=indent)
    assert loads(text) == json.loads(text)


@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
def test_the_limit_is_exact(opening, closing):
    steps = DEEPEST // (opening.count("[") + opening.count("{"))
    sound = opening * steps + "0" + closing * steps
    assert loads(sound) == json.loads(sound) and loads(f"{sound[:-1]} {sound[-1]}") == json.loads(sound)
    for text in (opening * (steps + 1) + "0" + closing * (steps + 1), opening * 10**6):
        with pytest.raises(RecursionError, match="nested more than 100"):
            loads(text)


def test_siblings_are_no_depth():
    assert loads("[" + "[]," * 1000 + "[]]") == [[]] * 1001


@pytest.mark.parametrize("text", ['"' + "\\" * 999 + "[" * 200, "]" * 200 + "[" * 200, '"' * 301 + "[" * 101])
def test_what_is_no_json_raises(text):
    with pytest.raises((NotJSON, RecursionError)):
        loads(text)


@pytest.mark.parametrize("text", ["", "[1,", '{"a"\n\n 1}', '["\n"]', "[1]\n]"])
def test_the_place_is_that_of_json(text):
    with pytest.raises(json.JSONDecodeError) as theirs:
        json.loads(text)
    with pytest.raises(NotJSON) as own:
        loads(text)
    assert (own.value.line, own.value.column) == (theirs.value.lineno, theirs.value.colno)
    assert own.value.reason in (*REASONS.values(), EMPTY)


def test_a_number_that_python_does_not_read_is_an_error_in_words():
    with pytest.raises(ValueError, match="a number of thousands of digits"):
        loads("[" + "9" * 5000 + "]")

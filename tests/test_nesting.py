"""JSON nested too deeply is refused; brackets in strings are no nesting; everything else is as json reads it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.nesting import DEEPEST, loads

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
    with pytest.raises((json.JSONDecodeError, RecursionError)):
        loads(text)

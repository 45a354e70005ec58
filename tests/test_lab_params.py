"""What a parameter takes, and what it answers to everything else."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_values import NONSENSE, as_text, valid

from k3core.lab.params import Param, ParamError, parse_all, parse_frames, parse_seed, shown
from k3core.lab.text import LANGUAGES, Text

LABEL = Text("seed")
WHOLE = Param("whole", LABEL, "int", 8, 2, 64, 2)
REAL = Param("real", LABEL, "float", 0.5, 0.0, 1.0)
PICK = Param("pick", LABEL, "choice", "bf16", choices=(("bf16", "bf16"), ("fp32", "fp32")))
RANKS = Param("ranks", LABEL, "choice", 8, choices=((1, "1"), (8, "8")))
SWITCH = Param("switch", LABEL, "bool", True)
WORDS = Param("words", LABEL, "text", "abc", max_length=5)
COUNTS = Param("counts", LABEL, "list", [1, 2], 0, 9, max_length=3)
SHARES = Param("shares", LABEL, "list", [0.5], 0.0, 1.0, max_length=3)
ALL = (WHOLE, REAL, PICK, RANKS, SWITCH, WORDS, COUNTS, SHARES)
NUMBERLIKE = (WHOLE, REAL, PICK, RANKS, SWITCH, COUNTS, SHARES)


def refused(param: Param, raw) -> ParamError:
    with pytest.raises(ParamError) as caught:
        param.parse(raw)
    return caught.value


# --- what is taken ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("param", ALL, ids=lambda param: param.name)
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_value_survives_the_way_through_text_and_json(param, data):
    value = data.draw(valid(param))
    for raw in (value, as_text(value)):
        parsed = param.parse(raw)
        assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize("param, raw, value", [
    (WHOLE, " 8 ", 8), (WHOLE, "+8", 8), (WHOLE, 8.0, 8), (WHOLE, "008", 8),
    (REAL, 1, 1.0), (REAL, ".5", 0.5), (REAL, "5e-1", 0.5), (REAL, "1.", 1.0), (REAL, "1e-05", 1e-5), (REAL, "-0", 0.0),
    (PICK, " fp32 ", "fp32"), (RANKS, "8", 8), (RANKS, 8.0, 8),
    (SWITCH, "on", True), (SWITCH, "FALSE", False), (SWITCH, "0", False), (SWITCH, " yes ", True),
    (COUNTS, "1, 2", [1, 2]), (COUNTS, (3,), [3]), (SHARES, "0,1", [0.0, 1.0]), (WORDS, "", ""),
])
def test_usual_spellings_are_taken(param, raw, value):
    parsed = param.parse(raw)
    assert parsed == value and type(parsed) is type(value)


# --- what is not ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("param", NUMBERLIKE, ids=lambda param: param.name)
@pytest.mark.parametrize("number", range(len(NONSENSE)))
def test_nonsense_is_refused_in_one_sentence(param, number):
    error = refused(param, NONSENSE[number])
    for lang in LANGUAGES:
        message = error.render(lang)
        assert param.name in message and len(message) < 200 and "\n" not in message
        assert message.isprintable()
    assert error.name == param.name and isinstance(error, ValueError)


@pytest.mark.parametrize("param, raw, allowed", [
    (WHOLE, "0", "whole is 0; it takes a whole number from 2 to 64 in steps of 2"),
    (WHOLE, 66, "whole is 66; it takes a whole number from 2 to 64 in steps of 2"),
    (WHOLE, 9, "whole is 9; it takes a whole number from 2 to 64 in steps of 2"),
    (WHOLE, 8.5, "whole is 8.5; it takes a whole number from 2 to 64 in steps of 2"),
    (WHOLE, True, "whole is True; it takes a whole number from 2 to 64 in steps of 2"),
    (REAL, "1.0001", "real is 1.0001; it takes a number from 0.0 to 1.0"),
    (REAL, False, "real is False; it takes a number from 0.0 to 1.0"),
    (REAL, "1e999", "real is inf; it takes a number from 0.0 to 1.0"),
    (PICK, "fp16", "pick is 'fp16'; it takes one of bf16, fp32"),
    (PICK, "BF16", "pick is 'BF16'; it takes one of bf16, fp32"),
    (RANKS, True, "ranks is True; it takes one of 1, 8"),
    (SWITCH, 1, "switch is 1; it takes true or false"),
    (SWITCH, "maybe", "switch is 'maybe'; it takes true or false"),
    (COUNTS, "1,2,3,4", "counts is '1,2,3,4'; it takes up to 3 numbers from 0 to 9, separated by commas"),
    (COUNTS, "1,,2", "counts is ''; it takes up to 3 numbers from 0 to 9, separated by commas"),
    (COUNTS, "1.5", "counts is '1.5'; it takes up to 3 numbers from 0 to 9, separated by commas"),
    (SHARES, [0.5, 2], "shares is 2; it takes up to 3 numbers from 0.0 to 1.0, separated by commas"),
    (WORDS, "abcdef", "words has 6 characters; it takes at most 5"),
    (WORDS, 5, "words is 5; it takes text of at most 5 characters"),
])
def test_the_message_names_parameter_value_and_range(param, raw, allowed):
    assert str(refused(param, raw)) == allowed


def test_long_values_are_cut_in_the_message():
    assert len(str(refused(WORDS, "x" * 10_000))) < 130
    assert shown("x" * 10_000).endswith("...") and len(shown(list(range(10_000)))) == 60
    assert shown([10**5000]) == "list..."


# --- sets of parameters -----------------------------------------------------------------------------------------


def test_missing_parameters_take_their_defaults():
    assert parse_all(ALL, {"whole": "4"}) == {param.name: param.default for param in ALL} | {"whole": 4}


@pytest.mark.parametrize("name", ["WHOLE", "", "whole ", "__proto__", "<b>bold</b>", "x" * 1000, "\ud800", 5])
def test_an_unknown_parameter_is_named_beside_the_known_ones(name):
    with pytest.raises(ParamError) as caught:
        parse_all(ALL, {name: 1})
    for lang in LANGUAGES:
        message = caught.value.render(lang)
        assert shown(name) in message and "whole, real, pick" in message
        assert message.isprintable() and len(message) < 250


@pytest.mark.parametrize("raw", [[1], "whole=4", 5, [["whole", 4]]])
def test_parameters_come_as_an_object(raw):
    with pytest.raises(ParamError, match="they must be an object"):
        parse_all(ALL, raw)


@pytest.mark.parametrize("raw", [0, "0", 2**32 - 1, "4294967295"])
def test_seeds(raw):
    assert parse_seed(raw) == int(raw)


@pytest.mark.parametrize("raw", [-1, 2**32, "1.5", None, True, "", "<img src=x>", 10**400])
def test_other_seeds_are_refused(raw):
    with pytest.raises(ParamError, match="seed is .*; it takes a whole number from 0 to 4294967295"):
        parse_seed(raw)


def test_frames_are_read_by_scene():
    assert parse_frames(["window", "ring"], {"frame.ring": "3"}) == {"ring": 3}
    assert parse_frames([], {}) == {}
    for raw in ({"frame.ring": "<b>"}, {"frame.ring": -1}, {"frame.other": 1}, {"ring": 1}, ["frame.ring"]):
        with pytest.raises(ParamError):
            parse_frames(["window", "ring"], raw)


def test_the_whole_description_reaches_the_page():
    described = dataclasses.replace(WHOLE, help=Text("frame"), breaker=True).to_json("zh")
    assert described["min"] == 2 and described["max"] == 64 and described["step"] == 2 and described["breaker"] is True
    assert described["label"] != "seed" and described["help"] != "frame"
    assert described["when"] is None
    described = dataclasses.replace(WHOLE, when=("pick", ("a",))).to_json("en")
    assert described["when"] == {"name": "pick", "values": ["a"]}

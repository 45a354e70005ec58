"""Numbers as people read them."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.lab.display import MINUS, binary_bytes, decimal_bytes, number, percent, quantity

PREFIXES = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "kB": 1, "MB": 2, "GB": 3, "TB": 4, "PB": 5}


def read(text: str) -> float:
    """The value a person reads in a formatted number."""
    return float(text.replace(",", "").replace(MINUS, "-"))


@pytest.mark.parametrize("value, text", [
    (0, "0"), (7, "7"), (1000, "1,000"), (-12345, "−12,345"), (2**60, "1,152,921,504,606,846,976"),
    (True, "yes"), (False, "no"),
    (0.0, "0"), (-0.0, "0"), (0.5, "0.5"), (42.555, "42.55"), (9.99996, "10"), (999.96, "1,000"), (1234.5, "1,234"),
    (123456.7, "123,457"), (0.0001, "0.0001"), (0.00009, "9.000e−05"), (2e15, "2.000e+15"), (-0.25, "−0.25"),
])
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize("count, text", [
    (0, "0 B"), (1, "1 B"), (1023, "1,023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (65536, "64 KiB"),
    (1023 * 1024, "1,023 KiB"), (1048474, "0.9999 MiB"), (2**20 - 1, "1 MiB"), (2**20, "1 MiB"),
    (54263808, "51.75 MiB"), (3472883712, "3.234 GiB"), (-2048, "−2 KiB"), (2**60, "1,024 PiB"), (0.5, "0.5 B"),
])
def test_binary_bytes(count, text):
    assert binary_bytes(count) == text


@pytest.mark.parametrize("count, text", [
    (999, "999 B"), (1000, "1 kB"), (89820, "89.82 kB"), (999949, "999.9 kB"), (999950, "1 MB"), (10**18, "1,000 PB"),
])
def test_decimal_bytes(count, text):
    assert decimal_bytes(count) == text


@pytest.mark.parametrize("value, unit, text", [
    (None, "B", "–"), ("a word", "B", "a word"), (2048, "B", "2 KiB"), (2000, "kB", "2 kB"),
    (0.1813, "share", "18.13 %"),
    (1, "share", "100 %"), (3, "", "3"), (2.5, "ms", "2.5 ms"), (True, "", "yes"),
])
def test_quantities(value, unit, text):
    assert quantity(value, unit) == text


@given(st.floats(-1e18, 1e18, allow_nan=False))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_what_is_read_is_the_value_to_four_digits(value):
    text = number(value)
    assert read(text) == pytest.approx(value, rel=5.1e-4)
    assert text == "0" if value == 0 else re.fullmatch(r"−?[0-9,]+(\.[0-9]+)?(e[+−][0-9]+)?", text)


@given(st.integers(0, 2**70), st.sampled_from([(binary_bytes, 1024), (decimal_bytes, 1000)]))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_bytes_are_read_back_and_stay_below_the_next_unit(count, way):
    form, step = way
    digits, unit = form(count).split(" ")
    assert read(digits) * step ** PREFIXES[unit] == pytest.approx(count, rel=5.1e-4)
    assert read(digits) < step or unit in ("PiB", "PB")


@given(st.floats(0, 1))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_percentages_are_read_back(share):
    assert read(percent(share).removesuffix(" %")) == pytest.approx(100 * share, rel=5.1e-4)


def test_numpy_scalars_read_like_python_numbers_once_plain():
    from k3core.lab.contract import plain

    for value in (np.int64(2**60), np.float64(0.25), np.bool_(True)):
        assert number(plain(value)) == number(value.item())

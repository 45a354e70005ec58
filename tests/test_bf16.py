"""bfloat16 against its definition: the nearest of all values, even bits on a tie."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.bf16 import from_bf16, to_bf16

ALL_BITS = np.arange(2**16, dtype=np.uint16)
FINITE = ALL_BITS[np.isfinite(from_bf16(ALL_BITS))]


@pytest.mark.parametrize("value, bits", [
    (0.0, 0x0000), (-0.0, 0x8000), (1.0, 0x3F80), (-2.0, 0xC000), (3.140625, 0x4049), (3.1415927, 0x4049),
    (1.0 + 2**-8, 0x3F80), (1.0 + 3 * 2**-8, 0x3F82),  # ties go to the even neighbour
    (2.0**-133, 0x0001), (3.3895314e38, 0x7F7F), (3.4028235e38, 0x7F80),  # smallest, largest, rounds up to infinity
])
def test_published_bit_patterns(value, bits):
    assert to_bf16(np.float32(value)) == bits


def test_every_finite_value_comes_back_unchanged():
    assert np.array_equal(to_bf16(from_bf16(FINITE)), FINITE)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-2.0**126, max_value=2.0**126))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_rounding_is_to_the_nearest_and_even_on_a_tie(value):
    bits = to_bf16(np.float32(value))
    values = from_bf16(np.array([bits - 1, bits, bits + 1], np.uint16) if 0 < bits & 0x7FFF else np.array([bits] * 3))
    below, chosen, above = (abs(float(v) - value) for v in values)  # float64: exact differences
    assert chosen <= min(below, above)
    if chosen and chosen in (below, above) and below != 0 and above != 0:
        assert bits % 2 == 0


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_rounding_keeps_order_and_sign(values):
    values = np.sort(np.array(values, np.float32))
    rounded = from_bf16(to_bf16(values))
    assert (np.diff(rounded[np.isfinite(rounded)]) >= 0).all()
    assert np.array_equal(np.signbit(rounded), np.signbit(values))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4)])
def test_shapes_and_dtypes(shape):
    x = np.ones(shape, np.float32)
    bits = to_bf16(x)
    assert np.shape(bits) == shape and bits.dtype == np.uint16
    back = from_bf16(bits)
    assert np.shape(back) == shape and back.dtype == np.float32 and (back == 1).all()


def test_views_that_are_not_contiguous():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert np.array_equal(from_bf16(to_bf16(x.T[::2])), x.T[::2])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="only finite numbers"):
        to_bf16(np.array([1.0, value], np.float32))

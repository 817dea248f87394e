"""The formats of the leaf dtypes: rounding and ulps, against NumPy and against the definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from steps_backends import FORMATS, format_of
from steps_backends.numpy import numpy_dtype

VALUES = [
    *(0.0, 1.0, 1 / 3, math.pi, 1e-45, 1.4e-45, 7e-46, 65504.0, 65519.9, 65520.0, 1e30, 1e-8, 2.0**-25),
    *(2.0**-24, 3 * 2.0**-25, 2.0**-149, 2.0**-150, 3.4028235677973366e38, 3.4028234e38, 5e-324, 1.7e308),
    *(float.fromhex("0x1.001p0"), float.fromhex("0x1.003p0"), float.fromhex("0x1.01p0")),
]


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rounds_as_numpy_does(name, sign):
    with np.errstate(all="ignore"):
        expected = [float(np.dtype(name).type(sign * value)) for value in VALUES]

    found = [FORMATS[name].round(sign * value) for value in VALUES]

    assert expected == found
    assert [math.copysign(1, x) for x in expected] == [math.copysign(1, x) for x in found]


def test_bfloat16_rounds_to_even_from_a_double():
    half = 2.0**-8

    assert FORMATS["bfloat16"].round(1 + half) == 1.0
    assert FORMATS["bfloat16"].round(1 + 3 * half) == 1 + 4 * half
    assert FORMATS["bfloat16"].round(1 + half + 2.0**-40) == 1 + 2 * half
    assert FORMATS["bfloat16"].round(3.4e38) == math.inf


@pytest.mark.parametrize("name", list(FORMATS))
def test_limits_are_those_of_the_dtype(name):
    form = FORMATS[name]
    info = np.finfo(name) if name != "bfloat16" else __import__("ml_dtypes").finfo(numpy_dtype(name))

    assert form.largest == float(info.max)
    assert form.smallest_normal == float(info.smallest_normal)
    assert form.smallest_subnormal == float(info.smallest_subnormal)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("value", [1.0, 1.5, 0.1, 1000.0, 2.0**-14, 60000.0])
def test_ulp_is_the_spacing_above_a_number(name, value):
    held = FORMATS[name].round(value)

    assert FORMATS[name].ulp(Fraction(held)) == Fraction(float(np.spacing(np.dtype(name).type(held))))


@pytest.mark.parametrize("name", list(FORMATS))
def test_ulp_is_the_smallest_number_at_zero_and_below(name):
    smallest = Fraction(FORMATS[name].smallest_subnormal)

    assert FORMATS[name].ulp(Fraction(0)) == smallest
    assert FORMATS[name].ulp(smallest / 1000) == smallest


def test_ulp_beyond_the_largest_number_is_the_last_one():
    form = FORMATS["float16"]

    assert form.ulp(Fraction(10) ** 10) == form.ulp(Fraction(form.largest)) == 32


def test_complex_dtypes_have_the_format_of_their_parts():
    assert format_of("complex64") is FORMATS["float32"]
    assert format_of("complex128") is FORMATS["float64"]


def test_other_dtypes_have_no_format():
    with pytest.raises(KeyError, match="no floating-point format for dtype 'int32'; known are float16"):
        format_of("int32")

"""Which format a leaf is computed in, and what fits into it."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from libraries import REAL, numpy_dtype

from steps_core.numerics.formats import FLOAT32, FLOAT64, LEAF_DTYPES, constant, format_of, holds, wide_name

COMPUTED_IN = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
}


def test_the_table_names_every_leaf_dtype() -> None:
    """A new dtype must be added to these tests."""
    assert set(COMPUTED_IN) == set(LEAF_DTYPES)


@pytest.mark.parametrize("name", COMPUTED_IN)
def test_a_leaf_is_computed_in_float32_at_least(name: str) -> None:
    """Narrow formats are widened, the others stay."""
    assert wide_name(name) == COMPUTED_IN[name]


def test_two_dtypes_are_computed_in_the_wider() -> None:
    """In either order."""
    for one, other in itertools.product(REAL, repeat=2):
        expected = "float64" if "float64" in (one, other) else "float32"
        assert wide_name(one, other) == expected
    assert wide_name("complex64", "complex128") == wide_name("complex128", "complex64") == "complex128"


@pytest.mark.parametrize("pair", list(itertools.permutations(REAL, 2)))
def test_a_dtype_holds_another_if_its_extreme_values_survive(pair: tuple[str, str]) -> None:
    """The largest number, the smallest one and the last bit below 1 go there and back."""
    name, other = pair
    info = ml_dtypes.finfo(numpy_dtype(other))
    values = np.asarray([info.max, info.smallest_subnormal, info.epsneg - 1], numpy_dtype(other))
    with np.errstate(all="ignore"):
        there_and_back = values.astype(numpy_dtype(name)).astype(numpy_dtype(other))
    assert holds(name, other) == bool(np.all(there_and_back == values))


def test_real_and_complex_dtypes_never_hold_each_other() -> None:
    """The steps keep real and complex leaves apart."""
    for real, complex_name in itertools.product(
        ("float16", "float32", "float64"), ("complex64", "complex128")
    ):
        assert not holds(real, complex_name)
        assert not holds(complex_name, real)
    assert holds("complex128", "complex64") and not holds("complex64", "complex128")


@pytest.mark.parametrize("form", [FLOAT32, FLOAT64])
def test_a_format_knows_its_own_numbers(form: object) -> None:
    """As NumPy tells them."""
    info = np.finfo(form.name)
    assert form.largest == float(info.max)
    assert 2.0**form.smallest_normal_exponent == float(info.smallest_normal)
    assert format_of(np.zeros(1, form.name)) is format_of(np.zeros(1, f"complex{2 * info.bits}")) is form


def test_a_constant_beyond_the_format_becomes_its_largest_number() -> None:
    """So that casting it neither overflows nor warns."""
    assert constant(1e300, FLOAT32) == FLOAT32.largest
    assert constant(-1e300, FLOAT32) == -FLOAT32.largest
    assert constant(1e300, FLOAT64) == 1e300
    assert constant(0.1, FLOAT32) == 0.1


@pytest.mark.parametrize("form", [FLOAT32, FLOAT64])
def test_no_scaled_square_leaves_the_format(form: object) -> None:
    """The largest and smallest number of each range, squared in its scale, stay normal: a million add up."""
    biggest = form.largest * 2.0**-form.big_exponent
    assert math.isfinite(2.0**20 * biggest**2) and 2.0**20 * biggest**2 < form.largest
    assert (form.big_above * 2.0**-form.big_exponent) ** 2 >= 2.0**form.smallest_normal_exponent
    assert 2.0**20 * form.big_above**2 < form.largest
    assert form.small_below**2 >= 2.0**form.smallest_normal_exponent
    assert 2.0**20 * (form.small_below * 2.0**-form.small_exponent) ** 2 < form.largest

"""The comparers can be made to fail in every way, and say why."""

import math
from collections import OrderedDict
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import pytest
import steps_backends
from steps_backends import HostArray, host_array
from steps_conformance.compare import (
    Mismatch,
    all_finite,
    all_nan,
    all_zero,
    same_bits,
    same_kind,
    within_ulps,
)

NAN, INF = math.nan, math.inf


class Pair(NamedTuple):
    left: Any
    right: Any


def one(value, dtype="float32"):
    return host_array([value], dtype)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -INF, NAN, 1e-45])
def test_same_bits_holds_for_the_same_value(value):
    same_bits(one(value), one(value))


def test_every_nan_is_the_same():
    same_bits(one(NAN), one(-NAN))
    same_bits(host_array([complex(NAN, 1)], "complex64"), host_array([complex(NAN, 1)], "complex64"))


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (one(1.0), one(1.0, "float64"), "result: expected dtype float64, got float32"),
        (one(1.0), host_array([[1.0]]), r"result: expected shape \(1, 1\), got \(1,\)"),
        (one(1.0), host_array(1.0), r"result: expected shape \(\), got \(1,\)"),
        (one(1.0), one(2.0), r"result\[0\]: expected 2.0 \(0x1.0+p\+1\), got 1.0 \(0x1.0+p\+0\)"),
        (one(1.0), one(1.0 + 2**-23), r"result\[0\]: expected 1.00000011"),
        (one(0.0), one(-0.0), r"result\[0\]: expected -0.0 \(-0x0.0p\+0\), got 0.0"),
        (one(NAN), one(1.0), r"expected 1.0 \(0x1.0+p\+0\), got nan"),
        (one(1.0), one(NAN), r"expected nan, got 1.0"),
        (one(INF), one(-INF), "expected -inf, got inf"),
        (one(1j, "complex64"), one(-1j, "complex64"), r"expected -1j, got 1j|expected \(-0-1j\), got 1j"),
        (
            one(complex(0.0, 1), "complex64"),
            one(complex(-0.0, 1), "complex64"),
            r"expected \(-0\+1j\), got 1j",
        ),
        (one(True, "bool"), one(False, "bool"), "expected False, got True"),
        (one(3, "int32"), one(4, "int32"), "expected 4, got 3"),
    ],
)
def test_same_bits_fails(actual, expected, text):
    with pytest.raises(Mismatch, match=text):
        same_bits(actual, expected)


def test_a_mismatch_is_an_assertion_error():
    assert issubclass(Mismatch, AssertionError)


def test_the_place_and_the_number_of_wrong_values_are_said():
    actual = host_array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    expected = host_array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])

    with pytest.raises(Mismatch, match="wrong") as caught:
        same_bits(actual, expected)
    *shown, last = str(caught.value).split("\n")
    assert [line.partition(":")[0] for line in shown] == ["result[0, 1]", "result[1, 0]", "result[1, 1]"]
    assert last == "5 of 6 values of float32[3, 2] are wrong"


def test_two_wrong_values_are_counted_too():
    with pytest.raises(Mismatch, match="2 of 2 values"):
        same_bits(host_array([1.0, 2.0]), host_array([3.0, 4.0]))


def test_the_place_is_said_along_all_axes():
    actual = host_array([[[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]])

    with pytest.raises(Mismatch, match=r"^result\[0, 2, 1\]: expected zero, got 1.0 \(0x1.0+p\+0\)$"):
        all_zero(actual)


def test_expected_values_must_have_a_dtype():
    with pytest.raises(TypeError, match=r"^result: expected values must be a HostArray, got a float"):
        same_bits(one(1.0), 1.0)


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        ({"a": one(1.0)}, {"a": one(2.0)}, r"\['a'\]\[0\]: expected 2.0"),
        ({"a": one(1.0)}, {"b": one(1.0)}, r"result: entry \['[ab]'\] is (missing|not expected)"),
        ({}, {"a": one(1.0)}, r"entry \['a'\] is missing"),
        ({"a": one(1.0), "b": one(1.0)}, {"a": one(1.0)}, r"entry \['b'\] is not expected"),
        ([one(1.0)], (one(1.0),), "^result: expected a tuple, got a list"),
        (OrderedDict(a=one(1.0)), {"a": one(1.0)}, "expected a dict, got collections.OrderedDict"),
        (Pair(one(1.0), one(1.0)), Pair(one(1.0), one(2.0)), r"\.right\[0\]: expected 2.0"),
        (Pair(one(1.0), one(1.0)), (one(1.0), one(1.0)), "expected a tuple, got .*Pair"),
        ({"a": None}, {"a": one(1.0)}, r"\['a'\]: expected an array, got None"),
        ({"a": one(1.0)}, {"a": None}, r"\['a'\]: expected None, got an array"),
        ({"a": {"b": [one(1.0)]}}, {"a": {"b": []}}, r"\['a'\]\['b'\]: entry \[0\] is not expected"),
        (one(1.0), {"a": one(1.0)}, "result: expected a dict, got an array"),
        ({"a": one(1.0)}, one(1.0), "expected an array, got a dict"),
    ],
)
def test_trees_differ(actual, expected, text):
    with pytest.raises(Mismatch, match=text):
        same_bits(actual, expected)


def test_equal_trees_are_equal():
    tree = {"a": [one(1.0), None], "b": Pair(one(NAN), ()), "c": {}}

    same_bits(tree, {"c": {}, "b": Pair(one(NAN), ()), "a": [one(1.0), None]})


@pytest.mark.parametrize(
    ("got", "exact", "ulps", "dtype"),
    [
        (1.0 + 2**-23, 1.0, 1, "float32"),
        (1.0, Fraction(1) + Fraction(1, 2**24), 0.5, "float32"),
        (1.0 - 2**-23, 1.0, 1, "float32"),
        (0.333251953125, Fraction(1, 3), 0.5, "float16"),
        (2.0**-149, 2.0**-150, 0.5, "float32"),
        (0.0, 2.0**-150, 0.5, "float32"),
        (0.0, mpmath.mpf(2) ** -2000, 0.1, "float32"),
        (INF, Fraction(10) ** 400, 0, "float32"),
        (-INF, -(mpmath.mpf(10) ** 400), 0, "float64"),
        (65504.0, 65519.9, 1, "float16"),
        (INF, 65520.0, 0, "float16"),
        (-INF, -65520.0, 0, "float16"),
        (NAN, NAN, 0, "float32"),
        (INF, mpmath.inf, 0, "float32"),
        (1.4142135623730951, mpmath.sqrt(2), 1, "float64"),
    ],
)
def test_within_ulps_holds(got, exact, ulps, dtype):
    within_ulps(HostArray(dtype, (1,), (got,)), [exact], ulps)


@pytest.mark.parametrize(
    ("got", "exact", "ulps", "dtype", "text"),
    [
        (1.0 + 2**-22, 1.0, 1, "float32", "off by 2 ulps, allowed 1"),
        (1.0, Fraction(1) + Fraction(1, 2**24), 0.49, "float32", "off by 0.5 ulps, allowed 0.49"),
        (2.0**-148, 2.0**-149, 0.5, "float32", "off by 1 ulps"),
        (0.0, 2.0**-149, 0.5, "float32", "off by 1 ulps"),
        (1.0 + 2**-8, 1.0, 2, "float16", "off by 4 ulps"),
        (NAN, 1.0, 10**9, "float32", r"expected 1.0, got nan"),
        (1.0, NAN, 10**9, "float32", r"expected nan, got 1.0"),
        (INF, 1e38, 10**9, "float32", r"expected 1e\+38, got inf"),
        (INF, -(Fraction(10) ** 400), 10**9, "float32", r"expected a number of about 2\*\*1328, got inf"),
        (3.0e38, INF, 10**9, "float32", r"expected inf, got 3e\+38"),
        (-INF, INF, 10**9, "float32", "expected inf, got -inf"),
        (1.0, mpmath.mpf(2) ** -2000, 1, "float64", "expected a number that is tiny even for a double"),
        (1.0, mpmath.nan, 1, "float64", r"expected nan, got 1.0 \(0x1.0+p\+0\)$"),
        (1.0, mpmath.inf, 1, "float64", r"expected inf, got 1.0 \(0x1.0+p\+0\)$"),
        (1.0, 2.0, 1, "float64", r"expected 2.0, got 1.0 \(0x1.0+p\+0\), off by"),
        (1e300, 0.0, 1, "float64", "off by more than 1e300 ulps, allowed 1"),
    ],
)
def test_within_ulps_fails(got, exact, ulps, dtype, text):
    with pytest.raises(Mismatch, match=text):
        within_ulps(HostArray(dtype, (1,), (got,)), [exact], ulps)


def test_a_value_that_rounds_down_to_the_largest_is_not_infinity():
    with pytest.raises(Mismatch, match=r"expected 65519.9, got inf"):
        within_ulps(one(INF, "float16"), [65519.9], 1)


def test_each_part_of_a_complex_value_counts_by_itself():
    got = host_array([complex(1.0, 1e-10)], "complex64")

    within_ulps(got, [(1, Fraction(1e-10))], 1)
    within_ulps(got, [mpmath.mpc(1, 1e-10)], 1)
    with pytest.raises(Mismatch, match=r"expected 0.0, got 1.00000001"):
        within_ulps(got, [1.0], 1)


def test_the_ulp_can_be_that_of_another_magnitude():
    got = one(2.0**-23)

    within_ulps(got, [0.0], 1, of=[1.0])
    with pytest.raises(Mismatch, match="off by"):
        within_ulps(got, [0.0], 1)
    with pytest.raises(Mismatch, match="off by 2 ulps"):
        within_ulps(got, [0.0], 1, of=[0.5])


def test_the_ulp_can_be_that_of_another_dtype():
    got = one(1.0 + 2**-10)

    within_ulps(got, [1.0], 1, dtype="float16")
    within_ulps(got, [1.0], 1, dtype="float16", of=[1.0])
    with pytest.raises(Mismatch, match="off by 8192 ulps"):
        within_ulps(got, [1.0], 1)


@pytest.mark.parametrize("scale", [INF, NAN])
def test_the_magnitude_whose_ulp_counts_must_be_finite(scale):
    with pytest.raises(TypeError, match=f"of must be finite where the expected value is, got {scale}"):
        within_ulps(one(1.0), [1.0], 1, of=[scale])


def test_another_number_of_values_is_a_mismatch():
    with pytest.raises(Mismatch, match=r"result: expected 2 values, got 1"):
        within_ulps(one(1.0), [1.0, 1.0], 1)


def test_the_exact_values_may_be_those_of_an_array():
    within_ulps(one(1.0 + 2**-23), one(1.0), 1)
    with pytest.raises(Mismatch, match="off by 2 ulps"):
        within_ulps(one(1.0 + 2**-22), one(1.0), 1)
    with pytest.raises(Mismatch, match=r"^result: expected dtype float64, got float32$"):
        within_ulps(one(1.0), one(1.0, "float64"), 1)


def test_another_magnitude_goes_with_one_array():
    with pytest.raises(TypeError, match=r"of goes with one HostArray, got a tree \(dict\); compare leaf by"):
        within_ulps({"a": one(1.0)}, {"a": [1.0]}, 1, of=[1.0])


def test_ulps_of_a_tree():
    within_ulps({"a": one(1.0), "b": [host_array(2.0)]}, {"a": [1.0], "b": [2.0]}, 0)
    with pytest.raises(Mismatch, match=r"\['b'\]\[0\]: expected 2.5, got 2.0"):
        within_ulps({"a": one(1.0), "b": [host_array(2.0)]}, {"a": [1.0], "b": [2.5]}, 0)


@pytest.mark.parametrize(
    ("comparer", "good", "bad", "rule"),
    [
        (all_nan, NAN, 1.0, "NaN"),
        (all_zero, -0.0, NAN, "zero"),
        (all_finite, 3e38, INF, "finite"),
        (all_finite, 0.0, NAN, "finite"),
    ],
)
def test_every_value_counts(comparer, good, bad, rule):
    comparer({"a": host_array([good, good])})
    with pytest.raises(Mismatch, match=rf"\['a'\]\[1\]: expected {rule}, got {bad}"):
        comparer({"a": host_array([good, bad])})


@pytest.mark.parametrize("comparer", [all_nan, all_zero, all_finite])
def test_no_array_at_all_is_no_proof(comparer):
    for nothing, said in (
        ({}, "result.* got a dict"),
        (None, "result.* got None"),
        ([None], r"\[0\].* None"),
    ):
        with pytest.raises(Mismatch, match=f"^{said}$"):
            comparer(nothing)


def test_a_complex_value_is_finite_in_both_parts():
    with pytest.raises(Mismatch, match="expected finite"):
        all_finite(host_array([complex(0, INF)], "complex64"))


NUMPY = steps_backends.get("numpy")


def test_same_kind_looks_at_the_library_first():
    array = NUMPY.array(one(1.0))

    same_kind(NUMPY, {"a": array, "b": None}, {"a": array + 1, "b": None})
    with pytest.raises(Mismatch, match=r"\['a'\]: expected an array of numpy, got a float"):
        same_kind(NUMPY, {"a": 1.0}, {"a": array})
    with pytest.raises(Mismatch, match=r"^result: expected an array of numpy, got numpy.float32"):
        same_kind(NUMPY, array[0], array)
    with pytest.raises(Mismatch, match=r"^result: expected an array of numpy, got an int$"):
        same_kind(NUMPY, 1, array)


def test_same_kind_looks_at_dtype_and_shape():
    array = NUMPY.array(one(1.0))

    with pytest.raises(Mismatch, match="expected dtype float32, got float64"):
        same_kind(NUMPY, NUMPY.array(one(1.0, "float64")), array)
    with pytest.raises(Mismatch, match=r"expected shape \(1,\), got \(\)"):
        same_kind(NUMPY, NUMPY.array(host_array(1.0)), array)


def test_same_kind_looks_at_the_device():
    strict = pytest.importorskip("array_api_strict")
    cpu, other = steps_backends.get("array-api-strict"), steps_backends.get("array-api-strict-device1")
    array = other.array(one(1.0))

    same_kind(other, array, array)
    with pytest.raises(Mismatch, match=r"^result: expected device device1, got cpu"):
        same_kind(other, cpu.array(one(1.0)), array)
    assert strict


def test_same_kind_needs_an_array_to_compare_with():
    with pytest.raises(TypeError, match=r"^result: like must be an array of numpy, got a float"):
        same_kind(NUMPY, NUMPY.array(one(1.0)), 1.0)

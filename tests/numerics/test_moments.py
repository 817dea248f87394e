"""Counters, moving averages and their bias correction."""

import mpmath
import numpy as np
import pytest
from comparing import assert_within_ulps
from libraries import Library

from steps_core.namespaces import namespace_of
from steps_core.numerics.moments import (
    at_most_largest,
    bias_correction,
    next_average,
    next_count,
    next_second_moment,
    next_trace,
    quotient_or_zero,
)

LAST = 2**31 - 1


@pytest.mark.parametrize(("count", "following"), [(0, 1), (41, 42), (LAST - 1, LAST), (LAST, LAST)])
def test_a_count_goes_up_and_stays_at_the_last(library: Library, count: int, following: int) -> None:
    """It never turns negative."""
    array = library.array(count, "int32")
    result = next_count(namespace_of(array), array)
    assert int(result) == following
    assert library.dtype_of(result) == np.int32


def test_an_average_weighs_the_past_by_decay() -> None:
    """0.75 * 8 + 0.25 * 4."""
    assert next_average(np.asarray([8.0]), np.asarray([4.0]), 0.75) == [7.0]


def test_a_second_moment_averages_squared_moduli() -> None:
    """0.75 * 8 + 0.25 * |3 + 4i|^2."""
    moment, gradient = np.asarray([8.0]), np.asarray([3 + 4j])
    assert next_second_moment(namespace_of(gradient), moment, gradient, 0.75) == [12.25]


@pytest.mark.parametrize("size", [1e30, 3e38])
def test_a_second_moment_is_never_infinite(library: Library, size: float) -> None:
    """It stays at the largest finite number; NaN stays NaN."""
    gradient, moment = library.array([size, -size, np.nan]), library.array([0.0, 3e38, 0.0])
    result = library.values(next_second_moment(namespace_of(gradient), moment, gradient, 0.9))
    assert result[0] == result[1] == np.finfo("float32").max
    assert np.isnan(result[2])


def test_at_most_largest_leaves_finite_numbers_and_nan() -> None:
    """Only infinity is replaced."""
    array = np.asarray([1.0, 3e38, np.inf, np.nan], "float32")
    result = at_most_largest(namespace_of(array), array)
    np.testing.assert_array_equal(result, np.asarray([1.0, 3e38, np.finfo("float32").max, np.nan], "float32"))


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 0.999, 0.9999999, 1 - 2.0**-40])
def test_a_bias_correction_keeps_its_digits(library: Library, decay: float) -> None:
    """1 - decay^t as a float32 subtraction loses all digits near 0."""
    for count in (1, 2, 10, 1000, 100_000):
        array = library.array(float(count))
        result = library.values(bias_correction(namespace_of(array), array, decay))
        with mpmath.workdps(50):
            expected = float(1 - mpmath.mpf(decay) ** count)
        assert_within_ulps(result, expected, 4)


@pytest.mark.parametrize("decay", [0.0, 2.0**-30, 0.25, 0.5, 0.9, 0.999, 1 - 2.0**-24])
def test_a_bias_correction_keeps_its_digits_for_a_decay_in_an_array(library: Library, decay: float) -> None:
    """The decay is a number of float32, so that nothing else is rounded."""
    array_decay = library.array(decay)
    held = mpmath.mpf(float(library.values(array_decay)))
    for count in (1, 2, 10, 1000, 100_000):
        array = library.array(float(count))
        result = library.values(bias_correction(namespace_of(array), array, array_decay))
        with mpmath.workdps(50):
            assert_within_ulps(result, float(1 - held**count), 4)


def test_a_quotient_by_zero_is_the_numerator(library: Library) -> None:
    """So a zero gradient over a zero root gives 0 instead of NaN."""
    numerator, denominator = library.array([0.0, 6.0, 1.0]), library.array([0.0, 3.0, 0.0])
    assert library.values(quotient_or_zero(namespace_of(numerator), numerator, denominator)).tolist() == [
        0,
        2,
        1,
    ]


def test_a_trace_decays_and_looks_ahead_with_nesterov() -> None:
    """0.5 * 4 + 1 = 3; the direction is 3, or 1 + 0.5 * 3 with nesterov."""
    trace, gradient = np.asarray([4.0]), np.asarray([1.0])
    assert next_trace(trace, gradient, 0.5, nesterov=False) == ([3.0], [3.0])
    assert next_trace(trace, gradient, 0.5, nesterov=True) == ([3.0], [2.5])


def test_half_of_two_of_the_largest_numbers_is_finite_under_a_jax_compiler() -> None:
    """XLA makes (m + x) * 0.5 of the sum of two halves."""
    jax = pytest.importorskip("jax")
    largest = jax.numpy.asarray([3e38], dtype="float32")

    average = jax.jit(lambda m, x: next_average(m, x, 0.5))(largest, largest)

    assert average.tolist() == largest.tolist()

"""Bringing a norm down to a limit, at every size of both."""

import math
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_within_ulps
from libraries import Library

from steps_core.namespaces import namespace_of
from steps_core.numerics.formats import FLOAT32, FLOAT64
from steps_core.numerics.limits import Limit, apply_limit, at_least, in_format, limit_norm, rescale
from steps_core.numerics.norms import plain_norm, scaled_norm, square_sums

SIZES = [2.0**exponent for exponent in range(-120, 126, 5)]
THRESHOLDS = [1e-36, 3e-31, 1e-16, 1e-9, 0.1, 1.0, 7e8, 1e13, 1e30, 3e38]
# 3, 4, 12, 84 over 85: the norm is exact.
DIRECTION = np.asarray([3.0, -4.0, 12.0, 84.0]) / 85


def row_norms(array: Any) -> Any:
    """Return the norm of each row."""
    xp = namespace_of(array)
    return scaled_norm(xp, square_sums(xp, array, (1,)))


def limited(library: Library, values: Any, threshold: float, weights: Any = None) -> np.ndarray:
    """Return rows limited to a threshold, or to that times the norm of the row of weights."""
    array = library.array(values, str(values.dtype))
    reference = None if weights is None else row_norms(library.array(weights, str(weights.dtype)))
    limit = limit_norm(namespace_of(array), row_norms(array), threshold, reference)
    return library.values(apply_limit(namespace_of(array), array, limit))


def assert_limited(result: np.ndarray, rows: np.ndarray, limits: Any) -> None:
    """Fail unless each row is kept bit for bit, or brought to its limit within 4 ulps."""
    exact = rows.astype(np.float64)
    norms = np.sqrt((exact**2).sum(axis=1))
    limits = np.broadcast_to(limits, norms.shape)
    kept = norms <= limits * (1 - 1e-6)
    cut = norms >= limits * (1 + 1e-6)
    assert_same_bits(result[kept], rows[kept])
    assert_within_ulps(result[cut], (exact * (limits / norms)[:, None])[cut], 4)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_rows_of_every_size_come_down_to_the_threshold(library: Library, threshold: float) -> None:
    """From 1e-36 to 1e37, against thresholds from 1e-36 to 3e38."""
    rows = (np.asarray(SIZES)[:, None] * DIRECTION).astype("float32")
    assert_limited(limited(library, rows, threshold), rows, threshold)


@pytest.mark.parametrize("threshold", [1e-3, 0.5, 1e3])
@pytest.mark.parametrize("weight", [1e-30, 1e-12, 1.0, 1e15, 1e30])
def test_rows_of_every_size_come_down_to_a_share_of_the_weights(
    library: Library, threshold: float, weight: float
) -> None:
    """The reference norm lies in any of the three ranges too."""
    rows = (np.asarray(SIZES)[:, None] * DIRECTION).astype("float32")
    weights = np.full_like(rows, weight)
    limits = threshold * 2 * float(np.float32(weight))
    assert_limited(limited(library, rows, threshold, weights), rows, limits)


@pytest.mark.parametrize("threshold", [1e-300, 1e-200, 1.0, 1e200, 1e308])
def test_float64_rows_of_every_size_come_down_too(library: Library, threshold: float) -> None:
    """Where their squares do not fit a double, the expected rows are scaled by powers of two."""
    if "float64" not in library.dtypes:
        pytest.skip(f"{library.name} has no float64 here")
    for size in (1e-290, 1e-150, 1.0, 1e160, 1e300):
        rows = np.asarray([DIRECTION * size])
        result = limited(library, rows, threshold)
        expected = rows if size <= threshold else rows * 1.0 / size * threshold
        assert_within_ulps(result, expected, 6)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0, 1e30])
def test_a_norm_equal_to_the_threshold_is_kept(library: Library, size: float) -> None:
    """3-4-5 triples in powers of two have exact norms: they come back bit for bit."""
    unit = 0.0 if size == 0 else 2.0 ** round(math.log2(size))
    rows = np.asarray([[3 * unit, 4 * unit], [-4 * unit, 3 * unit]], "float32")
    assert_same_bits(limited(library, rows, 5 * unit if unit else 1.0), rows)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_a_norm_one_ulp_above_the_threshold_is_cut(library: Library, size: float) -> None:
    """A single element has an exact norm: it becomes the threshold itself."""
    threshold = np.asarray(size, "float32")
    rows = np.nextafter(threshold, np.float32(np.inf)).reshape(1, 1)
    assert_within_ulps(limited(library, rows, float(threshold)), [[float(threshold)]], 1)
    assert limited(library, rows, float(threshold)) < rows or size != 1.0


def test_what_is_not_finite_follows_the_rule(library: Library) -> None:
    """NaN makes the row NaN; infinity makes finite elements 0 and itself NaN; the next row is untouched."""
    rows = np.asarray([[np.nan, 1.0], [np.inf, 1.0], [0.3, 0.4], [0.0, 0.0]], "float32")
    result = limited(library, rows, 1.0)
    assert np.isnan(result[0]).all()
    assert np.isnan(result[1, 0]) and result[1, 1] == 0
    assert_same_bits(result[2:], rows[2:])


def test_nan_in_the_weights_makes_the_row_nan(library: Library) -> None:
    """Infinity there is a limit that nothing exceeds."""
    rows = np.asarray([[3.0, 4.0], [3.0, 4.0]], "float32")
    weights = np.asarray([[np.nan, 1.0], [np.inf, 1.0]], "float32")
    result = limited(library, rows, 1.0, weights)
    assert np.isnan(result[0]).all()
    assert_same_bits(result[1], rows[1])


@pytest.mark.parametrize("floor", [1e-40, 1e-30, 2.0**-50, 1e-3, 1.0, 2.0**40, 1e14, 1e20, 1e39])
def test_a_floor_lifts_smaller_norms_only(library: Library, floor: float) -> None:
    """In any range, on either side."""
    array = library.array([[1e-36], [1e-25], [1e-3], [1.0], [1e13], [1e30], [0.0]])
    xp = namespace_of(array)
    lifted = library.values(plain_norm(xp, at_least(xp, row_norms(array), floor)))[:, 0]
    expected = np.maximum(library.values(array)[:, 0].astype(np.float64), min(floor, FLOAT32.largest))
    normal = expected >= 2.0**-126
    assert_within_ulps(lifted[normal & (floor < 1e38)], expected[normal & (floor < 1e38)], 2)
    assert np.all(lifted[~normal] <= floor)


@pytest.mark.parametrize("floor", [0.0, 1e-30, 2.0**-50, 1e-3, 1.0, 2.0**40, 1e14, 1e30, np.inf])
def test_a_floor_in_an_array_lifts_as_the_number_does(library: Library, floor: float) -> None:
    """In any range, on either side; NaN stays."""
    array = library.array([[1e-36], [1e-25], [1e-3], [1.0], [1e13], [1e30], [0.0], [np.nan]])
    xp = namespace_of(array)
    result = library.values(plain_norm(xp, at_least(xp, row_norms(array), library.array(floor))))
    number = float(np.float32(floor))
    if np.isfinite(floor):
        assert_same_bits(result, library.values(plain_norm(xp, at_least(xp, row_norms(array), number))))
    else:
        assert np.all(result[:-1] == floor) and np.isnan(result[-1])


FAR = [2.0**exponent for exponent in (-120, -49, -20, 20, 39, 41, 127)]


@pytest.mark.parametrize("threshold", FAR)
@pytest.mark.parametrize("weight", FAR)
def test_a_threshold_in_an_array_limits_as_the_number_does(
    library: Library, threshold: float, weight: float
) -> None:
    """Bit for bit, where the product with the weights is at the far end of a range, or beyond the format."""
    rows = (np.asarray([*FAR, 0.0, np.inf, np.nan])[:, None] * DIRECTION).astype("float32")
    threshold = float(np.float32(threshold * 1.3))
    array, weights = library.array(rows), library.array(np.full_like(rows, weight * 0.7))
    xp = namespace_of(array)
    for reference in (None, row_norms(weights)):
        plain, tunable = (
            library.values(apply_limit(xp, array, limit_norm(xp, row_norms(array), limit, reference)))
            for limit in (threshold, library.array(threshold))
        )
        np.testing.assert_array_equal(tunable, plain)


def test_a_floor_keeps_nan(library: Library) -> None:
    """A floor is no repair."""
    array = library.array([[np.nan]])
    xp = namespace_of(array)
    assert np.isnan(library.values(plain_norm(xp, at_least(xp, row_norms(array), 1.0))))


def test_a_float64_limit_is_used_on_a_float32_leaf() -> None:
    """A norm of 1e30, held in float64, leaves 1e-30 of a float32 element."""
    leaf, other = np.asarray([[1.0]], "float32"), np.asarray([[1e30]])
    xp = namespace_of(leaf)
    limit = in_format(xp, limit_norm(xp, row_norms(other), 1.0), FLOAT32)
    assert_within_ulps(apply_limit(xp, leaf, limit), [[1e-30]], 4)
    assert in_format(xp, Limit(limit.is_kept, np.asarray(1.0)), FLOAT64).ratio == 1.0


@pytest.mark.parametrize("size", [1e-30, 1.0, 3e38])
def test_a_unit_vector_has_norm_one(library: Library, size: float) -> None:
    """Also where the norm of the row is beyond the format; a row of zeros stays."""
    array = library.array(np.asarray([[size, size], [0.0, 0.0]]))
    result = library.values(rescale(namespace_of(array), array, row_norms(array)))
    assert_within_ulps(result, [[math.sqrt(0.5)] * 2, [0.0, 0.0]], 2)

"""Sums in blocks, against exact sums."""

import math

import numpy as np
import pytest
from comparing import assert_within_ulps
from libraries import Library

from steps_core.namespaces import namespace_of
from steps_core.numerics.sums import blocked_sum, mean_over, sum_of_all, sum_over

LENGTHS = (1, 2, 8, 9, 127, 128, 129, 255, 256, 257, 502, 768, 128 * 128, 128 * 128 + 1, 40_000)
AXES = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]


def test_every_length_is_summed_whole(library: Library) -> None:
    """Lengths around the block and its square: no element is dropped or counted twice."""
    for length in LENGTHS:
        values = np.arange(length) % 7
        array, columns = library.array(values), library.array(np.stack([values, 2 * values], axis=1))
        xp = namespace_of(array)
        for total in (blocked_sum(xp, array, 0), sum_of_all(xp, array)):
            assert library.values(total) == values.sum(), length
        assert library.values(sum_over(xp, columns, (0,))).tolist() == [[values.sum(), 2 * values.sum()]]


def test_a_long_column_is_summed_without_drift(library: Library) -> None:
    """A plain float32 sum over axis 0 of so many rows is hundreds of ulps off."""
    values = np.random.default_rng(2).uniform(0.5, 1.0, (300_000, 2)).astype("float32")
    array = library.array(values)
    total = library.values(sum_over(namespace_of(array), array, (0,)))
    assert_within_ulps(total, [[math.fsum(values[:, 0]), math.fsum(values[:, 1])]], 3)


def test_a_long_row_is_summed_without_drift(library: Library) -> None:
    """As over axis 0."""
    values = np.random.default_rng(3).uniform(0.5, 1.0, (2, 300_000)).astype("float32")
    array = library.array(values)
    xp = namespace_of(array)
    expected = [math.fsum(values[0]), math.fsum(values[1])]
    assert_within_ulps(library.values(sum_over(xp, array, (1,)))[:, 0], expected, 3)
    assert_within_ulps(library.values(sum_of_all(xp, array)), math.fsum(expected), 3)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [(2, 3, 4), (130, 1, 3), (2, 130, 2), (3, 2, 300), (2, 0, 3), (0, 2, 2)])
def test_a_sum_over_some_axes_keeps_them_with_length_one(
    shape: tuple[int, int, int], axes: tuple[int, ...]
) -> None:
    """As NumPy's own sum; small whole numbers are exact in any order."""
    values = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    total = sum_over(namespace_of(values), values, axes)
    np.testing.assert_array_equal(total, values.sum(axis=axes, keepdims=True), strict=True)


def test_a_sum_over_an_axis_without_elements_is_zero(library: Library) -> None:
    """There is nothing to add; the other axes stay."""
    array = library.array(np.zeros((0, 3)))
    assert library.values(sum_over(namespace_of(array), array, (0,))).tolist() == [[0.0, 0.0, 0.0]]


def test_a_sum_over_no_axis_is_the_array_itself() -> None:
    """An element is a unit of its own."""
    values = np.ones((2, 3))
    assert sum_over(namespace_of(values), values, ()) is values


def test_a_sum_of_all_takes_every_rank(library: Library) -> None:
    """0-d and empty leaves too."""
    for shape in [(), (0,), (3,), (2, 3), (2, 0, 2), (2, 1, 3, 2)]:
        array = library.array(np.full(shape, 0.5))
        total = library.values(sum_of_all(namespace_of(array), array))
        assert total.shape == () and total == 0.5 * math.prod(shape)


def test_a_mean_is_right_where_the_sum_overflows(library: Library) -> None:
    """Five elements of 3e38 have the mean 3e38, and 3e38 with its negative the mean 0."""
    array = library.array([[3e38, 3e38], [3e38, -3e38], [3e38, 0.0], [3e38, 0.0], [3e38, 0.0]])
    mean = library.values(mean_over(namespace_of(array), array, (0,)))
    assert_within_ulps(mean, [[np.float32(3e38), 0.0]], 2)


def test_a_mean_keeps_small_numbers(library: Library) -> None:
    """Dividing before adding would lose them: 1.3e-38 / 1024 has few digits left, or none."""
    values = np.linspace(1.3e-38, 2.6e-38, 1000).astype("float32")[:, None]
    array = library.array(values)
    expected = [[math.fsum(values[:, 0]) / 1000]]
    assert_within_ulps(library.values(mean_over(namespace_of(array), array, (0,))), expected, 4)


def test_a_mean_shows_what_is_not_finite(library: Library) -> None:
    """NaN gives NaN, infinity infinity."""
    array = library.array([[np.nan, np.inf], [1.0, 1.0]])
    mean = library.values(mean_over(namespace_of(array), array, (0,)))
    assert np.isnan(mean[0, 0]) and mean[0, 1] == np.inf

"""CenteringStep: the mean of each unit is removed."""

from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_within_ulps
from libraries import Library

from steps_core import CenteringStep, ConstraintStep, GradientClippingStep


def test_each_column_of_a_matrix_loses_its_mean(kind: tuple[Library, str]) -> None:
    """In every dtype."""
    library, dtype = kind
    result = CenteringStep()(library.array([[1.0, 5.0], [3.0, 9.0]], dtype)).gradients
    assert library.read(result).tolist() == [[-1.0, -2.0], [1.0, 2.0]]


def test_the_unit_axis_may_come_first(library: Library) -> None:
    """As PyTorch lays its weights out."""
    result = CenteringStep(unit_axis=0)(library.array([[1.0, 5.0], [3.0, 9.0]])).gradients
    assert library.read(result).tolist() == [[-2.0, 2.0], [-3.0, 3.0]]


@pytest.mark.parametrize("shape", [(), (3,), (0,)])
def test_leaves_of_rank_below_two_pass_unchanged(library: Library, shape: tuple[int, ...]) -> None:
    """A bias has no unit."""
    values = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
    leaf = library.array(values)
    assert_same_bits(library.read(CenteringStep()(leaf).gradients), library.read(leaf))


@pytest.mark.parametrize(("shape", "axes"), [((2, 3, 2), 0), ((2, 3, 2, 4), (0, 1, 2)), ((1, 3), (0, 1))])
def test_the_units_are_those_of_relative_clipping(shape: tuple, axes: int | tuple) -> None:
    """Rank 3: over axis 0; rank 4: over all but the last; one long axis: the whole leaf."""
    values = np.random.default_rng(10).normal(size=shape)
    expected = values - values.mean(axis=axes, keepdims=True)
    np.testing.assert_allclose(CenteringStep()(values).gradients, expected, rtol=1e-12)


def test_a_matrix_without_rows_passes(library: Library) -> None:
    """A mean of nothing is no number."""
    for shape in [(0, 3), (3, 0), (0, 3, 2)]:
        assert library.read(CenteringStep()(library.array(np.zeros(shape))).gradients).shape == shape


def test_an_element_that_is_a_unit_is_its_own_mean() -> None:
    """All axes kept: what is removed is all there is."""
    values = np.asarray([[1.0, 5.0], [3.0, 9.0]])
    np.testing.assert_array_equal(CenteringStep(unit_axis=(0, 1))(values).gradients, values * 0)


def test_a_mean_that_overflows_as_a_sum_is_removed(library: Library) -> None:
    """Three elements of 3e38 and one of 1e38 have the mean 2.5e38."""
    values = np.asarray([[3e38, 3e38, 3e38, 1e38]]).T.repeat(2, axis=1).astype("float32")
    result = library.read(CenteringStep()(library.array(values)).gradients)
    mean = values.astype(float).mean(axis=0)
    assert_within_ulps(result + values * 0, (values - mean), 16)


@pytest.mark.parametrize("axis", ["auto", 0, -1, (0, 1)])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 2, 2, 3)])
def test_a_leaf_without_elements_passes_whatever_its_units(library: Library, shape: Any, axis: Any) -> None:
    """An axis of length 0 may be kept or summed over, in every step that has units."""
    leaf = library.array(np.zeros(shape))
    steps = (
        CenteringStep(unit_axis=axis),
        GradientClippingStep(variant="per-weight-relative", unit_axis=axis),
        ConstraintStep("norm-ball", unit_axis=axis),
        ConstraintStep("unit-norm", unit_axis=axis),
    )
    for step in steps:
        assert tuple(step(leaf, leaf).gradients.shape) == shape

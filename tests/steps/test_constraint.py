"""ConstraintStep: weights + updates lie in the set."""

import itertools
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_within_ulps
from libraries import Library

from steps_core import AdamStep, ChainedStep, ConstraintStep, apply_updates

# Weights and updates of every size, with both signs and zeros.
NUMBERS = [0.0, *(sign * size for size in (1e-30, 0.3, 0.7, 1.1, 1e5, 3e38) for sign in (1, -1))]
PAIRS = np.asarray(list(itertools.product(NUMBERS, repeat=2)), "float32").T


def constrained(library: Library, updates: Any, weights: Any, step: ConstraintStep) -> Any:
    """Return the new update and the new weights."""
    updates, weights = library.array(updates), library.array(weights)
    result = step(updates, weights).gradients
    return library.read(result), library.read(apply_updates(weights, result))


def test_nonnegative_holds_exactly(library: Library) -> None:
    """For weights and updates of every size; an update that keeps the sign stays."""
    weights, updates = PAIRS
    result, moved = constrained(library, updates, weights, ConstraintStep("nonnegative"))
    assert (moved >= 0).all()
    free = weights.astype(float) + updates >= 0
    assert (result[free] == updates[free]).all()


BOXES = [(-0.5, 0.9), (None, 0.9), (-0.5, None), (0.25, 0.25), (-1e300, 1e5)]


@pytest.mark.parametrize(("lower", "upper"), BOXES)
def test_a_box_holds_within_two_ulps(library: Library, lower: float | None, upper: float | None) -> None:
    """Of the larger of bound and weight; inside the box the update keeps its bits."""
    weights, updates = PAIRS[:, np.abs(PAIRS).max(axis=0) < 1e38]
    result, moved = constrained(library, updates, weights, ConstraintStep("box", lower=lower, upper=upper))
    low, high = -np.inf if lower is None else lower, np.inf if upper is None else upper
    bound = max(abs(bound) for bound in (low, high) if abs(bound) < 1e38)
    unit = np.spacing(np.maximum(np.abs(weights), np.float32(bound))).astype(float)
    moved = moved.astype(float)
    assert (moved >= low - 2 * unit).all() and (moved <= high + 2 * unit).all()
    target = (weights + updates).astype(float)
    free = (target >= low) & (target <= high)
    assert_same_bits(result[free], updates[free])


def test_a_box_may_have_infinite_bounds(library: Library) -> None:
    """They limit nothing."""
    result, _ = constrained(library, [5.0], [1.0], ConstraintStep("box", lower=-np.inf, upper=np.inf))
    assert result == [5.0]


def test_a_weight_far_outside_comes_into_the_box(library: Library) -> None:
    """Also where the way back is longer than the largest number."""
    for weight in (3.4e38, -3.4e38):
        step = ConstraintStep("box", lower=-3e38, upper=3e38)
        result, moved = constrained(library, [weight], [weight], step)
        assert np.isfinite(result).all() and abs(moved) <= np.float32(3e38)
    result, _ = constrained(library, [0.0], [-3.4e38], ConstraintStep("box", lower=3e38))
    assert result == np.finfo("float32").max


def test_a_unit_outside_the_ball_is_brought_to_its_surface(library: Library) -> None:
    """Column by column; a column inside keeps its update."""
    weights, updates = [[3.0, 0.1], [0.0, 0.1]], [[0.0, 0.2], [4.0, 0.2]]
    result, moved = constrained(library, updates, weights, ConstraintStep("norm-ball", radius=2.5))
    assert_within_ulps(moved[:, 0], [1.5, 2.0], 2)
    assert_same_bits(result[:, 1], np.asarray([0.2, 0.2], "float32"))


def test_a_norm_equal_to_the_radius_is_inside(library: Library) -> None:
    """The update keeps its bits."""
    result, _ = constrained(library, [3.0, 4.0], [0.0, 0.0], ConstraintStep("norm-ball", radius=5.0))
    assert result.tolist() == [3.0, 4.0]


def test_a_sum_that_overflows_is_projected(library: Library) -> None:
    """3e38 + 3e38 is infinite, and the way back into the ball, or to norm 1, is not."""
    for step in (ConstraintStep("norm-ball", radius=1e38), ConstraintStep("unit-norm")):
        result, moved = constrained(library, [3e38, 0.0], [3e38, 0.0], step)
        assert np.isfinite(result).all()
        assert np.abs(moved - [1e38 if step.constraint == "norm-ball" else 1.0, 0.0]).max() <= 2 * 2.0**105


@pytest.mark.parametrize("size", [1e-30, 1.0, 3e38])
def test_a_unit_of_any_size_gets_norm_one(library: Library, size: float) -> None:
    """w + u = size * (1, 1), whose norm may be beyond the format."""
    _, moved = constrained(library, [size, 0.0], [0.0, size], ConstraintStep("unit-norm"))
    tolerance = np.spacing(np.float32(max(size, 1.0))) * 2.0
    assert np.abs(moved - np.sqrt(0.5)).max() <= tolerance


def test_a_unit_of_zeros_has_no_direction_and_stays(library: Library) -> None:
    """Its update keeps its bits; the other column moves."""
    weights, updates = [[1.0, 3.0], [2.0, 4.0]], [[-1.0, 0.0], [-2.0, 0.0]]
    result, moved = constrained(library, updates, weights, ConstraintStep("unit-norm"))
    assert result[:, 0].tolist() == [-1.0, -2.0]
    assert_within_ulps(moved[:, 1], [0.6, 0.8], 4)


def test_the_unit_axis_may_come_first(library: Library) -> None:
    """Rows instead of columns."""
    for constraint in ("unit-norm", "norm-ball"):
        step = ConstraintStep(constraint, unit_axis=0)
        _, moved = constrained(library, np.zeros((2, 2)), [[3.0, 4.0], [6.0, 8.0]], step)
        assert_within_ulps(moved, [[0.6, 0.8], [0.6, 0.8]], 8)


def test_complex_units_are_projected_too(library: Library) -> None:
    """They have norms, though no order."""
    weights, updates = (library.array(x, "complex64") for x in ([3j, 0.0], [0.0, 4.0]))
    for constraint in ("unit-norm", "norm-ball"):
        result = ConstraintStep(constraint)(updates, weights).gradients
        moved = library.read(result) + library.read(weights)
        np.testing.assert_allclose(moved, [0.6j, 0.8], rtol=1e-6)


@pytest.mark.parametrize("constraint", ["norm-ball", "unit-norm", "box", "nonnegative"])
def test_nan_is_shown(library: Library, constraint: str) -> None:
    """No constraint hides it."""
    step = ConstraintStep(constraint, **({"upper": 1.0} if constraint == "box" else {}))
    result, _ = constrained(library, [np.nan], [1.0], step)
    assert np.isnan(result).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_narrow_update_holds_after_rounding(library: Library, dtype: str) -> None:
    """The optimizer before it works in float32; the constraint still holds in the weight's dtype."""
    if dtype not in library.dtypes:
        pytest.skip(f"{library.name} has no {dtype}")
    chain = ChainedStep(AdamStep(learning_rate=0.3), ConstraintStep("nonnegative"))
    weights = library.array(np.linspace(0.001, 0.5, 50), dtype)
    result = chain(library.array(np.linspace(0.1, 9.0, 50), dtype), weights).gradients
    assert (library.read(apply_updates(weights, result)).astype("float32") >= 0).all()


def test_weights_narrower_than_the_update_are_allowed() -> None:
    """Rounding to the weight's dtype keeps the sign."""
    weights = np.asarray([0.1, 0.2], "float16")
    updates = ConstraintStep("nonnegative")(np.asarray([-1.0, 1e-5], "float32"), weights).gradients
    assert updates.dtype == np.float32
    assert (apply_updates(weights, updates) >= 0).all()

"""Schedules: their curves, their ends, and functions of a user."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import assert_within_ulps
from libraries import Library

from steps_core import (
    ArgumentError,
    ArgumentTypeError,
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    LinearSchedule,
    PiecewiseSchedule,
    ScalingStep,
    SGDStep,
    WarmupSchedule,
    build,
)
from steps_core.schedules import SCHEDULES, DescribedSchedule

COUNTS = (0, 1, 2, 3, 7, 9, 10, 11, 99, 100, 101, 1_000_000)

CURVES: dict[DescribedSchedule, Callable[[int], float]] = {
    ConstantSchedule(0.1): lambda t: 0.1,
    ExponentialSchedule(3.0, 0.5, 10): lambda t: 3.0 * 0.5 ** (t / 10),
    LinearSchedule(1.0, 0.1, 10): lambda t: 1.0 + (0.1 - 1.0) * min(t / 10, 1),
    LinearSchedule(-1.0, 3.0, 7): lambda t: -1.0 + 4.0 * min(t / 7, 1),
    CosineSchedule(1.0, 10): lambda t: (1 + math.cos(math.pi * min(t / 10, 1))) / 2 if t < 10 else 0.0,
    CosineSchedule(1.0, 100, 0.25): lambda t: 0.25 + 0.75 * (1 + math.cos(math.pi * min(t / 100, 1))) / 2,
    WarmupSchedule(10, ConstantSchedule(2.0)): lambda t: 2.0 * min(t / 10, 1),
    WarmupSchedule(10, 2.0, initial=1.0): lambda t: 1.0 + min(t / 10, 1),
    WarmupSchedule(3, LinearSchedule(1.0, 0.0, 7)): lambda t: t / 3 if t < 3 else 1 - min((t - 3) / 7, 1),
    PiecewiseSchedule((3, 10), (1.0, 0.5, 0.25)): lambda t: 1.0 if t < 3 else 0.5 if t < 10 else 0.25,
    PiecewiseSchedule((), (7.0,)): lambda t: 7.0,
}


def test_every_schedule_has_a_curve_here() -> None:
    """A new one must be added."""
    assert {type(schedule).__name__ for schedule in CURVES} == set(SCHEDULES)


@pytest.mark.parametrize("schedule", CURVES, ids=repr)
def test_a_schedule_follows_its_formula(library: Library, schedule: DescribedSchedule) -> None:
    """At its ends, in between and far beyond, in float32."""
    for count in COUNTS:
        value = library.values(schedule(library.array(float(count))))
        expected = CURVES[schedule](count)
        assert value.dtype == np.float32 and value.shape == ()
        if expected > 1e-30:
            assert_within_ulps(value, expected, 8 if count <= 10 else 64)
        assert abs(float(value) - expected) <= 1e-6


@pytest.mark.parametrize("schedule", CURVES, ids=repr)
def test_a_schedule_describes_itself(schedule: DescribedSchedule) -> None:
    """With all of its options, and comes back inside a step."""
    described = schedule.describe()
    assert set(described) == {"schedule", "options"}
    assert described["schedule"] == type(schedule).__name__
    step = SGDStep(learning_rate=schedule)
    assert build(step.describe()) == step
    assert hash(build(step.describe())) == hash(step)


def test_both_ends_are_exact() -> None:
    """Not only within rounding: a rate of 0 at the end is 0."""
    start, end = np.asarray(0, "float32"), np.asarray(1000, "float32")
    for initial, final in ((0.1, 0.3), (0.7, 0.0), (1e30, 1e-30)):
        for schedule in (LinearSchedule(initial, final, 1000), CosineSchedule(initial, 1000, final)):
            assert schedule(start) == np.float32(initial)
            assert schedule(end) == np.float32(final)


def test_a_cosine_keeps_its_digits_near_the_end() -> None:
    """One step before it, (1 + cos(pi * 9999 / 10000)) / 2 is 2.5e-8."""
    value = CosineSchedule(1.0, 10_000)(np.asarray(9999, "float32"))
    assert_within_ulps(np.asarray(value), math.sin(math.pi / 20_000) ** 2, 2000)


def test_a_value_beyond_float32_is_its_largest_number() -> None:
    """No warning, no infinity."""
    count = np.asarray(3, "float32")
    assert ConstantSchedule(1e300)(count) == np.finfo("float32").max
    assert PiecewiseSchedule((1,), (0.0, -1e300))(count) == -np.finfo("float32").max


def test_lists_become_tuples() -> None:
    """So that schedules can be hashed."""
    assert PiecewiseSchedule([3], [1, 0.5]) == PiecewiseSchedule((3,), (1.0, 0.5))
    assert hash(PiecewiseSchedule([3], [1, 0.5])) == hash(PiecewiseSchedule((3,), (1.0, 0.5)))


@pytest.mark.parametrize("value", [2, 2.0])
def test_a_function_may_return_a_number(library: Library, value: Any) -> None:
    """Or a 0-d array of any real dtype of its library."""
    for schedule in (lambda count: value, lambda count: count * 0 + value):
        result = ScalingStep(scale=schedule)(library.array([1.5])).gradients
        assert library.read(result) == [3.0]


@pytest.mark.parametrize("value", [None, "1", True, [1.0]], ids=repr)
def test_a_function_must_not_return_anything_else(value: Any) -> None:
    """The text shows what came and from where."""
    text = "learning_rate must return a number or a 0-d array of the count's library, got"
    with pytest.raises(ArgumentTypeError, match=text) as caught:
        SGDStep(learning_rate=lambda count: value)(np.ones(1))
    assert caught.value.argument == "learning_rate"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400], ids=["nan", "inf", "huge"])
def test_a_number_from_a_function_must_be_finite(value: Any) -> None:
    """NaN would otherwise become some large number."""
    with pytest.raises(ArgumentError, match="learning_rate must"):
        SGDStep(learning_rate=lambda count: value)(np.ones(1))


def test_a_function_must_return_a_scalar_of_its_library() -> None:
    """Neither a vector nor an array of NumPy on another library."""
    torch = pytest.importorskip("torch")
    for schedule in (lambda count: count.reshape(1), lambda count: np.asarray(1.0)):
        with pytest.raises(ArgumentTypeError, match="scale must return a number or a 0-d array"):
            ScalingStep(scale=schedule)(torch.ones(1))


def test_a_schedule_takes_an_array() -> None:
    """A Python number has no library to compute in."""
    with pytest.raises(ArgumentTypeError, match=r"count must be a 0-d float32 array, got 3 \(int\)"):
        LinearSchedule(1.0, 0.0, 5)(3)


def test_a_warm_up_may_lead_to_any_function(library: Library) -> None:
    """It starts from its own step 0."""
    schedule = WarmupSchedule(2, lambda count: 4.0 + count)
    values = [float(schedule(library.array(float(count)))) for count in range(5)]
    assert values == [0.0, 2.0, 4.0, 5.0, 6.0]

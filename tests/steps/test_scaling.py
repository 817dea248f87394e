"""ScalingStep: times a number or a schedule."""

import numpy as np
import pytest
from comparing import assert_within_ulps
from libraries import Library

from steps_core import ArgumentError, LinearSchedule, ScalingStep


def test_gradients_are_multiplied(kind: tuple[Library, str]) -> None:
    """In every dtype, without state."""
    library, dtype = kind
    result, state = ScalingStep(scale=-0.5)(library.array([2.0, -6.0, 0.0], dtype))
    assert library.read(result).tolist() == [-1.0, 3.0, 0.0]
    assert state == {}


def test_a_learning_rate_negates(kind: tuple[Library, str]) -> None:
    """In every dtype."""
    library, dtype = kind
    result = ScalingStep(learning_rate=0.5)(library.array([2.0, -6.0], dtype)).gradients
    assert library.read(result).tolist() == [-1.0, 3.0]


@pytest.mark.parametrize(("argument", "sign"), [("scale", 1.0), ("learning_rate", -1.0)])
def test_a_schedule_is_read_at_its_own_count(library: Library, argument: str, sign: float) -> None:
    """Factors 1, 0.5, 0, 0."""
    step, state = ScalingStep(**{argument: LinearSchedule(1.0, 0.0, 2)}), None
    for factor in (1.0, 0.5, 0.0, 0.0):
        result, state = step(library.array([2.0]), state=state)
        assert library.read(result) == [2.0 * sign * factor]
    assert int(state["count"]) == 4


def test_a_scale_does_not_pass_through_a_narrow_dtype() -> None:
    """1e-9 is 0 in float16, and 1e-9 * 60000 is not."""
    result = ScalingStep(scale=1e-9)(np.asarray([60000.0], "float16")).gradients
    assert_within_ulps(result, [1e-9 * 60000.0], 0.51)


def test_a_scale_beyond_the_format_is_refused() -> None:
    """In float64 it is a number like any other."""
    step = ScalingStep(scale=1e300)
    with pytest.raises(ArgumentError, match=r"must fit float32.*got 1e\+300 \(float\); use float64"):
        step(np.asarray([0.0, 1.0], "float32"))
    assert step(np.asarray([1e-10])).gradients[0] == 1e290


def test_a_function_of_the_count_is_a_schedule(library: Library) -> None:
    """It gets a 0-d float32 array; its result may be an array or a number."""
    seen = []

    def schedule(count: object) -> object:
        seen.append(library.read(count))
        return count * 2 + 1 if len(seen) < 3 else 7

    step, state = ScalingStep(scale=schedule), None
    for factor in (1.0, 3.0, 7.0):
        result, state = step(library.array([1.0]), state=state)
        assert library.read(result) == [factor]
    assert [(x.shape, x.dtype, float(x)) for x in seen] == [((), np.float32, float(n)) for n in range(3)]

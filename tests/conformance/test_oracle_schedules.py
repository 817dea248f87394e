"""The oracle's schedules at their ends, in the middle and beyond."""

from fractions import Fraction

import pytest
from steps_conformance.oracle import schedules
from steps_conformance.oracle.exact import mp, number
from steps_conformance.oracle.schedules import Schedule

CURVES: dict[str, tuple[Schedule, dict[int, object]]] = {
    "constant": (schedules.constant(0.25), {0: 0.25, 9: 0.25}),
    "exponential": (schedules.exponential(8.0, 0.25, 4), {0: 8, 2: 4, 4: 2, 8: 0.5}),
    "exponential of thirds": (schedules.exponential(8.0, 0.125, 3), {0: 8, 1: 4, 2: 2, 3: 1, 4: 0.5}),
    "linear": (schedules.linear(1.0, 3.0, 4), {0: 1, 1: 1.5, 4: 3, 5: 3}),
    "cosine": (schedules.cosine(3.0, 6, 1.0), {0: 3, 2: 2.5, 3: 2, 4: 1.5, 6: 1, 7: 1}),
    "cosine to nothing": (schedules.cosine(4.0, 3), {0: 4, 1: 3, 2: 1, 3: 0, 4: 0}),
    "warmup": (schedules.warmup(4, schedules.linear(2.0, 0.0, 2)), {0: 0, 1: 0.5, 3: 1.5, 4: 2, 5: 1, 6: 0}),
    "warmup from": (schedules.warmup(2, schedules.constant(2.0), 1.0), {0: 1, 1: 1.5, 2: 2, 3: 2}),
    "piecewise": (schedules.piecewise((2, 3), (5.0, 6.0, 7.0)), {0: 5, 1: 5, 2: 6, 3: 7, 9: 7}),
}


@pytest.mark.parametrize("name", CURVES)
def test_a_schedule_passes_through_points_worked_out_by_hand(name: str) -> None:
    """Each curve is checked at 0, in the middle, at its end and beyond."""
    curve, points = CURVES[name]
    for count, expected in points.items():
        assert abs(curve(count) - number(expected)) < mp.mpf(10) ** -45, count


THIRD = Fraction(1, 3)

OF_THIRDS: dict[str, Schedule] = {
    "constant": schedules.constant(THIRD),
    "exponential": schedules.exponential(THIRD, Fraction(1), 4),
    "linear": schedules.linear(THIRD, THIRD, 4),
    "cosine": schedules.cosine(THIRD, 4, THIRD),
    "warmup": schedules.warmup(2, schedules.constant(THIRD), THIRD),
    "piecewise": schedules.piecewise((2,), (THIRD, THIRD)),
}


@pytest.mark.parametrize("name", OF_THIRDS)
def test_values_are_exact_and_no_doubles(name: str) -> None:
    """A third is given as a fraction, and stays one to all digits of the oracle."""
    for count in range(6):
        value = OF_THIRDS[name](count)
        assert isinstance(value, mp.mpf), count
        assert abs(value - mp.mpf(1) / 3) < mp.mpf(10) ** -45, count

"""Schedules as functions of the number of calls made before."""

from collections.abc import Callable, Sequence
from typing import Any

from .exact import Real, mp, number

Schedule = Callable[[int], Real]


def constant(value: Any) -> Schedule:
    """Return a schedule that is value at every call."""
    return lambda count: number(value)


def exponential(initial: Any, decay_rate: Any, decay_steps: int) -> Schedule:
    """Return initial * decay_rate ^ (count / decay_steps)."""
    return lambda count: number(initial) * number(decay_rate) ** (mp.mpf(count) / decay_steps)


def linear(initial: Any, final: Any, steps: int) -> Schedule:
    """Return the straight line from initial at 0 to final at steps, and final from there on."""
    return lambda count: number(initial) + (number(final) - number(initial)) * _part(count, steps)


def cosine(initial: Any, steps: int, final: Any = 0.0) -> Schedule:
    """Return half a cosine wave from initial at 0 to final at steps, and final from there on."""

    def value(count: int) -> Real:
        weight = (1 + mp.cospi(_part(count, steps))) / 2
        return number(final) + (number(initial) - number(final)) * weight

    return value


def warmup(steps: int, then: Schedule, initial: Any = 0.0) -> Schedule:
    """Return the line from initial to then(0) over steps calls, and then another schedule from its start."""
    line = linear(initial, then(0), steps)
    return lambda count: line(count) if count < steps else then(count - steps)


def piecewise(boundaries: Sequence[int], values: Sequence[Any]) -> Schedule:
    """Return values[i] while the count is below boundaries[i], and the last value after the last boundary."""

    def value(count: int) -> Real:
        passed = sum(count >= boundary for boundary in boundaries)
        return number(values[passed])

    return value


def _part(count: int, steps: int) -> Real:
    return min(mp.mpf(count) / steps, mp.mpf(1))

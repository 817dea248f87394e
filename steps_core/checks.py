"""Checks of constructor arguments: each returns the normalised value or refuses it."""

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

from .errors import ArgumentError, ArgumentTypeError, UnknownNameError, refusal, shown


def number(argument: str, value: Any) -> float:
    """Return value as a Python float; a bool, text, array or NaN is refused."""
    way_out = "pass a Python number such as 1.0"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refusal(ArgumentTypeError, argument, "be a number", value, way_out)
    try:
        result = float(value)
    except OverflowError:
        raise refusal(ArgumentError, argument, "fit a double", value, way_out) from None
    if math.isnan(result):
        raise refusal(ArgumentError, argument, "be a number other than NaN", value, way_out)
    return result


def _bounded(argument: str, value: Any, holds: Callable[[float], bool], rule: str, way_out: str) -> float:
    result = number(argument, value)
    if not holds(result):
        raise refusal(ArgumentError, argument, rule, value, way_out)
    return result


def finite(argument: str, value: Any) -> float:
    """Return a finite number."""
    return _bounded(argument, value, math.isfinite, "be a finite number", "pass a finite number such as 1.0")


def non_negative(argument: str, value: Any, *, way_out: str = "pass 0 or a positive number") -> float:
    """Return a number of at least 0; infinity is allowed."""
    return _bounded(argument, value, lambda x: x >= 0, "be a number of at least 0", way_out)


def finite_non_negative(argument: str, value: Any) -> float:
    """Return a finite number of at least 0."""
    return _bounded(
        argument,
        value,
        lambda x: 0 <= x < math.inf,
        "be a finite number of at least 0",
        "pass 0 or a positive number",
    )


def finite_positive(argument: str, value: Any) -> float:
    """Return a finite number above 0."""
    return _bounded(
        argument, value, lambda x: 0 < x < math.inf, "be a finite number above 0", "pass a positive number"
    )


def decay_rate(argument: str, value: Any) -> float:
    """Return a number of at least 0 and below 1, the weight of the past in a moving average."""
    return _bounded(
        argument, value, lambda x: 0 <= x < 1, "be at least 0 and below 1", "pass a number such as 0.9"
    )


def _is_whole(value: object) -> bool:
    is_bool = isinstance(value, bool)
    return isinstance(value, Integral) and not is_bool


def whole_number(argument: str, value: Any, *, minimum: int) -> int:
    """Return an int of at least minimum."""
    rule, way_out = f"be a whole number of at least {minimum}", f"pass an int such as {max(minimum, 100)}"
    if not _is_whole(value):
        raise refusal(ArgumentTypeError, argument, rule, value, way_out)
    if value < minimum:
        raise refusal(ArgumentError, argument, rule, value, way_out)
    return int(value)


def flag(argument: str, value: Any) -> bool:
    """Return a bool."""
    if not isinstance(value, bool):
        raise refusal(ArgumentTypeError, argument, "be True or False", value, "pass a bool")
    return value


def choice(argument: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of the names in choices."""
    listed = ", ".join(repr(name) for name in choices)
    if not isinstance(value, str):
        raise refusal(ArgumentTypeError, argument, "be a text", value, f"pass one of {listed}")
    if value not in choices:
        raise refusal(ArgumentError, argument, f"be one of {listed}", value, "pass one of these names")
    return value


def unit_axis(argument: str, value: Any) -> str | int | tuple[int, ...]:
    """Return "auto", an axis, or a tuple of different axes."""
    way_out = 'pass "auto", an int such as 0 or -1, or a tuple of ints'
    rule = 'be "auto", an int or a tuple of ints'
    if isinstance(value, str):
        if value != "auto":
            raise refusal(ArgumentError, argument, rule, value, way_out)
        return value
    if _is_whole(value):
        return int(value)
    if not isinstance(value, (tuple, list)):
        raise refusal(ArgumentTypeError, argument, rule, value, way_out)
    if not all(_is_whole(axis) for axis in value):
        raise refusal(ArgumentTypeError, argument, rule, value, way_out)
    if not value or len(set(value)) != len(value):
        raise refusal(ArgumentError, argument, "name at least one axis, and each once", value, way_out)
    return tuple(int(axis) for axis in value)


def only_known(argument: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that is not among the known ones."""
    for name in given:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise UnknownNameError(
                f"{argument} has no entry {shown(name)}; known are: {listed}",
                argument=argument,
                rule="name known entries",
                value=name,
                way_out=f"use one of {listed}",
            )


def nesterov_has_momentum(nesterov: bool, momentum: Any) -> None:
    """Refuse nesterov without momentum, which would do nothing."""
    if nesterov and momentum == 0:
        raise refusal(
            ArgumentError, "momentum", "be above 0 with nesterov=True", momentum, "pass momentum=0.9"
        )

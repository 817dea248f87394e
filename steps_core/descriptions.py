"""Describing steps as JSON: floats as exact hexadecimal texts, steps and schedules by name."""

from collections.abc import Mapping
from typing import Any

from .errors import ArgumentTypeError, refusal


def described(value: Any) -> Any:
    """Return an option's value as JSON.

    float -> {"float": hexadecimal text};  step or schedule -> its own description;
    tuple -> list;  bool, int, text and None stay.

    Raises:
        ArgumentTypeError: the value, such as a function, has no name that another program could know.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, (tuple, list)):
        return [described(entry) for entry in value]
    if isinstance(value, Mapping):
        return {name: described(entry) for name, entry in value.items()}
    if hasattr(value, "describe"):
        return value.describe()
    name = getattr(value, "__qualname__", type(value).__name__)
    raise refusal(
        ArgumentTypeError,
        "a described option",
        "be a number, text, step or one of the schedules of this package",
        value,
        f"{name} is not known by name elsewhere; use a schedule such as CosineSchedule",
    )

"""Describing steps as JSON: floats as exact hexadecimal texts, steps and schedules by name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from .errors import ArgumentTypeError, refusal


def options_beyond_defaults(step: Any) -> dict[str, Any]:
    """Return the options of a step or schedule that differ from their default, metadata left out.

    A default that the constructor normalises counts in its normal spelling.
    """
    values = {f.name: (getattr(step, f.name), f.default) for f in fields(step) if f.name != "metadata"}
    normal = getattr(step, "normal_spellings", {})
    return {name: value for name, (value, default) in values.items() if value != normal.get(default, default)}


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
        f"{name} is not known by name elsewhere; use a schedule such as CosineSchedule, a tree of booleans "
        "as a mask, or a Python number",
    )

"""Step descriptions in the JSON form that targets get."""

from typing import Any

from .targets.protocol import Description


def description(name: str, /, **options: Any) -> Description:
    """Return the description of a step.

    Args:
        name: the step's class name.
        options: floats, whole numbers, bools, texts, None, tuples, or descriptions of steps, schedules and
            tunable options.
    """
    return {"step": name, "options": {key: encoded(value) for key, value in options.items()}}


def schedule(name: str, /, **options: Any) -> Description:
    """Return the description of a schedule."""
    return {"schedule": name, "options": {key: encoded(value) for key, value in options.items()}}


def tunable(value: float) -> Description:
    """Return the description of a tunable option: a number that the state holds under the option's name."""
    return {"tunable": encoded(value)}


def chain(*steps: Description | None) -> Description:
    """Return the description of a chain with its steps in the slots step1, step2, ... stepN."""
    return description("ChainedStep", **{f"step{n}": step for n, step in enumerate(steps, start=1)})


def encoded(value: Any) -> Any:
    """Return an option's value as JSON; a float becomes its exact hexadecimal text."""
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, (tuple, list)):
        return [encoded(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, dict) and value.keys() & {"step", "schedule", "tunable"}:
        return value
    raise TypeError(
        f"an option must be a number, text, bool, None, tuple or description, "
        f"got {value!r} ({type(value).__name__}); describe steps and schedules first"
    )

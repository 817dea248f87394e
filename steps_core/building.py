"""Building steps from their descriptions: the other half of `describe`."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from . import checks
from .contract import Step
from .errors import ArgumentError, ArgumentTypeError, UnknownNameError, refusal
from .masks import mask_from_description
from .schedules import SCHEDULES
from .steps import STEPS
from .steps.chain import NAMED_SLOTS, ChainedStep
from .tunable import Tunable

_MOST_LEVELS = 100

# float.fromhex would take "abc" for 2748.
_HEXADECIMAL = re.compile(r"[+-]?(0x[0-9a-f]+(\.[0-9a-f]*)?p[+-]?[0-9]+|inf|nan)", re.IGNORECASE)


def build(description: Mapping[str, Any]) -> Step:
    """Return the step that a description names; equal to the one that was described.

    Args:
        description: ``{"step": name, "options": {...}}``, as `Step.describe` returns it, of plain JSON.

    Raises:
        ArgumentTypeError, ArgumentError: the description has another form, or an option a bad value.
        UnknownNameError: no step, schedule or option has that name.

    Example:
        >>> from steps_core import AdamStep, build
        >>> build({"step": "AdamStep", "options": {"beta1": {"float": "0x1.0p-1"}}}) == AdamStep(beta1=0.5)
        True
    """
    step: Step = _built(description, "step", STEPS, "description", 0)
    return step


def _built(description: Any, key: str, kinds: Mapping[str, type], path: str, level: int) -> Any:
    """Return the step or schedule (key says which) that a description names."""
    name, options = _parts(description, key, path)
    kind = kinds.get(name)
    if kind is None:
        raise _unknown(f"{path}[{key!r}]", name, kinds)
    place = f"{path}['options']"
    built = {
        option: _built_value(value, f"{place}[{option!r}]", level + 1) for option, value in options.items()
    }
    if kind is ChainedStep:
        return _built_chain(built, place)
    known = [f.name for f in fields(kind)]
    for option in built:
        if option not in known:
            raise _unknown(place, option, known)
    for f in fields(kind):
        if f.name not in built and f.default is MISSING and f.default_factory is MISSING:
            raise refusal(
                ArgumentError, place, f"give {f.name}, which {name} needs", dict(options), f"add {f.name}"
            )
    return kind(**built)


def _built_chain(options: dict[str, Any], path: str) -> ChainedStep:
    fixed = {key: options.pop(key) for key in ("set_breakpoint", "metadata") if key in options}
    if all(slot in NAMED_SLOTS for slot in options):
        return ChainedStep(**options, **fixed)
    numbers = {slot: _slot_number(slot, path) for slot in options}
    steps: list[Any] = [None] * max(numbers.values())
    for slot, number in numbers.items():
        steps[number - 1] = options[slot]
    return ChainedStep(*steps, **fixed)


def _slot_number(slot: str, path: str) -> int:
    digits = slot.removeprefix("step")
    if slot.startswith("step") and digits.isascii() and digits.isdecimal() and 0 < int(digits) <= 10_000:
        return int(digits)
    raise _unknown(path, slot, [*NAMED_SLOTS, "step10 and so on"])


def _built_value(value: Any, path: str, level: int) -> Any:
    if level > _MOST_LEVELS:
        raise refusal(
            ArgumentError, path, f"be nested at most {_MOST_LEVELS} levels deep", "...", "flatten it"
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_built_value(entry, f"{path}[{index}]", level + 1) for index, entry in enumerate(value))
    if isinstance(value, Mapping) and set(value) == {"float"}:
        return _built_float(value["float"], path)
    if isinstance(value, Mapping) and set(value) == {"tunable"}:
        place = f"{path}['tunable']"
        return Tunable(checks.number(place, _built_value(value["tunable"], place, level + 1)))
    if isinstance(value, Mapping) and set(value) == {"mask"}:
        return mask_from_description(value["mask"], path)
    if isinstance(value, Mapping) and "schedule" in value:
        return _built(value, "schedule", SCHEDULES, path, level)
    return _built(value, "step", STEPS, path, level)


def _built_float(text: Any, path: str) -> float:
    if isinstance(text, str) and _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text)
        except (ValueError, OverflowError):
            pass
    way_out = 'write it as {"float": "0x1.8p+1"}, as float.hex does'
    raise refusal(ArgumentError, path, "hold a hexadecimal float", text, way_out)


def _parts(description: Any, key: str, path: str) -> tuple[str, Mapping[str, Any]]:
    form, way_out = f'be {{"{key}": name, "options": {{...}}}}', "pass what describe() returned"
    if not isinstance(description, Mapping):
        raise refusal(ArgumentTypeError, path, form, description, way_out)
    name, options = description.get(key), description.get("options", {})
    if not isinstance(name, str) or not isinstance(options, Mapping) or set(description) - {key, "options"}:
        raise refusal(ArgumentError, path, form, description, way_out)
    if not all(isinstance(option, str) for option in options):
        raise refusal(ArgumentError, f"{path}['options']", "have texts as keys", dict(options), way_out)
    return name, options


def _unknown(path: str, name: str, known: Any) -> UnknownNameError:
    listed = ", ".join(known)
    return UnknownNameError(
        f"{path} must name one of {listed}, got {name!r} (str); check the spelling",
        argument=path,
        rule=f"name one of {listed}",
        value=name,
        way_out="check the spelling",
    )

"""Building steps from their descriptions: the other half of `describe`."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from . import checks
from .contract import Step
from .deferred import Reference
from .errors import ArgumentError, ArgumentTypeError, UnknownNameError, refusal
from .masks import mask_from_description
from .schedules import SCHEDULES
from .steps import STEPS
from .steps.chain import NAMED_SLOTS, ChainedStep
from .steps.custom import CustomStep
from .tunable import Tunable

_MOST_LEVELS = 100
_LEVELS_OF_A_GRAPH = 4  # It takes as many of Python's frames as that many nested lists.

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
    step = built_step(description, "description", 0)
    if not isinstance(step, Step):
        rule = 'hold values, not {"parameter": name}, which stands only in graphs'
        raise refusal(ArgumentError, "description", rule, step, "give the options values")
    return step


def built_step(description: Any, path: str, level: int) -> Any:
    """Return the step that stands at a place of a description; a template where it names parameters."""
    return _built(description, "step", STEPS, path, level)


def built_options(options: Any, path: str, level: int) -> dict[str, Any]:
    """Return the options that stand at a place of a description."""
    if not isinstance(options, Mapping) or not all(isinstance(option, str) for option in options):
        raise refusal(ArgumentError, path, "be an object with texts as keys", options, "name the options")
    return {option: built_value(value, f"{path}[{option!r}]", level + 1) for option, value in options.items()}


def _built(description: Any, key: str, kinds: Mapping[str, type], path: str, level: int) -> Any:
    """Return the step or schedule (key says which) that a description names."""
    name, options = _parts(description, key, path)
    kind = kinds.get(name)
    if kind is None:
        raise _unknown(f"{path}[{key!r}]", name, kinds)
    place = f"{path}['options']"
    if kind is CustomStep:
        return _built_custom(options, place, level)
    built = built_options(options, place, level)
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


def _built_custom(options: Mapping[str, Any], path: str, level: int) -> CustomStep:
    from .graphs.json_form import graph_of

    plain = ("graph_signature", "set_breakpoint", "metadata")
    known = ("graph", "overrides", *plain)
    for option in options:
        if option not in known:
            raise _unknown(path, option, known)
    if "graph" not in options:
        raise refusal(ArgumentError, path, "give graph, which CustomStep needs", dict(options), "add graph")
    overrides = options.get("overrides", {})
    fixed = {key: value for key, value in options.items() if key in plain}
    return CustomStep(
        graph_of(options["graph"], f"{path}['graph']", level + _LEVELS_OF_A_GRAPH),
        overrides=built_options(overrides, f"{path}['overrides']", level),
        **fixed,
    )


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


def check_level(path: str, level: int) -> None:
    """Refuse what is nested so deep that reading it would exhaust Python's stack."""
    if level > _MOST_LEVELS:
        rule = f"be nested at most {_MOST_LEVELS} levels deep"
        raise refusal(ArgumentError, path, rule, "...", "flatten it")


def built_value(value: Any, path: str, level: int) -> Any:
    """Return the value that stands at a place of a description."""
    check_level(path, level)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(built_value(entry, f"{path}[{index}]", level + 1) for index, entry in enumerate(value))
    if isinstance(value, Mapping) and set(value) == {"float"}:
        return _built_float(value["float"], path)
    if isinstance(value, Mapping) and set(value) == {"tunable"}:
        place = f"{path}['tunable']"
        return Tunable(checks.number(place, built_value(value["tunable"], place, level + 1)))
    if isinstance(value, Mapping) and set(value) == {"mask"}:
        return mask_from_description(value["mask"], path)
    if isinstance(value, Mapping) and set(value) == {"parameter"}:
        return _built_reference(value["parameter"], path)
    if isinstance(value, Mapping) and "schedule" in value:
        return _built(value, "schedule", SCHEDULES, path, level)
    return _built(value, "step", STEPS, path, level)


def _built_reference(name: Any, path: str) -> Reference:
    if not isinstance(name, str):
        way_out = 'write {"parameter": "threshold"}'
        raise refusal(ArgumentTypeError, path, "name a hyper-parameter of the graph", name, way_out)
    return Reference(name)


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

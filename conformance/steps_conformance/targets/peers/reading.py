"""Reading step descriptions for libraries that have steps of their own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..protocol import REFUSAL_KINDS, Description, NotExpressible, Refusal

_RATE, _FIRST, _SECOND = 1e-3, 0.9, 0.999

DEFAULTS: dict[str, dict[str, Any]] = {
    "GradientClippingStep": {
        "variant": "per-parameter",
        "threshold": 1.0,
        "epsilon": 1e-3,
        "unit_axis": "auto",
    },
    "ScalingStep": {"scale": None, "learning_rate": None},
    "AdamStep": {
        "learning_rate": _RATE,
        "beta1": _FIRST,
        "beta2": _SECOND,
        "epsilon": 1e-8,
        "epsilon_root": 0.0,
        "amsgrad": False,
        "nesterov": False,
        "weight_decay": 0.0,
    },
    "RMSPropStep": {
        "learning_rate": _RATE,
        "decay": 0.9,
        "epsilon": 1e-8,
        "epsilon_inside": True,
        "centered": False,
        "momentum": 0.0,
        "nesterov": False,
        "weight_decay": 0.0,
    },
    "SGDStep": {"learning_rate": 1e-2, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0},
    "MomentumStep": {"decay": 0.9, "nesterov": False},
    "WeightDecayStep": {"weight_decay": 1e-4},
    "CenteringStep": {"unit_axis": "auto"},
    "SkipNonFiniteStep": {"inner": None},
    "MaskedStep": {"inner": None, "mask": None},
    "ConstraintStep": {
        "constraint": None,
        "lower": None,
        "upper": None,
        "radius": 1.0,
        "unit_axis": "auto",
    },
}
"""The options of each step with their defaults, as the requirements give them."""

SCHEDULE_DEFAULTS: dict[str, dict[str, Any]] = {
    "ConstantSchedule": {"value": None},
    "ExponentialSchedule": {"initial": None, "decay_rate": None, "decay_steps": None},
    "LinearSchedule": {"initial": None, "final": None, "steps": None},
    "CosineSchedule": {"initial": None, "steps": None, "final": 0.0},
    "WarmupSchedule": {"steps": None, "then": None, "initial": 0.0},
    "PiecewiseSchedule": {"boundaries": None, "values": None},
}


def options_of(description: Description) -> dict[str, Any]:
    """Return all options of a step, defaults filled in, numbers decoded, inner descriptions as they are.

    Raises:
        NotExpressible: a step or an option that only this project has.
    """
    return _read(description, "step", DEFAULTS)


def schedule_options(description: Description) -> dict[str, Any]:
    """Return all options of a schedule, as `options_of` those of a step."""
    return _read(description, "schedule", SCHEDULE_DEFAULTS)


def _read(description: Description, kind: str, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    name = str(description.get(kind))
    if name not in known:
        raise NotExpressible(f"it has no {name}")
    given = {key: decoded(value) for key, value in description.get("options", {}).items()}
    for key in given:
        if key not in known[name]:
            raise NotExpressible(f"it has nothing like the option {key} of {name}")
    return {**known[name], **given}


def slots(description: Description) -> list[Description]:
    """Return the steps of a chain in order.

    Raises:
        NotExpressible: a slot that is not one of step1, step2, ..., or one under two names.
    """
    options = description.get("options", {})
    if any(not (key.startswith("step") and key[4:].isdigit()) for key in options):
        raise NotExpressible("its chains have no slots with other names, nor options")
    if {"step0", "step10"} <= options.keys():
        raise NotExpressible("its chains have no names for slots, and so none that mean the same one")
    # step0 is the tenth
    places = {10 if key == "step0" else int(key[4:]): step for key, step in options.items()}
    return [places[place] for place in sorted(places) if places[place] is not None]


def decoded(value: Any) -> Any:
    """Return the value of an option: numbers from their texts, lists as tuples.

    Raises:
        NotExpressible: a tunable option or a parameter of a graph.
    """
    if isinstance(value, dict) and set(value) == {"float"}:
        return float.fromhex(value["float"])
    if isinstance(value, dict) and value.keys() & {"tunable", "parameter"}:
        raise NotExpressible("its options are not held in the state under the names of this project")
    return tuple(decoded(item) for item in value) if isinstance(value, list) else value


def is_schedule(value: Any) -> bool:
    """Return whether an option is the description of a schedule."""
    return isinstance(value, dict) and "schedule" in value


def constant(value: Any, option: str) -> Any:
    """Return an option that must be a number.

    Raises:
        NotExpressible: it is a schedule.
    """
    if is_schedule(value):
        raise NotExpressible(f"its {option} takes no schedule")
    return value


def is_off(value: Any) -> bool:
    """Return whether an option is the number 0 or the bool False; anything else has to reach the library."""
    return isinstance(value, (bool, int, float)) and value == 0


def require(holds: bool, reason: str) -> None:
    """Raise NotExpressible with a reason unless something holds."""
    if not holds:
        raise NotExpressible(reason)


@contextmanager
def refusing() -> Iterator[None]:
    """Turn the errors by which Python libraries refuse arguments into Refusal; others are faults."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        kinds = {"ValueError": ValueError, "TypeError": TypeError, "KeyError": KeyError}
        kind = next(name for name in REFUSAL_KINDS if isinstance(error, kinds[name]))
        raise Refusal(kind, str(error)) from error


Maker = Callable[[dict[str, Any]], Any]
"""Makes a step of a library from all options of a description."""

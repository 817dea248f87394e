"""Tunable options: numbers that a step keeps in its state, so that they can be replaced between calls."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_args, get_type_hints

from . import checks
from .call import Call
from .descriptions import described
from .errors import ArgumentError, StepsError, refusal
from .leaves import Leaves
from .namespaces import Array, as_array, namespace_of
from .numerics.formats import FLOAT32
from .state import State, StateView, scalar_like

AnyStep = TypeVar("AnyStep")


@dataclass(frozen=True, repr=False)
class Tunable:
    """A number that stands in a step's state, where it can be replaced between calls without compiling again.

    option = state[name of the option] at each call; at first float32(value)

    A step takes it wherever an option is a number: ``AdamStep(learning_rate=Tunable(1e-3))``. Its state
    then has one more entry, a 0-d float32 array named like the option, or ``momentum_option`` where the
    state has a momentum already (SGD and RMSProp). A call returns the entry as it got it. A replacement
    is a 0-d float32 array of the same library; it is not checked against the option's rule, because that
    would ask the device for its value.

    What follows from an option alone is settled when the step is made, as if the number could become
    anything: ``weight_decay=Tunable(0.0)`` needs weights. Whether a step negates follows from the first
    value.

    Where the number is one of float32, results equal those of the plain number: exactly, but for the
    terms that hold a rate times a decay, or the bias corrections of Adam, which are within 2 ulps. Other
    numbers are rounded: 0.999 moves 1 - beta2 by 1 part in 78,000. A subnormal number counts as 0 where
    the library flushes those.

    Args:
        value: the first value, in the unit of its option: a number or infinity.

    Raises:
        ArgumentTypeError: value is no number.
        ArgumentError: value is NaN, or float32 would make it infinite or 0. The step refuses a value that
            breaks its option's rule; an option that is no number, and a schedule, refuse a Tunable.

    Example:
        >>> import numpy as np
        >>> from steps_core import SGDStep
        >>> step, gradients = SGDStep(learning_rate=Tunable(0.5)), np.asarray([2.0])
        >>> updates, state = step(gradients, state=step.init(gradients))
        >>> updates, state
        (array([-1.]), {'learning_rate': array(0.5, dtype=float32)})
        >>> step(gradients, state={**state, "learning_rate": np.asarray(0.25, np.float32)}).gradients
        array([-0.5])
    """

    value: float

    def __post_init__(self) -> None:
        """Check and normalise the value."""
        value = checks.number("value", self.value)
        is_lost = abs(value) > FLOAT32.largest if value not in _INFINITIES else False
        if is_lost or (value != 0 and in_float32(value) == 0):
            rule = "be 0, infinite or of a size that float32 holds, as a tunable option is held in the state"
            raise refusal(ArgumentError, "value", rule, self.value, "pass the number without Tunable")
        object.__setattr__(self, "value", value)

    def describe(self) -> dict[str, Any]:
        """Return ``{"tunable": {"float": hexadecimal text}}``."""
        return {"tunable": described(self.value)}

    def __repr__(self) -> str:
        return f"Tunable({self.value!r})"


_INFINITIES = (float("inf"), float("-inf"))

Number = float | Tunable


def in_float32(value: float) -> float:
    """Return a number, which float32 can hold, rounded to float32."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def first_value(option: Number) -> float:
    """Return the number that an option starts with."""
    return option.value if isinstance(option, Tunable) else option


def is_always(option: Any, number: float) -> bool:
    """Return whether an option is this number in every call; a tunable one may become anything.

    Inside a call a tunable option is a 0-d array, which Python must not compare.
    """
    return isinstance(option, float) and option == number


# ---- Making a step


def given_tunables(step: Any) -> dict[str, Tunable]:
    """Return the options that were given as Tunable and may be, by name.

    An option may be where its annotation says so; elsewhere its own check refuses it.
    """
    given = {f.name: value for f in fields(step) if isinstance(value := getattr(step, f.name), Tunable)}
    hints = get_type_hints(type(step)) if given else {}
    return {name: value for name, value in given.items() if Tunable in get_args(hints[name])}


@contextmanager
def as_held() -> Iterator[None]:
    """Say in an error about a rounded value where it comes from."""
    try:
        yield
    except StepsError as error:
        error.add_note("This is the value of Tunable rounded to float32, in which the state holds it.")
        raise


def entry_names(tunables: dict[str, Tunable], taken: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return each tunable option with the name of its state entry, apart from the entries there are."""
    return tuple((name, f"{name}_option" if name in taken else name) for name in tunables)


# ---- Calling a step


def initial_entries(step: Any, weights: Leaves) -> State:
    """Return the state entries of a step's tunable options; None where there is no array."""
    return {
        entry: scalar_like(weights, getattr(step, option).value, "float32")
        for option, entry in step.tunable_entries
    }


def read_entries(step: Any, call: Call, state: StateView) -> tuple[dict[str, Any], State, StateView]:
    """Return the tunable options as this call uses them, their entries, and the rest of the state.

    Raises:
        StateError: an entry is no 0-d float32 array of the gradients' library; the text names its path.
    """
    options, entries = {}, {}
    for option, entry in step.tunable_entries:
        value = _entry(call, state, entry)
        # Without an array there is nothing to compute, and the first value will do.
        options[option] = getattr(step, option).value if value is None else value
        entries[entry] = value
    rest = {key: value for key, value in state.value.items() if key not in entries}
    return options, entries, StateView(rest, state.path)


def _entry(call: Call, state: StateView, entry: str) -> Array | None:
    value = state.scalar(entry, ("float32",))
    state.require_scalar(call, entry, value)
    return None if value is None else as_array(namespace_of(value), value)


def with_options(step: AnyStep, options: dict[str, Any]) -> AnyStep:
    """Return a copy of a step for one call: other options, none of them checked again."""
    copy: AnyStep = object.__new__(type(step))
    for name, value in {**vars(step), **options}.items():
        object.__setattr__(copy, name, value)
    return copy

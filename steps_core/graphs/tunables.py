"""Tunable hyper-parameters of a graph: held once, in its state, and lent to the steps they feed."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..call import Call
from ..leaves import Leaves
from ..state import State, StateView, scalar_like
from .values import Scalar

Place = tuple[str, ...]
Loans = tuple[tuple[Place, str], ...]
"""Where in a step's state a value belongs, and the value's name in the graph."""


def initial_entries(tunables: Mapping[str, float], weights: Leaves) -> State:
    """Return the state entries of tunable hyper-parameters."""
    return {name: scalar_like(weights, value, "float32") for name, value in tunables.items()}


def read_entries(tunables: Mapping[str, float], call: Call, state: StateView) -> State:
    """Return the entries as this call finds them.

    Raises:
        StateError: an entry is no 0-d float32 array of the gradients' library; the text names its path.
    """
    entries: State = {}
    for name in tunables:
        entries[name] = state.scalar(name, ("float32",))
        state.require_scalar(call, name, entries[name])
    return entries


def place_of(step: Any, option: Sequence[str]) -> Place:
    """Return where in the state of a step stands an option that is tunable, also one of a step inside."""
    name, *rest = option
    if hasattr(step, "slots"):
        return (name, *place_of(dict(step.slots)[name], rest))
    if name == "inner":
        return (name, *place_of(step.inner, rest))
    if name == "overrides":
        return (rest[0],)
    return (dict(step.tunable_entries)[name],)


def lent(state: Any, loans: Loans, values: Mapping[str, Any]) -> Any:
    """Return a step's state with the values of the graph where they belong."""
    for place, name in loans:
        value = values[name]
        state = _with(state, place, value.array if isinstance(value, Scalar) else value)
    return state


def returned(state: Any, loans: Loans) -> Any:
    """Return a step's state without what was lent to it."""
    for place, _ in loans:
        state = _without(state, place)
    return state


def _with(state: Any, place: Place, value: Any) -> Any:
    if not isinstance(state, dict):
        return state  # Of the wrong form; the step itself refuses it, by its path.
    name, *rest = place
    return {**state, name: _with(state.get(name), tuple(rest), value) if rest else value}


def _without(state: Any, place: Place) -> Any:
    name, *rest = place
    if rest:
        return {**state, name: _without(state[name], tuple(rest))}
    return {key: value for key, value in state.items() if key != name}

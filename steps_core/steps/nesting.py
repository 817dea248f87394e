"""Running a step inside another: wide leaves go straight in; a step of another copy is called by protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..call import Call, Values
from ..contract import Step, StepLike
from ..errors import ArgumentTypeError, StepsError, refusal
from ..leaves import Leaves, open_tree, require_partner, require_wide_enough
from ..namespaces import recorder_of
from ..state import StateView


def initial_inner_state(step: StepLike, weights: Leaves) -> Any:
    """Return the first state of an inner step."""
    if isinstance(step, Step):
        return step.initial_state(weights)
    return step.init(weights.rebuild(weights.values))


def advance_inner(step: StepLike, call: Call, gradients: Values, state: StateView) -> tuple[Values, Any]:
    """Return what an inner step makes of wide gradients, and its new state."""
    if isinstance(step, Step):
        return step.run(call, gradients, state)
    recorder = recorder_of(call.xp)
    if recorder is not None:
        recorder.refuse(f"{type(step).__name__} is a step by protocol, which may keep values of its own")
    if getattr(step, "constrains", False) and call.given_weights is not None:
        require_wide_enough(call.gradients, call.given_weights)
    weights = None if call.given_weights is None else call.given_weights.tree
    result = step(call.tree(gradients), weights, state.value)
    name = f"the result of {type(step).__name__}"
    if not isinstance(result, tuple) or len(result) != 2:
        way_out = "return (gradients, state) from the step"
        raise refusal(ArgumentTypeError, name, "be a pair of gradients and state", result, way_out)
    opened = open_tree(result[0], name)
    require_partner(replace(call.gradients, values=gradients), opened)
    return opened.values, result[1]


@contextmanager
def errors_in(slot: str, title: str) -> Iterator[None]:
    """Say in an error from inside which step it was; the class of the error stays."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {slot} ({title})")
        if isinstance(error, StepsError):
            error.slot = slot if error.slot is None else f"{slot}.{error.slot}"
        raise

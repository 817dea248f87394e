"""Running a step inside another: wide leaves go straight in; a step of another copy is called by protocol."""

from typing import Any

from ..call import Call, Values
from ..contract import Step, StepLike
from ..errors import ArgumentTypeError, refusal
from ..leaves import Leaves, open_tree, require_wide_enough
from ..state import StateView
from ..trees import require_same_structure


def checked_step(argument: str, value: Any) -> StepLike:
    """Return value if it is a step, by protocol: it has init and negates, and can be called."""
    if isinstance(value, type):
        way_out = f"make the step: {value.__name__}()"
        raise refusal(ArgumentTypeError, argument, "be a step", value, way_out)
    if not (callable(value) and callable(getattr(value, "init", None)) and hasattr(value, "negates")):
        raise refusal(ArgumentTypeError, argument, "be a step", value, "pass a step such as AdamStep()")
    return value  # type: ignore[no-any-return]


def initial_inner_state(step: StepLike, weights: Leaves) -> Any:
    """Return the first state of an inner step."""
    if isinstance(step, Step):
        return step.initial_state(weights)
    return step.init(weights.rebuild(weights.values))


def advance_inner(step: StepLike, call: Call, gradients: Values, state: StateView) -> tuple[Values, Any]:
    """Return what an inner step makes of wide gradients, and its new state."""
    if isinstance(step, Step):
        return step.run(call, gradients, state)
    if getattr(step, "constrains", False) and call.given_weights is not None:
        require_wide_enough(call.gradients, call.given_weights)
    weights = None if call.given_weights is None else call.given_weights.tree
    tree, new_state = step(call.tree(gradients), weights, state.value)
    opened = open_tree(tree, "gradients")
    require_same_structure(
        "gradients", call.gradients.structure, f"the result of {type(step).__name__}", opened.structure
    )
    return opened.values, new_state

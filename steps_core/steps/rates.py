"""Learning rates and scales of steps: a number, or a schedule read at the step's own count."""

from ..call import Call, Scalar
from ..leaves import Leaves
from ..namespaces import Array, as_array, astype
from ..placing import on_device_of
from ..schedules import Schedule, schedule_value
from ..state import State, StateView, count_from_zero, incremented
from ..tunable import Tunable, first_value

Rate = float | Schedule | Tunable


def rate_negates(rate: Rate) -> bool:
    """Return whether minus the rate negates: a schedule counts as positive, a tunable rate as it starts."""
    return callable(rate) or first_value(rate) >= 0


def rate_at(call: Call, argument: str, rate: Rate, count: Array | None) -> Scalar:
    """Return the rate for a call: the number, or the schedule's value as a 0-d float32 array.

    Args:
        count: calls before this one; None where there is no array, and so nothing to scale.
    """
    first = next((leaf for leaf in call.gradients.values if leaf is not None), None)
    if not callable(rate):
        return rate
    if first is None or count is None:
        return 0.0
    on_device = as_array(call.xp, astype(call.xp, on_device_of(first, count), call.xp.float32))
    return schedule_value(argument, rate, on_device)


def rate_keys(rate: Rate) -> tuple[str, ...]:
    """Return the state entries that a rate needs: a counter for a schedule."""
    return ("count",) if callable(rate) else ()


def initial_rate_state(rate: Rate, weights: Leaves) -> State:
    """Return the counter that a schedule needs, or nothing."""
    return {"count": count_from_zero(weights)} if callable(rate) else {}


def advance_rate(call: Call, argument: str, rate: Rate, state: StateView) -> tuple[Scalar, State]:
    """Return the rate for this call, and the counter after it."""
    if not callable(rate):
        return rate, {}
    count = state.count(call)
    return rate_at(call, argument, rate, count), {"count": incremented(count)}

"""The operations of a graph that keep a state: moving average, trace, previous value, counter."""

from dataclasses import dataclass

from .. import checks
from ..call import Call, Values, per_kind
from ..contract import Step
from ..elementwise import advance_leaves
from ..leaves import Leaves
from ..namespaces import Array, astype, copied
from ..numerics.moments import bias_correction, in_real_dtype, next_average
from ..placing import on_device_of
from ..state import State, StateView, count_from_zero, incremented, zeros_like
from ..steps.momentum import MomentumStep
from ..tunable import Number


@dataclass(frozen=True, kw_only=True)
class _StatefulOperation(Step):
    """An operation that runs as a step does, on any tree or scalar of a graph."""

    @property
    def negates(self) -> bool:
        """Always False."""
        return False


@dataclass(frozen=True, kw_only=True)
class MovingAverage(_StatefulOperation):
    """Replace a value by its exponential moving average.

    m = decay * m + (1 - decay) * x;  result = m, or m / (1 - decay^t) with bias_correction

    Args:
        decay: weight of the past, at least 0 and below 1. Default 0.9.
        bias_correction: divide out the zeros that the average started from; t = 1 at the first call.
            Default False.

    State: ``mean`` (m, float32 at least); with bias_correction also ``count`` (int32 0-d).
    """

    decay: Number = 0.9
    bias_correction: bool = False

    def _check_options(self) -> None:
        self._set(
            decay=checks.decay_rate("decay", self.decay),
            bias_correction=checks.flag("bias_correction", self.bias_correction),
        )

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The average, and the counter where there is one."""
        return ("mean", "count") if self.bias_correction else ("mean",)

    def own_state(self, weights: Leaves) -> State:
        """Return an average of zeros."""
        counter = {"count": count_from_zero(weights)} if self.bias_correction else {}
        return {"mean": zeros_like(weights), **counter}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the averages."""
        counter = {"count": incremented(state.count(call))} if self.bias_correction else {}
        count = counter.get("count")
        correction_of = per_kind(
            lambda leaf: bias_correction(
                call.xp, in_real_dtype(call.xp, on_device_of(leaf, count), leaf), self.decay
            )
        )

        def kernel(x: Array, _: Array | None, mean: Array) -> tuple[Array, ...]:
            mean = next_average(mean, x, self.decay)
            return mean / correction_of(x) if self.bias_correction else mean, mean

        values, new_state = advance_leaves(call, gradients, {"mean": state.leaves(call, "mean")}, kernel)
        return values, {**new_state, **counter}


@dataclass(frozen=True, kw_only=True)
class Trace(MomentumStep):
    """Replace a value by a decaying sum of it: `MomentumStep` as an operation.

    m = decay * m + x;  result = m                    nesterov: result = x + decay * m
    """


@dataclass(frozen=True, kw_only=True)
class PreviousValue(_StatefulOperation):
    """Give the value of the call before; zeros at the first call.

    result = p;  p = x

    State: ``previous`` (p, float32 at least).
    """

    def _check_options(self) -> None:
        pass

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The value kept."""
        return ("previous",)

    def own_state(self, weights: Leaves) -> State:
        """Return zeros."""
        return {"previous": zeros_like(weights)}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the values kept, and keep copies of these."""

        def kernel(x: Array, _: Array | None, previous: Array) -> tuple[Array, ...]:
            return copied(call.xp, previous), copied(call.xp, x)

        old = {"previous": state.leaves(call, "previous")}
        return advance_leaves(call, gradients, old, kernel)


@dataclass(frozen=True, kw_only=True)
class Counter(_StatefulOperation):
    """Give the number of calls before this one, as a 0-d float32 array: 0 at the first call.

    State: ``count`` (int32 0-d), the calls so far.
    """

    def _check_options(self) -> None:
        pass

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The counter."""
        return ("count",)

    def own_state(self, weights: Leaves) -> State:
        """Return a counter at 0."""
        return {"count": count_from_zero(weights)}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the count alone."""
        count = state.count(call)
        if count is None or call.xp is None:
            return [None], {"count": incremented(count)}
        return [astype(call.xp, count, call.xp.float32)], {"count": incremented(count)}


STATEFUL: dict[str, type[Step]] = {
    "moving_average": MovingAverage,
    "trace": Trace,
    "previous_value": PreviousValue,
    "counter": Counter,
}
STATEFUL_NAMES: dict[type, str] = {kind: name for name, kind in STATEFUL.items()}

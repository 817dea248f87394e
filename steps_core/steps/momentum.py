"""Momentum as a chainable step: a decaying sum of the gradients."""

from dataclasses import dataclass

from .. import checks
from ..call import Call, Values, cast_for, per_kind
from ..contract import Step
from ..elementwise import advance_leaves
from ..leaves import Leaves
from ..namespaces import Array
from ..numerics.moments import next_trace
from ..state import State, StateView, zeros_like
from ..tunable import Number


@dataclass(frozen=True, kw_only=True)
class MomentumStep(Step):
    """Replace the gradients by a decaying sum of them.

    m = decay * m + g;  g' = m                    nesterov: g' = g + decay * m

    Args:
        decay: weight of the past, at least 0 and below 1. Default 0.9.
        nesterov: look one step ahead. Default False.
        set_breakpoint, metadata: as of every step.

    State: ``trace`` (m, float32 at least).

    Raises:
        ArgumentError, ArgumentTypeError: an option breaks its rule.

    References:
        Polyak 1964, "Some methods of speeding up the convergence of iteration methods".

    Example:
        >>> import numpy as np
        >>> step = MomentumStep(decay=0.5)
        >>> gradients = np.asarray([2.0])
        >>> _, state = step(gradients)
        >>> step(gradients, state=state).gradients
        array([3.])
    """

    decay: Number = 0.9
    nesterov: bool = False

    def _check_options(self) -> None:
        self._set(
            decay=checks.decay_rate("decay", self.decay), nesterov=checks.flag("nesterov", self.nesterov)
        )

    @property
    def negates(self) -> bool:
        """Always False: momentum keeps the sign."""
        return False

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The trace."""
        return ("trace",)

    def own_state(self, weights: Leaves) -> State:
        """Return a trace of zeros."""
        return {"trace": zeros_like(weights)}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the directions and the advanced trace."""
        decay_of = per_kind(lambda leaf: cast_for(call.xp, self.decay, leaf))

        def kernel(gradient: Array, weight: Array | None, trace: Array) -> tuple[Array, ...]:
            trace, direction = next_trace(trace, gradient, decay_of(gradient), nesterov=self.nesterov)
            return direction, trace

        return advance_leaves(call, gradients, {"trace": state.leaves(call, "trace")}, kernel)

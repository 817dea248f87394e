"""Scaling: times a number or a schedule, or, as a learning rate, minus it."""

from dataclasses import dataclass

from ..call import Call, Values, per_kind, scalar_for
from ..contract import Step
from ..errors import ArgumentError, shown
from ..leaves import Leaves
from ..schedules import checked_rate
from ..state import State, StateView
from .rates import Rate, advance_rate, initial_rate_state, rate_keys, rate_negates


@dataclass(frozen=True, kw_only=True)
class ScalingStep(Step):
    """Multiply the gradients by a number or a schedule.

    u = scale * g                or                u = -learning_rate * g

    Exactly one of the two is given. ``ScalingStep(scale=-1.0)`` makes the chain before it end-to-end.

    Args:
        scale: finite number, or schedule of the step count. Default None.
        learning_rate: finite number, or schedule of the step count. Default None.
        set_breakpoint, metadata: as of every step.

    State: ``{}``; with a schedule ``{"count": int32 0-d}``, the calls so far.

    Raises:
        ArgumentError: both are given, or neither, or a number is not finite.
        ArgumentTypeError: a value is neither a number nor a function.

    Example:
        >>> import numpy as np
        >>> ScalingStep(learning_rate=0.5)(np.asarray([1.0, -2.0])).gradients
        array([-0.5,  1. ])
    """

    scale: Rate | None = None
    learning_rate: Rate | None = None

    def _check_options(self) -> None:
        if (self.scale is None) == (self.learning_rate is None):
            way_out = "pass ScalingStep(scale=...) or ScalingStep(learning_rate=...)"
            raise ArgumentError(
                f"exactly one of scale and learning_rate must be given, got scale={shown(self.scale)} "
                f"and learning_rate={shown(self.learning_rate)}; {way_out}",
                argument="scale",
                rule="be given without learning_rate, or the other way round",
                value=self.scale,
                way_out=way_out,
            )
        self._set(**{self._argument: checked_rate(self._argument, self._rate)})

    @property
    def _argument(self) -> str:
        return "learning_rate" if self.scale is None else "scale"

    @property
    def _rate(self) -> Rate:
        rate = self.learning_rate if self.scale is None else self.scale
        assert rate is not None
        return rate

    @property
    def negates(self) -> bool:
        """Whether the factor is negative; schedules count as positive."""
        return rate_negates(self._rate) == (self.scale is None)

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The counter of a schedule, or nothing."""
        return rate_keys(self._rate)

    def own_state(self, weights: Leaves) -> State:
        """Return the counter of a schedule, or nothing."""
        return initial_rate_state(self._rate, weights)

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the scaled gradients."""
        rate, new_state = advance_rate(call, self._argument, self._rate, state)
        factor = -rate if self.scale is None else rate
        factor_for = per_kind(lambda leaf: scalar_for(call.xp, factor, leaf))
        return [None if leaf is None else leaf * factor_for(leaf) for leaf in gradients], new_state

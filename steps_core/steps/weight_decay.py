"""Weight decay as a chainable step."""

from dataclasses import dataclass

from .. import checks
from ..call import Call, Values, per_kind, scalar_for
from ..contract import Step
from ..state import State, StateView
from ..tunable import Number


@dataclass(frozen=True, kw_only=True)
class WeightDecayStep(Step):
    """Add a multiple of the weights to the gradients.

    g' = g + weight_decay * w

    Before an optimizer's core rule this is L2 regularisation; after it, decoupled weight decay.

    Args:
        weight_decay: finite, at least 0. Default 1e-4.
        set_breakpoint, metadata: as of every step.

    Needs weights. State: ``{}``.

    Raises:
        ArgumentError, ArgumentTypeError: the option breaks its rule.

    References:
        Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization".

    Example:
        >>> import numpy as np
        >>> WeightDecayStep(weight_decay=0.5)(np.asarray([1.0]), np.asarray([4.0])).gradients
        array([3.])
    """

    weight_decay: Number = 1e-4

    def _check_options(self) -> None:
        self._set(weight_decay=checks.finite_non_negative("weight_decay", self.weight_decay))

    @property
    def negates(self) -> bool:
        """Always False: the gradient keeps its sign."""
        return False

    @property
    def needs_weights(self) -> bool:
        """Always True."""
        return True

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the gradients with the decay added."""
        decay_of = per_kind(lambda leaf: scalar_for(call.xp, self.weight_decay, leaf))
        return [
            None if leaf is None else leaf + call.weight(index) * decay_of(leaf)
            for index, leaf in enumerate(gradients)
        ], {}

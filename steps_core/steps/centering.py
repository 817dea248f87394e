"""Gradient centralisation: the mean of each unit is removed."""

from dataclasses import dataclass
from typing import Any

from .. import checks
from ..call import Call, Values
from ..contract import Step
from ..namespaces import Array, Namespace
from ..numerics.sums import mean_over
from ..numerics.units import unit_axes_of
from ..state import State, StateView


@dataclass(frozen=True, kw_only=True)
class CenteringStep(Step):
    """Remove from each unit of each leaf its mean.

    g' = g - mean(g over the unit)

    Leaves of rank below 2 pass unchanged.

    Args:
        unit_axis: which axes tell the units of a leaf apart. "auto": the output axis is last; 0: it is
            first, as in PyTorch; an int or tuple: these. Default "auto".
        set_breakpoint, metadata: as of every step.

    State: ``{}``.

    Raises:
        ArgumentError, ArgumentTypeError: the option breaks its rule.
        TreeMismatchError: a leaf lacks the axis that unit_axis names.

    References:
        Yong, Huang, Hua and Zhang 2020, "Gradient Centralization: A New Optimization Technique for Deep
        Neural Networks".

    Example:
        >>> import numpy as np
        >>> CenteringStep()(np.asarray([[1.0, 5.0], [3.0, 9.0]])).gradients
        array([[-1., -2.],
               [ 1.,  2.]])
    """

    unit_axis: Any = "auto"

    def _check_options(self) -> None:
        self._set(unit_axis=checks.unit_axis("unit_axis", self.unit_axis))

    @property
    def negates(self) -> bool:
        """Always False: a mean is removed, the direction kept."""
        return False

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the centred gradients."""
        return [
            leaf
            if leaf is None or leaf.ndim < 2
            else centered(call.xp, leaf, unit_axes_of(call, index, leaf, self.unit_axis))
            for index, leaf in enumerate(gradients)
        ], {}


def centered(xp: Namespace, leaf: Array, axes: tuple[int, ...]) -> Array:
    """Return the leaf minus its mean over these axes; a unit without elements has none."""
    if 0 in leaf.shape:
        return leaf
    return leaf - mean_over(xp, leaf, axes)

"""Stochastic gradient descent, with or without momentum."""

from dataclasses import dataclass
from typing import NamedTuple

from .. import checks
from ..call import Call, Scalar, Values, cast_for, per_kind, scalar_for
from ..elementwise import advance_leaves
from ..namespaces import Array, Namespace
from ..numerics.moments import next_trace
from ..schedules import checked_rate
from ..state import State, StateView
from ..tunable import Number, is_always
from .end_to_end import EndToEndStep
from .rates import Rate, advance_rate


class SGDScalars(NamedTuple):
    """What the kernel takes beside arrays: numbers, or 0-d arrays of the leaf's format."""

    rate: Scalar
    momentum: Scalar
    weight_decay: Scalar  # times the rate


@dataclass(frozen=True, kw_only=True)
class SGDStep(EndToEndStep):
    """Gradient descent: an end-to-end step, minus the rate times the gradient or its momentum.

    b = momentum * b + g;  d = b                  nesterov: d = g + momentum * b;  momentum 0: d = g
    u = -learning_rate * (d + weight_decay * w)

    Args:
        learning_rate: finite number, or schedule of the step count. Default 1e-2.
        momentum: at least 0 and below 1. Default 0.
        nesterov: look one step ahead; needs momentum. Default False.
        weight_decay: decoupled from the momentum, times the rate, at least 0; not 0 needs weights. Default 0.
        set_breakpoint, metadata: as of every step.

    State: with momentum ``momentum`` (b, float32 at least); with a schedule ``count``; else ``{}``.

    Raises:
        ArgumentError, ArgumentTypeError: an option breaks its rule.

    References:
        Sutskever, Martens, Dahl and Hinton 2013, "On the importance of initialization and momentum in
        deep learning".

    Example:
        >>> import numpy as np
        >>> SGDStep(learning_rate=0.5)(np.asarray([1.0, -2.0])).gradients
        array([-0.5,  1. ])
    """

    learning_rate: Rate = 1e-2
    momentum: Number = 0.0
    nesterov: bool = False
    weight_decay: Number = 0.0

    def _check_options(self) -> None:
        self._set(
            learning_rate=checked_rate("learning_rate", self.learning_rate),
            momentum=checks.decay_rate("momentum", self.momentum),
            nesterov=checks.flag("nesterov", self.nesterov),
            weight_decay=checks.finite_non_negative("weight_decay", self.weight_decay),
        )
        checks.nesterov_has_momentum(self.nesterov, self.momentum)

    @property
    def moments(self) -> dict[str, bool]:
        """The momentum, where the options ask for it."""
        return {} if is_always(self.momentum, 0) else {"momentum": False}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the updates and the advanced momentum."""
        rate, count = advance_rate(call, "learning_rate", self.learning_rate, state)
        scalars_of = per_kind(lambda leaf: self._scalars(call.xp, leaf, rate))

        def kernel(gradient: Array, weight: Array | None, *moments: Array) -> tuple[Array, ...]:
            return sgd_kernel(gradient, weight, moments, scalars_of(gradient), self)

        old = {key: state.leaves(call, key, real=real) for key, real in self.moments.items()}
        updates, moments = advance_leaves(call, gradients, old, kernel)
        return updates, {**moments, **count}

    def _scalars(self, xp: Namespace, leaf: Array, rate: Scalar) -> SGDScalars:
        rate = scalar_for(xp, rate, leaf)
        return SGDScalars(
            rate=rate,
            momentum=cast_for(xp, self.momentum, leaf),
            weight_decay=rate * cast_for(xp, self.weight_decay, leaf),
        )


def sgd_kernel(
    g: Array, w: Array | None, moments: tuple[Array, ...], scalars: SGDScalars, options: SGDStep
) -> tuple[Array, ...]:
    """Return the update of one leaf and its new momentum, by the equations of `SGDStep`."""
    direction, new_moments = g, moments
    if moments:
        trace, direction = next_trace(moments[0], g, scalars.momentum, nesterov=options.nesterov)
        new_moments = (trace,)
    update = -scalars.rate * direction
    if w is not None and not is_always(options.weight_decay, 0):
        update = update - scalars.weight_decay * w
    return update, *new_moments

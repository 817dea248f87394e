"""RMSProp, with the options of centring, momentum and decoupled weight decay."""

from dataclasses import dataclass
from typing import NamedTuple

from .. import checks
from ..call import Call, Scalar, Values, cast_for, per_kind, scalar_for
from ..elementwise import advance_leaves
from ..namespaces import Array, Namespace
from ..numerics.moments import (
    at_most_largest,
    next_average,
    next_second_moment,
    next_trace,
    quotient_or_zero,
)
from ..numerics.norms import safe_sqrt, squared_magnitude
from ..schedules import checked_rate
from ..state import State, StateView
from ..tunable import Number, is_always
from .end_to_end import EndToEndStep
from .rates import Rate, advance_rate


class RMSPropScalars(NamedTuple):
    """What the kernel takes beside arrays: numbers, or 0-d arrays of the leaf's format."""

    rate: Scalar
    decay: Scalar
    epsilon: Scalar
    momentum: Scalar
    weight_decay: Scalar  # times the rate


@dataclass(frozen=True, kw_only=True)
class RMSPropStep(EndToEndStep):
    """RMSProp: an end-to-end step that divides each gradient by a running root mean square.

    v = min(decay * v + (1 - decay) * |g|^2, largest finite number)
    s = v                               centered: s = max(v - |mean|^2, 0) with
                                        mean = decay * mean + (1 - decay) * g
    d = g / sqrt(s + epsilon)           epsilon_inside=False: d = g / (sqrt(s) + epsilon)
    b = momentum * b + d;  d' = b       nesterov: d' = d + momentum * b;  momentum 0: d' = d
    u = -learning_rate * (d' + weight_decay * w)

    Args:
        learning_rate: finite number, or schedule of the step count. Default 1e-3.
        decay: weight of the past in v and the mean, at least 0 and below 1. Default 0.9.
        epsilon: at least 0; in the unit of the gradients, squared where it stands inside. Default 1e-8.
        epsilon_inside: add epsilon under the root instead of to it. Default True.
        centered: subtract the squared mean. Default False.
        momentum: at least 0 and below 1. Default 0.
        nesterov: look one step ahead; needs momentum. Default False.
        weight_decay: decoupled, times the rate, at least 0; not 0 needs weights. Default 0.
        set_breakpoint, metadata: as of every step.

    Libraries differ in where epsilon stands and in the default of decay (0.9 or 0.99).

    State: ``second_moment`` (v, real); with centered ``mean``; with momentum ``momentum`` (b, without the
    rate); with a schedule ``count``. float32 at least.

    Raises:
        ArgumentError, ArgumentTypeError: an option breaks its rule.

    References:
        Tieleman and Hinton 2012, "Lecture 6.5: rmsprop". Graves 2013, "Generating Sequences With
        Recurrent Neural Networks" (centred).

    Example:
        >>> import numpy as np
        >>> step = RMSPropStep(learning_rate=0.1, decay=0.0, epsilon=0.0)
        >>> step(np.asarray([3.0, -4.0])).gradients
        array([-0.1,  0.1])
    """

    learning_rate: Rate = 1e-3
    decay: Number = 0.9
    epsilon: Number = 1e-8
    epsilon_inside: bool = True
    centered: bool = False
    momentum: Number = 0.0
    nesterov: bool = False
    weight_decay: Number = 0.0

    def _check_options(self) -> None:
        self._set(
            learning_rate=checked_rate("learning_rate", self.learning_rate),
            decay=checks.decay_rate("decay", self.decay),
            epsilon=checks.finite_non_negative("epsilon", self.epsilon),
            epsilon_inside=checks.flag("epsilon_inside", self.epsilon_inside),
            centered=checks.flag("centered", self.centered),
            momentum=checks.decay_rate("momentum", self.momentum),
            nesterov=checks.flag("nesterov", self.nesterov),
            weight_decay=checks.finite_non_negative("weight_decay", self.weight_decay),
        )
        checks.nesterov_has_momentum(self.nesterov, self.momentum)

    @property
    def moments(self) -> dict[str, bool]:
        """The moments that the options ask for."""
        asked = {"second_moment": True, "mean": self.centered, "momentum": not is_always(self.momentum, 0)}
        return {key: key == "second_moment" for key, is_asked in asked.items() if is_asked}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the updates and the advanced moments."""
        rate, count = advance_rate(call, "learning_rate", self.learning_rate, state)
        scalars_of = per_kind(lambda leaf: self._scalars(call.xp, leaf, rate))

        def kernel(gradient: Array, weight: Array | None, *moments: Array) -> tuple[Array, ...]:
            named = dict(zip(self.moments, moments, strict=True))
            update, advanced = rmsprop_kernel(call.xp, gradient, weight, named, scalars_of(gradient), self)
            return update, *(advanced[key] for key in named)

        old = {key: state.leaves(call, key, real=real) for key, real in self.moments.items()}
        updates, moments = advance_leaves(call, gradients, old, kernel)
        return updates, {**moments, **count}

    def _scalars(self, xp: Namespace, leaf: Array, rate: Scalar) -> RMSPropScalars:
        rate = scalar_for(xp, rate, leaf)
        return RMSPropScalars(
            rate=rate,
            decay=cast_for(xp, self.decay, leaf),
            epsilon=scalar_for(xp, self.epsilon, leaf),
            momentum=cast_for(xp, self.momentum, leaf),
            weight_decay=rate * cast_for(xp, self.weight_decay, leaf),
        )


def rmsprop_kernel(
    xp: Namespace,
    g: Array,
    w: Array | None,
    moments: dict[str, Array],
    scalars: RMSPropScalars,
    options: RMSPropStep,
) -> tuple[Array, dict[str, Array]]:
    """Return the update of one leaf and its new moments, by the equations of `RMSPropStep`."""
    v = next_second_moment(xp, moments["second_moment"], g, scalars.decay)
    advanced = {"second_moment": v}
    if options.centered:
        advanced["mean"] = next_average(moments["mean"], g, scalars.decay)
        squared_mean = at_most_largest(xp, squared_magnitude(xp, advanced["mean"]))
        v = xp.maximum(v - squared_mean, xp.zeros_like(v))
    divisor = (
        safe_sqrt(xp, v + scalars.epsilon) if options.epsilon_inside else safe_sqrt(xp, v) + scalars.epsilon
    )
    direction = quotient_or_zero(xp, g, divisor)
    if not is_always(options.momentum, 0):
        advanced["momentum"], direction = next_trace(
            moments["momentum"], direction, scalars.momentum, nesterov=options.nesterov
        )
    update = -scalars.rate * direction
    if w is not None and not is_always(options.weight_decay, 0):
        update = update - scalars.weight_decay * w
    return update, advanced

"""Adam, with the options of AMSGrad, Nesterov's momentum and decoupled weight decay."""

from dataclasses import dataclass
from typing import NamedTuple

from .. import checks
from ..call import Call, Scalar, Values, cast_for, per_kind, scalar_for
from ..elementwise import advance_leaves
from ..leaves import Leaves
from ..namespaces import Array, Namespace
from ..numerics.moments import (
    at_most_largest,
    bias_correction,
    in_real_dtype,
    next_average,
    next_second_moment,
    quotient_or_zero,
)
from ..numerics.norms import safe_sqrt
from ..placing import on_device_of
from ..schedules import checked_rate
from ..state import State, StateView, count_from_zero, incremented
from ..tunable import Number, is_always
from .end_to_end import EndToEndStep
from .rates import Rate, rate_at


class AdamScalars(NamedTuple):
    """What the kernel takes beside arrays: numbers, and 0-d arrays of the leaf's format.

    The root of v's correction is multiplied in, so that the kernel need not divide v, which could overflow.
    """

    beta1: Scalar
    beta2: Scalar
    moment_size: Array  # what m / divisor is multiplied by
    gradient_size: Array  # likewise for the gradient's own part, with nesterov
    epsilon: Array
    epsilon_root: Array
    second_correction: Array  # 1 - beta2^t
    decay: Scalar  # what the weights are multiplied by


@dataclass(frozen=True, kw_only=True)
class AdamStep(EndToEndStep):
    """Adam: an end-to-end step that divides a moving average of the gradients by their root mean square.

    m = beta1 * m + (1 - beta1) * g
    v = min(beta2 * v + (1 - beta2) * |g|^2, largest finite number)
    m^ = m / (1 - beta1^t)           nesterov: beta1 * m / (1 - beta1^(t+1)) + (1 - beta1) * g / (1 - beta1^t)
    v^ = v / (1 - beta2^t)           amsgrad: the largest v^ so far
    u = -learning_rate * (m^ / (sqrt(v^ + epsilon_root) + epsilon) + weight_decay * w)

    with t = 1 at the first call. A schedule gets 0 at the first call.

    Args:
        learning_rate: finite number, or schedule of the step count. Default 1e-3.
        beta1: weight of the past in m, at least 0 and below 1. Default 0.9.
        beta2: weight of the past in v, at least 0 and below 1. Default 0.999.
        epsilon: added to the root, at least 0, in the unit of the gradients. Default 1e-8.
        epsilon_root: added under the root, at least 0, in that unit squared. Default 0.
        amsgrad: divide by the largest v^ so far. Default False.
        nesterov: look one step ahead. Default False.
        weight_decay: decoupled, times the rate, at least 0; not 0 needs weights. Default 0.
        set_breakpoint, metadata: as of every step.

    State: ``count`` (int32 0-d, calls so far), ``first_moment`` (m), ``second_moment`` (v, real), and with
    amsgrad ``second_moment_max``; float32 at least. A complex gradient counts with its squared modulus.

    Raises:
        ArgumentError, ArgumentTypeError: an option breaks its rule.

    References:
        Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization". Reddi, Kale and Kumar 2018, "On
        the Convergence of Adam and Beyond". Dozat 2016, "Incorporating Nesterov Momentum into Adam".
        Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization".

    Example:
        >>> import numpy as np
        >>> step = AdamStep(learning_rate=0.1)
        >>> weights = np.asarray([1.0, 2.0])
        >>> updates, state = step(np.asarray([3.0, -4.0]), weights, step.init(weights))
        >>> updates.round(6)
        array([-0.1,  0.1])
    """

    learning_rate: Rate = 1e-3
    beta1: Number = 0.9
    beta2: Number = 0.999
    epsilon: Number = 1e-8
    epsilon_root: Number = 0.0
    amsgrad: bool = False
    nesterov: bool = False
    weight_decay: Number = 0.0

    def _check_options(self) -> None:
        self._set(
            learning_rate=checked_rate("learning_rate", self.learning_rate),
            beta1=checks.decay_rate("beta1", self.beta1),
            beta2=checks.decay_rate("beta2", self.beta2),
            epsilon=checks.finite_non_negative("epsilon", self.epsilon),
            epsilon_root=checks.finite_non_negative("epsilon_root", self.epsilon_root),
            amsgrad=checks.flag("amsgrad", self.amsgrad),
            nesterov=checks.flag("nesterov", self.nesterov),
            weight_decay=checks.finite_non_negative("weight_decay", self.weight_decay),
        )

    @property
    def moments(self) -> dict[str, bool]:
        """Both moments, and with amsgrad the largest of the second."""
        moments = {"first_moment": False, "second_moment": True}
        return {**moments, "second_moment_max": True} if self.amsgrad else moments

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The counter and the moments."""
        return ("count", *self.moments)

    def own_state(self, weights: Leaves) -> State:
        """Return a counter at 0 and moments of zeros."""
        # In the order of later states: torch.compile would take another order for another input.
        return {"count": count_from_zero(weights), **super().own_state(weights)}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the updates and the advanced moments."""
        count = state.count(call)
        rate = rate_at(call, "learning_rate", self.learning_rate, count)
        count = incremented(count)
        scalars_of = per_kind(lambda leaf: self._scalars(call.xp, leaf, rate, count))

        def kernel(gradient: Array, weight: Array | None, *moments: Array) -> tuple[Array, ...]:
            return adam_kernel(call.xp, gradient, weight, moments, scalars_of(gradient), self)

        old = {key: state.leaves(call, key, real=real) for key, real in self.moments.items()}
        updates, moments = advance_leaves(call, gradients, old, kernel)
        return updates, {"count": count, **moments}

    def _scalars(self, xp: Namespace, leaf: Array, rate: Scalar, count: Array) -> AdamScalars:
        t = in_real_dtype(xp, on_device_of(leaf, count), leaf)
        beta1, beta2 = cast_for(xp, self.beta1, leaf), cast_for(xp, self.beta2, leaf)
        first, following, second = (
            bias_correction(xp, t, beta1),
            bias_correction(xp, t + 1.0, beta1),
            bias_correction(xp, t, beta2),
        )
        rate = scalar_for(xp, rate, leaf)
        root = xp.ones_like(second) if self.amsgrad else xp.sqrt(second)
        size = rate * root
        return AdamScalars(
            beta1=beta1,
            beta2=beta2,
            moment_size=size * beta1 / following if self.nesterov else size / first,
            gradient_size=size * (1.0 - beta1) / first,
            epsilon=scalar_for(xp, self.epsilon, leaf) * root,
            epsilon_root=scalar_for(xp, self.epsilon_root, leaf) * (root if self.amsgrad else second),
            second_correction=second,
            decay=rate * cast_for(xp, self.weight_decay, leaf),
        )


def adam_kernel(
    xp: Namespace,
    g: Array,
    w: Array | None,
    moments: tuple[Array, ...],
    scalars: AdamScalars,
    options: AdamStep,
) -> tuple[Array, ...]:
    """Return the update of one leaf and its new moments, by the equations of `AdamStep`."""
    m = next_average(moments[0], g, scalars.beta1)
    v = next_second_moment(xp, moments[1], g, scalars.beta2)
    divided_by = v
    new_moments: tuple[Array, ...] = (m, v)
    if options.amsgrad:
        divided_by = xp.maximum(moments[2], at_most_largest(xp, v / scalars.second_correction))
        new_moments = (m, v, divided_by)
    divisor = safe_sqrt(xp, divided_by + scalars.epsilon_root) + scalars.epsilon
    update = -scalars.moment_size * quotient_or_zero(xp, m, divisor)
    if options.nesterov:
        update = update - scalars.gradient_size * quotient_or_zero(xp, g, divisor)
    if w is not None and not is_always(options.weight_decay, 0):
        update = update - scalars.decay * w
    return update, *new_moments

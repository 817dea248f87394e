"""Constraints: the update is changed so that the updated weights lie in a set."""

import math
from dataclasses import dataclass
from typing import Any

from .. import checks
from ..call import Call, Scalar, Values, cast_for
from ..contract import Step
from ..errors import ArgumentError, LeafTypeError, refusal, shown
from ..leaves import require_wide_enough
from ..namespaces import Array, Namespace, dtype_name
from ..numerics.formats import constant, format_of, is_complex_name
from ..numerics.limits import apply_limit, limit_norm, rescale
from ..numerics.norms import scaled_norm, square_sums
from ..numerics.units import unit_axes_of
from ..state import State, StateView
from ..tunable import Number

CONSTRAINTS = ("nonnegative", "box", "norm-ball", "unit-norm")
_ELEMENTWISE = ("nonnegative", "box")


@dataclass(frozen=True)
class ConstraintStep(Step):
    """Change the updates so that weights + updates lie in a set. It must be the last step.

    with p = w + u:
    nonnegative:  u' = max(u, -w)
    box:          u' = u where lower <= p <= upper, else the nearer bound - w
    norm-ball:    u' = u where |p| <= radius, else p * radius / |p| - w,    with |p| the norm of a unit
    unit-norm:    u' = p / |p| - w;  a unit of zeros has no direction and keeps its u

    nonnegative holds exactly; the others within 2 ulps of the larger of the bound and the weight.

    Args:
        constraint: one of the four names.
        lower, upper: bounds of the box, in the unit of the weights; at least one; None: no bound.
            Default None.
        radius: of the norm-ball, above 0, in the unit of the weights. Default 1.0.
        unit_axis: which axes tell the units of a leaf apart, for the norm kinds. "auto": the output axis is
            last; 0: it is first, as in PyTorch; an int or tuple: these. Default "auto".
        set_breakpoint, metadata: as of every step.

    Needs weights; a gradient dtype that cannot hold its weight's values is refused, because rounding the
    update could leave the set. State: ``{}``.

    Raises:
        ArgumentError, ArgumentTypeError: an option breaks its rule, or does not belong to the constraint.
        LeafTypeError: a complex leaf, which has no order, under nonnegative or box.

    References:
        Parikh and Boyd 2014, "Proximal Algorithms", section 6 (projections).

    Example:
        >>> import numpy as np
        >>> ConstraintStep("nonnegative")(np.asarray([-3.0, 1.0]), np.asarray([2.0, 2.0])).gradients
        array([-2.,  1.])
    """

    constraint: str
    lower: Number | None = None
    upper: Number | None = None
    radius: Number = 1.0
    unit_axis: Any = "auto"

    def _check_options(self) -> None:
        self._set(
            constraint=checks.choice("constraint", self.constraint, CONSTRAINTS),
            lower=None if self.lower is None else checks.number("lower", self.lower),
            upper=None if self.upper is None else checks.number("upper", self.upper),
            radius=checks.finite_positive("radius", self.radius),
            unit_axis=checks.unit_axis("unit_axis", self.unit_axis),
        )
        self._check_box()
        self._require_used("radius", 1.0, ("norm-ball",))
        self._require_used("unit_axis", "auto", ("norm-ball", "unit-norm"))

    def _check_box(self) -> None:
        self._require_used("lower", None, ("box",))
        self._require_used("upper", None, ("box",))
        if self.constraint != "box":
            return
        if self.lower is None and self.upper is None:
            way_out = 'pass ConstraintStep("box", lower=-1.0, upper=1.0), or one of the two'
            raise refusal(ArgumentError, "lower", "be given, or upper, with a box", None, way_out)
        lower, upper = _bounds(self.lower, self.upper)
        if lower > upper or lower == math.inf or upper == -math.inf:
            rule = f"be at most upper={self.upper}, with a number between them"
            raise refusal(ArgumentError, "lower", rule, self.lower, "exchange the bounds")

    def _require_used(self, option: str, default: Any, constraints: tuple[str, ...]) -> None:
        value = getattr(self, option)
        is_given = value != default or option in dict(self.tunable_entries)
        if is_given and self.constraint not in constraints:
            rule = f"be left out with {self.constraint!r}: it belongs to {' and '.join(constraints)}"
            raise refusal(ArgumentError, option, rule, value, f"leave {option} out")

    @property
    def negates(self) -> bool:
        """Always False: an update goes in, and the sign stays that of an update."""
        return False

    @property
    def needs_weights(self) -> bool:
        """Always True."""
        return True

    @property
    def constrains(self) -> bool:
        """Always True."""
        return True

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the constrained updates."""
        assert call.given_weights is not None
        require_wide_enough(call.gradients, call.given_weights)
        return [
            None if leaf is None else self._constrain(call, index, leaf)
            for index, leaf in enumerate(gradients)
        ], {}

    def _constrain(self, call: Call, index: int, update: Array) -> Array:
        weight = call.weight(index)
        assert weight is not None
        if self.constraint in _ELEMENTWISE:
            _require_real(call, index, update, self.constraint)
            if self.constraint == "nonnegative":
                return nonnegative(call.xp, update, weight)
            bounds = (cast_for(call.xp, bound, update) for bound in _bounds(self.lower, self.upper))
            return boxed(call.xp, update, weight, *bounds)
        axes = unit_axes_of(call, index, update, self.unit_axis)
        if self.constraint == "norm-ball":
            return in_norm_ball(call.xp, update, weight, cast_for(call.xp, self.radius, update), axes)
        return of_unit_norm(call.xp, update, weight, axes)


def _bounds(lower: Scalar | None, upper: Scalar | None) -> tuple[Scalar, Scalar]:
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


def _require_real(call: Call, index: int, leaf: Array, constraint: str) -> None:
    if not is_complex_name(dtype_name(leaf.dtype)):
        return
    way_out = 'use "norm-ball" or "unit-norm" for complex leaves'
    raise LeafTypeError(
        f"{call.path(index)} must be real under {constraint!r}, because complex numbers have no order, "
        f"got {shown(leaf)}; {way_out}",
        argument="gradients",
        rule="be real",
        value=leaf,
        way_out=way_out,
        path=call.path(index),
    )


def nonnegative(xp: Namespace, update: Array, weight: Array) -> Array:
    """Return the update after which no weight is below 0."""
    return xp.maximum(update, -weight)


def boxed(xp: Namespace, update: Array, weight: Array, lower: Scalar, upper: Scalar) -> Array:
    """Return the update after which every weight lies between the bounds."""
    moved = weight + update
    form = format_of(update)
    for bound, is_outside in ((lower, moved < lower), (upper, moved > upper)):
        is_number = isinstance(bound, float)
        if not (is_number and math.isinf(bound)):
            limit = constant(bound, form) if is_number else bound
            to_bound = xp.minimum(
                xp.maximum(limit - weight, xp.full_like(weight, -form.largest)),
                xp.full_like(weight, form.largest),
            )
            update = xp.where(is_outside, to_bound, update)
    return update


def in_norm_ball(xp: Namespace, update: Array, weight: Array, radius: Scalar, axes: tuple[int, ...]) -> Array:
    """Return the update after which every unit's norm is at most radius."""
    half = _half_of_sum(weight, update)
    limit = limit_norm(xp, scaled_norm(xp, square_sums(xp, half, axes)), radius / 2)
    return xp.where(limit.is_kept, update, apply_limit(xp, half, limit) * 2.0 - weight)


def of_unit_norm(xp: Namespace, update: Array, weight: Array, axes: tuple[int, ...]) -> Array:
    """Return the update after which every unit's norm is 1."""
    half = _half_of_sum(weight, update)
    norm = scaled_norm(xp, square_sums(xp, half, axes))
    return xp.where(norm.root == 0, update, rescale(xp, half, norm) - weight)


def _half_of_sum(weight: Array, update: Array) -> Array:
    """Return (weight + update) / 2: the sum of two finite numbers may overflow.

    A difference, because XLA makes (w + u) * 0.5 of the sum w * 0.5 + u * 0.5.
    """
    return weight * 0.5 - update * -0.5

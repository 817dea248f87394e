"""Gradient clipping in four variants."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import checks
from ..call import Call, Scalar, Values, cast_for, per_kind
from ..contract import Step
from ..namespaces import Array, Namespace
from ..numerics.formats import constant, format_of
from ..numerics.limits import Limit, apply_limit, at_least, in_format, limit_norm
from ..numerics.norms import ScaledNorm, of_unit_norms, scaled_norm, square_sums
from ..numerics.units import unit_axes_of
from ..placing import moved
from ..state import State, StateView
from ..tunable import Number, is_always

VARIANTS = {
    "per-parameter": "per-weight",
    "per-weight": "per-weight",
    "per-layer": "per-layer",
    "global": "global",
    "per-parameter-relative": "per-weight-relative",
    "per-weight-relative": "per-weight-relative",
}


@dataclass(frozen=True, kw_only=True)
class GradientClippingStep(Step):
    """Limit the gradients, so that no element, leaf, unit or tree is larger than a threshold.

    per-weight (or per-parameter):   g' = g limited to [-t, t]; complex: to modulus t, phase kept
    per-layer:                       g' = g * min(1, t / |g|)            with |g| the L2 norm of the leaf
    global:                          g' = g * min(1, t / |all g|)        with one norm over the whole tree
    per-weight-relative:             g' = g * min(1, t * max(|w|, epsilon) / |g|)   for each unit of a leaf

    A norm within its limit leaves the bits as they are. The norms are right for every finite input, also
    where their squares overflow or underflow. NaN makes every element under its norm NaN; an infinite
    norm makes finite elements 0 and infinite ones NaN; per-weight keeps NaN and limits infinity to t.

    Args:
        variant: one of the names above, also per-parameter-relative; None: no clipping. Default
            "per-parameter", the same as "per-weight".
        threshold: t, at least 0, in the unit of the gradients (relative: in units of the weights' norm).
            0 gives zeros; None or infinity: no clipping. Default 1.0.
        epsilon: floor of the weights' norm in the relative variant, at least 0; None is 0. Default 1e-3.
        unit_axis: which axes tell the units of a leaf apart, in the relative variant. "auto": the output
            axis is last; 0: it is first, as in PyTorch; an int or tuple: these. Default "auto".
        set_breakpoint, metadata: as of every step.

    The relative variant needs weights. State: ``{}``.

    Raises:
        ArgumentError, ArgumentTypeError: an option breaks its rule.
        TreeMismatchError: a leaf lacks the axis that unit_axis names.

    References:
        Pascanu, Mikolov and Bengio 2012, "On the difficulty of training recurrent neural networks".
        Brock, De, Smith and Simonyan 2021, "High-Performance Large-Scale Image Recognition Without
        Normalization".

    Example:
        >>> import numpy as np
        >>> GradientClippingStep(variant="global", threshold=1.0)(np.asarray([3.0, 4.0])).gradients
        array([0.6, 0.8])
    """

    normal_spellings: ClassVar[Mapping[str, str]] = VARIANTS

    variant: str | None = "per-parameter"
    threshold: Number | None = 1.0
    epsilon: Number | None = 1e-3
    unit_axis: Any = "auto"

    def _check_options(self) -> None:
        if self.variant is not None:
            self._set(variant=VARIANTS[checks.choice("variant", self.variant, tuple(VARIANTS))])
        if self.threshold is not None:
            way_out = "pass 0 to zero every gradient, or None to switch clipping off"
            self._set(threshold=checks.non_negative("threshold", self.threshold, way_out=way_out))
        epsilon = 0.0 if self.epsilon is None else self.epsilon
        self._set(
            epsilon=checks.finite_non_negative("epsilon", epsilon),
            unit_axis=checks.unit_axis("unit_axis", self.unit_axis),
        )

    @property
    def negates(self) -> bool:
        """Always False: clipping keeps the sign."""
        return False

    @property
    def _is_identity(self) -> bool:
        return self.variant is None or self.threshold is None or is_always(self.threshold, math.inf)

    @property
    def needs_weights(self) -> bool:
        """Whether the variant is relative to the weights."""
        return self.variant == "per-weight-relative" and not self._is_identity

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the clipped gradients."""
        if self._is_identity:
            return gradients, {}
        if is_always(self.threshold, 0):
            return [None if leaf is None else zeroed(call.xp, leaf) for leaf in gradients], {}
        if self.variant == "global":
            clipped = _clip_global(call, gradients, self.threshold)
        elif self.variant == "per-weight":
            clipped = _clip_elements(call, gradients, self.threshold)
        else:
            clipped = self._clip_units(call, gradients)
        if isinstance(self.threshold, float):
            return clipped, {}
        return _zeroed_at_zero(call, gradients, clipped, self.threshold), {}

    def _clip_units(self, call: Call, gradients: Values) -> Values:
        """Return leaves with the norm of each unit limited; relative to that of the weight's unit, or not."""
        xp = call.xp
        leaves = {index: leaf for index, leaf in enumerate(gradients) if leaf is not None}
        axes = [self._axes_of_unit(call, index, leaf) for index, leaf in leaves.items()]
        weights = [call.weight(index) for index in leaves] if self.needs_weights else []

        def limits(norms: list[ScaledNorm]) -> list[Limit]:
            references: list[ScaledNorm | None] = [None] * len(leaves)
            if weights:
                pairs = zip(norms[len(leaves) :], leaves.values(), strict=True)
                references = [at_least(xp, norm, cast_for(xp, self.epsilon, leaf)) for norm, leaf in pairs]
            rows = zip(norms[: len(leaves)], leaves.values(), references, strict=True)
            return [
                limit_norm(xp, norm, cast_for(xp, self.threshold, leaf), reference)
                for norm, leaf, reference in rows
            ]

        asked = [*leaves.values(), *weights], axes + axes[: len(weights)]
        limit_of = dict(zip(leaves, of_unit_norms(xp, *asked, limits), strict=True))
        return [
            None if leaf is None else apply_limit(xp, leaf, limit_of[index])
            for index, leaf in enumerate(gradients)
        ]

    def _axes_of_unit(self, call: Call, index: int, leaf: Array) -> tuple[int, ...]:
        if self.needs_weights:
            return unit_axes_of(call, index, leaf, self.unit_axis)
        return tuple(range(leaf.ndim))


def _zeroed_at_zero(call: Call, gradients: Values, clipped: Values, threshold: Array) -> Values:
    """Return the clipped gradients, but zeros of every gradient where a tunable threshold is 0."""
    is_zero = per_kind(lambda leaf: cast_for(call.xp, threshold, leaf) == 0)
    return [
        None if leaf is None else call.xp.where(is_zero(leaf), zeroed(call.xp, leaf), new)
        for leaf, new in zip(gradients, clipped, strict=True)
    ]


def _clip_global(call: Call, gradients: Values, threshold: Scalar) -> Values:
    norm = call.global_norm(gradients)
    if norm is None:
        return gradients
    limit = limit_norm(call.xp, norm, cast_for(call.xp, threshold, norm.root))
    limit_of_kind = per_kind(lambda leaf: moved(in_format(call.xp, limit, format_of(leaf)), leaf))
    return [None if leaf is None else apply_limit(call.xp, leaf, limit_of_kind(leaf)) for leaf in gradients]


def _clip_elements(call: Call, gradients: Values, threshold: Scalar) -> Values:
    return [
        None if leaf is None else clip_elements(call.xp, leaf, cast_for(call.xp, threshold, leaf))
        for leaf in gradients
    ]


def zeroed(xp: Namespace, leaf: Array) -> Array:
    """Return zeros of the leaf's signs: a leaf of zeros is within the threshold 0 and keeps its bits."""
    return xp.where(xp.isfinite(leaf), leaf * 0.0, xp.zeros_like(leaf))


def clip_elements(xp: Namespace, leaf: Array, threshold: Scalar) -> Array:
    """Return each element limited to [-threshold, threshold], or a complex one to that modulus."""
    if xp.isdtype(leaf.dtype, "complex floating"):
        return apply_limit(xp, leaf, limit_norm(xp, scaled_norm(xp, square_sums(xp, leaf, ())), threshold))
    most = constant(threshold, format_of(leaf)) if isinstance(threshold, float) else threshold
    return xp.where(leaf > most, most, xp.where(leaf < -most, -most, leaf))

"""The four variants of gradient clipping."""

from collections.abc import Sequence
from typing import Any

from .exact import Exact, Real, Scalar, mp, norm, number
from .units import UnitAxis, by_unit


def factor(length: Real, limit: Real) -> Real:
    """Return what a vector of that length is multiplied by, so that it is at most limit long."""
    return mp.mpf(1) if length <= limit else limit / length


def per_weight(leaves: Sequence[Exact], threshold: Any) -> list[Exact]:
    """Return each element limited to modulus threshold, its sign or phase kept."""
    limit = number(threshold)
    return [leaf.map(lambda value: value * factor(abs(value), limit)) for leaf in leaves]


def per_layer(leaves: Sequence[Exact], threshold: Any) -> list[Exact]:
    """Return each leaf scaled to a norm of at most threshold."""
    return [clipped for leaf in leaves for clipped in global_norm([leaf], threshold)]


def global_norm(leaves: Sequence[Exact], threshold: Any) -> list[Exact]:
    """Return all leaves scaled by one factor to a joint norm of at most threshold."""
    scale = factor(norm([value for leaf in leaves for value in leaf.values]), number(threshold))
    return [leaf.map(lambda value: value * scale) for leaf in leaves]


def per_weight_relative(
    leaves: Sequence[Exact],
    weights: Sequence[Exact],
    threshold: Any,
    epsilon: Any = 1e-3,
    unit_axis: UnitAxis = "auto",
) -> list[Exact]:
    """Return each unit scaled to a norm of at most threshold * max(norm of its weights, epsilon)."""

    def rule(gradient: Sequence[Scalar], weight: Sequence[Scalar]) -> list[Scalar]:
        limit = number(threshold) * max(norm(weight), number(epsilon))
        scale = factor(norm(gradient), limit)
        return [value * scale for value in gradient]

    return [by_unit(rule, unit_axis, leaf, weight) for leaf, weight in zip(leaves, weights, strict=True)]

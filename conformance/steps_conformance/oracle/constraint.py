"""Updates changed so that weights + updates lie in a set."""

from collections.abc import Sequence
from typing import Any

from .clipping import factor
from .exact import Exact, Scalar, mp, norm, number
from .units import UnitAxis, by_unit


def nonnegative(update: Exact, weight: Exact) -> Exact:
    """Return max(update, -weight)."""
    return update.map(lambda u, w: max(u, -w), weight)


def box(update: Exact, weight: Exact, lower: Any = None, upper: Any = None) -> Exact:
    """Return the update to the nearest point between lower and upper, where each is given."""

    def rule(u: Scalar, w: Scalar) -> Scalar:
        target = w + u
        target = target if lower is None else max(target, number(lower))
        return (target if upper is None else min(target, number(upper))) - w

    return update.map(rule, weight)


def norm_ball(update: Exact, weight: Exact, radius: Any, unit_axis: UnitAxis = "auto") -> Exact:
    """Return the update to weights of which each unit is scaled to a norm of at most radius."""

    def rule(u: Sequence[Scalar], w: Sequence[Scalar]) -> list[Scalar]:
        target = [a + b for a, b in zip(w, u, strict=True)]
        scale = factor(norm(target), number(radius))
        return [value * scale - old for value, old in zip(target, w, strict=True)]

    return by_unit(rule, unit_axis, update, weight)


def unit_norm(update: Exact, weight: Exact, unit_axis: UnitAxis = "auto") -> Exact:
    """Return the update to weights of which each unit has norm 1, or stays all zeros."""

    def rule(u: Sequence[Scalar], w: Sequence[Scalar]) -> list[Scalar]:
        target = [a + b for a, b in zip(w, u, strict=True)]
        length = norm(target) or mp.mpf(1)
        return [value / length - old for value, old in zip(target, w, strict=True)]

    return by_unit(rule, unit_axis, update, weight)

"""Gradients with the mean of each unit removed."""

from collections.abc import Sequence

from .exact import Exact, Scalar, mp
from .units import UnitAxis, by_unit


def centered(leaf: Exact, unit_axis: UnitAxis = "auto") -> Exact:
    """Return leaf less the mean of each unit; a leaf of rank below 2 as it is."""
    return by_unit(_less_mean, unit_axis, leaf) if len(leaf.shape) >= 2 else leaf


def _less_mean(values: Sequence[Scalar]) -> list[Scalar]:
    mean = mp.fsum(values) / len(values)
    return [value - mean for value in values]

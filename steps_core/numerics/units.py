"""Units of a leaf: the parts, such as the weights of one output, that have a norm or a mean of their own."""

from collections.abc import Sequence
from typing import Any, Protocol

from ..errors import TreeMismatchError
from ..namespaces import Array

UnitAxis = str | int | tuple[int, ...]


class Places(Protocol):
    """What knows where a leaf stands."""

    def path(self, index: int) -> str:
        """Return where a leaf stands."""


def unit_axes_of(places: Places, index: int, leaf: Array, unit_axis: Any) -> tuple[int, ...]:
    """Return the axes that a unit of a leaf stretches over; refuse, by path, an axis it lacks."""
    try:
        return reduced_axes(leaf.shape, unit_axis)
    except IndexError:
        path = places.path(index)
        rule = f"have the axis {unit_axis} that unit_axis names"
        way_out = 'choose an axis that every leaf of rank 2 and up has, or "auto"'
        raise TreeMismatchError(
            f"{path} must {rule}, got rank {leaf.ndim} (shape {tuple(leaf.shape)}); {way_out}",
            argument="unit_axis",
            rule=rule,
            value=unit_axis,
            way_out=way_out,
            path=path,
        ) from None


def reduced_axes(shape: Sequence[int], unit_axis: UnitAxis) -> tuple[int, ...]:
    """Return the axes that a unit stretches over; all of them where the whole leaf is one unit.

    "auto" follows Brock et al. 2021, with the output axis last. Explicit axes are the ones kept.

    Raises:
        IndexError: a leaf of rank 2 or more lacks a kept axis; the text says which.
    """
    rank = len(shape)
    whole = tuple(range(rank))
    if unit_axis == "auto":
        if sum(length > 1 for length in shape) <= 1:
            return whole
        return (0,) if rank <= 3 else whole[:-1]
    if rank <= 1:
        return whole
    axes = (unit_axis,) if isinstance(unit_axis, int) else unit_axis
    assert not isinstance(axes, str)
    for axis in axes:
        if not -rank <= axis < rank:
            raise IndexError(f"axis {axis} of a leaf of rank {rank}")
    kept = {axis % rank for axis in axes}
    return tuple(axis for axis in whole if axis not in kept)

"""Which elements of a leaf belong to one unit: an output of a layer, whose weights share a norm."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from .exact import Exact, Scalar

UnitAxis = str | int | Sequence[int]


def kept_axes(shape: Sequence[int], unit_axis: UnitAxis) -> tuple[int, ...]:
    """Return the axes that tell units apart; the norm runs over the others."""
    rank = len(shape)
    if unit_axis != "auto":
        wanted: Sequence[int] = (unit_axis,) if isinstance(unit_axis, int) else tuple(map(int, unit_axis))
        return tuple(axis % rank for axis in wanted) if rank >= 2 else ()
    if sum(length > 1 for length in shape) <= 1:
        return ()
    return tuple(range(1, rank)) if rank <= 3 else (rank - 1,)


def units(shape: Sequence[int], unit_axis: UnitAxis = "auto") -> list[list[int]]:
    """Return the flat positions of the elements of each unit."""
    kept = kept_axes(shape, unit_axis)
    groups: dict[tuple[int, ...], list[int]] = {}
    for position in range(math.prod(shape)):
        index = _index(position, shape)
        groups.setdefault(tuple(index[axis] for axis in kept), []).append(position)
    return list(groups.values())


def by_unit(
    rule: Callable[..., Sequence[Scalar]], unit_axis: UnitAxis, array: Exact, *others: Exact
) -> Exact:
    """Return the array that rule gives unit by unit, each unit as a list of numbers."""
    result: list[Any] = list(array.values)
    for positions in units(array.shape, unit_axis):
        parts = [[each.values[p] for p in positions] for each in (array, *others)]
        for position, value in zip(positions, rule(*parts), strict=True):
            result[position] = value
    return Exact(array.shape, tuple(result))


def _index(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    index: list[int] = []
    for length in reversed(shape):
        position, place = divmod(position, length)
        index.append(place)
    return tuple(reversed(index))

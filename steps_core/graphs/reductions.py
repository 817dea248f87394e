"""The reductions of a graph: norms, sums and means over the tree, each leaf, or each unit of each leaf."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..call import Call
from ..errors import LeafTypeError, refusal
from ..namespaces import Array, Namespace, as_array, astype, dtype_name
from ..numerics.formats import FLOAT64, format_of
from ..numerics.norms import plain_norm, scaled_norm, square_sums
from ..numerics.sums import as_number, mean_over, sum_over
from ..numerics.units import unit_axes_of
from ..placing import on_device_of
from ..shards import is_sharded, summed_axes
from .values import Scalar, TreeValue, Value, opened_as, tree_value

OVER = ("tree", "leaf", "unit")
ORDERS = (1, 2, math.inf)

LeafReduction = Callable[[Namespace, Array, tuple[int, ...]], Array]


def norm(call: Call, value: TreeValue, over: str, order: float, unit_axis: Any) -> Value:
    """Return the norm: 2: Euclidean, safe over the whole range; 1: sum of |x|; infinity: largest |x|."""
    if order == 2 and over == "tree":
        joint = call.global_norm(value.values)
        return 0.0 if joint is None else Scalar(as_array(value.leaves.xp, plain_norm(value.leaves.xp, joint)))
    rule = {1: _sum_of_sizes, 2: _euclidean, math.inf: _largest_size}[order]
    if over != "tree":
        return _per_part(value, rule, over, unit_axis)
    return _over_tree(value, rule, _largest_of if order == math.inf else _sum_of)


def total(call: Call, value: TreeValue, over: str, unit_axis: Any) -> Value:
    """Return the sum; 0 where there is no element."""
    if over != "tree":
        return _per_part(value, sum_over, over, unit_axis)
    _require_real(value, "sum")
    return _over_tree(value, sum_over, _sum_of)


def mean(call: Call, value: TreeValue, over: str, unit_axis: Any) -> Value:
    """Return the mean, right also where the sum overflows; 0 where there is no element."""
    if over != "tree":
        return _per_part(value, _mean, over, unit_axis)
    _require_real(value, "mean")
    sizes = [0 if leaf is None else math.prod(leaf.shape) for leaf in value.values]
    elements = sum(sizes)
    xp = value.leaves.xp
    shares = [
        None if leaf is None else _mean(xp, leaf, tuple(range(leaf.ndim))) * (size / max(elements, 1))
        for leaf, size in zip(value.values, sizes, strict=True)
    ]
    return _over_tree(tree_value(value.leaves, shares), sum_over, _sum_of)


def _euclidean(xp: Namespace, leaf: Array, axes: tuple[int, ...]) -> Array:
    return plain_norm(xp, scaled_norm(xp, square_sums(xp, leaf, axes)))


def _sum_of_sizes(xp: Namespace, leaf: Array, axes: tuple[int, ...]) -> Array:
    return sum_over(xp, xp.abs(leaf), axes)


def _largest_size(xp: Namespace, leaf: Array, axes: tuple[int, ...]) -> Array:
    if is_sharded(leaf):
        return _largest_over_shards(xp, leaf, axes)
    sizes = xp.abs(leaf)
    if 0 in leaf.shape:
        return sum_over(xp, sizes, axes)
    return xp.max(sizes, axis=axes, keepdims=True) if axes else sizes


def _largest_over_shards(xp: Namespace, leaf: Array, axes: tuple[int, ...]) -> Array:
    """Return the largest size; NaN where there is one, which travels by itself: a maximum may drop it."""

    def numbers(part: Array, over: tuple[int, ...]) -> list[Array]:
        largest = _largest_size(xp, part, over)
        return [xp.where(xp.isnan(largest), 0.0, largest)]

    def only_nan(part: Array, over: tuple[int, ...]) -> list[Array]:
        largest = _largest_size(xp, part, over)
        return [xp.where(xp.isnan(largest), largest, 0.0)]

    return summed_axes(leaf, axes, numbers, "max")[0] + summed_axes(leaf, axes, only_nan)[0]


def _mean(xp: Namespace, leaf: Array, axes: tuple[int, ...]) -> Array:
    if 0 in leaf.shape:
        return sum_over(xp, leaf, axes)
    return mean_over(xp, leaf, axes)


def _per_part(value: TreeValue, rule: LeafReduction, over: str, unit_axis: Any) -> TreeValue:
    xp = value.leaves.xp

    def part(index: int, leaf: Array) -> Array:
        if over == "leaf":
            return as_number(xp, rule(xp, leaf, tuple(range(leaf.ndim))))
        return rule(xp, leaf, unit_axes_of(value.leaves, index, leaf, unit_axis))

    parts = [
        None if leaf is None else as_array(xp, part(index, leaf)) for index, leaf in enumerate(value.values)
    ]
    reduced = tree_value(value.leaves, parts)
    return replace(reduced, leaves=opened_as(reduced))


def _over_tree(value: TreeValue, rule: LeafReduction, together: Callable[[Namespace, Array], Array]) -> Value:
    """Return one scalar of all leaves' parts, on the first leaf's device; 0 where there is no array."""
    xp = value.leaves.xp
    leaves = [leaf for leaf in value.values if leaf is not None]
    if not leaves:
        return 0.0
    parts = [as_number(xp, rule(xp, leaf, tuple(range(leaf.ndim)))) for leaf in leaves]
    wide = any(format_of(part) is FLOAT64 for part in parts)
    name = "float64" if wide else "float32"
    moved = [astype(xp, on_device_of(parts[0], part), getattr(xp, name)) for part in parts]
    return Scalar(as_array(xp, together(xp, xp.stack(moved))))


def _sum_of(xp: Namespace, parts: Array) -> Array:
    return xp.reshape(sum_over(xp, parts, (0,)), ())


def _largest_of(xp: Namespace, parts: Array) -> Array:
    return xp.max(parts)


def _require_real(value: TreeValue, operation: str) -> None:
    for index, leaf in enumerate(value.values):
        if leaf is not None and dtype_name(leaf.dtype).startswith("complex"):
            path = value.leaves.path(index)
            rule = f"be real in {operation} over the tree"
            raise refusal(LeafTypeError, path, rule, leaf, 'take it over="leaf", or of abs()', path=path)

"""What flows along the edges of a graph: numbers, scalars of the device, and trees."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..call import Values, per_kind, scalar_for
from ..errors import ArgumentError, LeafTypeError, refusal
from ..leaves import Leaves
from ..namespaces import Array, Namespace, as_array, dtype_name, namespace_of
from ..numerics.formats import format_of
from ..placing import on_device_of
from ..trees import require_same_structure

Number = float | bool | int


@dataclass(frozen=True)
class Scalar:
    """One 0-d array for all leaves, such as a global norm; None in a call without any array."""

    array: Array | None


@dataclass(frozen=True)
class TreeValue:
    """The wide leaves of a tree.

    Attributes:
        leaves: the tree that they belong to, with its paths; its own leaves tell the shapes and dtypes
            in which a step would get and give these.
        values: what is computed, or None.
        formats: arrays in whose dtypes the values are computed: the values themselves, but of booleans
            the values that were compared.
        is_given: whether the values are the tree's own leaves, widened.
    """

    leaves: Leaves
    values: Values
    formats: Values
    is_given: bool = False


Value = Number | Scalar | TreeValue
LeafFunction = Callable[..., Array]


def tree_value(leaves: Leaves, values: Values, *, is_given: bool = False) -> TreeValue:
    """Return the wide values of a tree."""
    return TreeValue(leaves, values, values, is_given)


def opened_as(value: TreeValue) -> Leaves:
    """Return the tree with the computed values as its own leaves."""
    return replace(value.leaves, values=value.values)


def leafwise(function: LeafFunction, *operands: Value, truth: bool = False) -> TreeValue:
    """Return function(namespace, *parts) for each leaf; at least one operand is a tree.

    Numbers go in as they are; a scalar in the format and on the device of the leaf.

    Args:
        function: pure, of arrays.
        operands: trees of one structure, scalars and numbers.
        truth: the results are booleans.
    """
    trees = [operand for operand in operands if isinstance(operand, TreeValue)]
    first = trees[0]
    for other in trees[1:]:
        require_same_structure("one operand", first.leaves.structure, "the other", other.leaves.structure)
    xp = first.leaves.xp
    part_of = [_parts(xp, operand) for operand in operands]
    values: Values = []
    formats = _formats(trees)
    for index, like in enumerate(formats):
        if like is None or any(tree.values[index] is None for tree in trees):
            values.append(None)
        else:
            values.append(as_array(xp, function(xp, *(part(index, like) for part in part_of))))
    leaves = _leaves_like(trees, values)
    return TreeValue(leaves, values, formats) if truth else tree_value(leaves, values)


def _leaves_like(trees: Sequence[TreeValue], values: Values) -> Leaves:
    """Return the tree, of gradients if any is, whose leaves have the shapes of the values."""
    first = trees[0].leaves
    if all(tree.leaves is first for tree in trees):
        return first
    for leaves in sorted((tree.leaves for tree in trees), key=lambda leaves: leaves.name != "gradients"):
        if _fit(leaves, values):
            return leaves
    return replace(first, values=values)


def _fit(leaves: Leaves, values: Values) -> bool:
    return all(
        value is None or (own is not None and tuple(own.shape) == tuple(value.shape))
        for own, value in zip(leaves.values, values, strict=True)
    )


def _formats(trees: Sequence[TreeValue]) -> Values:
    """Return the arrays that say how each leaf is computed: those of a tree that is no truth, if any is."""
    return next((tree.formats for tree in trees if tree.formats is tree.values), trees[0].formats)


def _parts(xp: Namespace, operand: Value) -> Callable[[int, Array], Any]:
    if isinstance(operand, TreeValue):
        values = operand.values
        return lambda index, like: values[index]
    if isinstance(operand, Scalar):
        array = operand.array
        convert = per_kind(lambda leaf: _scalar_for(xp, array, leaf))
        return lambda index, like: convert(like)
    number = operand
    if isinstance(number, bool):
        return lambda index, like: number
    convert = per_kind(lambda leaf: number_for(float(number), leaf))
    return lambda index, like: convert(like)


def number_for(number: float, leaf: Array) -> float:
    """Return a number as the arithmetic of a leaf takes it; one that its format cannot hold is refused."""
    form = format_of(leaf)
    if abs(number) > form.largest and not math.isinf(number):
        way_out = "use a smaller number, infinity, or float64 gradients"
        rule = f"fit {form.name}, which the leaf is computed in"
        raise refusal(ArgumentError, "a number of the graph", rule, number, way_out)
    return number


def _scalar_for(xp: Namespace, array: Array, leaf: Array) -> Array:
    if dtype_name(array.dtype) == "bool":
        return on_device_of(leaf, array)
    return scalar_for(xp, array, leaf)


def between_scalars(function: LeafFunction, *operands: Value) -> Scalar:
    """Return function(namespace, *parts) of scalars and numbers, in the widest format of the scalars."""
    scalars = [operand.array for operand in operands if isinstance(operand, Scalar)]
    arrays = [array for array in scalars if array is not None]
    if len(arrays) < len(scalars):
        return Scalar(None)
    wide = [array for array in arrays if dtype_name(array.dtype) != "bool"] or arrays
    like = next((array for array in wide if dtype_name(array.dtype) == "float64"), wide[0])
    xp = namespace_of(like)
    parts = [
        _scalar_for(xp, operand.array, like) if isinstance(operand, Scalar) else _filled(xp, operand, like)
        for operand in operands
    ]
    return Scalar(as_array(xp, function(xp, *parts)))


def _filled(xp: Namespace, number: Value, like: Array) -> Any:
    assert isinstance(number, (bool, int, float))
    if isinstance(number, bool):
        return number
    if dtype_name(like.dtype) == "bool":
        return xp.full_like(like, number, dtype=xp.float32)
    return xp.full_like(like, number_for(float(number), like))


@dataclass(frozen=True)
class LeafNumber:
    """Where a leaf stands in a list. No plain number: some compilers cannot rebuild a tree of constants."""

    value: int


def numbered(leaves: Leaves, start: int = 0) -> Any:
    """Return the tree with its leaves replaced by their numbers."""
    return leaves.rebuild([LeafNumber(start + index) for index in range(len(leaves.values))])


def filled_like(value: TreeValue, filling: Value) -> TreeValue:
    """Return a tree with each leaf filled with a number or a scalar."""
    return leafwise(lambda xp, _, part, like: xp.zeros_like(like) + part, value, filling, _formats_of(value))


def _formats_of(value: TreeValue) -> TreeValue:
    return tree_value(value.leaves, value.formats)


def require_trees_real(value: TreeValue, operation: str) -> None:
    """Refuse complex leaves, naming the first, where an operation needs an order."""
    for index, leaf in enumerate(value.values):
        if leaf is not None and dtype_name(leaf.dtype).startswith("complex"):
            way_out = "take abs() first, or leave the leaf out"
            rule = f"be real in {operation}, because complex numbers have no order"
            raise refusal(
                LeafTypeError, value.leaves.path(index), rule, leaf, way_out, path=value.leaves.path(index)
            )

"""Comparing arrays: bit for bit, or within so many units in the last place (ulps)."""

from typing import Any

import numpy as np
import optree
from libraries import Library


def leaves_of(tree: Any) -> list[Any]:
    """Return the leaves of a tree, None among them."""
    return optree.tree_leaves(tree, none_is_leaf=True)


def read_tree(library: Library, tree: Any) -> Any:
    """Return the tree with its arrays as NumPy arrays."""
    return optree.tree_map(lambda leaf: None if leaf is None else library.read(leaf), tree, none_is_leaf=True)


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Fail unless two NumPy arrays agree in dtype, shape and every bit; NaN has one meaning, not one form."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert _bits(actual) == _bits(expected), f"got {actual}, expected {expected}"


def _bits(array: Any) -> bytes:
    if array.dtype.kind in "iub":
        return array.tobytes()
    return (
        b"".join(np.where(part != part, np.asarray(0, part.dtype), part).tobytes() for part in _parts(array))
        + (array != array).tobytes()
    )


def assert_same_trees(actual: Any, expected: Any) -> None:
    """Fail unless two trees of NumPy arrays agree in structure and every bit."""
    assert optree.tree_structure(actual, none_is_leaf=True) == optree.tree_structure(
        expected, none_is_leaf=True
    )
    for one, other in zip(leaves_of(actual), leaves_of(expected), strict=True):
        if one is None or other is None:
            assert one is other
        else:
            assert_same_bits(one, other)


def assert_within_ulps(actual: Any, expected: Any, ulps: float = 4) -> None:
    """Fail unless each part of a NumPy array is within ulps of exact numbers, given as doubles.

    The unit is that of the expected number in the array's format, subnormal numbers included.
    """
    expected = np.asarray(expected, np.complex128 if actual.dtype.kind == "c" else np.float64)
    for one, other in zip(_parts(actual), _parts(expected), strict=True):
        with np.errstate(all="ignore"):
            unit = np.abs(np.spacing(np.abs(other).astype(one.dtype))).astype(np.float64)
        distance = np.abs(one.astype(np.float64) - other) / unit
        assert one.shape == other.shape
        assert np.all(distance <= ulps), f"got {one}, expected {other}: {np.max(distance)} ulps"


def _parts(array: Any) -> list[Any]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]

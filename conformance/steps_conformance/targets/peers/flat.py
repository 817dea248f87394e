"""Leaves of a tree in order, for libraries that take lists of arrays and know no trees.

None is "no gradient here": such libraries are given the arrays alone. Because the adapter walks the tree, the
targets that use this do not claim ``trees``.
"""

from collections.abc import Sequence
from typing import Any

from ...containers import leaves, mapped


def arrays_of(tree: Any) -> list[Any]:
    """Return the arrays of a tree, None left out."""
    return [leaf for _, leaf in leaves(tree) if leaf is not None]


def partners_of(gradients: Any, other: Any) -> list[Any]:
    """Return the leaves of another tree that stand where gradients have an array.

    Raises:
        ValueError: there is none at a place.
    """
    found = dict(leaves(other))
    places = [path for path, leaf in leaves(gradients) if leaf is not None]
    missing = [path for path in places if found.get(path) is None]
    if missing:
        raise ValueError(f"no array at {missing[0] or 'the root'}")
    return [found[path] for path in places]


def like(tree: Any, arrays: Sequence[Any]) -> Any:
    """Return arrays in the containers of a tree, None where it has None."""
    remaining = iter(arrays)
    return mapped(lambda _, __: next(remaining), tree)

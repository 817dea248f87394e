"""Walking the plain containers of trees: dict, list, tuple, namedtuple, and their subclasses."""

from collections.abc import Callable, Iterator
from typing import Any


def children(node: Any) -> list[tuple[str, Any]] | None:
    """Return the parts of a container with the text of each key, or None where node is a leaf."""
    if isinstance(node, dict):
        return [(f"[{key!r}]", value) for key, value in node.items()]
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return [(f".{field}", value) for field, value in zip(node._fields, node, strict=True)]
    if isinstance(node, (list, tuple)):
        return [(f"[{index}]", value) for index, value in enumerate(node)]
    return None


def mapped(function: Callable[[Any, str], Any], tree: Any, path: str = "") -> Any:
    """Return the tree with function(leaf, path) for every leaf; None stays None."""
    parts = children(tree)
    if tree is None:
        return None
    if parts is None:
        return function(tree, path)
    values = [mapped(function, value, path + key) for key, value in parts]
    if isinstance(tree, dict):
        filled = zip(tree, values, strict=True)
        # an OrderedDict or other subclass is rebuilt as itself
        return type(tree)(filled)
    return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and leaf of every leaf, None included."""
    parts = children(tree)
    if parts is None:
        yield path, tree
        return
    for key, value in parts:
        yield from leaves(value, path + key)

"""The only door to optree: flattening and rebuilding trees, and naming the place where two differ.

A tree is a nested dict, list, tuple, namedtuple, OrderedDict, a class known to optree, a class given
to `register_container`, a class known to JAX, or one bare array. ``None`` is a leaf.
"""

from collections.abc import Callable, Iterable
from typing import Any

import optree

from .errors import ArgumentError, ArgumentTypeError, TreeMismatchError, refusal
from .namespaces import is_compiled_by_torch, loaded

Tree = Any
Structure = optree.PyTreeSpec

# Each copy of this package keeps its own register of containers.
_REGISTER = __name__

# Arrays, whose types are known to be no containers.
_LEAF_TYPES: set[type] = set()


def flatten(tree: Tree) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree and what is needed to rebuild it."""
    leaves, structure = _flatten(tree)
    if _LEAF_TYPES.issuperset(map(type, leaves)):
        return leaves, structure
    examples = {type(leaf): leaf for leaf in leaves}
    unopened = [leaf for leaf in examples.values() if _opens_in_jax(leaf)]
    if not unopened:
        _LEAF_TYPES.update(kind for kind, leaf in examples.items() if leaf is None or hasattr(leaf, "dtype"))
        return leaves, structure
    for example in unopened:
        _register_from_jax(type(example))
    return flatten(tree)


def _flatten(tree: Tree) -> tuple[list[Any], Structure]:
    if is_compiled_by_torch():
        return _flatten_while_compiling(tree)
    try:
        return optree.tree_flatten(tree, none_is_leaf=True, namespace=_REGISTER)
    except RecursionError:
        raise ArgumentError(
            "a tree must not contain itself, and must be nested less than about 1,000 levels deep",
            rule="not contain itself",
            way_out="remove the cycle",
        ) from None


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Tree:
    """Return the tree of that structure with these leaves."""
    if is_compiled_by_torch():
        return _unmarked(optree.tree_unflatten(structure, [_marked(leaf) for leaf in leaves]))
    return optree.tree_unflatten(structure, leaves)


# torch.compile takes a dict of constants for a constant, and can then neither open nor rebuild it.
class _Nothing:
    """What stands for None while torch.compile opens or rebuilds a tree."""


_NOTHING = _Nothing()


def _flatten_while_compiling(tree: Tree) -> tuple[list[Any], Structure]:
    leaves, structure = optree.tree_flatten(_marked(tree), none_is_leaf=True, namespace=_REGISTER)
    return [_unmarked(leaf) for leaf in leaves], structure


def _marked(tree: Tree) -> Tree:
    return _with_leaves_replaced(tree, None, _NOTHING)


def _unmarked(tree: Tree) -> Tree:
    return _with_leaves_replaced(tree, _NOTHING, None)


def _with_leaves_replaced(tree: Tree, old: Any, new: Any) -> Tree:
    if tree is old:
        return new
    if type(tree) is dict:
        return {key: _with_leaves_replaced(entry, old, new) for key, entry in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)([_with_leaves_replaced(entry, old, new) for entry in tree])
    return tree


def leaf_paths(structure: Structure, root: str) -> list[str]:
    """Return where each leaf stands, such as ``gradients['layer1']['bias']``."""
    return [accessor.codify(root) for accessor in structure.accessors()]


def key_paths(structure: Structure) -> list[tuple[Any, ...]]:
    """Return the keys that lead to each leaf, such as ``("layer1", "bias")``."""
    return structure.paths()


def is_container(value: Any) -> bool:
    """Return whether a value is a tree of more than one bare leaf."""
    is_leaf = optree.tree_is_leaf(value, none_is_leaf=True, namespace=_REGISTER)
    return not is_leaf or _opens_in_jax(value)


class Prefix:
    """A tree of constants that stands for all trees with more below its leaves."""

    def __init__(self, tree: Tree) -> None:
        values, structure = flatten(tree)
        self.kind = structure.type
        self.entries = tuple(structure.entries())
        self.value = values[0] if self.kind is None else None
        one_level = structure.one_level()
        below = one_level.flatten_up_to(tree) if one_level is not None and self.kind is not None else ()
        self.children = tuple(Prefix(child) for child in below)

    def over(self, structure: Structure) -> list[Any] | None:
        """Return for each leaf of a structure the value above it; None where this is no prefix of it."""
        if self.kind is None:
            return [self.value] * structure.num_leaves
        if structure.type is not self.kind or tuple(structure.entries()) != self.entries:
            return None
        values: list[Any] = []
        for child, below in zip(self.children, structure.children(), strict=True):
            found = child.over(below)
            if found is None:
                return None
            values += found
        return values


def register_container(
    kind: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]
) -> None:
    """Make a class a container of trees.

    Args:
        kind: the class.
        flatten: takes an instance; returns its children and the rest, as ``(children, metadata)`` or
            ``(children, metadata, entries)``; entries are the children's names in error texts.
        unflatten: takes metadata and children; returns an instance.

    Raises:
        ArgumentTypeError: kind is not a class, or the others are not functions.
        ArgumentError: the class is a container already.

    Example:
        >>> class Pair:
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> register_container(Pair, lambda p: ((p.left, p.right), None), lambda _, both: Pair(*both))
    """
    if not isinstance(kind, type):
        raise refusal(ArgumentTypeError, "kind", "be a class", kind, "pass the class itself")
    if hasattr(kind, "dtype"):
        way_out = "arrays are leaves; register what holds them"
        raise refusal(ArgumentTypeError, "kind", "be a container, no class of arrays", kind, way_out)
    for argument, function in (("flatten", flatten), ("unflatten", unflatten)):
        if not callable(function):
            raise refusal(ArgumentTypeError, argument, "be a function", function, "pass a function")
    try:
        optree.register_pytree_node(kind, flatten, unflatten, namespace=_REGISTER)
    except ValueError as error:
        raise refusal(
            ArgumentError, "kind", "not be a container already", kind, "leave this call out"
        ) from error


def _opens_in_jax(leaf: Any) -> bool:
    jax = loaded("jax")
    if jax is None or leaf is None or hasattr(leaf, "dtype") or is_compiled_by_torch():
        return False
    return not jax.tree_util.all_leaves([leaf])


def _register_from_jax(kind: type) -> None:
    util = loaded("jax").tree_util

    def flatten(container: Any) -> tuple[Any, Any, Any]:
        keyed, treedef = util.tree_flatten_with_path(container, is_leaf=lambda node: node is not container)
        entries = tuple(util.keystr(path).strip(".[]'\"") for path, _ in keyed)
        return tuple(child for _, child in keyed), treedef, entries

    optree.register_pytree_node(
        kind,
        flatten,
        _unflatten_in_jax,
        path_entry_type=optree.GetAttrEntry,
        namespace=_REGISTER,
    )


def _unflatten_in_jax(treedef: Any, children: Iterable[Any]) -> Any:
    return treedef.unflatten(children)


def require_same_structure(name: str, structure: Structure, other_name: str, other: Structure) -> None:
    """Refuse two trees of different structure, naming the first place where they part."""
    if structure == other:
        return
    path, here, there = _first_difference(structure, other, "")
    left, right = f"{name}{path}", f"{other_name}{path}"
    raise TreeMismatchError(
        f"{name} and {other_name} must have the same tree structure, got {here} at {left} "
        f"and {there} at {right}; give both the same containers and keys",
        argument=other_name,
        rule=f"have the tree structure of {name}",
        way_out="give both the same containers and keys",
        path=right,
    )


def _first_difference(a: Structure, b: Structure, path: str) -> tuple[str, str, str]:
    if a.type is not b.type or a.is_leaf() or b.is_leaf():
        return path, _node_text(a), _node_text(b)
    ours, theirs = _children(a, path), _children(b, path)
    for place in [*ours, *theirs]:
        if place not in ours:
            return place, "nothing", _node_text(theirs[place])
        if place not in theirs:
            return place, _node_text(ours[place]), "nothing"
        if ours[place] != theirs[place]:
            return _first_difference(ours[place], theirs[place], place)
    return path, f"{_node_text(a)} with other fixed parts", _node_text(b)


def _children(structure: Structure, path: str) -> dict[str, Structure]:
    one_level = structure.one_level()
    if one_level is None:
        return {}
    places = [accessor.codify(path) for accessor in one_level.accessors()]
    return dict(zip(places, structure.children(), strict=True))


def _node_text(structure: Structure) -> str:
    if structure.is_leaf():
        return "a leaf"
    return f"a {getattr(structure.type, '__name__', 'container')} of {structure.num_children}"

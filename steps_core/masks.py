"""Masks: trees of booleans that say which leaves a step is for."""

from collections.abc import Mapping
from typing import Any

from .errors import ArgumentError, ArgumentTypeError, TreeMismatchError, refusal, shown
from .trees import Prefix, Structure, Tree, flatten, leaf_paths, unflatten


class MaskTree:
    """A tree of booleans that can be compared and hashed."""

    def __init__(self, tree: Tree) -> None:
        values, self.structure = flatten(tree)
        for path, value in zip(leaf_paths(self.structure, "mask"), values, strict=True):
            if not isinstance(value, bool):
                raise refusal(ArgumentTypeError, path, "be True or False", value, "pass a bool")
        # A tree of our own, which later changes to the caller's containers do not reach.
        self.tree, self.values = unflatten(self.structure, values), tuple(values)
        self._prefix = Prefix(self.tree)

    def over(self, structure: Structure, name: str) -> list[bool]:
        """Return the value for each leaf of a tree."""
        values = self._prefix.over(structure)
        if values is None:
            way_out = f"give the mask the containers and keys of {name}, or fewer levels of them"
            raise TreeMismatchError(
                f"mask must be a prefix of the tree of {name}, got {shown(self.tree)}; {way_out}",
                argument="mask",
                rule=f"be a prefix of the tree of {name}",
                value=self.tree,
                way_out=way_out,
                path="mask",
            )
        return values

    def __eq__(self, other: object) -> bool:
        """Return whether the other has the same structure and values."""
        return isinstance(other, MaskTree) and (self.structure, self.values) == (
            other.structure,
            other.values,
        )

    def __hash__(self) -> int:
        return hash((self.structure, self.values))

    def __repr__(self) -> str:
        return repr(self.tree)

    def describe(self) -> dict[str, Any]:
        """Return ``{"mask": tree}``, with its containers named."""
        return {"mask": _described_tree(self.tree)}


def mask_from_description(description: Any, path: str) -> MaskTree:
    """Return the mask that `MaskTree.describe` described."""
    return MaskTree(_tree_from(description, path))


def _described_tree(tree: Tree) -> Any:
    if isinstance(tree, bool):
        return tree
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return {"dict": {key: _described_tree(entry) for key, entry in tree.items()}}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [_described_tree(entry) for entry in tree]}
    rule = "be of dicts with texts as keys, lists and tuples, to be described"
    raise refusal(ArgumentTypeError, "mask", rule, tree, "use those containers")


def _tree_from(description: Any, path: str) -> Tree:
    if isinstance(description, bool):
        return description
    if isinstance(description, Mapping) and len(description) == 1:
        ((kind, entries),) = description.items()
        if kind == "dict" and isinstance(entries, Mapping):
            return {key: _tree_from(entry, f"{path}[{key!r}]") for key, entry in entries.items()}
        if kind in ("list", "tuple") and isinstance(entries, (list, tuple)):
            listed = [_tree_from(entry, f"{path}[{index}]") for index, entry in enumerate(entries)]
            return listed if kind == "list" else tuple(listed)
    way_out = 'write {"dict": {"kernel": true, "bias": false}}'
    raise refusal(ArgumentError, path, "be true, false, or one named container of them", description, way_out)

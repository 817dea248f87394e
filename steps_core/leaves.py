"""Opening a tree of arrays: its leaves are checked once, here, and every error names their path."""

from dataclasses import dataclass
from typing import Any

from .errors import LeafTypeError, TreeMismatchError, shown
from .namespaces import (
    Array,
    Namespace,
    as_array,
    device_of,
    dtype_name,
    is_single_device,
    is_torch,
    library_name,
    namespace_of,
)
from .numerics.formats import LEAF_DTYPES, holds, is_complex_name
from .shards import is_partial
from .trees import Structure, Tree, flatten, leaf_paths, require_same_structure, unflatten


@dataclass(frozen=True)
class Leaves:
    """The checked leaves of one tree: arrays of one library, or None."""

    name: str
    values: list[Array | None]
    structure: Structure
    xp: Namespace

    def path(self, index: int) -> str:
        """Return where a leaf stands, such as ``gradients['layer1']['bias']``."""
        return leaf_paths(self.structure, self.name)[index]

    @property
    def tree(self) -> Tree:
        """The tree of these leaves."""
        return self.rebuild(self.values)

    def rebuild(self, values: list[Any]) -> Tree:
        """Return the tree with other leaves."""
        return unflatten(self.structure, values)


def open_tree(tree: Tree, name: str) -> Leaves:
    """Return the leaves of a tree; NumPy scalars become 0-d arrays.

    Raises:
        LeafTypeError: a leaf is no floating or complex array.
        TreeMismatchError: two leaves belong to different libraries.
    """
    found, structure = flatten(tree)
    values: list[Array | None] = []
    first = None
    for index, leaf in enumerate(found):
        if leaf is None:
            values.append(None)
            continue
        xp = namespace_of(leaf)
        if xp is None or not _is_supported(leaf):
            raise _unsupported(leaf, leaf_paths(structure, name)[index])
        if is_partial(leaf):
            raise _not_added_up(leaf, leaf_paths(structure, name)[index])
        if first is None:
            first = xp
        elif xp is not first:
            raise _other_library(name, name, xp, first, leaf_paths(structure, name)[index])
        values.append(as_array(xp, leaf))
    return Leaves(name, values, structure, first)


def _is_supported(leaf: Array) -> bool:
    if dtype_name(leaf.dtype) not in LEAF_DTYPES:
        return False
    return not is_torch(leaf) or str(leaf.layout) == "torch.strided"


def _unsupported(leaf: Any, path: str) -> LeafTypeError:
    allowed = ", ".join(LEAF_DTYPES)
    way_out = "pass a dense array of such a dtype, None for no gradient, or register_container for its class"
    return LeafTypeError(
        f"{path} must be a dense array of dtype {allowed}, or None, got {shown(leaf)}; {way_out}",
        argument=path.split("[", 1)[0].split(".", 1)[0],
        rule=f"be a dense array of dtype {allowed}, or None",
        value=leaf,
        way_out=way_out,
        path=path,
    )


def _not_added_up(leaf: Any, path: str) -> LeafTypeError:
    rule = "be sharded or replicated along each axis of its mesh"
    way_out = "its processes hold sums that are not added yet: call its redistribute(placements=...) first"
    return LeafTypeError(
        f"{path} must {rule}, got {shown(leaf)} with the placements {tuple(leaf.placements)}; {way_out}",
        argument=path.split("[", 1)[0].split(".", 1)[0],
        rule=rule,
        value=leaf,
        way_out=way_out,
        path=path,
    )


def _other_library(name: str, other: str, xp: Namespace, first: Namespace, path: str) -> TreeMismatchError:
    got, expected = library_name(xp), library_name(first)
    return TreeMismatchError(
        f"{path} must be an array of {expected} like the other leaves of {other}, "
        f"got one of {got}; convert one of the two",
        argument=name,
        rule=f"be an array of {expected}",
        way_out="convert one of the two",
        path=path,
    )


def require_partner(leaves: Leaves, other: Leaves) -> None:
    """Refuse a tree (weights, or updates) that does not go with the leaves leaf by leaf.

    Structure, library, shape, kind and device must agree; None in leaves may stand against an array.
    """
    require_same_structure(leaves.name, leaves.structure, other.name, other.structure)
    for index, (leaf, partner) in enumerate(zip(leaves.values, other.values, strict=True)):
        if leaf is None:
            continue
        if partner is None:
            raise mismatch(other.path(index), "be an array", f"because {leaves.path(index)} is one", None)
        if leaves.xp is not other.xp:
            raise _other_library(other.name, leaves.name, other.xp, leaves.xp, other.path(index))
        if tuple(leaf.shape) != tuple(partner.shape):
            rule = f"have the shape {tuple(leaf.shape)} of {leaves.path(index)}"
            raise mismatch(other.path(index), rule, "", partner)
        _require_same_kind(leaves, other, index)
        require_same_device(leaf, partner, leaves, other, index)


def _require_same_kind(leaves: Leaves, other: Leaves, index: int) -> None:
    leaf, partner = leaves.values[index], other.values[index]
    assert leaf is not None and partner is not None
    if is_complex_name(dtype_name(leaf.dtype)) == is_complex_name(dtype_name(partner.dtype)):
        return
    kind = "complex" if is_complex_name(dtype_name(leaf.dtype)) else "real"
    rule = f"be {kind} as {leaves.path(index)} is"
    raise LeafTypeError(
        f"{other.path(index)} must {rule}, got {shown(partner)}; use one kind for both",
        argument=other.name,
        rule=rule,
        value=partner,
        way_out="use one kind for both",
        path=other.path(index),
    )


def require_same_device(leaf: Array, partner: Array, leaves: Leaves, other: Leaves, index: int) -> None:
    """Refuse two arrays on two known single devices; shardings and placements may differ."""
    here, there = device_of(leaf), device_of(partner)
    if here == there or not (is_single_device(here) and is_single_device(there)):
        return
    rule = f"be on the device {here} of {leaves.path(index)}"
    raise TreeMismatchError(
        f"{other.path(index)} must {rule}, got {there}; move one of the two",
        argument=other.name,
        rule=rule,
        value=there,
        way_out="move one of the two",
        path=other.path(index),
    )


def mismatch(path: str, rule: str, because: str, value: Any) -> TreeMismatchError:
    """Return the error for a leaf that does not go with its partner."""
    reason = f" {because}" if because else ""
    way_out = "pass trees that were made for each other"
    return TreeMismatchError(
        f"{path} must {rule}{reason}, got {shown(value)}; {way_out}",
        argument=path.split("[", 1)[0].split(".", 1)[0],
        rule=rule,
        value=value,
        way_out=way_out,
        path=path,
    )


def require_wide_enough(gradients: Leaves, weights: Leaves) -> None:
    """Refuse a gradient whose dtype cannot hold its weight: rounding the update could leave a constraint."""
    for index, (leaf, weight) in enumerate(zip(gradients.values, weights.values, strict=True)):
        if leaf is None or weight is None:
            continue
        narrow, wide = dtype_name(leaf.dtype), dtype_name(weight.dtype)
        if not holds(narrow, wide):
            rule = f"be of a dtype that holds every {wide}, as {weights.path(index)} is"
            way_out = (
                "a rounded update would leave the constraint; cast the gradient to the weight's dtype first"
            )
            raise LeafTypeError(
                f"{gradients.path(index)} must {rule}, got {shown(leaf)}; {way_out}",
                argument="gradients",
                rule=rule,
                value=leaf,
                way_out=way_out,
                path=gradients.path(index),
            )

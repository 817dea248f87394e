"""Whether a step does one and the same to each element of each leaf: then leaves may be put together."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from .checking import numpy_dtype
from .graph import in_order
from .packing import Layout, Part
from .tracing import (
    CONSTANT,
    ELEMENTWISE,
    EVALUATED,
    INPUT,
    JOINT_SQUARE_SUMS,
    MEMBER,
    TracedArray,
    is_number,
)

Formula = int  # equal for equal formulas
Owner = int | None  # the leaf that an array belongs to; None: a scalar, or a constant


class Formulas:
    """Formulas of traced arrays in terms of their own leaf, of scalars, and of joint norms of all leaves."""

    def __init__(self) -> None:
        self._known: dict[Any, Formula] = {}

    def of(self, results: Sequence[TracedArray], leaf_count: int) -> list[tuple[Formula, Owner]] | None:
        """Return the formula and the leaf of each result; None where one mixes leaves or looks at places.

        Args:
            results: of which each input has the place ``(name, leaf number or None)``.
            leaf_count: how many leaves there are.
        """
        found: dict[int, tuple[Formula, Owner]] = {}
        for array in in_order(results):
            made = self._one(array, [found.get(id(operand)) for operand in array.inputs], leaf_count)
            if made is None:
                return None
            form, owner = made
            found[id(array)] = self._known.setdefault((form, str(array.dtype)), len(self._known)), owner
        return [found[id(array)] for array in results]

    def _one(self, array: TracedArray, operands: list[Any], leaf_count: int) -> tuple[Any, Owner] | None:
        operation = array.operation
        if operation == INPUT:
            name, number = array.options[0]
            return ("input", name), number
        if operation == CONSTANT:
            return (CONSTANT, repr(array.options)), None
        owners = {owner for _, owner in filter(None, operands)} - {None}
        if operation == JOINT_SQUARE_SUMS:
            forms = {form for form, _ in operands}
            is_of_all = len(operands) == len(owners) == leaf_count and len(forms) == 1
            return ((operation, *forms), None) if is_of_all else None
        if operation == MEMBER:
            return (operation, array.options, operands[0][0]), None
        if operation == EVALUATED:
            (function,) = array.options
            name = (function.func, function.args) if isinstance(function, partial) else id(function)
            return None if owners else ((operation, name, operands[0][0]), None)
        if operation not in ELEMENTWISE or len(owners) > 1:
            return None
        numbers = [repr(operand) if is_number(operand) else None for operand in array.inputs]
        forms_of = tuple(None if operand is None else operand[0] for operand in operands)
        return (operation, array.options, forms_of, *numbers), owners.pop() if owners else None


def parts_for(
    step: Any, trees: Any, structures: Sequence[Any], leaves: Sequence[list[Any]], layout: Layout
) -> tuple[Part, ...] | None:
    """Return the parts of a layout where the step gives the same on them as on the leaves; else None.

    It does where each element of each leaf goes through one formula, of its own leaf and of what all leaves
    share.

    Args:
        step: the step.
        trees: the module of trees of its package.
        structures: of gradients and weights; None: no weights.
        leaves: of gradients and weights, and the arrays of the packed state.
        layout: of the state.
    """
    parts = layout.common_parts()
    gradients, weights, arrays = leaves
    if parts is None or not all(_lie_so(tree, parts) for tree in (gradients, weights) if tree):
        return None
    dtypes = [tree[0].dtype if tree else None for tree in (gradients, weights)]
    formulas, flat = Formulas(), [(sum(part.sizes),) for part in parts]
    try:
        by_leaf = _Traced(trees, structures, layout, [leaf.shape for leaf in gradients], parts)
        by_part = _Traced(trees, (None, None), layout, flat, None)
        found = [traced.formulas(step, formulas, dtypes, arrays) for traced in (by_leaf, by_part)]
    except Exception:  # noqa: BLE001  # What cannot be recorded may look at places.
        return None
    return parts if found[0] is not None and found[0] == found[1] else None


def _lie_so(leaves: list[Any], parts: tuple[Part, ...]) -> bool:
    """Return whether leaves are arrays of one dtype with the shapes of such parts."""
    if any(leaf is None for leaf in leaves) or len({leaf.dtype for leaf in leaves}) > 1:
        return False
    shapes = {
        number: shape for part in parts for number, shape in zip(part.numbers, part.shapes, strict=True)
    }
    return dict(enumerate(leaf.shape for leaf in leaves)) == shapes


class _Traced:
    """A step on symbols: on leaves in their own trees, or on lists of parts.

    Args:
        trees: the module of trees.
        structures: of gradients and weights; None: lists.
        layout: of the state.
        shapes: of the leaves, or of the parts.
        parts: in which leaves lie; None where these are parts themselves.
    """

    def __init__(
        self,
        trees: Any,
        structures: Sequence[Any],
        layout: Layout,
        shapes: list[Any],
        parts: tuple[Part, ...] | None,
    ) -> None:
        self._trees, self._structures, self._layout = trees, structures, layout
        self._shapes, self._parts = shapes, parts

    def formulas(self, step: Any, formulas: Formulas, dtypes: list[Any], arrays: list[Any]) -> Any:
        """Return the formula of all new gradients, and of each entry of the new state; None: of none."""
        gradients, weights = (
            None if dtype is None else self._tree(name, structure, [dtype] * len(self._shapes))
            for name, structure, dtype in zip(("gradients", "weights"), self._structures, dtypes, strict=True)
        )
        made, state = step(gradients, weights, self._state(arrays))
        entries = [made, *self._layout.frame.flatten_up_to(state)]
        opened = [self._trees.flatten(entry)[0] for entry in entries]
        found = formulas.of([leaf for leaves in opened for leaf in leaves], len(self._shapes))
        if found is None:
            return None
        left, result = iter(found), []
        for number, leaves in enumerate(opened):
            of_entry = [next(left) for _ in leaves]
            is_scalar = number > 0 and self._layout.structures[number - 1] is None
            expected = [None] if is_scalar else range(len(self._shapes))
            if any(owner not in (place, None) for (_, owner), place in zip(of_entry, expected, strict=True)):
                return None
            if len({form for form, _ in of_entry}) != 1:
                return None
            result.append(of_entry[0][0])
        return result

    def _tree(self, name: str, structure: Any, dtypes: list[Any]) -> Any:
        leaves = [
            TracedArray(INPUT, (), ((name, number), None), shape, numpy_dtype(dtype))
            for number, (shape, dtype) in enumerate(zip(self._shapes, dtypes, strict=True))
        ]
        return leaves if structure is None else self._trees.unflatten(structure, leaves)

    def _state(self, arrays: list[Any]) -> Any:
        given, entries = iter(arrays), []
        for number, structure in enumerate(self._layout.structures):
            name = f"state {number}"
            if structure is None:
                scalar = next(given)
                entries.append(
                    TracedArray(INPUT, (), ((name, None), None), scalar.shape, numpy_dtype(scalar.dtype))
                )
                continue
            dtypes = [next(given).dtype for _ in self._layout.parts[number]]
            if self._parts is None:
                entries.append(self._tree(name, None, dtypes))
                continue
            of_leaf = {
                place: dtype
                for part, dtype in zip(self._parts, dtypes, strict=True)
                for place in part.numbers
            }
            entries.append(self._tree(name, structure, [of_leaf[place] for place in sorted(of_leaf)]))
        return self._trees.unflatten(self._layout.frame, entries)

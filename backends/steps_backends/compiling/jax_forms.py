"""What is compiled by JAX: a step on the leaves of its arguments, whose state is a tree or a packed one."""

from typing import Any

from .jax_sums import JaxReductions
from .packing import Layout, PackedState, Part

Leaves = list[list[Any]]  # of gradients, weights and state; or of new gradients and new state


class TreeForm:
    """A step as a function of leaves.

    Attributes:
        outputs: the structure of the new gradients and of the new state, once it has been traced.
    """

    def __init__(self, step: Any, trees: Any, structures: tuple[Any, ...], reductions: JaxReductions) -> None:
        self._step, self._trees, self._structures, self._reductions = step, trees, structures, reductions
        self.outputs: list[Any] = []

    def run(self, *leaves: list[Any]) -> Leaves:
        """Return the leaves of the new gradients and of the new state; JAX traces this."""
        given = [
            None if structure is None else self._trees.unflatten(structure, of_tree)
            for structure, of_tree in zip(self._structures, leaves, strict=True)
        ]
        with self._reductions.in_use():
            made = [self._trees.flatten(tree) for tree in self._step(*given)]
        self.outputs = [structure for _, structure in made]
        return [of_tree for of_tree, _ in made]

    def closed(self, made: Leaves) -> Any:
        """Return the new gradients and the new state."""
        return map(self._trees.unflatten, self.outputs, made)


class PackedForm:
    """A step as a function of leaves and of the arrays of a packed state.

    Args:
        step, trees, reductions: as above.
        structures: of gradients and weights.
        layout: of the state.
        parts: how leaves lie in parts that the step may run on in place of the leaves; None: it may not.
    """

    def __init__(
        self,
        step: Any,
        trees: Any,
        structures: tuple[Any, ...],
        reductions: JaxReductions,
        layout: Layout,
        parts: tuple[Part, ...] | None,
    ) -> None:
        self._step, self._trees, self._structures, self._reductions = step, trees, structures, reductions
        self._layout, self._parts = layout, parts

    def run(self, gradients: list[Any], weights: list[Any], arrays: list[Any]) -> Leaves:
        """Return the leaves of the new gradients and the arrays of the new state; JAX traces this."""
        layout, parts = self._layout, self._parts
        with self._reductions.in_use():
            if parts is None:
                given = [
                    None if structure is None else self._trees.unflatten(structure, leaves)
                    for structure, leaves in zip(self._structures, (gradients, weights), strict=True)
                ]
                made, state = self._step(*given, layout.unpacked(arrays))
                return [self._trees.flatten(made)[0], layout.packed(state)]
            joined = [part.joined(gradients) for part in parts]
            joined_weights = [part.joined(weights) for part in parts] if weights else None
            made, state = self._step(joined, joined_weights, layout.as_parts(arrays))
            updates = list(gradients)
            for part, flat in zip(parts, made, strict=True):
                for number, leaf in part.split(flat):
                    updates[number] = leaf
            return [updates, layout.of_parts(state)]

    def closed(self, made: Leaves) -> Any:
        """Return the new gradients and the new state."""
        return self._trees.unflatten(self._structures[0], made[0]), PackedState(made[1], self._layout)

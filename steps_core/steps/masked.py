"""Masking: a step that runs on some leaves only."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..call import Call, Values
from ..errors import ArgumentTypeError, refusal
from ..leaves import Leaves
from ..masks import MaskTree
from ..namespaces import Array, recorder_of
from ..state import State, StateView
from ..trees import is_container, key_paths
from .nesting import advance_inner, initial_inner_state
from .wrapping import WrappingStep

MaskFunction = Callable[[tuple[Any, ...], Array], bool]


@dataclass(frozen=True)
class MaskedStep(WrappingStep):
    """Run another step on the leaves that a mask chooses; the others pass unchanged.

    g'_i = inner(g)_i where the mask holds for leaf i, else g_i

    The inner step does not see the other leaves: they do not count in its norms and have no state.

    Args:
        inner: the step to run.
        mask: a tree of booleans, each for one leaf or for everything below its place; or a function that
            gets a leaf's path, such as ``("layer1", "bias")``, and the leaf, and returns a bool. What is a
            container is taken as a tree. The function may look at shape and dtype, not at values.
        set_breakpoint, metadata: as of every step.

    State: ``inner``, the inner step's state, with None for leaves outside the mask.

    Raises:
        ArgumentTypeError: inner is not a step, or the mask neither a tree of booleans nor a function.
        TreeMismatchError: the mask's tree does not fit the gradients'.

    Example:
        >>> import numpy as np
        >>> from steps_core import WeightDecayStep
        >>> step = MaskedStep(WeightDecayStep(weight_decay=0.5), {"kernel": True, "bias": False})
        >>> tree = {"kernel": np.asarray([2.0]), "bias": np.asarray([2.0])}
        >>> step(tree, tree).gradients
        {'kernel': array([3.]), 'bias': array([2.])}
    """

    mask: Any

    @classmethod
    def settled_option(cls, name: str, value: Any) -> Any:
        """Return a tree of booleans as a mask that can be compared."""
        is_tree = name == "mask" and (isinstance(value, bool) or is_container(value))
        return MaskTree(value) if is_tree else value

    def _check_own_options(self) -> None:
        if isinstance(self.mask, (bool, MaskTree)) or is_container(self.mask):
            self._set(mask=self.mask if isinstance(self.mask, MaskTree) else MaskTree(self.mask))
        elif not callable(self.mask) or isinstance(self.mask, type):
            way_out = 'pass {"kernel": True, "bias": False}, or a function of path and leaf'
            rule = "be a tree of booleans or a function"
            raise refusal(ArgumentTypeError, "mask", rule, self.mask, way_out)

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The inner state."""
        return ("inner",)

    def own_state(self, weights: Leaves) -> State:
        """Return the inner step's first state for the chosen leaves."""
        return {"inner": initial_inner_state(self.inner, _only(weights, self._chosen(weights)))}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the inner result for the chosen leaves, and the others as they came."""
        chosen = self._chosen(call.gradients)
        weights = call.given_weights
        inner_call = Call(
            _only(call.gradients, chosen),
            None if weights is None else _only(weights, chosen),
            None if call.weights is None else _where(chosen, call.weights),
        )
        values, inner = advance_inner(self.inner, inner_call, _where(chosen, gradients), state.child("inner"))
        merged = [
            new if is_chosen else old for is_chosen, new, old in zip(chosen, values, gradients, strict=True)
        ]
        return merged, {"inner": inner}

    def _chosen(self, leaves: Leaves) -> list[bool]:
        if isinstance(self.mask, MaskTree):
            return self.mask.over(leaves.structure, leaves.name)
        paths = key_paths(leaves.structure)
        recorder = recorder_of(leaves.xp)
        seen = recorder.seen_by_users if recorder is not None else lambda leaf: leaf
        return [
            leaf is not None and _as_bool(self.mask(path, seen(leaf)), leaves, index)
            for index, (path, leaf) in enumerate(zip(paths, leaves.values, strict=True))
        ]


def _as_bool(value: Any, leaves: Leaves, index: int) -> bool:
    if not isinstance(value, bool):
        place = f"mask at {leaves.path(index)}"
        raise refusal(ArgumentTypeError, place, "return True or False", value, "return a bool")
    return value


def _where(chosen: list[bool], values: Values) -> Values:
    return [value if is_chosen else None for is_chosen, value in zip(chosen, values, strict=True)]


def _only(leaves: Leaves, chosen: list[bool]) -> Leaves:
    values = _where(chosen, leaves.values)
    has_arrays = any(value is not None for value in values)
    xp = leaves.xp if has_arrays else None
    return replace(leaves, values=values, xp=xp)

"""Skipping a step whose gradients are not all finite, without asking the device."""

from dataclasses import dataclass
from typing import Any

from ..call import Call, Values, per_kind
from ..leaves import Leaves
from ..namespaces import Array, Namespace, as_array
from ..placing import on_device_of
from ..state import State, StateView, count_from_zero, incremented, stored
from ..trees import flatten, unflatten
from .nesting import advance_inner, initial_inner_state
from .wrapping import WrappingStep


@dataclass(frozen=True)
class SkipNonFiniteStep(WrappingStep):
    """Run another step, but where any gradient is NaN or infinite give zeros and keep the inner state.

    Args:
        inner: the step to run.
        set_breakpoint, metadata: as of every step.

    State: ``inner``, the inner step's state; ``skipped`` (int32 0-d), how many calls were skipped.

    Raises:
        ArgumentTypeError: inner is not a step.

    Example:
        >>> import numpy as np
        >>> from steps_core import SGDStep
        >>> updates, state = SkipNonFiniteStep(SGDStep())(np.asarray([1.0, np.nan]))
        >>> updates, int(state["skipped"])
        (array([0., 0.]), 1)
    """

    def _check_own_options(self) -> None:
        pass

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The inner state and the counter."""
        return ("inner", "skipped")

    def own_state(self, weights: Leaves) -> State:
        """Return the inner step's first state, and a counter at 0."""
        return {"inner": initial_inner_state(self.inner, weights), "skipped": count_from_zero(weights)}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the inner result, or zeros."""
        skipped = state.scalar("skipped", ("int32",))
        state.require_scalar(call, "skipped", skipped)
        norm = call.global_norm(gradients)
        inner = state.child("inner")
        if norm is None:
            values, inner_state = advance_inner(self.inner, call, gradients, inner)
            return values, {"inner": inner_state, "skipped": skipped}
        xp, is_finite = call.xp, call.xp.isfinite(norm.root)
        finite_for = per_kind(lambda leaf: on_device_of(leaf, is_finite))
        # Zeros go in, so that no NaN reaches the inner step or a derivative through it.
        clean = [_or_zero(xp, finite_for, leaf) for leaf in gradients]
        values, inner_state = advance_inner(self.inner, call, clean, inner)
        return [_or_zero(xp, finite_for, leaf) for leaf in values], {
            "inner": _chosen(xp, finite_for, inner_state, inner.value),
            "skipped": _or_incremented(xp, is_finite, skipped),
        }


def _or_zero(xp: Namespace, finite_for: Any, leaf: Array | None) -> Array | None:
    return None if leaf is None else xp.where(finite_for(leaf), leaf, 0.0)


def _or_incremented(xp: Namespace, is_finite: Array, skipped: Array | None) -> Array | None:
    if skipped is None:
        return None
    return as_array(xp, xp.where(on_device_of(skipped, is_finite), skipped, incremented(skipped)))


def _chosen(xp: Namespace, finite_for: Any, new: Any, old: Any) -> Any:
    """Return the new state where all was finite, else the old one, leaf by leaf."""
    new_leaves, structure = flatten(new)
    old_leaves, _ = flatten(old)
    return unflatten(
        structure,
        [
            before if before is None else stored(before, xp.where(finite_for(before), after, before))
            for after, before in zip(new_leaves, old_leaves, strict=True)
        ],
    )

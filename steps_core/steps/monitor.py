"""Monitoring: the global norm of what passes, and whether all of it was finite."""

from dataclasses import dataclass

from ..call import Call, Values
from ..contract import Step
from ..leaves import Leaves
from ..namespaces import Array, dtype_name, namespace_of
from ..numerics.formats import real_name, wide_name
from ..numerics.norms import plain_norm
from ..placing import on_device_of
from ..state import State, StateView, scalar_like, stored


@dataclass(frozen=True, kw_only=True)
class MonitorStep(Step):
    """Pass the gradients on and keep their global norm and finiteness in the state.

    norm = sqrt(sum of |g|^2 over all leaves);  finite = no element is NaN or infinite

    Beside a global clip, both share one reduction. A norm beyond the largest finite number shows as
    infinity with finite still True.

    Args:
        set_breakpoint, metadata: as of every step.

    State: ``norm`` (0-d float32; float64 where a weight is), ``finite`` (0-d bool), of the last call.

    Example:
        >>> import numpy as np
        >>> _, state = MonitorStep()(np.asarray([3.0, 4.0]))
        >>> float(state["norm"]), bool(state["finite"])
        (5.0, True)
    """

    def _check_options(self) -> None:
        pass

    @property
    def negates(self) -> bool:
        """Always False: nothing changes."""
        return False

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The norm and the flag."""
        return ("norm", "finite")

    def own_state(self, weights: Leaves) -> State:
        """Return a norm of 0, and finite."""
        names = {real_name(wide_name(dtype_name(leaf.dtype))) for leaf in weights.values if leaf is not None}
        norm = scalar_like(weights, 0.0, "float64" if "float64" in names else "float32")
        return {"norm": norm, "finite": scalar_like(weights, True, "bool")}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the gradients as they are, and what was seen."""
        old_norm = state.scalar("norm", ("float32", "float64"))
        old_finite = state.scalar("finite", ("bool",))
        state.require_scalar(call, "norm", old_norm)
        state.require_scalar(call, "finite", old_finite)
        if old_norm is None or old_finite is None:
            return gradients, {"norm": old_norm, "finite": old_finite}
        norm = call.global_norm(gradients)
        if norm is None:
            # No gradient came, so only the state tells the library.
            xp = namespace_of(old_norm)
            return gradients, {"norm": xp.zeros_like(old_norm), "finite": xp.ones_like(old_finite)}
        return gradients, {
            "norm": _kept(old_norm, plain_norm(call.xp, norm)),
            "finite": _kept(old_finite, call.xp.isfinite(norm.root)),
        }


def _kept(old: Array, new: Array) -> Array:
    return stored(old, on_device_of(old, new))

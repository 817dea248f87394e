"""Whether a step may be traced once for all calls: what forbids it is found by recording it."""

from collections.abc import Sequence
from typing import Any

from .namespace import BreakpointError
from .tracing import INPUT, TracedArray, TracingError


def require_traceable(
    step: Any, trees: Any, structures: Sequence[Any], leaves: Sequence[Sequence[Any]]
) -> None:
    """Refuse a step whose calls are more than what a trace holds, such as one that stops in the debugger.

    Raises:
        TracingError, BreakpointError: saying why. Other errors of the trace say nothing: this library is not
            NumPy.
    """
    try:
        step(
            *(
                None if structure is None else trees.unflatten(structure, list(map(_symbol, of_tree)))
                for structure, of_tree in zip(structures, leaves, strict=True)
            )
        )
    except BreakpointError:
        raise
    except TracingError as error:
        if error.is_refusal:
            raise
    except Exception:  # noqa: BLE001, S110
        pass


def _symbol(leaf: Any) -> TracedArray | None:
    import numpy as np

    if leaf is None:
        return None
    name = str(leaf.dtype).rsplit(".", 1)[-1]
    dtype = np.dtype("float16" if name == "bfloat16" else name)
    return TracedArray(INPUT, (), (("", 0), None), tuple(leaf.shape), dtype)

"""Whether a step may be traced once for all calls: what forbids it is found by recording it."""

from collections.abc import Sequence
from typing import Any

from .namespace import BreakpointError, passing_breakpoints
from .tracing import INPUT, TracedArray, TracingError


def checked_to_stop(
    step: Any, trees: Any, structures: Sequence[Any], leaves: Sequence[Sequence[Any]]
) -> bool:
    """Return whether a step stops in the debugger; refuse one whose calls are more than what a trace holds.

    Raises:
        TracingError: saying why.
    """
    given = [
        None if structure is None else trees.unflatten(structure, list(map(_symbol, of_tree)))
        for structure, of_tree in zip(structures, leaves, strict=True)
    ]
    try:
        _record(step, given)
    except BreakpointError:
        with passing_breakpoints():
            _record(step, given)
        return True
    return False


def _record(step: Any, given: list[Any]) -> None:
    try:
        step(*given)
    except BreakpointError:
        raise
    except TracingError as error:
        if error.is_refusal:
            raise
    except Exception:  # noqa: BLE001, S110  # It says nothing: the library that will trace is not NumPy.
        pass


def _symbol(leaf: Any) -> TracedArray | None:
    if leaf is None:
        return None
    return TracedArray(INPUT, (), (("", 0), None), tuple(leaf.shape), numpy_dtype(leaf.dtype))


def numpy_dtype(dtype: Any) -> Any:
    """Return NumPy's dtype that stands for one of any library while a step is recorded."""
    import numpy as np

    name = str(dtype).rsplit(".", 1)[-1]
    return np.dtype("float16" if name == "bfloat16" else name)

"""The ``set_breakpoint`` port: stop in the debugger before a step computes."""

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .namespaces import is_tracing


def stop_here(step: object, gradients: Sequence[Any], weights: Any, state: Any) -> None:
    """Call the debugger that PYTHONBREAKPOINT names; the arguments are there to be looked at.

    While a library traces the step there are no values to look at, so it warns instead.
    """
    if any(is_tracing(leaf) for leaf in gradients):
        warnings.warn(
            f"set_breakpoint of {type(step).__name__} is skipped while the step is traced; "
            "call the step without compiling it to stop here",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    sys.breakpointhook()

"""The ``set_breakpoint`` port: stop in the debugger before a step computes."""

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .namespaces import is_tracing, namespace_of, recorder_of


def stop_here(step: object, gradients: Sequence[Any], weights: Any, state: Any) -> None:
    """Call the debugger that PYTHONBREAKPOINT names; the arguments are there to be looked at.

    While a library traces the step there are no values to look at, so it warns instead.
    """
    for leaf in gradients:
        recorder = recorder_of(namespace_of(leaf))
        if recorder is not None:
            recorder.stop()
            return
    if any(is_tracing(leaf) for leaf in gradients):
        _warn_skipped(type(step).__name__)
    else:
        sys.breakpointhook()


def _warn_skipped(name: str) -> None:
    warnings.warn(
        f"set_breakpoint of {name} is skipped while the step is traced; "
        "call the step without compiling it to stop here",
        RuntimeWarning,
        stacklevel=2,
    )


# What torch.compiler.assume_constant_result sets: Dynamo then calls the function while it traces.
_warn_skipped._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001

"""The form of a row in the tables of bad input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Bad:
    """A call that must be refused, and what its error must say."""

    what: str
    call: Callable[[], Any]
    error: type[Exception]
    argument: str
    says: tuple[str, ...]
    path: str | None = None
    slot: str | None = None


def shown(value: Any) -> str:
    """Return how an error shows a value: with its type, and cut short."""
    name = type(value).__name__
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype} ({name})"
    if isinstance(value, np.generic):
        return f"({name})"
    return f"{value!r} ({name})" if len(repr(value)) <= 80 else repr(value)[:77]

"""An array as plain Python numbers, the form in which values travel between libraries."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .formats import COMPONENTS, LEAF_DTYPES, format_of

Number = float | complex | int | bool


@dataclass(frozen=True)
class HostArray:
    """An array outside any library; exact for every dtype we know.

    Attributes:
        dtype: the dtype's name, such as ``float32`` or ``int32``.
        shape: the lengths of the axes; empty for a 0-d array.
        values: the elements in C order, exact Python numbers.
    """

    dtype: str
    shape: tuple[int, ...]
    values: tuple[Number, ...]

    def __post_init__(self) -> None:
        size = math.prod(self.shape)
        if len(self.values) != size:
            raise ValueError(f"shape {self.shape} needs {size} values, got {len(self.values)}")

    def __str__(self) -> str:
        shown = ", ".join(repr(value) for value in self.values[:8])
        more = f", ... {len(self.values) - 8} more" if len(self.values) > 8 else ""
        return f"{self.dtype}{list(self.shape)} [{shown}{more}]"


def host_array(values: Any, dtype: str = "float32", shape: Sequence[int] | None = None) -> HostArray:
    """Return a HostArray, each value rounded once to dtype.

    Args:
        values: a number, or nested lists or tuples of numbers; with ``shape``, a flat list in C order.
        dtype: the dtype's name.
        shape: the shape; taken from the nesting where it is not given.
    """
    flat: list[Any] = []
    nested = _flatten(values, flat)
    return HostArray(dtype, nested if shape is None else tuple(shape), tuple(rounded(v, dtype) for v in flat))


def rounded(value: Any, dtype: str) -> Number:
    """Return the number that dtype holds for value: rounded to nearest, ties to even."""
    if dtype in COMPONENTS:
        number, parts = complex(value), format_of(dtype)
        return complex(parts.round(number.real), parts.round(number.imag))
    if dtype in LEAF_DTYPES:
        return format_of(dtype).round(float(value))
    return bool(value) if dtype == "bool" else int(value)


def _flatten(values: Any, into: list[Any]) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)):
        into.append(values)
        return ()
    shapes = {_flatten(item, into) for item in values}
    if len(shapes) > 1:
        raise ValueError(f"rows of one array differ in shape: {sorted(shapes)}; pass equally long rows")
    return (len(values), *(shapes.pop() if shapes else ()))

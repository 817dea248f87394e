"""Kinds of thresholds and layouts among the vectors of clipping."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from steps_backends import HostArray, format_of

from ..containers import leaves
from .kinds import Count, arrays
from .model import Vector, VectorCall


def option(vector: Vector, name: str, default: Any = None) -> Any:
    """Return an option of the vector's step, a float decoded."""
    value = vector.step.get("options", {}).get(name, default)
    return float.fromhex(value["float"]) if isinstance(value, dict) and "float" in value else value


def threshold_is(holds: Callable[[Any, Vector], bool]) -> Count:
    """Return a count of the vectors whose threshold is so."""
    return lambda vectors: sum(holds(option(vector, "threshold", 1.0), vector) for vector in vectors)


def is_tiny(threshold: Any, vector: Vector) -> bool:
    """Return whether a threshold above 0 is subnormal, or below every number, in the dtype of a gradient."""
    smallest = min(_format_values(vector, "smallest_normal"), default=0.0)
    return threshold is not None and 0 < threshold < smallest


def is_huge(threshold: Any, vector: Vector) -> bool:
    """Return whether a finite threshold is near the largest number of a gradient's dtype, or beyond."""
    largest = min(_format_values(vector, "largest"), default=math.inf)
    return threshold is not None and largest / 4 <= threshold < math.inf


def _format_values(vector: Vector, which: str) -> list[float]:
    return [getattr(format_of(a.dtype), which) for call in vector.calls for a in arrays(call.gradients)]


def equals_the_norm(threshold: Any, vector: Vector) -> bool:
    """Return whether what the variant limits is exactly as large as the limit, somewhere in a call."""
    if not threshold or threshold == math.inf:
        return False
    variant = option(vector, "variant")
    return any(
        _limited(variant, Fraction(threshold), option(vector, "epsilon", 1e-3), call) for call in vector.calls
    )


def _limited(variant: str, threshold: Fraction, epsilon: float | None, call: VectorCall) -> bool:
    found = arrays(call.gradients)
    if any(not math.isfinite(abs(value)) for array in found for value in array.values):
        return False
    squares = [_square(array) for array in found]
    if variant in ("per-weight", "per-parameter"):
        return any(_modulus(value) == threshold**2 for array in found for value in array.values)
    if variant == "per-layer":
        return threshold**2 in squares
    if variant == "global":
        return sum(squares) == threshold**2
    floor = Fraction(epsilon or 0) ** 2
    weights = dict(leaves(call.weights))
    return any(
        _square(leaf) == threshold**2 * max(_square(weights[path]), floor)
        for path, leaf in leaves(call.gradients)
        if leaf is not None and weights.get(path) is not None
    )


def _square(array: HostArray) -> Fraction:
    return sum((_modulus(value) for value in array.values), Fraction(0))


def _modulus(value: Any) -> Fraction:
    number = complex(value)
    return Fraction(number.real) ** 2 + Fraction(number.imag) ** 2


def in_both_layouts(vectors: Sequence[Vector]) -> int:
    """Return how many vectors clip a matrix that is far from uniform, if either axis is kept in some."""
    kept: dict[int, int] = {}
    for vector in vectors:
        axis = option(vector, "unit_axis", "auto")
        axis = 1 if axis in ("auto", -1) else axis
        if axis in (0, 1) and any(_is_graded(a) for call in vector.calls for a in arrays(call.gradients)):
            kept[axis] = kept.get(axis, 0) + 1
    return sum(kept.values()) if len(kept) == 2 else 0


def _is_graded(array: HostArray) -> bool:
    """Return whether a matrix has rows, and columns, whose norms differ at least fourfold."""
    if len(array.shape) != 2 or min(array.shape) < 2:
        return False
    rows, columns = array.shape
    by_row = [sum(_modulus(v) for v in array.values[r * columns : (r + 1) * columns]) for r in range(rows)]
    by_column = [sum(_modulus(v) for v in array.values[c::columns]) for c in range(columns)]
    return all(16 * min(sums) <= max(sums) for sums in (by_row, by_column))

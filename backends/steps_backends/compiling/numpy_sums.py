"""The named safe norm on NumPy: dot products of short rows, and another form beyond their safe range.

The sums come as triples of big, middle and small, each in its own scale, as the step's package defines them.
"""

import math
import sys
from collections.abc import Iterable
from typing import Any

from . import numba_source

Triple = tuple[float, float, float]

# Compiling a loop for fewer elements would take longer than it saves.
FUSED = 1 << 14
# Without numba, sums beyond the safe range take memory for so many elements.
_BLOCK = 1 << 20
# A dot product adds so many squares in the format itself; all that follows is added in float64.
ROW = 256
# Within these bounds of a row's sum, no square of float32 lost a bit that counts, nor overflowed.
_SAFE = {"float32": (2.0**-80, 2.0**80), "float64": (2.0**-800, 2.0**800)}
_SAFE_OF = {"f": _SAFE["float32"], "d": _SAFE["float64"]}  # by NumPy's character, which is at hand
# Beyond them sums of float32 are held as big or small ones.
_FLOAT32_MIDDLE = (2.0**-100, 2.0**80)


class SquareSummer:
    """Sums of squares in the terms of one package of steps.

    Args:
        norms: its module of norms.
        namespace: its namespace of NumPy.
    """

    def __init__(self, norms: Any, namespace: Any) -> None:
        self._norms, self._namespace = norms, namespace

    def of_block(self, block: Any) -> Triple:
        """Return the sums over all elements of a contiguous array."""
        import numpy as np

        flat = block.reshape(-1)
        if flat.dtype.kind == "c":
            flat = flat.view(flat.real.dtype)
        if flat.dtype.char == "f" and flat.size >= FUSED and numba_source.has_numba():
            total = numba_source.square_sum()(flat, *_SAFE["float32"])
            return self._in_range(float(total), flat)
        low, high = _SAFE_OF[flat.dtype.char]
        whole = flat.size - flat.size % ROW
        total, is_safe = 0.0, True
        if whole:
            rows = flat[:whole].reshape(-1, ROW)
            sums = np.vecdot(rows, rows)
            is_safe = low <= np.minimum.reduce(sums) and np.maximum.reduce(sums) <= high
            total = float(np.add.reduce(sums, dtype=np.float64))
        if is_safe and whole < flat.size:
            rest = flat[whole:]
            last = float(np.dot(rest, rest))
            is_safe = low <= last <= high
            total += last
        if is_safe or not flat.size:
            return 0.0, total, 0.0
        return self._of_float32(flat) if flat.dtype.name == "float32" else self._of_extremes(flat)

    def _of_float32(self, flat: Any) -> Triple:
        import numpy as np

        wide = flat.astype(np.float64)
        return self._in_range(float(np.dot(wide, wide)), flat)

    def _in_range(self, total: float, flat: Any) -> Triple:
        """Return the sums of an array of float32 whose squares have this sum."""
        low, high = _FLOAT32_MIDDLE
        form = self._norms.format_of(flat)
        if total > high:
            return total * 2.0 ** (-2 * form.big_exponent), 0.0, 0.0
        if total < low:
            return 0.0, 0.0, total * 2.0 ** (-2 * form.small_exponent)
        return 0.0, total, 0.0  # also NaN

    def _of_extremes(self, flat: Any) -> Triple:
        big, middle, small = self._norms.leaf_square_sums(self._namespace, flat)
        return float(big), float(middle), float(small)

    def total(self, triples: Iterable[Triple], dtype: Any) -> tuple[Any, Any, Any]:
        """Return the sum of triples, whatever their order, as numbers of a format."""
        columns = list(zip(*triples, strict=True)) or [()] * 3
        return tuple(dtype.type(_exact_sum(column)) for column in columns)

    def of_units(self, array: Any, axes: tuple[int, ...]) -> Any:
        """Return the sums over some axes, which stay with length 1, as a triple of arrays."""
        import numpy as np

        if array.dtype.name == "float32" and array.size and axes:
            sums = _unit_sums(array, axes)
            low, high = _SAFE["float32"]
            if low <= np.minimum.reduce(sums, None) and np.maximum.reduce(sums, None) <= high:
                zeros = np.zeros(sums.shape, np.float32)
                return zeros, sums.astype(np.float32), zeros
        return self._norms.square_sums(self._namespace, array, axes)


def most_at_once(arrays: Iterable[Any]) -> int:
    """Return how many elements of such arrays are best summed at once."""
    in_a_loop = all(array.dtype.char in "fF" for array in arrays) and numba_source.has_numba()
    return sys.maxsize if in_a_loop else _BLOCK


def _exact_sum(numbers: Iterable[float]) -> float:
    numbers = list(numbers)
    return math.fsum(numbers) if all(map(math.isfinite, numbers)) else sum(numbers)


def _unit_sums(array: Any, axes: tuple[int, ...]) -> Any:
    """Return plain sums of squares of float32 over some axes, added in float64."""
    import numpy as np

    kept = [axis for axis in range(array.ndim) if axis not in axes]
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(array.shape))
    if not kept:
        return np.vecdot(array.reshape(-1), array.reshape(-1)).astype(np.float64).reshape(shape)
    if max(axes) < min(kept):
        columns = array.reshape(-1, math.prod(array.shape[axis] for axis in kept))
        return _column_sums(columns).reshape(shape)
    rows = array if max(kept) < min(axes) else array.transpose(*kept, *axes)
    rows = rows.reshape(math.prod(array.shape[axis] for axis in kept), -1)
    return _row_sums(rows).reshape(shape)


def _column_sums(columns: Any) -> Any:
    import numpy as np

    count, width = columns.shape
    total = np.zeros(width)
    step = max(1, (1 << 16) // width)
    squares = np.empty((min(step, count), width))
    for start in range(0, count, step):
        block = columns[start : start + step]
        part = squares[: len(block)]
        np.multiply(block, block, out=part, dtype=np.float64)
        total += np.add.reduce(part, axis=0)
    return total


def _row_sums(rows: Any) -> Any:
    import numpy as np

    whole = rows.shape[1] - rows.shape[1] % ROW
    total = np.zeros(len(rows))
    if whole:
        short = rows[:, :whole].reshape(len(rows), -1, ROW)
        total += np.add.reduce(np.vecdot(short, short), axis=1, dtype=np.float64)
    if whole < rows.shape[1]:
        rest = rows[:, whole:]
        total += np.vecdot(rest, rest)
    return total

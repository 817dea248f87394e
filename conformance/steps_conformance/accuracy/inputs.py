"""Inputs of any size whose exact norm is known: a short seeded pattern, repeated."""

import math
from random import Random
from typing import Any

from steps_backends import HostArray, host_array

from ..oracle.exact import mp, number

ROWS_READ = 16
EQUAL = (1.1, 0.7, 1.7951936, 1.9223250, 1.9433568)
"""Values of which many equal ones are summed worst, out of thirty that were tried."""

_PATTERN = 1000


def pattern(dtype: str, kind: str, seed: int) -> tuple[Any, ...]:
    """Return up to a thousand values, exact in dtype.

    Args:
        dtype: of the values.
        kind: "mixed": both signs, magnitudes over six powers of ten; "equal": one value, for which every
            rounding error of a sum goes the same way.
        seed: of the random numbers.
    """
    random = Random(seed)
    if kind == "equal":
        return host_array(EQUAL[:1], dtype).values
    values = [random.choice((-1, 1)) * 10 ** random.uniform(-3, 3) for _ in range(_PATTERN)]
    if dtype.startswith("complex"):
        return host_array(
            [complex(a, b) for a, b in zip(values, reversed(values), strict=True)], dtype
        ).values
    return host_array(values, dtype).values


def patterns(dtype: str, kind: str, seed: int) -> list[tuple[Any, ...]]:
    """Return all patterns of a kind: one of mixed values, and several of equal ones."""
    if kind == "equal":
        return [host_array([value], dtype).values for value in EQUAL]
    return [pattern(dtype, kind, seed)]


def repeated(values: tuple[Any, ...], dtype: str, size: int, columns: int = 1) -> HostArray:
    """Return the pattern repeated to a vector, or to a matrix of which each column is that vector."""
    whole, rest = divmod(size, len(values))
    vector = values * whole + values[:rest]
    if columns == 1:
        return HostArray(dtype, (size,), vector)
    return HostArray(dtype, (size, columns), tuple(value for value in vector for _ in range(columns)))


def norm_of(values: tuple[Any, ...], size: int) -> Any:
    """Return the exact norm of the pattern repeated to a vector."""
    squares = [number(abs_squared(value)) for value in values]
    whole, rest = divmod(size, len(values))
    return mp.sqrt(whole * mp.fsum(squares) + mp.fsum(squares[:rest]))


def abs_squared(value: Any) -> Any:
    """Return |value|^2 exactly."""
    if isinstance(value, complex):
        return number(value.real) ** 2 + number(value.imag) ** 2
    return number(value) ** 2


def most(kind: str, dtype: str) -> int:
    """Return the largest size that is worth its time: equal elements are measured for several values."""
    if kind == "mixed":
        return 10_000_000
    return 1_000_000 if dtype in ("float32", "float64") else 100_000


def sizes_up_to(largest: int) -> list[int]:
    """Return 1, 10, 1,000, 10^5, 10^6 and 10^7, as far as largest."""
    return [size for size in (1, 10, 1000, 100_000, 1_000_000, 10_000_000) if size <= largest] or [
        math.ceil(largest)
    ]

"""The element-wise rules of a graph: for arrays, and for numbers, which are computed as Python doubles."""

import math
from collections.abc import Callable
from typing import Any

from ..namespaces import Array, Namespace
from ..numerics.norms import safe_sqrt
from ..shards import is_sharded, on_local_part

_FAR = 100  # beyond 2^100, or below 2^-100, a library's rounded reciprocal may leave the format
_SHIFT = 2.0**64


def divided(xp: Namespace, x: Any, y: Any) -> Array:
    """Return x / y, also where 1 / y, which some libraries multiply by, would leave the format."""
    if isinstance(y, (int, float)):
        _, exponent = math.frexp(y)
        if y != 0 and math.isfinite(y) and abs(exponent) > _FAR:
            factor = 1 / _SHIFT if exponent > 0 else _SHIFT
            # Compilers fold the two constants into one that may leave the format, but not through a choice.
            return xp.where(x == 0, x, x * factor) / (y * factor)
        return x / y
    if isinstance(x, (int, float)):
        return xp.full_like(y, x) / y
    if y.shape != x.shape:
        size = xp.abs(y)
        is_large, is_small = size > 2.0**_FAR, size < 2.0**-_FAR
        return _shifted(xp, x, is_large, is_small) / _shifted(xp, y, is_large, is_small)
    return x / y


def _shifted(xp: Namespace, x: Array, is_large: Array, is_small: Array) -> Array:
    return xp.where(is_large, x * (1 / _SHIFT), xp.where(is_small, x * _SHIFT, x))


def smaller(xp: Namespace, x: Any, y: Any) -> Array:
    """Return the minimum; NaN where either is NaN."""
    return _first_unless(xp, x, y, lambda a, b: a > b)


def larger(xp: Namespace, x: Any, y: Any) -> Array:
    """Return the maximum; NaN where either is NaN."""
    return _first_unless(xp, x, y, lambda a, b: a < b)


def _first_unless(xp: Namespace, x: Any, y: Any, replaces: Callable[[Any, Any], Any]) -> Array:
    if isinstance(x, (int, float)):
        x, y = y, x
    # Written with where, because not every library's minimum takes a number.
    if isinstance(y, (int, float)):
        return xp.where(replaces(x, y), y, x)
    return xp.where(xp.logical_or(replaces(x, y), xp.isnan(y)), y, x)


def limited(xp: Namespace, x: Any, lower: Any, upper: Any) -> Array:
    """Return x brought between lower and upper; upper wins where they cross."""
    return smaller(xp, larger(xp, x, lower), upper)


def chosen(xp: Namespace, condition: Any, x: Any, y: Any) -> Array:
    """Return x where the condition holds, else y."""
    return xp.where(condition, x, y)


def power(xp: Namespace, x: Any, y: Any) -> Array:
    """Return x to the power y."""
    if isinstance(x, (int, float)):
        x = xp.full_like(y, x)
    if isinstance(y, (int, float)):
        y = xp.full_like(x, y)
    return xp.pow(x, y)


def signum(xp: Namespace, x: Array) -> Array:
    """Return -1, 0 or 1, x / |x| of a complex element; 0 keeps its sign, NaN stays."""
    if xp.isdtype(x.dtype, "complex floating"):
        if is_sharded(x):
            return on_local_part(x, lambda part: [xp.sign(part)])[0]
        return xp.sign(x)
    one = xp.ones_like(x)
    # x * 0.0, not x: its derivative is 0 as everywhere else.
    return xp.where(x > 0, one, xp.where(x < 0, -one, x * 0.0))


def square(xp: Namespace, x: Array) -> Array:
    """Return x * x."""
    return x * x


def root(xp: Namespace, x: Array) -> Array:
    """Return the square root, with a finite derivative (0) at 0; NaN below 0."""
    return safe_sqrt(xp, x)


# What the operation makes of arrays, and of numbers alone.
ELEMENTWISE: dict[str, tuple[Callable[..., Array], Callable[..., Any]]] = {
    "add": (lambda xp, x, y: x + y, lambda x, y: x + y),
    "subtract": (lambda xp, x, y: x - y, lambda x, y: x - y),
    "multiply": (lambda xp, x, y: x * y, lambda x, y: x * y),
    "divide": (divided, lambda x, y: x / y),
    "power": (power, math.pow),
    "negative": (lambda xp, x: -x, lambda x: -x),
    "abs": (lambda xp, x: xp.abs(x), abs),
    "sign": (signum, lambda x: math.copysign(1.0, x) if x else x),
    "square": (square, lambda x: x * x),
    "sqrt": (root, math.sqrt),
    "exp": (lambda xp, x: xp.exp(x), math.exp),
    "log": (lambda xp, x: xp.log(x), math.log),
    "minimum": (smaller, min),
    "maximum": (larger, max),
    "clip": (limited, lambda x, lower, upper: min(max(x, lower), upper)),
    "where": (chosen, lambda condition, x, y: x if condition else y),
    "less": (lambda xp, x, y: x < y, lambda x, y: x < y),
    "less_equal": (lambda xp, x, y: x <= y, lambda x, y: x <= y),
    "greater": (lambda xp, x, y: x > y, lambda x, y: x > y),
    "greater_equal": (lambda xp, x, y: x >= y, lambda x, y: x >= y),
    "isfinite": (lambda xp, x: xp.isfinite(x), math.isfinite),
    "logical_and": (lambda xp, x, y: xp.logical_and(x, y), lambda x, y: x and y),
    "logical_or": (lambda xp, x, y: xp.logical_or(x, y), lambda x, y: x or y),
    "logical_not": (lambda xp, x: xp.logical_not(x), lambda x: not x),
}

TRUTHS = ("less", "less_equal", "greater", "greater_equal", "isfinite")
OF_TRUTHS = ("logical_and", "logical_or", "logical_not")
NEED_ORDER = ("minimum", "maximum", "clip", "less", "less_equal", "greater", "greater_equal")

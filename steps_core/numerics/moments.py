"""Moving averages, their bias correction, and counters: what the states of the optimizers are made of."""

import math
from typing import Any

from ..namespaces import Array, Namespace, astype, is_traced_by_jax
from .formats import format_of
from .norms import squared_magnitude

_LAST_COUNT = 2**31 - 1

Decay = Any  # a Python float, or a 0-d array in the format of what it multiplies


def next_count(xp: Namespace, count: Array) -> Array:
    """Return count + 1, which stays at the largest int32."""
    return xp.minimum(count, xp.full_like(count, _LAST_COUNT - 1)) + 1


def next_average(average: Array, x: Array, decay: Decay) -> Array:
    """Return decay * average + (1 - decay) * x.

    A difference, because XLA makes (average + x) * 0.5 of it where decay is 0.5, which may overflow.
    """
    return decay * average - (decay - 1.0) * x


def next_second_moment(xp: Namespace, moment: Array, x: Array, decay: Decay) -> Array:
    """Return decay * moment + (1 - decay) * |x|^2, at most the largest finite number."""
    return at_most_largest(xp, decay * moment + squared_magnitude(xp, x, 1.0 - decay))


def at_most_largest(xp: Namespace, x: Array) -> Array:
    """Return x with infinity replaced by the largest finite number; NaN stays."""
    largest = format_of(x).largest
    if is_traced_by_jax(x):
        # XLA computes a minimum with a constant, and all before it, anew in each loop that reads the result.
        return xp.where(x > largest, largest, x)
    return xp.minimum(x, xp.full_like(x, largest))


def bias_correction(xp: Namespace, count: Array, decay: Decay) -> Array:
    """Return 1 - decay**count, as -expm1(count * log(decay)), which keeps its digits near 0.

    Args:
        count: 0-d floating array of at least 1.
        decay: at least 0 and below 1.
    """
    if isinstance(decay, float):
        log_decay = math.log(decay) if decay > 0 else -math.inf
    else:
        # Of a decay near 1, the difference to 1 is exact and holds the digits.
        log_decay = xp.log1p(-(1.0 - decay))
    return -xp.expm1(count * log_decay)


def quotient_or_zero(xp: Namespace, numerator: Array, denominator: Array) -> Array:
    """Return numerator / denominator, and the numerator (0 for a zero gradient) where that divides by 0."""
    return numerator / xp.where(denominator == 0, 1.0, denominator)


def in_real_dtype(xp: Namespace, scalar: Array, leaf: Array) -> Array:
    """Return a real 0-d array in the dtype of a leaf's magnitude."""
    return astype(xp, scalar, getattr(xp, format_of(leaf).name))


def next_trace(trace: Array, x: Array, decay: Decay, *, nesterov: bool) -> tuple[Array, Array]:
    """Return the new trace and the direction that momentum takes.

    trace' = decay * trace + x;  direction = trace', or x + decay * trace' with nesterov
    """
    trace = decay * trace + x
    return trace, x + decay * trace if nesterov else trace

"""Limiting a norm: the factor that brings it down to a limit, and its use on a leaf.

    limit = threshold * max(reference, floor)        (reference 1 and floor 0 where there is none)
    x' = x                      where norm <= limit, bit for bit
    x' = x * (limit / norm)     elsewhere; NaN where the norm or the reference is NaN

limit / norm may lie below the smallest normal number although x' does not, so it is held as
``ratio = limit / norm * 2**-e`` with e the exponent of the smallest normal number, and used in two factors.
"""

import math
from typing import Any, NamedTuple

from ..namespaces import Array, Namespace, astype
from .formats import FLOAT32, FLOAT64, FloatFormat, constant, format_of
from .norms import ScaledNorm, as_norm, by_range, product

Number = Any  # a Python float, or a 0-d array of the norm's format


class Limit(NamedTuple):
    """Where the norm is within its limit, and how far it must come down elsewhere."""

    is_kept: Array
    ratio: Array


def limit_norm(
    xp: Namespace, norm: ScaledNorm, threshold: Number, reference: ScaledNorm | None = None
) -> Limit:
    """Return the limit of a norm to threshold, or to threshold times a reference norm.

    Args:
        norm: of any shape.
        threshold: finite number above 0; or a 0-d array of norm's format, which may also be 0 or infinite.
        reference: of the same shape as norm.
    """
    form = format_of(norm.root)
    is_zero = norm.root == 0
    is_number = isinstance(threshold, float)
    mantissa, exponent = math.frexp(threshold) if is_number else (1.0, 0)
    if not is_number:
        limit = as_norm(xp, threshold)
        reference = limit if reference is None else product(xp, limit, reference)
    # Array by array: some libraries multiply by a rounded reciprocal when one side is a Python number.
    share = xp.full_like(norm.root, mantissa) if reference is None else reference.root * mantissa
    quotient = share / xp.where(is_zero, 1.0, norm.root)
    if reference is None:
        ratio = _scaled_quotient(xp, quotient, norm, form, exponent)
    else:
        big, middle, small = (
            _scaled_quotient(xp, quotient, norm, form, exponent + own)
            for own in (form.big_exponent, 0, form.small_exponent)
        )
        ratio = xp.where(reference.is_big, big, xp.where(reference.is_middle, middle, small))
    is_kept = xp.logical_or(is_zero, ratio >= 2.0**-form.smallest_normal_exponent)
    if not is_number:
        is_kept = xp.logical_or(is_kept, threshold == math.inf)
    return Limit(is_kept, ratio)


def _scaled_quotient(
    xp: Namespace, quotient: Array, norm: ScaledNorm, form: FloatFormat, exponent: int
) -> Array:
    """Return quotient * 2**(exponent - exponent of the norm - smallest normal exponent)."""
    exponents = [
        exponent - own - form.smallest_normal_exponent for own in (form.big_exponent, 0, form.small_exponent)
    ]
    # In two halves, because the power of two alone may be out of range.
    halves = [_halves(power, -2 * form.smallest_normal_exponent) for power in exponents]
    for big, middle, small in zip(*halves, strict=True):
        quotient = by_range(xp, norm, quotient, (big, middle, small))
    return quotient


def _halves(power: int, most: int) -> tuple[float, float]:
    """Return two powers of two whose product is 2**power; beyond most either way the result is settled."""
    power = max(-most, min(most, power))
    return 2.0 ** (power // 2), 2.0 ** (power - power // 2)


def at_least(xp: Namespace, norm: ScaledNorm, floor: Number) -> ScaledNorm:
    """Return the maximum of a norm and a number of at least 0; NaN stays NaN."""
    form = format_of(norm.root)
    if not isinstance(floor, float):
        scales = (2.0**-form.big_exponent, 1.0, 2.0**-form.small_exponent)
        is_below = norm.root < by_range(xp, norm, floor, scales)
        least = as_norm(xp, floor)
        return ScaledNorm(*(xp.where(is_below, new, old) for new, old in zip(least, norm, strict=True)))
    if floor == 0:
        return norm
    is_big, is_middle = floor > form.big_above, form.small_below <= floor <= form.big_above
    exponent = form.big_exponent if is_big else 0 if is_middle else form.small_exponent
    in_each_range = [constant(floor * 2.0**-own, form) for own in (form.big_exponent, 0, form.small_exponent)]
    big, middle, small = in_each_range
    is_below = norm.root < by_range(xp, norm, xp.ones_like(norm.root), (big, middle, small))
    return ScaledNorm(
        xp.where(is_below, constant(floor * 2.0**-exponent, form), norm.root),
        xp.where(is_below, xp.full_like(norm.is_big, is_big), norm.is_big),
        xp.where(is_below, xp.full_like(norm.is_middle, is_middle), norm.is_middle),
    )


def in_format(xp: Namespace, limit: Limit, form: FloatFormat) -> Limit:
    """Return the limit as leaves of that format use it."""
    if format_of(limit.ratio) is form:
        return limit
    shift = FLOAT64.smallest_normal_exponent - FLOAT32.smallest_normal_exponent
    return Limit(limit.is_kept, astype(xp, limit.ratio * 2.0**shift, xp.float32))


def apply_limit(xp: Namespace, x: Array, limit: Limit) -> Array:
    """Return x where the norm is kept, else x times limit / norm."""
    form = format_of(x)
    is_kept, ratio = in_format(xp, limit, form)
    tiny = 2.0**form.smallest_normal_exponent
    # Kept elements see a factor of 1: a derivative of 0 times infinity would be NaN, and subnormal products
    # take long.
    ratio = xp.where(is_kept, 1.0 / tiny, ratio)
    is_below_normal = ratio < 1.0
    first = xp.where(is_below_normal, tiny, ratio * tiny)
    second = xp.where(is_below_normal, ratio, 1.0)
    return xp.where(is_kept, x, (x * first) * second)


def rescale(xp: Namespace, x: Array, norm: ScaledNorm) -> Array:
    """Return x / norm, its unit vector; x where the norm is 0.

    x is brought to the root's scale first, so that neither factor overflows.
    """
    form = format_of(norm.root)
    scales = (2.0**-form.big_exponent, 1.0, 2.0**-form.small_exponent)
    return by_range(xp, norm, x, scales) / xp.where(norm.root == 0, 1.0, norm.root)

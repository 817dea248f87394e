"""Sums in blocks of blocks, so that rounding errors hardly grow with the length, on every library."""

import math
from collections.abc import Iterable

from ..namespaces import Array, Namespace, is_split_by_compiler, part_of
from ..shards import is_sharded, only_element, summed_axes

# A library may add the elements of a block one by one: short blocks keep that harmless, long ones fast.
BLOCK = 128
# Rows are always added one by one, and as fast in short blocks.
ROW_BLOCK = 8
# Parts of an axis that are added up first; shorter ones would leave as much to add as there was.
SHORTEST = 16


def blocked_sum(xp: Namespace, x: Array, axis: int) -> Array:
    """Return the sum over one axis, which vanishes: of blocks first, then in the same way of their sums.

    A plain sum over an axis that is not contiguous adds one row after another, and is thousands of
    ulps off at a million rows.
    """
    length, block = x.shape[axis], BLOCK if axis == x.ndim - 1 else ROW_BLOCK
    if length <= block:
        return xp.sum(x, axis=axis)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    parts = _equal_parts(length, block) if is_split_by_compiler(xp) else 1
    if parts > 1:
        x = xp.reshape(x, (*before, parts, length // parts, *after))
        return blocked_sum(xp, blocked_sum(xp, x, axis + 1), axis)
    whole = length // block * block
    blocks = x if whole == length else part_of(x, axis, 0, whole)
    blocks = xp.reshape(blocks, (*before, whole // block, block, *after))
    total = blocked_sum(xp, xp.sum(blocks, axis=axis + 1), axis)
    if whole == length:
        return total
    return total + xp.sum(part_of(x, axis, whole, length), axis=axis)


def _equal_parts(length: int, block: int) -> int:
    """Return into how many equal parts an axis is cut: a multiple of the devices it may be spread over.

    The compiler does not say over how many. It gathers the array where a device would hold a piece of a part
    beside others, so the parts take all factors of 2 that they can. Each stays long, for speed.
    """
    most = min(block, length // min(SHORTEST, block // 2))
    divisors = [parts for parts in range(1, most + 1) if length % parts == 0]
    return max(divisors, key=lambda parts: (parts & -parts, parts))


def sum_over(xp: Namespace, x: Array, axes: tuple[int, ...]) -> Array:
    """Return the sum over these axes, which stay with length 1; no axes: x itself."""
    if not axes:
        return x
    if is_sharded(x):
        return summed_axes(x, axes, lambda part, over: [sum_over(xp, part, over)])[0]
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(x.shape))
    if 0 in x.shape:
        return xp.sum(x, axis=axes, keepdims=True)
    if not kept:
        return xp.reshape(sum_of_all(xp, x), shape)
    if is_split_by_compiler(xp):
        return xp.reshape(_axis_by_axis(xp, x, axes), shape)
    leading = max(axes) < min(kept)
    order = (*axes, *kept) if leading else (*kept, *axes)
    if order != tuple(range(x.ndim)):
        x = xp.permute_dims(x, order)
    rows = math.prod(x.shape[: len(axes)]) if leading else math.prod(x.shape[: len(kept)])
    return xp.reshape(blocked_sum(xp, xp.reshape(x, (rows, -1)), 0 if leading else 1), shape)


def as_number(xp: Namespace, x: Array) -> Array:
    """Return the one element of an array as a 0-d array."""
    return only_element(x) if is_sharded(x) else xp.reshape(x, ())


def sum_of_all(xp: Namespace, x: Array) -> Array:
    """Return the 0-d sum of all elements."""
    if is_split_by_compiler(xp):
        return _axis_by_axis(xp, x, range(x.ndim))
    return blocked_sum(xp, xp.reshape(x, (-1,)), 0)


def _axis_by_axis(xp: Namespace, x: Array, axes: Iterable[int]) -> Array:
    """Return the sum over axes, which vanish; none are merged, since a split array would be gathered."""
    for axis in sorted(axes, reverse=True):
        x = blocked_sum(xp, x, axis)
    return x


def mean_over(xp: Namespace, x: Array, axes: tuple[int, ...]) -> Array:
    """Return the mean of at least one element over these axes, also where the sum overflows.

    The axes stay with length 1.

    mean = sum(x) / n, or n' / n * sum(x / n') with n' the power of two above n where sum(x) is not finite
    """
    count = math.prod([x.shape[axis] for axis in axes])
    plain = sum_over(xp, x, axes) / count
    power = 2.0 ** math.ceil(math.log2(count))
    scaled = sum_over(xp, x / power, axes) * (power / count)
    return xp.where(xp.isfinite(plain), plain, scaled)

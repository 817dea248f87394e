"""The overflow-safe L2 norm (Blue 1978): right for every finite input, in one pass and without branches.

    big, middle, small = sums of |x|^2 over the three ranges of a format, each scaled to be safe
    norm = root * 2^e,  with e = big_exponent, 0 or small_exponent

J. L. Blue, "A Portable Fortran Program to Find the Euclidean Norm of a Vector", ACM TOMS 4(1), 1978.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..namespaces import Array, Namespace, recorder_of
from ..shards import is_sharded, on_local_part, summed_axes
from .formats import FloatFormat, format_of
from .sums import BLOCK, sum_of_all, sum_over


class SquareSums(NamedTuple):
    """Sums of squares of the big, middle and small elements, each in its own scale."""

    big: Array
    middle: Array
    small: Array


class ScaledNorm(NamedTuple):
    """A norm as ``root * 2**exponent``; the exponent is told by two masks (neither: small)."""

    root: Array
    is_big: Array
    is_middle: Array


def real_parts(xp: Namespace, x: Array) -> tuple[Array, ...]:
    """Return the real arrays whose squares add up to |x|^2."""
    if xp.isdtype(x.dtype, "complex floating"):
        if is_sharded(x):
            return tuple(on_local_part(x, lambda part: real_parts(xp, part)))
        return xp.real(x), xp.imag(x)
    return (x,)


def squared_magnitude(xp: Namespace, x: Array, factor: Any = 1.0) -> Array:
    """Return factor * |x|^2, which overflows only where that product does."""
    squares = [(factor * part) * part for part in real_parts(xp, x)]
    return squares[0] if len(squares) == 1 else squares[0] + squares[1]


def safe_sqrt(xp: Namespace, x: Array) -> Array:
    """Return the square root, with a finite derivative (0) where x is 0."""
    is_zero = x == 0
    return xp.where(is_zero, 0.0, xp.sqrt(xp.where(is_zero, 1.0, x)))


def of_unit_norms(
    xp: Namespace,
    arrays: Sequence[Array],
    axes: Sequence[tuple[int, ...]],
    function: Callable[[list[ScaledNorm]], Any],
) -> Any:
    """Return a function of the norms over each array's own axes, which stay with length 1.

    Whoever compiles a step is asked for all norms at once, and knows what small arrays are made of them.
    """

    def of_sums(sums: Sequence[Sequence[Array]]) -> Any:
        return function([scaled_norm(xp, SquareSums(*of_array)) for of_array in sums])

    recorder = recorder_of(xp)
    if recorder is not None:
        return recorder.of_square_sums(arrays, axes, of_sums)
    return of_sums([square_sums(xp, x, own) for x, own in zip(arrays, axes, strict=True)])


def square_sums(xp: Namespace, x: Array, axes: tuple[int, ...]) -> SquareSums:
    """Return the sums over these axes, which stay with length 1."""
    recorder = recorder_of(xp)
    if recorder is not None:
        return SquareSums(*recorder.of_square_sums([x], [axes], list)[0])
    if is_sharded(x):
        return SquareSums(*summed_axes(x, axes, lambda part, over: square_sums(xp, part, over)))
    return _summed(xp, x, lambda squares: sum_over(xp, squares, axes))


def leaf_square_sums(xp: Namespace, x: Array) -> SquareSums:
    """Return the 0-d sums over a whole leaf."""
    return _summed(xp, x, lambda squares: sum_of_all(xp, squares))


def joint_square_sums(xp: Namespace, leaves: Iterable[Array]) -> SquareSums:
    """Return the 0-d sums over leaves of one format on one device."""
    recorder = recorder_of(xp)
    if recorder is not None:
        return SquareSums(*recorder.joint_square_sums(leaves))
    return add_square_sums(xp, [leaf_square_sums(xp, leaf) for leaf in leaves])


def _summed(xp: Namespace, x: Array, sum_up: Callable[[Array], Array]) -> SquareSums:
    parts = [_squares_by_range(xp, part, format_of(part)) for part in real_parts(xp, x)]
    sums = [SquareSums(*map(sum_up, squares)) for squares in parts]
    return sums[0] if len(sums) == 1 else SquareSums(*(a + b for a, b in zip(*sums, strict=True)))


def _squares_by_range(xp: Namespace, x: Array, form: FloatFormat) -> tuple[Array, Array, Array]:
    magnitude = xp.abs(x)
    is_big = magnitude > form.big_above
    is_small = magnitude < form.small_below
    # NaN is neither big nor small, so it reaches the middle sum.
    big = xp.where(is_big, x * 2.0**-form.big_exponent, 0.0)
    middle = xp.where(xp.logical_or(is_big, is_small), 0.0, x)
    small = xp.where(is_small, x * 2.0**-form.small_exponent, 0.0)
    return big * big, middle * middle, small * small


def add_square_sums(xp: Namespace, sums: Sequence[SquareSums]) -> SquareSums:
    """Return the total of 0-d sums of one format and device, in blocks of blocks so that many stay exact."""
    while len(sums) > 1:
        blocks = [sums[start : start + BLOCK] for start in range(0, len(sums), BLOCK)]
        sums = [
            SquareSums(*(xp.sum(xp.stack(column)) for column in zip(*block, strict=True))) for block in blocks
        ]
    return sums[0]


def scaled_norm(xp: Namespace, sums: SquareSums) -> ScaledNorm:
    """Return the norm that belongs to the sums."""
    form = format_of(sums.big)
    is_big = sums.big != 0
    is_middle = xp.logical_and(sums.middle != 0, xp.logical_not(is_big))
    # Compilers fold constant factors over products, also (x * 2^a) * (x * 2^a) into x * x * 4^a, which
    # underflows. They do not look through a choice.
    middle_beside_big = xp.where(is_big, safe_sqrt(xp, sums.middle) * 2.0**-form.big_exponent, 0.0)
    small_beside_middle = xp.where(is_middle, safe_sqrt(xp, sums.small) * 2.0**form.small_exponent, 0.0)
    squared = xp.where(
        is_big,
        sums.big + middle_beside_big * middle_beside_big,
        xp.where(is_middle, sums.middle + small_beside_middle * small_beside_middle, sums.small),
    )
    return ScaledNorm(safe_sqrt(xp, squared), is_big, is_middle)


def plain_norm(xp: Namespace, norm: ScaledNorm) -> Array:
    """Return the norm as one number; infinite where it is beyond the format."""
    form = format_of(norm.root)
    return by_range(xp, norm, norm.root, (2.0**form.big_exponent, 1.0, 2.0**form.small_exponent))


def as_norm(xp: Namespace, value: Array) -> ScaledNorm:
    """Return numbers of at least 0 in the form of norms."""
    everywhere = xp.ones_like(value, dtype=xp.bool)
    return _settled(xp, ScaledNorm(value, xp.logical_not(everywhere), everywhere))


def product(xp: Namespace, one: ScaledNorm, other: ScaledNorm) -> ScaledNorm:
    """Return the product of two norms: it loses digits only where it is far below every number of the format.

    The roots are multiplied and the exponents added, to the nearest exponent that there is.
    """
    form = format_of(one.root)
    big, mixed, small = (
        2.0**exponent
        for exponent in (form.big_exponent, form.big_exponent + form.small_exponent, form.small_exponent)
    )
    root = one.root * other.root
    shifted = xp.where(
        one.is_big,
        by_range(xp, other, root, (big, 1.0, mixed)),
        xp.where(one.is_middle, root, by_range(xp, other, root, (mixed, 1.0, small))),
    )
    # Two finite norms have a finite product: above every norm of finite numbers, not above infinity.
    shifted = xp.where(xp.isfinite(root), xp.minimum(shifted, xp.full_like(root, form.largest)), shifted)
    one_small = xp.logical_not(xp.logical_or(one.is_big, one.is_middle))
    other_small = xp.logical_not(xp.logical_or(other.is_big, other.is_middle))
    is_mixed = xp.logical_or(xp.logical_and(one.is_big, other_small), xp.logical_and(other.is_big, one_small))
    is_big = xp.logical_and(xp.logical_or(one.is_big, other.is_big), xp.logical_not(is_mixed))
    is_middle = xp.logical_or(is_mixed, xp.logical_and(one.is_middle, other.is_middle))
    return _settled(xp, ScaledNorm(shifted, is_big, is_middle))


def _settled(xp: Namespace, norm: ScaledNorm) -> ScaledNorm:
    """Return a norm whose root may lie outside its range, in the range of its value."""
    form = format_of(norm.root)
    # Exact in the middle range. Elsewhere it may be infinite or 0, which still tells the range.
    value = plain_norm(xp, norm)
    is_big = value > form.big_above
    is_middle = xp.logical_and(value >= form.small_below, xp.logical_not(is_big))
    settled = ScaledNorm(value, is_big, is_middle)
    scales = (2.0**-form.big_exponent, 1.0, 2.0**-form.small_exponent)
    moved = by_range(xp, settled, value, scales)
    passes_middle = xp.logical_or(is_middle, norm.is_middle)
    return settled._replace(root=xp.where(passes_middle, moved, norm.root))


def by_range(xp: Namespace, norm: ScaledNorm, x: Array, factors: tuple[float, float, float]) -> Array:
    """Return x times the factor for the range that the norm is in."""
    big, middle, small = factors
    return xp.where(norm.is_big, x * big, xp.where(norm.is_middle, x * middle, x * small))

"""The overflow-safe norm, against norms worked out in 50 digits."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from comparing import assert_within_ulps
from libraries import Library

from steps_core.namespaces import namespace_of
from steps_core.numerics.formats import FLOAT32, FLOAT64, FloatFormat
from steps_core.numerics.joint import joint_norm
from steps_core.numerics.norms import (
    ScaledNorm,
    as_norm,
    leaf_square_sums,
    plain_norm,
    product,
    safe_sqrt,
    scaled_norm,
    square_sums,
    squared_magnitude,
)

WIDE = ("float32", "float64", "complex64", "complex128")
EXPONENTS = {"float32": (-126, 127), "float64": (-1022, 1023)}
LIMITS = {"float32": (2.0**40, 2.0**-50), "float64": (2.0**480, 2.0**-470)}


def exact_norm(values: Any) -> float:
    """Return the norm, worked out in 50 digits."""
    with mpmath.workdps(50):
        squares = [abs(mpmath.mpmathify(complex(value))) ** 2 for value in np.ravel(values)]
        return float(mpmath.sqrt(mpmath.fsum(squares)))


def pairs(dtype: str) -> np.ndarray:
    """Return pairs of numbers over the whole range of a format, up to 2**16 apart."""
    lowest, highest = EXPONENTS[dtype]
    rng = np.random.default_rng(1)
    rows = [
        (math.ldexp(rng.uniform(1, 1.9), e), -math.ldexp(rng.uniform(1, 1.9), max(e - gap, lowest)))
        for e in range(lowest, highest, 7 if dtype == "float32" else 31)
        for gap in (0, 1, 5, 16)
    ]
    return np.asarray(rows, dtype)


def norms_of_rows(library: Library, values: Any, dtype: str) -> np.ndarray:
    """Return the norm of each row, as the package computes it."""
    array = library.array(values, dtype)
    xp = namespace_of(array)
    return library.values(plain_norm(xp, scaled_norm(xp, square_sums(xp, array, (1,)))))[:, 0]


def norm_of_leaf(library: Library, values: Any, dtype: str = "float32") -> np.ndarray:
    """Return the norm of one leaf, as the package computes it."""
    array = library.array(values, dtype)
    xp = namespace_of(array)
    return library.values(plain_norm(xp, scaled_norm(xp, leaf_square_sums(xp, array))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_norm_is_right_over_the_whole_range(library: Library, dtype: str) -> None:
    """Pairs from the smallest normal number to the largest, where plain squares are 0 or infinite."""
    if dtype not in library.dtypes:
        pytest.skip(f"{library.name} has no {dtype} here")
    rows = pairs(dtype)
    assert_within_ulps(norms_of_rows(library, rows, dtype), [exact_norm(row) for row in rows], 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_norm_is_right_at_the_limits_of_the_ranges(library: Library, dtype: str) -> None:
    """Elements at, just above and just below the limits between big, middle and small."""
    if dtype not in library.dtypes:
        pytest.skip(f"{library.name} has no {dtype} here")
    near = [np.nextafter(np.asarray(x, dtype), y) for x in LIMITS[dtype] for y in (0, np.inf)]
    rows = np.asarray([(x, y) for x in [*near, *LIMITS[dtype]] for y in [0, x, x * 0.75, x * 1.5]], dtype)
    assert_within_ulps(norms_of_rows(library, rows, dtype), [exact_norm(row) for row in rows], 2)


def test_many_elements_of_one_range_weigh_against_few_of_the_next(library: Library) -> None:
    """A million small elements beside a middle one, and middle ones beside a big one, all count."""
    for one, many in ((2.0**-49, 2.0**-52), (2.0**41, 2.0**38)):
        values = np.full(1_000_000, many, "float32")
        values[0] = one
        assert_within_ulps(norm_of_leaf(library, values), math.sqrt(one**2 + 999_999 * many**2), 4)


def test_a_norm_beyond_the_format_has_a_finite_root(library: Library) -> None:
    """Two elements of 3e38 have no float32 norm, but a root and a range that tell it."""
    array = library.array([3e38, 3e38])
    xp = namespace_of(array)
    norm = scaled_norm(xp, leaf_square_sums(xp, array))
    assert library.values(norm.is_big)
    assert_within_ulps(library.values(norm.root), math.hypot(3e38, 3e38) * 2.0**-80, 2)
    assert library.values(plain_norm(xp, norm)) == np.inf


def test_a_complex_norm_counts_both_parts(library: Library) -> None:
    """|3 + 4i| and |12i| have the norm 13."""
    assert_within_ulps(norm_of_leaf(library, [3 + 4j, 12j], "complex64"), 13.0, 1)


def test_a_complex_norm_has_parts_of_different_ranges(library: Library) -> None:
    """A big real part beside a small imaginary one neither overflows nor becomes NaN."""
    values = np.asarray([1e30 + 1e-30j, 1e30j], "complex64")
    assert_within_ulps(norm_of_leaf(library, values, "complex64"), exact_norm(values), 2)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 2)])
def test_an_empty_leaf_has_norm_zero(library: Library, shape: tuple[int, ...]) -> None:
    """There is nothing to add."""
    assert norm_of_leaf(library, np.zeros(shape)) == 0.0


def test_zeros_have_norm_zero(library: Library) -> None:
    """Also negative ones."""
    assert norm_of_leaf(library, [0.0, -0.0]) == 0.0


@pytest.mark.parametrize("other", [1e-30, 1.0, 1e30, np.inf])
def test_nan_and_infinity_reach_the_norm(library: Library, other: float) -> None:
    """NaN beside any other element gives NaN, and infinity beside any finite one infinity."""
    assert np.isnan(norm_of_leaf(library, [np.nan, other]))
    assert norm_of_leaf(library, [-np.inf, other]) == np.inf


def test_a_joint_norm_adds_leaves_of_all_ranges(library: Library) -> None:
    """3, 4 and 12 times a factor have the norm 13 times that factor, wherever the factor lies."""
    for factor in (1e-30, 1.0, 1e30):
        leaves = [library.array(np.asarray(value) * factor) for value in ([3], [[4]], 12)]
        xp = namespace_of(leaves[0])
        assert_within_ulps(library.values(plain_norm(xp, joint_norm(xp, leaves))), 13.0 * factor, 2)


@pytest.mark.parametrize(
    ("narrow", "wide"), [(3e30, 4e30), (3e-30, 4e-30), (3.0, 4.0), (3e-44, 1e-200), (1.0, 1e200)]
)
def test_a_joint_norm_of_two_formats_is_held_in_the_wider(
    library: Library, narrow: float, wide: float
) -> None:
    """A float32 leaf beside a float64 leaf, in each order."""
    if "float64" not in library.dtypes:
        pytest.skip(f"{library.name} has no float64 here")
    leaves = [library.array([narrow]), library.array([wide], "float64")]
    xp = namespace_of(leaves[0])
    expected = exact_norm([np.float32(narrow), wide])
    for ordered in (leaves, leaves[::-1]):
        assert_within_ulps(library.values(plain_norm(xp, joint_norm(xp, ordered))), expected, 2)


def test_a_factor_enters_before_the_square_overflows() -> None:
    """0.001 * (1e20)^2 = 1e37 fits float32, although (1e20)^2 does not."""
    for value in (1e20, 1e20j):
        array = np.asarray([value], "complex64" if isinstance(value, complex) else "float32")
        assert_within_ulps(squared_magnitude(namespace_of(array), array, 1e-3), [1e37], 4)


def test_a_root_of_zero_has_a_finite_derivative() -> None:
    """PyTorch's own derivative is infinite there."""
    torch = pytest.importorskip("torch")
    x = torch.asarray([0.0, 4.0], requires_grad=True)
    safe_sqrt(namespace_of(x), x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def value_and_range(library: Library, norm: ScaledNorm, form: FloatFormat) -> tuple[Any, Any]:
    """Return norms in 50 digits, and whether each root lies in the range that its masks name."""
    root, is_big, is_middle = (library.values(part) for part in norm)
    exponents = np.where(is_big, form.big_exponent, np.where(is_middle, 0, form.small_exponent))
    values = [mpmath.ldexp(float(r), int(e)) for r, e in zip(root, exponents, strict=True)]
    middle = [form.small_below <= value <= form.big_above for value in values]
    big = [value > form.big_above for value in values]
    return values, np.all(middle == is_middle) and np.all(big == is_big)


@pytest.mark.parametrize("form", [FLOAT32, FLOAT64], ids=["float32", "float64"])
def test_numbers_and_their_products_are_norms_of_any_size(library: Library, form: FloatFormat) -> None:
    """Of every pair of powers, far beyond the format; exact, and in the range of the value."""
    if form.name not in library.dtypes:
        pytest.skip(f"{library.name} has no {form.name}")
    lowest, highest = EXPONENTS[form.name]
    numbers = [math.ldexp(1.25, e) for e in range(lowest, highest, (highest - lowest) // 50)]
    left = library.array(np.repeat(numbers, len(numbers)), form.name)
    right = library.array(np.tile(numbers, len(numbers)), form.name)
    xp = namespace_of(left)
    one, other = as_norm(xp, left), as_norm(xp, right)
    values, in_range = value_and_range(library, one, form)
    assert in_range and values == [mpmath.mpf(x) for x in library.values(left).tolist()]
    with mpmath.workdps(50):
        pairs = zip(library.values(left).tolist(), library.values(right).tolist(), strict=True)
        exact = [mpmath.mpf(x) * y for x, y in pairs]
        values, in_range = value_and_range(library, product(xp, one, other), form)
        largest = mpmath.ldexp(1, form.big_exponent + highest)
        smallest = mpmath.ldexp(1, form.small_exponent + lowest)
        for value, wanted in zip(values, exact, strict=True):
            assert value == wanted or (wanted >= largest <= value * 2) or wanted <= smallest >= value
    assert in_range


def test_infinity_and_nan_stay_in_a_product(library: Library) -> None:
    """Two finite norms make a finite one; zero times infinity is NaN."""
    sizes = [np.inf, np.nan, 3e38, 0.0, 1e-30]
    left, right = np.repeat(sizes, 5), np.tile(sizes, 5)
    arrays = [library.array(values) for values in (left, right)]
    xp = namespace_of(arrays[0])
    root = library.values(product(xp, as_norm(xp, arrays[0]), as_norm(xp, arrays[1])).root)
    for one, other, result in zip(left, right, root, strict=True):
        wanted = one * other
        assert np.isnan(result) == np.isnan(wanted)
        assert np.isinf(result) == np.isinf(wanted)
        assert (result == 0) == (wanted == 0)

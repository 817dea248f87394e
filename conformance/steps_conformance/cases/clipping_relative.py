"""Clipping relative to the norm of the weights of the same unit."""

import itertools
import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import all_nan, all_zero, same_bits
from ..oracle import clipping as oracle
from ..oracle.exact import Exact, exact, number
from ..oracle.samples import five_binades, graded, sample
from ..run import Run
from .judging import ALL_DTYPES, REAL_DTYPES, case_for_each_row, exacts, like_tree, made, near

NAN, INF = math.nan, math.inf


def clipped(run: Run, gradients: Any, weights: Any, threshold: float, **options: Any) -> Any:
    """Return what the relative variant gives for trees of HostArrays."""
    step = run.step("GradientClippingStep", variant="per-weight-relative", threshold=threshold, **options)
    return step.apply(made(run, gradients), made(run, weights))[0]


def limits_units(
    run: Run, gradients: Any, weights: Any, threshold: float, *, dtype: str | None = None, **options: Any
) -> None:
    """Require what the rule gives for trees of HostArrays."""
    values = oracle.per_weight_relative(exacts(gradients), exacts(weights), threshold, **options)
    result = clipped(run, gradients, weights, threshold, **options)
    near(run, result, like_tree(gradients, values), 4, dtype=dtype)


@case("CLIP-REL-001", each={"dtype": ALL_DTYPES})
def tree_of_several_ranks(run: Run, dtype: str) -> None:
    """A layer of a network, some units beyond their limit and some within."""
    gradients = {"kernel": graded((4, 3), dtype), "inner": [sample((6,), dtype), host_array(2.5, dtype)]}
    weights = {
        "kernel": sample((4, 3), dtype, seed=1),
        "inner": [sample((6,), dtype, seed=2), sample((), dtype)],
    }
    limits_units(run, gradients, weights, 4.0)


@case("CLIP-REL-001", each={"dtype": REAL_DTYPES})
def epsilon_is_a_thousandth(run: Run, dtype: str) -> None:
    """The default epsilon, seen on weights of zero."""
    limits_units(run, [sample((3, 2), dtype)], [host_array([0.0] * 6, dtype, (3, 2))], 2.0)


@case(
    "CLIP-REL-002",
    each={"shape": ((4, 3), (3, 4), (2, 8), (3, 4, 2), (1, 4, 2)), "dtype": ("float32", "float16")},
)
def units_of_a_matrix(run: Run, shape: tuple[int, ...], dtype: str) -> None:
    """Gradients and weights that grow along every axis, each at another pace."""
    limits_units(run, [graded(shape, dtype)], [sample(shape, dtype, seed=1)], 2.0)
    limits_units(run, [sample(shape, dtype)], [graded(shape, dtype, seed=1)], 0.125)


@case("CLIP-REL-003", each={"shape": ((), (5,), (1, 4), (4, 1), (1, 1), (1, 1, 4, 1), (1, 1, 1, 1, 4))})
def leaf_of_one_unit(run: Run, shape: tuple[int, ...]) -> None:
    """One norm for the leaf, although elements differ in size."""
    limits_units(run, [graded(shape)], [sample(shape, seed=1)], 0.5)
    limits_units(run, [sample(shape)], [graded(shape, seed=1)], 0.0625)


@case("CLIP-REL-004", each={"shape": ((2, 3, 2, 3), (2, 2, 2, 2, 3), (2, 1, 2, 1, 2, 3))})
def units_of_the_last_axis(run: Run, shape: tuple[int, ...]) -> None:
    """Convolution kernels and beyond."""
    limits_units(run, [graded(shape)], [sample(shape, seed=1)], 16.0)
    limits_units(run, [sample(shape)], [graded(shape, seed=1)], 2.0**-6)


AXES = {
    "0": 0,
    "1": 1,
    "2": 2,
    "minus-1": -1,
    "minus-3": -3,
    "0-and-1": (0, 1),
    "last-and-first": (-1, 0),
    "one": (1,),
}


@case("CLIP-REL-005", each={"unit_axis": AXES})
def kept_axes(run: Run, unit_axis: Any) -> None:
    """Each way to name axes of a leaf of rank 3."""
    shape = (3, 2, 4)
    limits_units(run, [graded(shape)], [sample(shape, seed=1)], 4.0, unit_axis=unit_axis)
    limits_units(run, [sample(shape)], [graded(shape, seed=1)], 0.0625, unit_axis=unit_axis)


@case("CLIP-REL-005", each={"dtype": REAL_DTYPES})
def other_layout(run: Run, dtype: str) -> None:
    """A matrix and its transpose, each with its layout, against one rule."""
    gradient, weight = graded((4, 3), dtype), sample((4, 3), dtype, seed=1)
    (expected,) = oracle.per_weight_relative(exacts([gradient]), exacts([weight]), 2.0)
    turned = transposed(expected)
    near(run, clipped(run, gradient, weight, 2.0, unit_axis=1), expected, 4)
    result = clipped(run, transposed(gradient), transposed(weight), 2.0, unit_axis=0)
    near(run, result, turned, 4)


@case("CLIP-REL-006", each={"unit_axis": {"0": 0, "3": 3, "minus-1": -1, "pair": (0, 1)}})
def vectors_are_one_unit(run: Run, unit_axis: Any) -> None:
    """Rank 0 and 1, beside a matrix where the axis allows one."""
    gradients, weights = [graded((5,)), host_array(3.0)], [sample((5,), seed=1), host_array(0.5)]
    limits_units(run, gradients, weights, 0.5, unit_axis=unit_axis)


@case("CLIP-REL-007", each={"unit_axis": {"2": 2, "minus-3": -3, "pair": (0, 2)}})
def missing_axis(run: Run, unit_axis: Any) -> None:
    """Beside leaves that have the axis."""
    tree = {"layer1": {"kernel": host_array([[1.0, 2.0]])}, "layer2": sample((2, 3, 4))}
    saying = ("unit_axis", "['layer1']['kernel']")
    run.refuses(lambda: clipped(run, tree, tree, 1.0, unit_axis=unit_axis), kind="ValueError", saying=saying)


@case("CLIP-REL-008", each={"epsilon": (1e-3, 0.25, 1e-20)})
def floor_under_small_weights(run: Run, epsilon: float) -> None:
    """Units of weights that are zero, tiny, and larger than epsilon."""
    weight = host_array([[0.0, 1e-25, 3.0], [0.0, -1e-25, 4.0]])
    limits_units(run, [sample((2, 3))], [weight], 0.125, epsilon=epsilon)


SIZES = {"float32": (-120, -60, -30, 0, 30, 60, 120), "float64": (-1000, -600, -300, 0, 300, 600, 1000)}
FLOORS = {f"{dtype}-{power}": (dtype, power) for dtype, powers in SIZES.items() for power in powers}


@case_for_each_row("CLIP-REL-008", FLOORS)
def floors_of_every_size(run: Run, row: tuple[str, int]) -> None:
    """The floor is 5 * 2^power; a unit for each size of the weights and of the gradients."""
    dtype, floor = row
    pairs = list(itertools.product(SIZES[dtype], SIZES[dtype]))
    gradient = [math.ldexp(side, size) for side in (3.0, -4.0) for size, _ in pairs]
    weight = [math.ldexp(side, size) for side in (3.0, 4.0) for _, size in pairs]
    shape = (2, len(pairs))
    limits_units(
        run,
        [HostArray(dtype, shape, tuple(gradient))],
        [HostArray(dtype, shape, tuple(weight))],
        1.0,
        epsilon=math.ldexp(5.0, floor),
    )


@case_for_each_row("CLIP-REL-008", FLOORS)
def floors_near_the_weights(run: Run, row: tuple[str, int]) -> None:
    """A unit whose weights are a little below the floor, and one whose weights are a little above it."""
    dtype, power = row
    floor = math.ldexp(5.0, power)
    weight = [floor * share * side for side in (0.6, 0.8) for share in (0.75, 1.5)]
    gradient = [floor * side for side in (3.0, -4.0) for _ in range(2)]
    weights, gradients = host_array(weight, dtype, (2, 2)), host_array(gradient, dtype, (2, 2))
    limits_units(run, [gradients], [weights], 1.0, epsilon=floor)


@case("CLIP-REL-009", each={"epsilon": {"none": None, "zero": 0.0}, "dtype": REAL_DTYPES})
def no_floor(run: Run, epsilon: float | None, dtype: str) -> None:
    """A unit of zero weights beside one of ordinary weights."""
    weight = host_array([[0.0, 3.0], [-0.0, 4.0]], dtype)
    result = run.read(
        clipped(run, host_array([[1.0, 6.0], [-2.0, 8.0]], dtype), weight, 0.5, epsilon=epsilon)
    )
    all_zero(column(result, 0))
    near(run, run.array(column(result, 1).values, dtype), exact(host_array([1.5, 2.0], dtype)), 4)
    zero = host_array([[0.0], [-0.0]], dtype)
    all_zero(run.read(clipped(run, zero, zero, 0.5, epsilon=epsilon)))


@case("CLIP-REL-010")
def without_weights(run: Run) -> None:
    """The weights left out."""
    step = run.step("GradientClippingStep", variant="per-weight-relative")
    run.refuses(lambda: step.apply({"a": run.array([3.0, 4.0])}), kind="ValueError", saying=("weights",))


@case("CLIP-REL-011", each={"dtype": ALL_DTYPES})
def unit_within_its_limit(run: Run, dtype: str) -> None:
    """Columns below, at and beyond a limit of half the weights' norm."""
    gradient = host_array([[1.5, 3.0, 0.75, -0.0], [-2.0, 4.0, 1.0, 0.0]], dtype)
    weight = host_array([[3.0] * 4, [4.0] * 4], dtype)
    result = run.read(clipped(run, gradient, weight, 0.5))
    for kept in (0, 2, 3):
        same_bits(column(result, kept), column(gradient, kept), path=f"column {kept}")
    near(run, run.array(column(result, 1).values, dtype), exact(host_array([1.5, 2.0], dtype)), 4)


@case("CLIP-REL-012", each={"where": ("gradients", "weights"), "dtype": ALL_DTYPES})
def nan_in_one_unit(run: Run, where: str, dtype: str) -> None:
    """The other column, and the other leaf, do not see it."""
    sound, bad = [[3.0, 3.0], [4.0, 4.0]], [[3.0, NAN], [4.0, 4.0]]
    gradient = host_array(bad if where == "gradients" else sound, dtype)
    weight = host_array(bad if where == "weights" else sound, dtype)
    other = host_array([0.5, -0.5], dtype)
    result = run.read(clipped(run, [gradient, other], [weight, other], 1.0))
    all_nan(column(result[0], 1))
    same_bits(column(result[0], 0), host_array([3.0, 4.0], dtype))
    same_bits(result[1], other)


@case("CLIP-REL-013", each={"dtype": ALL_DTYPES})
def infinity_in_one_unit(run: Run, dtype: str) -> None:
    """Column 0 has an infinite gradient, column 1 an infinite weight, column 2 neither."""
    gradient = host_array([[INF, 300.0, 3.0], [4.0, -400.0, 4.0]], dtype)
    weight = host_array([[3.0, -INF, 3.0], [4.0, 4.0, 4.0]], dtype)
    result = run.read(clipped(run, gradient, weight, 1.0))
    all_nan(HostArray(dtype, (), result.values[:1]))
    all_zero(HostArray(dtype, (), result.values[3:4]))
    for kept in (1, 2):
        same_bits(column(result, kept), column(gradient, kept), path=f"column {kept}")


Row = tuple[str, list[Any], list[Any], float, float]

EXTREMES: dict[str, Row] = {
    "large-gradients": ("float32", [1e30, -1e30], [0.5, 0.25], 0.01, 1e-3),
    "large-weights": ("float32", [3e38, 3e38], [1e30, -1e30], 0.01, 1e-3),
    "both-norms-overflow": ("float32", [3e38, -3e38], [3e38, 3e38], 0.01, 1e-3),
    "limit-beyond-the-range": ("float32", [3e38, -3e38], [2e38, 1e38], 1.7, 1e-3),
    "kept-below-an-infinite-product": ("float32", [1e30, 1e38], [3e38, 3e38], 1e10, 1e-3),
    "small-weights": ("float32", [1.0, -2.0], [1e-30, 1e-30], 0.01, 0.0),
    "small-gradients": ("float32", [1e-30, -1e-30], [1e-30, 0.0], 0.1, 0.0),
    "small-epsilon": ("float32", [1e-20, 1e-22], [0.0, 0.0], 0.5, 1e-30),
    "tiny-limit": ("float32", [1e30, 1.0], [1e-20, 1e-20], 1e-15, 0.0),
    "float16-large": ("float16", [60000.0, 60000.0, -60000.0], [0.05, 0.05, 0.05], 0.01, 1e-3),
    "float16-small": ("float16", [1e-4, 1e-4], [1e-4, 1e-4], 0.1, 0.0),
    "bfloat16": ("bfloat16", [1e30, -3e38], [1e-20, 1.0], 0.01, 1e-3),
    "float64": ("float64", [1e200, -1e200], [1e-200, 1e-200], 0.01, 0.0),
    "complex64": ("complex64", [1e30 + 1e30j, -2e30], [1e-30j, 1e-30], 0.01, 0.0),
}


@case_for_each_row("CLIP-REL-014", EXTREMES)
def extreme_norms(run: Run, row: Row) -> None:
    """As a vector, and as one column of a matrix whose other column is ordinary."""
    dtype, gradient, weight, threshold, epsilon = row
    limits_units(run, [host_array(gradient, dtype)], [host_array(weight, dtype)], threshold, epsilon=epsilon)
    beside = [host_array([[value, 0.5] for value in gradient], dtype)]
    weights = [host_array([[value, 1.0] for value in weight], dtype)]
    limits_units(run, beside, weights, threshold, epsilon=epsilon)


SWEEPS = {"float32": range(-122, 128, 4), "float64": range(-1018, 1024, 4)}


@case("CLIP-REL-014", each={"dtype": SWEEPS.keys()})
def every_size(run: Run, dtype: str) -> None:
    """Five powers of two of equal share, over the whole range; the limit is a sixteenth of the largest."""
    step = run.step("GradientClippingStep", variant="per-weight-relative", threshold=1.0, epsilon=0.0)
    for exponent in SWEEPS[dtype]:
        gradient = five_binades(exponent, dtype)
        weight = host_array([2.0 ** (exponent - 4), *[0.0] * (len(gradient.values) - 1)], dtype)
        result = run.read(step.apply(made(run, gradient), made(run, weight))[0])
        # one of each size
        places = [sum(4**k for k in range(size)) for size in range(5)]
        scale = 1 / (16 * number(5) ** number(0.5))
        expected = Exact((5,), tuple(number(gradient.values[place]) * scale for place in places))
        near(run, run.array([result.values[place] for place in places], dtype), expected, 4)


@case(
    "CLIP-REL-015",
    each={"dtype": REAL_DTYPES, "weights_dtype": REAL_DTYPES},
)
def weights_of_another_dtype(run: Run, dtype: str, weights_dtype: str) -> None:
    """Every pair of real dtypes."""
    gradients, weights = [graded((4, 3), dtype)], [sample((4, 3), weights_dtype, seed=1, scale=0.1)]
    narrow = dtype in ("float16", "bfloat16")
    coarser = dtype if narrow or weights_dtype == "float64" else "float32"
    limits_units(run, gradients, weights, 0.5, dtype=coarser)
    same = run.read(clipped(run, gradients, weights, 0.5))
    assert same[0].dtype == dtype, f"a gradient of {dtype} came back as {same[0].dtype}"


@case("CLIP-REL-015", dtypes=("float16",))
def factor_below_the_gradients_dtype(run: Run) -> None:
    """The limit over the norm is 4e-9, which float16 does not hold; the result 2.5e-4 it does."""
    limits_units(run, [host_array([60000.0] * 4, "float16")], [host_array([0.025] * 4)], 0.01)


@case("CLIP-REL-016", each={"dtype": ("bfloat16", "float32")})
def long_axis(run: Run, dtype: str) -> None:
    """Two columns of varied numbers, of which the first rows are compared."""
    rows, seen = 30_000, 50
    gradients, weights = sample((rows, 2), dtype), sample((rows, 2), dtype, seed=1)
    result = run.read(clipped(run, gradients, weights, 0.125))
    # squares of float32 numbers are exact doubles, and fsum rounds their sum once
    lengths = [
        [math.sqrt(math.fsum(abs(x) ** 2 for x in column(each, c).values)) for each in (weights, gradients)]
        for c in (0, 1)
    ]
    factors = [number(0.125) * weight / gradient for weight, gradient in lengths]
    values = tuple(number(x) * factors[p % 2] for p, x in enumerate(gradients.values[: 2 * seen]))
    near(run, run.array(result.values[: 2 * seen], dtype, (seen, 2)), Exact((seen, 2), values), 4)


@case("CLIP-REL-016", each={"dtype": ("float32", "float64")})
def long_axis_of_equal_numbers(run: Run, dtype: str) -> None:
    """Every rounding goes the same way: each element becomes t times the weight, within 4 ulps."""
    rows = 100_000
    gradient, weight = host_array([0.1, 0.7], dtype).values, host_array([0.3, 0.01], dtype).values
    gradients, weights = (HostArray(dtype, (rows, 2), row * rows) for row in (gradient, weight))
    result = run.read(clipped(run, gradients, weights, 0.125))
    expected = Exact((2,), tuple(number(0.125) * number(value) for value in weight))
    assert len(set(result.values)) == 2, "elements of one column differ"
    near(run, run.array(result.values[:2], dtype), expected, 4)


@case("CLIP-REL-016", each={"shape": ((2, 300), (3, 2, 150), (2, 1000), (2, 129))})
def long_rows(run: Run, shape: tuple[int, ...]) -> None:
    """Units along the last axes, of lengths that no power of two divides."""
    gradients, weights = sample(shape), sample(shape, seed=1)
    limits_units(run, [gradients], [weights], 0.125, unit_axis=0)


@case("CLIP-REL-017", each={"dtype": ("complex64", "complex128")})
def complex_units(run: Run, dtype: str) -> None:
    """A matrix, and a vector whose plain sum of squares is zero."""
    limits_units(run, [graded((4, 3), dtype)], [sample((4, 3), dtype, seed=1)], 2.0)
    limits_units(run, [host_array([3.0, 3j], dtype)], [host_array([1j, 1.0], dtype)], 0.25)


def column(matrix: HostArray, index: int) -> HostArray:
    """Return one column of a matrix."""
    rows, columns = matrix.shape
    return HostArray(matrix.dtype, (rows,), matrix.values[index::columns])


def transposed(matrix: Any) -> Any:
    """Return a matrix, of numbers or exact numbers, with its axes exchanged."""
    rows, columns = matrix.shape
    values = tuple(matrix.values[row * columns + c] for c in range(columns) for row in range(rows))
    if isinstance(matrix, HostArray):
        return HostArray(matrix.dtype, (columns, rows), values)
    return type(matrix)((columns, rows), values)

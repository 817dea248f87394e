"""Clipping by the norm of a leaf, or of the whole tree."""

import math
from fractions import Fraction
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ..case import case
from ..compare import Mismatch, all_nan, all_zero, same_bits
from ..containers import leaves
from ..oracle import clipping as oracle
from ..oracle.exact import Exact, norm, number
from ..oracle.extremes import LARGE, SMALL, THRESHOLDS, Extreme
from ..oracle.samples import sample
from ..run import Run
from .judging import ALL_DTYPES, NARROW_DTYPES, case_for_each_row, exacts, kept, like_tree, made, near

RULES = {"per-layer": oracle.per_layer, "global": oracle.global_norm}
NAN, INF = math.nan, math.inf


def clipped(run: Run, variant: str, threshold: Any, gradients: Any) -> Any:
    """Return the gradients that a clipping step gives for a tree of HostArrays."""
    step = run.step("GradientClippingStep", variant=variant, threshold=threshold)
    return step.apply(made(run, gradients))[0]


def clips_as_the_oracle(
    run: Run, variant: str, threshold: Any, gradients: Any, ulps: float, dtype: str | None = None
) -> None:
    """Require what the rule of a variant gives for a tree of HostArrays."""
    expected = like_tree(gradients, RULES[variant](exacts(gradients), threshold))
    near(run, clipped(run, variant, threshold, gradients), expected, ulps, dtype=dtype)


@case("CLIP-LAYER-001", each={"dtype": ALL_DTYPES})
def each_leaf_by_its_own_norm(run: Run, dtype: str) -> None:
    """Leaves of several ranks and sizes."""
    gradients = {
        "matrix": sample((5, 7), dtype, seed=1, scale=3.0),
        "vector": sample((9,), dtype, seed=2, scale=200.0),
        "cube": sample((2, 3, 4), dtype, seed=3),
        "scalar": host_array(6.5, dtype),
    }
    clips_as_the_oracle(run, "per-layer", 0.7, gradients, 4)


@case("CLIP-LAYER-002", each={"dtype": ALL_DTYPES})
def small_leaf_beside_a_large_one(run: Run, dtype: str) -> None:
    """Only the large leaf is touched."""
    gradients = {"small": sample((4,), dtype, seed=1), "large": sample((4,), dtype, seed=2, scale=500.0)}
    result = run.read(clipped(run, "per-layer", 2.5, gradients))
    same_bits(result["small"], gradients["small"])
    assert result["large"] != gradients["large"], "the large leaf was not clipped"


@case("CLIP-LAYER-003", each={"variant": ("per-layer",), "dtype": ALL_DTYPES})
@case("CLIP-GLOBAL-003", each={"variant": ("global",), "dtype": ALL_DTYPES})
def equal_to_threshold_is_kept(run: Run, variant: str, dtype: str) -> None:
    """Norms that are whole numbers, worked out exactly in every dtype."""
    triangles = ([3.0, -4.0], 5.0), ([2.0, -0.0, 3.0, 6.0], 7.0), ([[1.5], [2.0]], 2.5), (-0.125, 0.125)
    for values, threshold in triangles:
        gradients = {"a": host_array(values, dtype)}
        same_bits(run.read(clipped(run, variant, threshold, gradients)), gradients)


@case_for_each_row("CLIP-LAYER-004", LARGE | SMALL | THRESHOLDS)
def extreme_leaf(run: Run, row: Extreme) -> None:
    """Each extreme beside an ordinary leaf, which must not see it."""
    dtype, values, threshold = row
    gradients = {"extreme": host_array(values, dtype), "plain": host_array([0.25, -0.5])}
    clips_as_the_oracle(run, "per-layer", threshold, gradients, 4)


@case("CLIP-LAYER-005", each={"dtype": ALL_DTYPES})
def bad_leaf_alone(run: Run, dtype: str) -> None:
    """One leaf with NaN, one with an infinity, one with both, one sound."""
    gradients = {
        "nan": host_array([NAN, 1.0], dtype),
        "infinite": host_array([INF, 1.0, -2.0], dtype),
        "both": host_array([NAN, INF, 1.0], dtype),
        "sound": host_array([3.0, 4.0], dtype),
    }
    result = run.read(clipped(run, "per-layer", 2.5, gradients))
    all_nan({name: result[name] for name in ("nan", "both")})
    all_nan(first(result["infinite"], 1))
    all_zero(rest(result["infinite"], 1))
    same_bits(result["sound"], host_array([1.5, 2.0], dtype))


@case("CLIP-GLOBAL-001", each={"dtype": ALL_DTYPES})
def one_factor_for_all_leaves(run: Run, dtype: str) -> None:
    """Leaves of several ranks and sizes."""
    gradients = {
        "matrix": sample((5, 7), dtype, seed=1, scale=3.0),
        "inner": [sample((9,), dtype, seed=2, scale=200.0), sample((2, 3, 4), dtype, seed=3)],
        "scalar": host_array(6.5, dtype),
    }
    clips_as_the_oracle(run, "global", 0.7, gradients, 4)


@case("CLIP-GLOBAL-002", each={"dtype": ALL_DTYPES})
def below_threshold_is_kept(run: Run, dtype: str) -> None:
    """Ordinary numbers, signed zeros and the smallest numbers of the dtype."""
    gradients = {
        "a": sample((4, 3), dtype, seed=1),
        "b": host_array([0.0, -0.0, 1e-30, -1e-42, 1e-7, -6e-8], dtype),
        "c": host_array(-0.3, dtype),
    }
    kept(run, clipped(run, "global", 7.25, gradients), gradients)


@case_for_each_row("CLIP-GLOBAL-004", LARGE)
def large_elements(run: Run, row: Extreme) -> None:
    """As one leaf."""
    dtype, values, threshold = row
    clips_as_the_oracle(run, "global", threshold, [host_array(values, dtype)], 4)


@case_for_each_row("CLIP-GLOBAL-004", LARGE)
def large_elements_in_several_leaves(run: Run, row: Extreme) -> None:
    """Spread over at most four leaves."""
    dtype, values, threshold = row
    gradients = [host_array(values[first::4], dtype) for first in range(min(4, len(values)))]
    clips_as_the_oracle(run, "global", threshold, gradients, 4)


@case_for_each_row("CLIP-GLOBAL-005", SMALL)
def small_elements(run: Run, row: Extreme) -> None:
    """As one leaf, and one leaf for each element."""
    dtype, values, threshold = row
    clips_as_the_oracle(run, "global", threshold, [host_array(values, dtype)], 4)
    apart = [host_array([value], dtype) for value in values]
    clips_as_the_oracle(run, "global", threshold, apart, 4)


@case("CLIP-GLOBAL-005", each={"threshold": (1e-30, 1e-41)})
def subnormal_elements(run: Run, threshold: float) -> None:
    """A tree of subnormal numbers is kept below the threshold, and clipped above it."""
    gradients = [host_array([1e-40, -1e-40, 3e-41])]
    if threshold > 1e-39 or "flushes_subnormals" in run.traits:
        # to a flushing backend they are zeros, which lie within every limit
        kept(run, clipped(run, "global", threshold, gradients), gradients)
    else:
        clips_as_the_oracle(run, "global", threshold, gradients, 4)


BESIDE: dict[str, tuple[str, list[Any], float]] = {
    "float32": ("float32", [1e30, 1e-5, -1e10, 1e-8], 1e25),
    "float32-huge-factor": ("float32", [3e38, 3e4, -7.0, 1e-2], 1e4),
    "float32-small": ("float32", [1e-3, 1e-25, -1e-20], 1e-15),
    "float16": ("float16", [60000.0, 1e-3, -1.0], 600.0),
    "bfloat16": ("bfloat16", [1e30, 1e-5, -1e10], 1e25),
    "float64": ("float64", [1e200, 1e-50, -1.0], 1e190),
}


@case_for_each_row("CLIP-GLOBAL-006", BESIDE)
def small_beside_huge(run: Run, row: Extreme) -> None:
    """In one leaf, and one leaf for each element."""
    dtype, values, threshold = row
    clips_as_the_oracle(run, "global", threshold, [host_array(values, dtype)], 4)
    apart = [host_array([value], dtype) for value in values]
    clips_as_the_oracle(run, "global", threshold, apart, 4)


@case("CLIP-GLOBAL-007", each={"dtype": NARROW_DTYPES})
def narrow_leaf_beside_float32(run: Run, dtype: str) -> None:
    """100 beside 1e5 becomes a thousandth of the threshold, in the narrow dtype."""
    gradients = {"narrow": host_array([100.0], dtype), "wide": host_array([1e5])}
    result = clipped(run, "global", 1.0, gradients)
    wide, narrow = oracle.global_norm(exacts({"w": gradients["wide"], "n": gradients["narrow"]}), 1.0)
    near(run, result["wide"], wide, 4)
    near(run, result["narrow"], narrow, 1)
    assert run.read(result["narrow"]).dtype == dtype


@case("CLIP-GLOBAL-007", each={"other_dtype": ("float16", "float64", "complex64", "complex128")})
def norm_over_two_dtypes(run: Run, other_dtype: str) -> None:
    """A leaf of another dtype decides the norm of a float32 leaf, and the other way round."""
    for own, other in ((200.0, 1.0), (1.0, 200.0)):
        gradients = {
            "own": sample((5,), scale=own),
            "other": sample((3, 2), other_dtype, seed=1, scale=other),
        }
        expected = like_tree(gradients, oracle.global_norm(exacts(gradients), 0.7))
        result = clipped(run, "global", 0.7, gradients)
        near(run, result["own"], expected["own"], 4)
        # a wide leaf takes the factor with the precision of float32, and no less
        coarsest = other_dtype if other_dtype == "float16" else "float32"
        near(run, result["other"], expected["other"], 4, dtype=coarsest)
        assert run.read(result["other"]).dtype == other_dtype


@case("CLIP-GLOBAL-007", dtypes=("float64",))
def wide_leaf_beside_a_norm_beyond_float32(run: Run) -> None:
    """1e42 in float64 scales a float32 leaf."""
    gradients = {"double": host_array([1e42, -3e41], "float64"), "single": host_array([3e38, 1e30])}
    clips_as_the_oracle(run, "global", 1e37, gradients, 4, dtype="float32")


@case("CLIP-GLOBAL-008", each={"dtype": ALL_DTYPES, "besides": {"nothing": 1.0, "infinity": INF}})
def nan_spreads_over_the_tree(run: Run, dtype: str, besides: float) -> None:
    """One NaN in one leaf."""
    gradients = {"bad": host_array([1.0, NAN], dtype), "other": host_array([[besides, 0.0]], dtype)}
    all_nan(run.read(clipped(run, "global", 2.5, gradients)))


@case("CLIP-GLOBAL-009", each={"dtype": ALL_DTYPES})
def infinity_zeroes_the_tree(run: Run, dtype: str) -> None:
    """Infinities of both signs in one leaf."""
    gradients = {"bad": host_array([INF, -INF, 1.0], dtype), "other": host_array([3.0, -1e-3, 0.0], dtype)}
    result = run.read(clipped(run, "global", 2.5, gradients))
    all_nan(first(result["bad"], 2))
    all_zero({"bad": rest(result["bad"], 2), "other": result["other"]})


@case("CLIP-GLOBAL-010", each={"dtype": ALL_DTYPES, "scale": (1e-4, 1.0, 3e4)})
def norm_of_the_result(run: Run, dtype: str, scale: float) -> None:
    """Worked out in 50 digits from what came back."""
    gradients = [sample((8, 8), dtype, seed=7, scale=scale), sample((3,), dtype, seed=8, scale=scale)]
    threshold = scale / 16
    result = run.read(clipped(run, "global", threshold, gradients))
    length = norm([value for leaf in exacts(result) for value in leaf.values])
    off = abs(length - number(threshold)) / number(format_of(dtype).ulp(Fraction(threshold)))
    if off > (1 if dtype in NARROW_DTYPES else 4):
        raise Mismatch(f"the norm of the result is {length}, {off} ulps off the threshold {threshold}")
    for (path, got), (_, given) in zip(leaves(result), leaves(gradients), strict=True):
        for one, other in zip(got.values, given.values, strict=True):
            # the product of a number with its positive multiple
            if not (one * other.conjugate()).real > 0:
                raise Mismatch(f"{path}: {other} became {one}, which points elsewhere")


@case("CLIP-GLOBAL-011", each={"dtype": ALL_DTYPES})
def thousand_leaves(run: Run, dtype: str) -> None:
    """Of a few elements, as a list; fewer where each call is compiled, which takes minutes for a thousand."""
    count = 40 if "jit" in run.traits else 1000
    gradients = [sample((4,), dtype, seed=seed) for seed in range(count)]
    clips_as_the_oracle(run, "global", 1.0, gradients, 4)


@case("CLIP-GLOBAL-011", each={"dtype": ("float16", "bfloat16", "float32", "float64")})
def long_leaf(run: Run, dtype: str) -> None:
    """A hundred thousand elements of 0.1, whose exact norm is 0.1 * sqrt(100000)."""
    count = 100_000
    value = host_array(0.1, dtype).values[0]
    result = run.read(clipped(run, "global", 1.0, [HostArray(dtype, (count,), (value,) * count)]))
    expected = number(1) / number(count) ** number(0.5)
    distinct = sorted(set(result[0].values))
    near(run, run.array(distinct, dtype), Exact((len(distinct),), (expected,) * len(distinct)), 4)


@case_for_each_row("CLIP-GLOBAL-012", THRESHOLDS)
def extreme_threshold(run: Run, row: Extreme) -> None:
    """From below every number to above every number of the dtype."""
    dtype, values, threshold = row
    clips_as_the_oracle(run, "global", threshold, [host_array(values, dtype)], 4)


def first(array: HostArray, count: int) -> HostArray:
    """Return the first elements of a vector."""
    return HostArray(array.dtype, (count,), array.values[:count])


def rest(array: HostArray, count: int) -> HostArray:
    """Return a vector without its first elements."""
    return HostArray(array.dtype, (array.shape[0] - count,), array.values[count:])

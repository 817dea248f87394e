"""Vectors of gradient clipping in its four variants."""

import math
from collections.abc import Sequence
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ...containers import leaves, mapped
from ...descriptions import description
from ...oracle import clipping as oracle
from ...oracle.exact import Exact, exact, number
from ...oracle.extremes import LARGE, SMALL, THRESHOLDS
from ...oracle.samples import graded, sample
from ..model import Expected, Vector, VectorCall, unchanged
from .every_kind import Subject, add_every_kind
from .limits import limited_as_one, limited_by_element, limited_by_leaf, limited_by_weights
from .sheet import ALL_DTYPES, REAL_DTYPES, Sheet, exacts, expect

NAN, INF = math.nan, math.inf
SHAPES = ((), (1,), (5,), (2, 3), (2, 3, 2), (2, 1, 3, 2), (2, 1, 2, 1, 3))
VARIANTS = ("per-weight", "per-layer", "global", "per-weight-relative")
_PREFIX = {"per-weight": "CLIP-WEIGHT", "per-layer": "CLIP-LAYER", "global": "CLIP-GLOBAL"}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    _ordinary(sheet)
    _options(sheet)
    _extremes(sheet)
    _not_finite(sheet)
    _boundaries(sheet)
    _trees(sheet)
    _relative(sheet)
    _thresholds(sheet)
    _reports(sheet)
    _every_kind(sheet)
    return sheet.listed()


def _every_kind(sheet: Sheet) -> None:
    empty = {"empty": "CLIP-OPTION-011"}
    others = {**empty, "zeros": "CLIP-WEIGHT-004", "nan": "CLIP-WEIGHT-003", "inf": "CLIP-WEIGHT-003"}
    step = clip("per-weight", 0.5)
    add_every_kind(sheet, Subject("weight", step, limited_by_element(0.5), "CLIP-WEIGHT-001", others))
    others = {**empty, "extreme": "CLIP-LAYER-004", "nan": "CLIP-LAYER-005", "inf": "CLIP-LAYER-005"}
    step, answer = clip("per-layer", 0.5), limited_by_leaf(0.5)
    add_every_kind(sheet, Subject("layer", step, answer, "CLIP-LAYER-001", others, many=True))
    others = {**empty, "extreme": "CLIP-GLOBAL-006", "nan": "CLIP-GLOBAL-008", "inf": "CLIP-GLOBAL-009"}
    step = clip("global", 0.5)
    whole = Subject("global", step, _as_one, "CLIP-GLOBAL-001", others, many=True)
    add_every_kind(sheet, whole)
    others = {**empty, "extreme": "CLIP-REL-014", "nan": "CLIP-REL-012", "inf": "CLIP-REL-013"}
    step, answer = clip("per-weight-relative", 0.25), limited_by_weights(0.25)
    add_every_kind(sheet, Subject("relative", step, answer, "CLIP-REL-001", others, weighs=True))


def _as_one(gradients: Sequence[Any], _: Any) -> list[Any]:
    return [limited_as_one(tree, 0.5) for tree in gradients]


def clip(variant: str | None, threshold: float | None, **options: Any) -> Any:
    """Return the description of a clipping step."""
    return description("GradientClippingStep", variant=variant, threshold=threshold, **options)


def call(
    variant: str,
    threshold: float,
    gradients: Any,
    weights: Any = None,
    *,
    epsilon: float = 1e-3,
    unit_axis: Any = "auto",
) -> VectorCall:
    """Return the call with what it must give: unchanged leaves where nothing is clipped."""
    if variant == "global":
        return VectorCall(gradients, weights, _global(gradients, threshold))
    weight_at = dict(leaves(weights)) if weights is not None else {}

    def leaf(host: HostArray, path: str) -> Expected:
        if variant == "per-weight":
            clipped = oracle.per_weight([exact(host)], threshold)[0]
        elif variant == "per-layer":
            clipped = oracle.per_layer([exact(host)], threshold)[0]
        else:
            pair = [exact(host)], [exact(weight_at[path])]
            clipped = oracle.per_weight_relative(*pair, threshold, epsilon, unit_axis)[0]
        return _expected(host, clipped)

    return VectorCall(gradients, weights, mapped(leaf, gradients))


def _global(gradients: Any, threshold: float) -> Any:
    clipped = iter(oracle.global_norm(exacts(gradients), threshold))
    return mapped(lambda host, _: _expected(host, next(clipped)), gradients)


def _expected(host: HostArray, clipped: Exact) -> Expected:
    if clipped.values == exact(host).values:
        return unchanged(host)
    # bfloat16 has the range of float32: where subnormal numbers count as zero, these come back as they are
    smallest = format_of(host.dtype).smallest_normal
    lost = host.dtype == "bfloat16" and all(abs(value) < smallest for value in host.values)
    return expect(host, clipped, wide=4, narrow=1 if lost else None)


def _shapes(dtype: str) -> Sequence[tuple[int, ...]]:
    """Return every rank for float32 and two for the others: a compiling library pays for each shape."""
    return SHAPES if dtype == "float32" else SHAPES[2:4]


def _ordinary(sheet: Sheet) -> None:
    for variant, prefix in _PREFIX.items():
        for dtype in ALL_DTYPES:
            for seed, shape in enumerate(_shapes(dtype)):
                gradients = sample(shape, dtype, seed=seed, scale=3.0)
                if variant == "per-weight" and dtype.startswith("complex"):
                    requirement = "CLIP-WEIGHT-002"
                else:
                    requirement = f"{prefix}-001"
                name = f"rank-{len(shape)}-of-{math.prod(shape)}-{dtype}"
                one = call(variant, 0.75, gradients)
                sheet.add(requirement, name, f"{variant} at rank {len(shape)}", clip(variant, 0.75), [one])


def _options(sheet: Sheet) -> None:
    values = [3.0, -4.0, 0.0, -0.0, NAN, INF, -INF, 1e-45]
    gradients = host_array(values)
    same = VectorCall(gradients, None, unchanged(gradients))
    for variant in VARIANTS:
        for label, threshold in (("none", None), ("inf", INF)):
            step = clip(variant, threshold)
            sheet.add(
                "CLIP-OPTION-003", f"{variant}-{label}", "no limit: the identity, NaN included", step, [same]
            )
        zeros = Expected("float32", (8,), (0.0,) * 8)
        weights = host_array([1.0] * 8) if variant == "per-weight-relative" else None
        one = VectorCall(gradients, weights, zeros)
        sheet.add("CLIP-OPTION-010", f"{variant}-zero", "threshold 0 gives zeros", clip(variant, 0.0), [one])
        nothing = VectorCall(
            host_array([0.0, 0.0]), host_array([1.0, 1.0]), Expected("float32", (2,), (0.0, 0.0))
        )
        sheet.add(
            "CLIP-OPTION-010",
            f"{variant}-zero-of-zeros",
            "norm and threshold 0: zeros, not 0/0",
            clip(variant, 0.0),
            [nothing],
            source="google-deepmind/optax#1752",
        )
        empty = {"none": host_array([], "float32", (0,)), "flat": host_array([], "float32", (3, 0))}
        same_empty = VectorCall(empty, empty, mapped(lambda host, _: unchanged(host), empty))
        sheet.add(
            "CLIP-OPTION-011",
            f"{variant}-empty",
            "leaves without elements pass",
            clip(variant, 1.0),
            [same_empty],
        )
    sheet.add("CLIP-OPTION-004", "no-variant", "no variant: the identity", clip(None, 1.0), [same])
    default = call("per-weight", 1.0, host_array([3.0, -4.0, 0.5]))
    sheet.add(
        "CLIP-OPTION-001",
        "defaults",
        "no options: each element to [-1, 1]",
        description("GradientClippingStep"),
        [default],
    )
    for spelling, rule in (
        ("per-parameter", "per-weight"),
        ("per-parameter-relative", "per-weight-relative"),
    ):
        one = call(rule, 0.5, host_array([3.0, -4.0, 0.25]), host_array([1.0, 2.0, 2.0]))
        sheet.add("CLIP-OPTION-002", spelling, f"the same as {rule}", clip(spelling, 0.5), [one])


def _extremes(sheet: Sheet) -> None:
    tables = (
        (LARGE, "CLIP-LAYER-004", "CLIP-GLOBAL-004"),
        (SMALL, "CLIP-LAYER-004", "CLIP-GLOBAL-005"),
        (THRESHOLDS, "CLIP-LAYER-004", "CLIP-GLOBAL-012"),
    )
    for number_of_table, (table, of_layer, of_tree) in enumerate(tables):
        for label, (dtype, values, threshold) in table.items():
            gradients = host_array(values, dtype)
            for variant, requirement in (("per-layer", of_layer), ("global", of_tree)):
                one = call(variant, threshold, gradients)
                name = f"{number_of_table}-{label}"
                sheet.add(requirement, name, f"{variant} of {label}", clip(variant, threshold), [one])
    for dtype in REAL_DTYPES:
        form = format_of(dtype)
        for label, value in (
            ("smallest", form.smallest_subnormal),
            ("smallest-normal", form.smallest_normal),
            ("largest", form.largest),
        ):
            gradients = host_array([value, -value, value], dtype)
            for share in (0.5, 0.015625):
                threshold = float(share * number(value))
                one = call("global", threshold, gradients)
                requirement = "CLIP-GLOBAL-004" if label == "largest" else "CLIP-GLOBAL-005"
                sheet.add(
                    requirement,
                    f"{label}-{dtype}-{share}",
                    f"three times the {label} {dtype}",
                    clip("global", threshold),
                    [one],
                )


def _not_finite(sheet: Sheet) -> None:
    for position in range(3):
        for label, bad in (("nan", NAN), ("inf", INF), ("minus-inf", -INF)):
            values = [3.0, -4.0, 5.0]
            values[position] = bad
            gradients = {"bad": host_array(values), "good": host_array([1.0, 2.0, 2.0])}
            name = f"{label}-at-{position}"
            clipped = tuple(NAN if bad != bad or i == position else 0.0 for i in range(3))
            other = (NAN,) * 3 if bad != bad else (0.0,) * 3
            expected = {"bad": Expected("float32", (3,), clipped), "good": Expected("float32", (3,), other)}
            requirement = "CLIP-GLOBAL-008" if bad != bad else "CLIP-GLOBAL-009"
            one = VectorCall(gradients, None, expected)
            sheet.add(
                requirement, name, "what is not finite reaches the whole tree", clip("global", 1.0), [one]
            )
            good = call("per-layer", 1.0, gradients["good"]).expected
            one = VectorCall(gradients, None, {"bad": Expected("float32", (3,), clipped), "good": good})
            sheet.add(
                "CLIP-LAYER-005", name, "what is not finite stays in its leaf", clip("per-layer", 1.0), [one]
            )
            limited = tuple((v if v != v else max(-2.0, min(2.0, v))) for v in values)
            one = VectorCall(gradients["bad"], None, Expected("float32", (3,), limited))
            sheet.add(
                "CLIP-WEIGHT-003", name, "NaN stays, infinities are limited", clip("per-weight", 2.0), [one]
            )


def _boundaries(sheet: Sheet) -> None:
    for dtype in ALL_DTYPES:
        for label, values, length in (("3-4", [3.0, -4.0], 5.0), ("2-3-6", [2.0, -0.0, 3.0, 6.0], 7.0)):
            gradients = host_array(values, dtype)
            for variant, requirement in (("per-layer", "CLIP-LAYER-003"), ("global", "CLIP-GLOBAL-003")):
                same = VectorCall(gradients, None, unchanged(gradients))
                shows = "a norm equal to the threshold: the same bits"
                sheet.add(requirement, f"{label}-{dtype}", shows, clip(variant, length), [same])
    zeros = host_array([0.0, -0.0, 0.5, -0.5])
    same = VectorCall(zeros, None, unchanged(zeros))
    sheet.add(
        "CLIP-WEIGHT-004", "signed-zeros", "both zeros keep their sign", clip("per-weight", 0.5), [same]
    )
    tiny = sample((6,), "float32", seed=9, scale=1e-38)
    for variant, requirement in (("per-layer", "CLIP-LAYER-002"), ("global", "CLIP-GLOBAL-002")):
        same = VectorCall(tiny, None, unchanged(tiny))
        sheet.add(requirement, "tiny", "within the limit: the same bits", clip(variant, 1.0), [same])
    spread = host_array([3e38, 1e38, 1.0, 1e-30])
    one = call("global", 1e30, spread)
    sheet.add("CLIP-GLOBAL-006", "spread", "small elements beside huge ones", clip("global", 1e30), [one])


def _trees(sheet: Sheet) -> None:
    mixed = {
        "half": host_array([100.0], "float16"),
        "brain": host_array([3.0, 4.0], "bfloat16"),
        "single": host_array([1e5]),
    }
    one = call("global", 1.0, mixed)
    sheet.add(
        "CLIP-GLOBAL-007", "float16-beside-1e5", "a small leaf beside a large one", clip("global", 1.0), [one]
    )
    double = {"single": host_array([3.0, 4.0]), "double": host_array([12.0], "float64")}
    one = call("global", 1.0, double)
    sheet.add("CLIP-GLOBAL-007", "float32-and-float64", "norm 13 over two dtypes", clip("global", 1.0), [one])
    many = [host_array([(-1.0) ** i * (1 + i % 7)]) for i in range(1000)]
    one = call("global", 1.0, many)
    sheet.add(
        "CLIP-GLOBAL-011", "thousand-leaves", "a thousand leaves of one element", clip("global", 1.0), [one]
    )
    ones = [host_array([1.0], "bfloat16") for _ in range(1000)]
    one = call("global", 1.0, ones)
    sheet.add(
        "CLIP-GLOBAL-011",
        "thousand-bfloat16",
        "a sum that would stall in bfloat16",
        clip("global", 1.0),
        [one],
        source="pytorch/pytorch#194033",
    )
    flat = host_array([1.5] * 4096)
    one = call("global", 1.0, flat)
    sheet.add(
        "CLIP-GLOBAL-010", "4096-equal", "the norm of the result is the threshold", clip("global", 1.0), [one]
    )


def _relative(sheet: Sheet) -> None:
    for dtype in ALL_DTYPES:
        for seed, shape in enumerate(_shapes(dtype)):
            gradients, weights = (
                sample(shape, dtype, seed=seed, scale=4.0),
                sample(shape, dtype, seed=seed + 50),
            )
            one = call("per-weight-relative", 0.125, gradients, weights)
            name = f"rank-{len(shape)}-of-{math.prod(shape)}-{dtype}"
            sheet.add(
                "CLIP-REL-001",
                name,
                "units by the paper's convention",
                clip("per-weight-relative", 0.125),
                [one],
            )
    gradients, weights = graded((4, 3)), graded((4, 3), seed=5)
    for label, axis in (("auto", "auto"), ("first", 0), ("last", 1), ("minus-one", -1), ("both", (0, 1))):
        one = call("per-weight-relative", 0.01, gradients, weights, unit_axis=axis)
        sheet.add(
            "CLIP-REL-005",
            f"matrix-{label}",
            "a matrix far from the same over both axes",
            clip("per-weight-relative", 0.01, unit_axis=axis),
            [one],
            source="SlopDotCash/asi#439",
        )
    for label, shape in (("row", (1, 3)), ("column", (3, 1)), ("wide", (2, 3)), ("cube", (1, 4, 1))):
        gradients, weights = graded(shape), graded(shape, seed=6)
        one = call("per-weight-relative", 0.01, gradients, weights)
        requirement = "CLIP-REL-002" if label == "wide" else "CLIP-REL-003"
        sheet.add(requirement, label, "how many units a shape has", clip("per-weight-relative", 0.01), [one])
    zero = host_array([0.0] * 3)
    one = call("per-weight-relative", 0.5, host_array([3.0, 4.0, 0.0]), zero)
    sheet.add(
        "CLIP-REL-008",
        "zero-weights",
        "weights of zero count as epsilon",
        clip("per-weight-relative", 0.5),
        [one],
    )
    one = call(
        "per-weight-relative",
        0.5,
        host_array([300.0] * 100, "float16", (100, 1)),
        host_array([1.0] * 100, "float16", (100, 1)),
    )
    sheet.add(
        "CLIP-REL-014",
        "float16-300",
        "squares beyond float16",
        clip("per-weight-relative", 0.5),
        [one],
        source="tracel-ai/burn#5699",
    )
    for label, g, w in (
        ("1e30", 1e30, 1.0),
        ("1e-30", 1e-30, 1e-35),
        ("both-1e30", 1e30, 1e29),
        ("weights-3e38", 3e38, 3e38),
    ):
        gradients, weights = host_array([[g, -g], [g, g]]), host_array([[w, w], [-w, w]])
        one = call("per-weight-relative", 0.25, gradients, weights, epsilon=0.0)
        sheet.add(
            "CLIP-REL-014",
            label,
            "relative limits at the ends of the range",
            clip("per-weight-relative", 0.25, epsilon=0.0),
            [one],
        )


def _thresholds(sheet: Sheet) -> None:
    """Limits of elements and units at both ends of the range; those of norms are in extremes."""
    leaves_ = {"half": host_array([3.0, -4.0, 0.5], "float16"), "single": host_array([3.0, -4.0, 1e-30])}
    for label, threshold in (
        ("subnormal", 1e-40),
        ("below-everything", 1e-60),
        ("smallest-normal", 2.0**-126),
    ):
        one = call("per-weight", threshold, leaves_)
        shows = "a limit that few dtypes hold"
        sheet.add("CLIP-WEIGHT-001", f"to-{label}", shows, clip("per-weight", threshold), [one])
    wide = {"half": host_array([65504.0, -1.0], "float16"), "single": host_array([3.4e38, -1.0])}
    for label, threshold in (("3e38", 3e38), ("4e38", 4e38), ("1e300", 1e300)):
        one = call("per-weight", threshold, wide)
        shows = "a limit beyond a dtype's range"
        sheet.add("CLIP-WEIGHT-006", f"to-{label}", shows, clip("per-weight", threshold), [one])
    relative: tuple[tuple[str, str, float, list[float], list[float]], ...] = (
        ("CLIP-REL-014", "threshold-subnormal", 1e-40, [3.0, -4.0], [3.0, 4.0]),
        ("CLIP-REL-014", "threshold-below-everything", 1e-60, [3.0, -4.0], [3.0, 4.0]),
        ("CLIP-REL-014", "limit-beyond-the-range", 1e38, [3.4e38, -3.4e38, 3.4e38], [3.0, 4.0, 0.0]),
        ("CLIP-REL-014", "threshold-3e38", 3e38, [3.4e38, -3.4e38, 3.4e38], [0.0, 1.0, 0.0]),
        ("CLIP-REL-011", "threshold-beyond-the-range", 4e38, [3e38, -2e38], [1.0, 0.0]),
        ("CLIP-REL-011", "norm-equals-its-limit", 0.5, [3.0, -4.0], [6.0, 8.0]),
        ("CLIP-REL-011", "norm-equals-its-floor", 2.0, [3.0, -4.0], [1.0, 1.0]),
    )
    for requirement, name, threshold, g, w in relative:
        epsilon = 2.5 if name == "norm-equals-its-floor" else 1e-3
        one = call("per-weight-relative", threshold, host_array(g), host_array(w), epsilon=epsilon)
        step = clip("per-weight-relative", threshold, epsilon=epsilon)
        sheet.add(requirement, name, "limits at both ends of the range, and met exactly", step, [one])


# Requirement, name, values, dtype, threshold, what it shows, where it comes from.
_LEAVES: tuple[tuple[str, str, Any, str, float, str, str], ...] = (
    (
        "CLIP-GLOBAL-004",
        "fp16-100x300",
        [300.0] * 100,
        "float16",
        1.0,
        "squares beyond float16",
        "tracel-ai/burn#5699",
    ),
    (
        "CLIP-GLOBAL-004",
        "fp16-30000",
        [30000.0],
        "float16",
        1e-4,
        "a factor below float16",
        "unslothai/unsloth-zoo#1261",
    ),
    (
        "CLIP-GLOBAL-004",
        "bf16-100x300",
        [300.0] * 100,
        "bfloat16",
        1.0,
        "a rounded norm",
        "pytorch/pytorch#194033",
    ),
    (
        "CLIP-GLOBAL-004",
        "128x1e19",
        [1e19] * 128,
        "float32",
        1.0,
        "squares beyond float32",
        "deepmodeling/deepmd-kit#5519",
    ),
    (
        "CLIP-GLOBAL-005",
        "fp16-4x1e-4",
        [1e-4] * 4,
        "float16",
        1e-5,
        "squares below it",
        "google-deepmind/jax_privacy#309",
    ),
    ("CLIP-GLOBAL-012", "1e-7-to-2e-7", [1e-7], "float32", 2e-7, "nothing is added", "torch, mlx: plus 1e-6"),
    ("CLIP-GLOBAL-012", "1e-8-to-1e-9", [1e-8], "float32", 1e-9, "nothing is added", "torch, mlx: plus 1e-6"),
    ("CLIP-GLOBAL-001", "0-d-5", 5.0, "float32", 1.0, "a 0-d leaf", "five libraries compared"),
    ("CLIP-GLOBAL-001", "complex-3-4", [3 + 4j, 0j], "complex64", 1.0, "the modulus", "cupy/cupy#780"),
    ("CLIP-LAYER-001", "complex-3-4", [3 + 4j, 0j], "complex64", 1.0, "the modulus", "keras clipnorm"),
)
_TREES: tuple[tuple[str, Any, str], ...] = (
    ("empty-leaf", [host_array([], "float32", (0,)), host_array([3.0, 4.0])], "meta-pytorch/torchrec#3891"),
    ("none", [None, host_array([3.0, 4.0])], "five libraries compared"),
    ("bf16-f32", [host_array([3.0, 4.0], "bfloat16"), host_array([12.0])], "five libraries compared"),
    (
        "fp16-f64",
        [host_array([3.0, 4.0], "float16"), host_array([12.0], "float64")],
        "five libraries compared",
    ),
)


def _reports(sheet: Sheet) -> None:
    for requirement, name, values, dtype, threshold, shows, source in _LEAVES:
        variant = "per-layer" if "LAYER" in requirement else "global"
        one = call(variant, threshold, host_array(values, dtype))
        sheet.add(requirement, f"report-{name}", shows, clip(variant, threshold), [one], source=source)
    for name, tree, source in _TREES:
        one = call("global", 1.0, tree)
        shows = "one norm over the tree"
        sheet.add("CLIP-GLOBAL-001", f"report-{name}", shows, clip("global", 1.0), [one], source=source)

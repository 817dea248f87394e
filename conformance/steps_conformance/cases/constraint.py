"""Updates that keep the weights within a set."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ..case import CaseFunction, case
from ..compare import Mismatch, all_zero, same_bits
from ..oracle import constraint as oracle
from ..oracle.exact import Exact, exact, mp, number
from ..oracle.samples import graded, sample
from ..run import Run
from .judging import ALL_DTYPES, REAL_DTYPES, made, near, refuses_a_name

INF = math.inf
COMPLEX = ("complex64", "complex128")


def constrained(run: Run, update: HostArray, weight: HostArray, constraint: str, **options: Any) -> HostArray:
    """Return the update that a constraint gives for one leaf."""
    step = run.step("ConstraintStep", constraint=constraint, **options)
    result, _ = step.apply(made(run, {"a": update}), made(run, {"a": weight}))
    got: HostArray = run.read(result)["a"]
    return got


def lands(got: HostArray, expected: Exact, weight: HostArray, bound: float) -> None:
    """Require w + update within 2 ulps, of the larger of the bound and |w|, of where it should be."""
    assert got.shape == weight.shape, f"expected shape {weight.shape}, got {got.shape}"
    rows = zip(got.values, expected.values, weight.values, strict=True)
    for index, (update, wanted, old) in enumerate(rows):
        allowed = 2 * number(format_of(got.dtype).ulp(Fraction(max(bound, abs(old)))))
        off = number(update) - wanted
        for part in (mp.re(off), mp.im(off)):
            if not abs(part) <= allowed:
                raise Mismatch(
                    f"element {index}: the update is {update}, off by {float(part)}, allowed {float(allowed)}"
                )


@case("CONSTRAINT-001", each={"dtype": REAL_DTYPES})
def not_below_zero(run: Run, dtype: str) -> None:
    """Both signs of weights and updates, and weights that just reach zero."""
    update, weight = sample((40,), dtype, scale=2.0), sample((40,), dtype, seed=1)
    near(
        run,
        run.array(constrained(run, update, weight, "nonnegative").values, dtype),
        oracle.nonnegative(exact(update), exact(weight)),
        0,
        narrow=0,
    )


@case("CONSTRAINT-001", each={"dtype": REAL_DTYPES})
def zero_is_reached_exactly(run: Run, dtype: str) -> None:
    """Weights that no other number cancels."""
    weight = host_array([0.1, 1 / 3, 1e-3, 3e4, 7e-5], dtype)
    update = host_array([-1.0, -0.4, -1.0, -6e4, -7.1e-5], dtype)
    got = constrained(run, update, weight, "nonnegative")
    sums = [number(u) + number(w) for u, w in zip(got.values, weight.values, strict=True)]
    assert sums == [0] * 5, f"expected zeros, got {sums}"


BOXES: dict[str, tuple[float | None, float | None]] = {
    "both": (-0.3, 0.7),
    "lower": (0.1, None),
    "upper": (None, -0.1),
    "point": (0.25, 0.25),
    "far": (100.0, 300.0),
}


@case("CONSTRAINT-002", each={"dtype": REAL_DTYPES, "bounds": BOXES})
def into_a_box(run: Run, dtype: str, bounds: tuple[float | None, float | None]) -> None:
    """Weights inside and outside."""
    lower, upper = bounds
    given = {name: bound for name, bound in (("lower", lower), ("upper", upper)) if bound is not None}
    update, weight = sample((40,), dtype, scale=2.0), sample((40,), dtype, seed=1)
    expected = oracle.box(exact(update), exact(weight), **given)
    lands(
        constrained(run, update, weight, "box", **given),
        expected,
        weight,
        max(abs(b) for b in given.values()),
    )


@case("CONSTRAINT-002")
def into_a_box_from_afar(run: Run) -> None:
    """Huge updates, and a sum beyond the range."""
    update, weight = host_array([1e30, -1e30, 3e38, -3e38]), host_array([1.0, 2.0, 3e38, -3e38])
    expected = oracle.box(exact(update), exact(weight), -1.5, 2.5)
    lands(constrained(run, update, weight, "box", lower=-1.5, upper=2.5), expected, weight, 2.5)


@case("CONSTRAINT-003", each={"dtype": ALL_DTYPES, "shape": ((), (5,), (4, 3), (3, 2, 2), (2, 2, 2, 3))})
def into_a_ball(run: Run, dtype: str, shape: tuple[int, ...]) -> None:
    """A radius that some units exceed."""
    update, weight = graded(shape, dtype), sample(shape, dtype, seed=1)
    for radius in (0.7, 3.0):
        expected = oracle.norm_ball(exact(update), exact(weight), radius)
        lands(constrained(run, update, weight, "norm-ball", radius=radius), expected, weight, radius)


@case("CONSTRAINT-003")
def unit_ball_by_default(run: Run) -> None:
    """Radius 1: 3 and 4 go to 0.6 and 0.8."""
    update, weight = host_array([2.0, 3.0]), host_array([1.0, 1.0])
    expected = oracle.norm_ball(exact(update), exact(weight), 1.0)
    lands(constrained(run, update, weight, "norm-ball"), expected, weight, 1.0)


@case("CONSTRAINT-004", each={"dtype": ALL_DTYPES, "shape": ((), (5,), (4, 3), (3, 2, 2), (2, 2, 2, 3))})
def onto_the_sphere(run: Run, dtype: str, shape: tuple[int, ...]) -> None:
    """Units of norms below and above 1."""
    update, weight = graded(shape, dtype), sample(shape, dtype, seed=1, scale=0.25)
    expected = oracle.unit_norm(exact(update), exact(weight))
    lands(constrained(run, update, weight, "unit-norm"), expected, weight, 1.0)


@case("CONSTRAINT-004", each={"scale": (1e-25, 1e25)})
def onto_the_sphere_from_afar(run: Run, scale: float) -> None:
    """Norms whose squares leave the range."""
    update, weight = sample((4,), scale=scale), host_array([0.0] * 4)
    expected = oracle.unit_norm(exact(update), exact(weight))
    lands(constrained(run, update, weight, "unit-norm"), expected, weight, 1.0)


@case("CONSTRAINT-005", each={"dtype": ALL_DTYPES, "constraint": ("unit-norm", "norm-ball")})
def unit_of_zeros(run: Run, dtype: str, constraint: str) -> None:
    """A column whose weights are cancelled by the update, beside an ordinary one."""
    update, weight = (
        host_array([[-1.5, 3.0], [2.5, 4.0]], dtype),
        host_array([[1.5, 0.0], [-2.5, 0.0]], dtype),
    )
    got = constrained(run, update, weight, constraint)
    zeros = zip(got.values[::2], weight.values[::2], strict=True)
    all_zero(host_array([u + w for u, w in zeros], dtype))
    near(run, run.array(got.values[1::2], dtype), Exact((2,), (number(3) / 5, number(4) / 5)), 4)


@case(
    "CONSTRAINT-006",
    each={"constraint": ("norm-ball", "unit-norm"), "unit_axis": {"0": 0, "minus-1": -1, "pair": (0, 1)}},
)
def given_axes(run: Run, constraint: str, unit_axis: Any) -> None:
    """Each way to name axes of a leaf of rank 3."""
    update, weight = graded((3, 2, 4)), sample((3, 2, 4), seed=1)
    if constraint == "norm-ball":
        expected = oracle.norm_ball(exact(update), exact(weight), 1.0, unit_axis)
    else:
        expected = oracle.unit_norm(exact(update), exact(weight), unit_axis)
    lands(constrained(run, update, weight, constraint, unit_axis=unit_axis), expected, weight, 1.0)


@case("CONSTRAINT-007", each={"constraint": ("nonnegative", "norm-ball", "unit-norm")})
def without_weights(run: Run, constraint: str) -> None:
    """The weights left out."""
    step = run.step("ConstraintStep", constraint=constraint)
    run.refuses(lambda: step.apply({"a": run.array([1.0])}), kind="ValueError", saying=("weights",))


REFUSED: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "box-without-bounds": ("ValueError", {"constraint": "box"}, ("lower", "upper")),
    "box-upside-down": ("ValueError", {"constraint": "box", "lower": 2.0, "upper": 1.0}, ("lower", "upper")),
    "box-with-nan": ("ValueError", {"constraint": "box", "lower": math.nan}, ("lower", "nan")),
    "box-with-text": ("TypeError", {"constraint": "box", "upper": "1.0"}, ("upper", "1.0")),
    "box-with-bool": ("TypeError", {"constraint": "box", "upper": True}, ("upper", "True")),
    "box-with-radius": ("ValueError", {"constraint": "box", "lower": 0.0, "radius": 2.0}, ("radius",)),
    "box-with-axis": ("ValueError", {"constraint": "box", "lower": 0.0, "unit_axis": 0}, ("unit_axis",)),
    "nonnegative-with-lower": ("ValueError", {"constraint": "nonnegative", "lower": 0.5}, ("lower",)),
    "unit-norm-with-radius": ("ValueError", {"constraint": "unit-norm", "radius": 2.0}, ("radius",)),
    "unit-norm-with-upper": ("ValueError", {"constraint": "unit-norm", "upper": 2.0}, ("upper",)),
    "ball-of-nothing": ("ValueError", {"constraint": "norm-ball", "radius": 0.0}, ("radius", "0.0")),
    "negative-ball": ("ValueError", {"constraint": "norm-ball", "radius": -1.0}, ("radius", "-1.0")),
    "ball-of-nan": ("ValueError", {"constraint": "norm-ball", "radius": math.nan}, ("radius", "nan")),
    "ball-of-text": ("TypeError", {"constraint": "norm-ball", "radius": "1"}, ("radius",)),
    "ball-on-no-axis": ("TypeError", {"constraint": "norm-ball", "unit_axis": 1.0}, ("unit_axis",)),
}


@case("CONSTRAINT-008", each={"row": REFUSED})
def bad_options(run: Run, row: tuple[str, dict[str, Any], tuple[str, ...]]) -> None:
    """Each bad combination."""
    kind, options, saying = row
    run.refused(kind, "ConstraintStep", saying=saying, **options)


@case("CONSTRAINT-008")
def unknown_constraint(run: Run) -> None:
    """A set that there is none of."""
    refuses_a_name(lambda: run.step("ConstraintStep", constraint="simplex"), "simplex")


@case(
    "CONSTRAINT-009",
    each={
        "dtype": COMPLEX,
        "kind": {"nonnegative": {"constraint": "nonnegative"}, "box": {"constraint": "box", "lower": 0.0}},
    },
)
def complex_leaves(run: Run, dtype: str, kind: dict[str, Any]) -> None:
    """Beside a real leaf."""
    step = run.step("ConstraintStep", **kind)
    tree = {"real": run.array([1.0]), "layer1": {"bias": run.array([1j], dtype)}}
    run.refuses(lambda: step.apply(tree, tree), kind="TypeError", saying=("['layer1']['bias']", dtype))


PAIRS = {
    "float16-float32": ("float16", "float32"), "bfloat16-float32": ("bfloat16", "float32"),
    "float32-float64": ("float32", "float64"), "complex64-complex128": ("complex64", "complex128"),
    "float16-float64": ("float16", "float64"), "bfloat16-float64": ("bfloat16", "float64"),
}  # fmt: skip


def narrow_and_wide(requirement: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as one case for each pair of a narrow and a wide dtype."""

    def register(function: CaseFunction) -> CaseFunction:
        for label, pair in PAIRS.items():
            case(requirement, each={"pair": {label: pair}}, dtypes=pair)(function)
        return function

    return register


@narrow_and_wide("CONSTRAINT-010")
def narrow_update(run: Run, pair: tuple[str, str]) -> None:
    """Refused with both dtypes."""
    narrow, wide = pair
    step = run.step("ConstraintStep", constraint="norm-ball")
    update, weight = {"layer1": [run.array([1.0], narrow)]}, {"layer1": [run.array([1.0], wide)]}
    run.refuses(lambda: step.apply(update, weight), kind="TypeError", saying=("['layer1'][0]", narrow, wide))


@narrow_and_wide("CONSTRAINT-010")
def wide_update(run: Run, pair: tuple[str, str]) -> None:
    """Taken, and judged in the update's dtype."""
    narrow, wide = pair
    update, weight = sample((6,), wide, scale=2.0), sample((6,), narrow, seed=1)
    expected = oracle.norm_ball(exact(update), exact(weight), 1.0)
    got = constrained(run, update, weight, "norm-ball")
    assert got.dtype == wide, f"expected {wide}, got {got.dtype}"
    lands(got, expected, weight, 1.0)


@case("CONSTRAINT-011", each={"side": ("lower", "upper")})
def infinite_bound(run: Run, side: str) -> None:
    """Given and not given."""
    update, weight = sample((20,), scale=2.0), sample((20,), seed=1)
    finite = {"lower": {"upper": 0.25}, "upper": {"lower": -0.25}}[side]
    infinite = {"lower": -INF} if side == "lower" else {"upper": INF}
    same_bits(
        constrained(run, update, weight, "box", **finite, **infinite),
        constrained(run, update, weight, "box", **finite),
    )

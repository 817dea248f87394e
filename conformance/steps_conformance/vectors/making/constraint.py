"""Vectors of constraints."""

from collections.abc import Callable
from typing import Any

from steps_backends import HostArray, host_array

from ...descriptions import description
from ...oracle import constraint as oracle
from ...oracle.exact import Exact, Scalar, exact, mp, number
from ...oracle.samples import sample
from ..model import Expected, Vector, VectorCall
from .every_kind import Subject, add_every_kind, leafwise
from .sheet import REAL_DTYPES, Sheet, expect

Rule = Callable[[Exact, Exact], Exact]

# Requirement, options, the oracle's rule, the largest bound.
KINDS: dict[str, tuple[str, dict[str, Any], Rule, float]] = {
    "nonnegative": ("CONSTRAINT-001", {"constraint": "nonnegative"}, oracle.nonnegative, 0.0),
    "box": (
        "CONSTRAINT-002",
        {"constraint": "box", "lower": -0.5, "upper": 0.75},
        lambda u, w: oracle.box(u, w, -0.5, 0.75),
        0.75,
    ),
    "box-above": (
        "CONSTRAINT-002",
        {"constraint": "box", "upper": 0.1},
        lambda u, w: oracle.box(u, w, None, 0.1),
        0.1,
    ),
    "norm-ball": (
        "CONSTRAINT-003",
        {"constraint": "norm-ball", "radius": 0.75},
        lambda u, w: oracle.norm_ball(u, w, 0.75),
        0.75,
    ),
    "norm-ball-first": (
        "CONSTRAINT-003",
        {"constraint": "norm-ball", "radius": 0.5, "unit_axis": 0},
        lambda u, w: oracle.norm_ball(u, w, 0.5, 0),
        0.5,
    ),
    "unit-norm": ("CONSTRAINT-004", {"constraint": "unit-norm"}, oracle.unit_norm, 1.0),
}
_PAIRS = (
    ("float32", "float32"),
    ("float64", "float64"),
    ("float32", "float16"),
    ("float32", "bfloat16"),
    ("float16", "float16"),
)


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    for label in KINDS:
        for gradient_dtype, weight_dtype in _PAIRS:
            update = sample((4, 3), gradient_dtype, seed=51, scale=2.0)
            weight = sample((4, 3), weight_dtype, seed=52)
            _add(sheet, label, f"{label}-{gradient_dtype}-{weight_dtype}", update, weight)
    _add(
        sheet,
        "nonnegative",
        "nonnegative-edges",
        host_array([-3.0, -2.0, 0.0, -1e-30]),
        host_array([2.0, 2.0, 0.0, 1e-30]),
    )
    _add(
        sheet,
        "unit-norm",
        "unit-norm-zeros",
        host_array([[0.0, 3.0], [0.0, 4.0]]),
        host_array([[0.0] * 2] * 2),
    )
    _add(sheet, "norm-ball", "norm-ball-1e30", host_array([1e30, 1e30]), host_array([1.0, 2.0]))
    _add(sheet, "norm-ball", "norm-ball-3e38", host_array([3e38, 3e38]), host_array([3e38, 1.0]))
    _add(sheet, "unit-norm", "unit-norm-1e-30", host_array([1e-30, 2e-30]), host_array([3e-30, 1e-30]))
    _every_kind(sheet)
    return sheet.listed()


def _every_kind(sheet: Sheet) -> None:
    def above_zero(update: HostArray, weight: HostArray | None) -> Expected:
        assert weight is not None
        return expect(update, oracle.nonnegative(exact(update), exact(weight)), wide=0, narrow=0)

    def in_a_ball(update: HostArray, weight: HostArray | None) -> Expected:
        assert weight is not None
        w, wanted = exact(weight), oracle.norm_ball(exact(update), exact(weight), 0.75)
        of = w.map(lambda value, result: _both(value, result, 0.75), wanted)
        return expect(update, wanted, wide=2, narrow=2, of=of)

    step = description("ConstraintStep", constraint="nonnegative")
    answer = leafwise(above_zero)
    subject = Subject("nonnegative", step, answer, "CONSTRAINT-001", weighs=True, dtypes=REAL_DTYPES)
    add_every_kind(sheet, subject)
    step = description("ConstraintStep", constraint="norm-ball", radius=0.75)
    add_every_kind(
        sheet, Subject("ball", step, leafwise(in_a_ball), "CONSTRAINT-003", weighs=True, bad=False)
    )


def _both(weight: Scalar, result: Scalar, bound: float) -> Scalar:
    """Return the largest magnitude that takes part, for both parts of a complex number."""
    size = max(abs(weight), abs(result), number(bound))
    return mp.mpc(size, size) if isinstance(result, mp.mpc) else size


def _add(sheet: Sheet, kind: str, name: str, update: HostArray, weight: HostArray) -> None:
    requirement, options, rule, bound = KINDS[kind]
    u, w = exact(update), exact(weight)
    wanted = rule(u, w)
    of = w.map(lambda value, result: max(abs(value), number(bound), abs(result)), wanted)
    shows = "weights and updates together lie in the set"
    ulps = 0 if kind == "nonnegative" else 2  # the larger of two numbers needs no rounding
    one = VectorCall(update, weight, expect(update, wanted, wide=ulps, narrow=ulps, of=of))
    sheet.add(requirement, name, shows, description("ConstraintStep", **options), [one])

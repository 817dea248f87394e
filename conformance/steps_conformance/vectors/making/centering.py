"""Vectors of gradient centralisation."""

from typing import Any

from steps_backends import HostArray, host_array

from ...descriptions import description
from ...oracle import centering as oracle
from ...oracle.exact import exact, mp
from ...oracle.samples import sample, whole_numbers
from ..model import Expected, Vector, VectorCall, unchanged
from .every_kind import Subject, add_every_kind, leafwise, same
from .sheet import ALL_DTYPES, Sheet, expect, sized


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    for dtype in ALL_DTYPES:
        _add(sheet, "CENTER-001", f"matrix-{dtype}", sample((4, 3), dtype, seed=41))
    for shape in ((2, 3, 2), (2, 2, 3, 2), (2, 1, 2, 2, 3), (1, 4), (4, 1)):
        _add(sheet, "CENTER-001", f"rank-{len(shape)}-of-{shape[0]}", sample(shape, seed=42))
    for label, axis in (("first", 0), ("last", -1), ("both", (0, 1))):
        _add(sheet, "CENTER-003", label, sample((4, 3), seed=43), unit_axis=axis)
    for label, leaf in (
        ("0-d", host_array(3.0)),
        ("vector", host_array([1.0, 2.0])),
        ("empty", host_array([], "float32", (0, 3))),
    ):
        one = VectorCall(leaf, None, unchanged(leaf))
        sheet.add("CENTER-002", label, "no unit of its own", description("CenteringStep"), [one])
    _add(sheet, "CENTER-001", "whole-numbers", whole_numbers((8, 4), seed=44))
    _add(sheet, "CENTER-001", "3e38", host_array([[3e38, 1.0], [3e38, 2.0], [3e38, 3.0]]))
    others = {"nan": "CENTER-005", "inf": "CENTER-007"}
    step = description("CenteringStep")
    add_every_kind(sheet, Subject("centering", step, leafwise(_answer), "CENTER-001", others))
    return sheet.listed()


def _answer(leaf: HostArray, _: HostArray | None) -> Expected:
    if len(leaf.shape) < 2 or not leaf.values:
        return same(leaf)
    finite = [abs(value) for value in exact(leaf).values if mp.isfinite(value)]
    return expect(leaf, oracle.centered(exact(leaf)), wide=4, of=sized(leaf, max(finite)))


def _add(sheet: Sheet, requirement: str, name: str, leaf: HostArray, **options: Any) -> None:
    centered = oracle.centered(exact(leaf), **options)
    largest = max((abs(value) for value in exact(leaf).values), default=mp.mpf(1))
    one = VectorCall(leaf, None, expect(leaf, centered, wide=2, of=sized(leaf, largest)))
    sheet.add(
        requirement, name, "the mean of each unit is removed", description("CenteringStep", **options), [one]
    )

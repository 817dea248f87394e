"""Vectors of scaling, by numbers and by every schedule."""

from typing import Any

from steps_backends import HostArray, host_array

from ...descriptions import description, schedule
from ...oracle import schedules
from ...oracle.exact import exact, number
from ...oracle.samples import sample
from ..model import Expected, Vector, VectorCall, unchanged
from .every_kind import Subject, add_every_kind, leafwise
from .sheet import ALL_DTYPES, Sheet, expect, whole

SCHEDULES: dict[str, tuple[Any, schedules.Schedule]] = {
    "constant": (schedule("ConstantSchedule", value=0.75), schedules.constant(0.75)),
    "exponential": (
        schedule("ExponentialSchedule", initial=0.5, decay_rate=0.25, decay_steps=3),
        schedules.exponential(0.5, 0.25, 3),
    ),
    "linear": (
        schedule("LinearSchedule", initial=0.5, final=0.125, steps=3),
        schedules.linear(0.5, 0.125, 3),
    ),
    "cosine": (schedule("CosineSchedule", initial=0.5, steps=5, final=0.1), schedules.cosine(0.5, 5, 0.1)),
    "warmup": (
        schedule(
            "WarmupSchedule", steps=3, then=schedule("CosineSchedule", initial=0.5, steps=3), initial=0.1
        ),
        schedules.warmup(3, schedules.cosine(0.5, 3), 0.1),
    ),
    "piecewise": (
        schedule("PiecewiseSchedule", boundaries=(2, 4), values=(1.0, 0.3, 0.09)),
        schedules.piecewise((2, 4), (1.0, 0.3, 0.09)),
    ),
}
_REQUIREMENTS = {
    "constant": "SCHED-001",
    "exponential": "SCHED-002",
    "linear": "SCHED-003",
    "cosine": "SCHED-004",
    "warmup": "SCHED-005",
    "piecewise": "SCHED-006",
}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    for dtype in ALL_DTYPES:
        gradient = sample((5,), dtype, seed=31)
        for factor in (-1.0, 0.1, 3.0, 0.0):
            scaled = exact(gradient).map(lambda g, by=factor: g * number(by))
            one = VectorCall(gradient, None, expect(gradient, scaled, wide=1.5))
            step = description("ScalingStep", scale=factor)
            sheet.add("SCALE-001", f"{factor:g}-{dtype}", "times a number", step, [one])
        scaled = exact(gradient).map(lambda g: -number(0.3) * g)
        one = VectorCall(gradient, None, expect(gradient, scaled, wide=1.5))
        step = description("ScalingStep", learning_rate=0.3)
        sheet.add("SCALE-002", f"rate-{dtype}", "minus a learning rate", step, [one])
    same = host_array([1.5, -0.0, 1e-45, float("inf")])
    one = VectorCall(same, None, unchanged(same))
    sheet.add("SCALE-001", "by-one", "times 1 changes nothing", description("ScalingStep", scale=1.0), [one])
    _scheduled(sheet)
    others = {"nan": "SCALE-006", "inf": "SCALE-006"}
    step = description("ScalingStep", scale=-0.75)
    add_every_kind(sheet, Subject("scaling", step, leafwise(_answer), "SCALE-001", others))
    return sheet.listed()


def _answer(gradient: HostArray, _: HostArray | None) -> Expected:
    return expect(gradient, exact(gradient).map(lambda g: g * number(-0.75)), wide=1.5)


def _scheduled(sheet: Sheet) -> None:
    for label, (described, value) in SCHEDULES.items():
        step = description("ScalingStep", scale=described)
        for count in (8, 50):
            name = label if count == 8 else f"{label}-{count}-calls"
            calls = [_at(call, value) for call in range(count)]
            shows = f"{count} calls, the first at count 0"
            sheet.add(_REQUIREMENTS[label], name, shows, step, calls)
        state = {"count": HostArray("int32", (), (3,))}
        shows = "the count that is given goes on"
        calls = [_at(call, value) for call in (3, 4, 5)]
        sheet.add(_REQUIREMENTS[label], f"{label}-state-given", shows, step, calls, state=state)


def _at(count: int, value: schedules.Schedule) -> VectorCall:
    gradient = host_array([1.0, -2.0])
    scaled = exact(gradient).map(lambda g: g * value(count))
    # A line or wave may end near 0: what counts are ulps of its largest value.
    of = exact(gradient).values
    expected = Expected("float32", (2,), scaled.values, 2, of)
    return VectorCall(gradient, None, expected, {"count": whole(count + 1)})

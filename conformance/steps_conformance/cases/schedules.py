"""Rates that change from call to call."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import same_bits, within_ulps
from ..descriptions import description, schedule
from ..oracle import schedules as oracle
from ..oracle.exact import number
from ..oracle.samples import sample
from ..run import Run
from ..targets.protocol import Description
from .judging import made, refuses_a_name

LAST = 2**31 - 1
COUNTS = (0, 1, 2, 3, 5, 9, 10, 11, 20)


def values_at(run: Run, described: Description, counts: tuple[int, ...]) -> list[HostArray]:
    """Return what a schedule gives at these counts, which are put into the state."""
    step = run.step("ScalingStep", scale=described)
    one = run.array([1.0])
    results = (step.apply(one, None, {"count": run.array(count, "int32")})[0] for count in counts)
    return [run.read(result) for result in results]


def matches(
    run: Run, described: Description, rule: oracle.Schedule, ulps: Any, of: float | None = None
) -> None:
    """Require the oracle's value at each count; ulps may depend on the count."""
    for count, got in zip(COUNTS, values_at(run, described, COUNTS), strict=True):
        allowed = ulps(count) if callable(ulps) else ulps
        within_ulps(got, [rule(count)], allowed, of=None if of is None else [of], path=f"at {count}")


@case("SCHED-001", each={"value": (0.1, -3.0, 0.0)})
def constant(run: Run, value: float) -> None:
    """At every count."""
    for got in values_at(run, schedule("ConstantSchedule", value=value), (*COUNTS, LAST)):
        same_bits(got, host_array([value]))


EXPONENTIAL = {
    "halving": (1.0, 0.5, 10),
    "slow": (0.1, 0.99, 1),
    "growing": (0.003, 1.5, 4),
    "fast": (2.0, 0.01, 3),
}


@case("SCHED-002", each={"options": EXPONENTIAL})
def exponential(run: Run, options: tuple[float, float, int]) -> None:
    """At multiples of decay_steps and between."""
    initial, rate, steps = options
    described = schedule("ExponentialSchedule", initial=initial, decay_rate=rate, decay_steps=steps)
    rule = oracle.exponential(initial, rate, steps)
    matches(run, described, rule, lambda count: 3 + 3 * abs(count / steps * math.log(rate)))


LINES = {
    "down": (0.1, 0.003, 10),
    "up": (0.0, 1.0, 3),
    "through-zero": (-0.7, 0.9, 10),
    "one-step": (1.0, 0.25, 1),
}


@case("SCHED-003", each={"options": LINES})
def linear(run: Run, options: tuple[float, float, int]) -> None:
    """Before, at and after its end."""
    initial, final, steps = options
    described = schedule("LinearSchedule", initial=initial, final=final, steps=steps)
    largest = max(abs(initial), abs(final))
    inside = oracle.linear(initial, final, steps)
    matches(run, described, inside, lambda count: 4 if 0 < count < steps else 1, of=largest)


@case(
    "SCHED-004",
    each={"options": {"to-zero": (0.1, 10, 0.0), "to-a-rest": (1.0, 9, 0.125), "up": (0.0, 3, 2.0)}},
)
def cosine(run: Run, options: tuple[float, int, float]) -> None:
    """Before, at and after its end."""
    initial, steps, final = options
    described = schedule("CosineSchedule", initial=initial, steps=steps, final=final)
    matches(run, described, oracle.cosine(initial, steps, final), 4, of=max(abs(initial), abs(final)))


@case("SCHED-004")
def cosine_ends_at_zero(run: Run) -> None:
    """final is 0 where it is not given."""
    described = schedule("CosineSchedule", initial=0.5, steps=10)
    matches(run, described, oracle.cosine(0.5, 10), 4, of=0.5)


WARM: dict[str, tuple[int, float, Description, oracle.Schedule, float]] = {
    "to-constant": (
        5, 0.0, schedule("ConstantSchedule", value=0.3), oracle.constant(0.3), 0.3,
    ),
    "to-cosine": (
        3, 0.1, schedule("CosineSchedule", initial=0.7, steps=8), oracle.cosine(0.7, 8), 0.7,
    ),
    "downwards": (
        10, 2.0, schedule("LinearSchedule", initial=1.0, final=0.0, steps=5), oracle.linear(1.0, 0.0, 5), 2.0,
    ),
}  # fmt: skip


@case("SCHED-005", each={"row": WARM})
def warm_up(run: Run, row: tuple[int, float, Description, oracle.Schedule, float]) -> None:
    """On the line, where it ends, and after it."""
    steps, initial, then, rule, largest = row
    described = schedule("WarmupSchedule", steps=steps, then=then, initial=initial)
    matches(run, described, oracle.warmup(steps, rule, initial), 4, of=largest)


@case("SCHED-005")
def warm_up_starts_at_zero(run: Run) -> None:
    """initial is 0 where it is not given."""
    described = schedule("WarmupSchedule", steps=4, then=schedule("ConstantSchedule", value=0.5))
    matches(run, described, oracle.warmup(4, oracle.constant(0.5)), 4, of=0.5)


@case("SCHED-006", each={"boundaries": {"two": (2, 10), "one": (1,), "none": ()}})
def piecewise(run: Run, boundaries: tuple[int, ...]) -> None:
    """Below, at and after each boundary."""
    values = (0.1, 0.7, 0.013)[: len(boundaries) + 1]
    described = schedule("PiecewiseSchedule", boundaries=boundaries, values=values)
    rule = oracle.piecewise(boundaries, values)
    for count, got in zip(COUNTS, values_at(run, described, COUNTS), strict=True):
        same_bits(got, host_array([float(rule(count))]), path=f"at {count}")


ENDS: dict[str, tuple[Description, float]] = {
    "linear": (schedule("LinearSchedule", initial=1.0, final=0.25, steps=100), 0.25),
    "cosine": (schedule("CosineSchedule", initial=1.0, steps=100, final=0.25), 0.25),
    "warm-up": (schedule("WarmupSchedule", steps=9, then=schedule("ConstantSchedule", value=0.25)), 0.25),
    "exponential": (schedule("ExponentialSchedule", initial=1.0, decay_rate=0.5, decay_steps=10), 0.0),
    "piecewise": (schedule("PiecewiseSchedule", boundaries=(5,), values=(1.0, 0.25)), 0.25),
}


@case("SCHED-007", each={"row": ENDS})
def largest_count(run: Run, row: tuple[Description, float]) -> None:
    """Two thousand million calls later."""
    described, final = row
    (got,) = values_at(run, described, (LAST,))
    within_ulps(got, [final], 4, of=[1.0])


STEPS = {"initial": 1.0, "final": 0.0, "steps": 10}
REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "no-steps": ("ValueError", "LinearSchedule", STEPS | {"steps": 0}, "steps"),
    "negative-steps": ("ValueError", "CosineSchedule", {"initial": 1.0, "steps": -3}, "steps"),
    "fraction-of-a-step": ("TypeError", "CosineSchedule", {"initial": 1.0, "steps": 2.5}, "steps"),
    "bool-for-steps": ("TypeError", "LinearSchedule", STEPS | {"steps": True}, "steps"),
    "nan": ("ValueError", "ConstantSchedule", {"value": math.nan}, "value"),
    "text": ("TypeError", "LinearSchedule", STEPS | {"initial": "1.0"}, "initial"),
    "decay-rate": (
        "ValueError",
        "ExponentialSchedule",
        {"initial": 1.0, "decay_rate": 0.0, "decay_steps": 1},
        "decay_rate",
    ),
    "decay-steps": (
        "ValueError",
        "ExponentialSchedule",
        {"initial": 1.0, "decay_rate": 0.5, "decay_steps": 0},
        "decay_steps",
    ),
    "boundaries-fall": (
        "ValueError",
        "PiecewiseSchedule",
        {"boundaries": (5, 2), "values": (1.0, 2.0, 3.0)},
        "boundaries",
    ),
    "boundaries-repeat": (
        "ValueError",
        "PiecewiseSchedule",
        {"boundaries": (2, 2), "values": (1.0, 2.0, 3.0)},
        "boundaries",
    ),
    "too-few-values": ("ValueError", "PiecewiseSchedule", {"boundaries": (5,), "values": (1.0,)}, "values"),
    "then-a-text": ("TypeError", "WarmupSchedule", {"steps": 5, "then": "cosine"}, "then"),
}


@case("SCHED-008", each={"row": REFUSED})
def bad_schedule(run: Run, row: tuple[str, str, dict[str, Any], str]) -> None:
    """Inside of a scaling step."""
    kind, name, options, argument = row
    run.refused(kind, "ScalingStep", scale=schedule(name, **options), saying=(argument,))


RATED = {
    "adam": ("AdamStep", "learning_rate"),
    "rmsprop": ("RMSPropStep", "learning_rate"),
    "sgd": ("SGDStep", "learning_rate"),
    "scaling-by-rate": ("ScalingStep", "learning_rate"),
    "scaling": ("ScalingStep", "scale"),
}


@case("SCHED-009", each={"row": RATED})
def rate_of_each_step(run: Run, row: tuple[str, str]) -> None:
    """Five calls, against the same step with rate 1 times the schedule."""
    name, option = row
    curve: dict[str, Any] = {"initial": 0.5, "steps": 4, "final": 0.125}
    scheduled = run.step(name, **{option: schedule("CosineSchedule", **curve)})
    plain = run.step(name, **{option: 1.0})
    state: Any = None
    plain_state: Any = None
    for count in range(5):
        gradient = made(run, sample((6,), seed=count))
        result, state = scheduled.apply(gradient, None, state)
        unscaled, plain_state = plain.apply(gradient, None, plain_state)
        rate = oracle.cosine(**curve)(count)
        within_ulps(
            run.read(result), [number(x) * rate for x in run.read(unscaled).values], 12, path=f"call {count}"
        )
    same_bits(run.read(state["count"]), HostArray("int32", (), (5,)))


@case("SCHED-010")
def unknown_schedule(run: Run) -> None:
    """A name that looks like a schedule."""
    described = description("ScalingStep", scale=schedule("SawtoothSchedule", initial=1.0))
    refuses_a_name(lambda: run.make(described), "SawtoothSchedule")

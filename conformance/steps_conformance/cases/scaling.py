"""Multiplying by a number, or by what a schedule says."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import same_bits
from ..descriptions import schedule
from ..oracle.exact import exact, number
from ..oracle.samples import sample
from ..run import Run
from .judging import ALL_DTYPES, REAL_DTYPES, made, near

NAN, INF = math.nan, math.inf


@case("SCALE-001", each={"dtype": ALL_DTYPES, "scale": (0.1, -2.5, 1e-6, 3.0)})
def times_a_number(run: Run, dtype: str, scale: float) -> None:
    """Numbers of both signs."""
    gradient = sample((40,), dtype)
    result, _ = run.step("ScalingStep", scale=scale).apply(made(run, [gradient]))
    near(run, result, [exact(gradient).map(lambda x: x * number(scale))], 1.5, narrow=0.502)


@case("SCALE-001", each={"dtype": REAL_DTYPES})
def times_zero(run: Run, dtype: str) -> None:
    """Zeros of some sign."""
    result, _ = run.step("ScalingStep", scale=0.0).apply(made(run, host_array([3.0, -4.0, 0.0], dtype)))
    assert all(value == 0 for value in run.read(result).values), f"expected zeros, got {run.read(result)}"


@case("SCALE-002", each={"dtype": ALL_DTYPES, "rate": (0.1, -1.0, 2.0)})
def times_minus_the_rate(run: Run, dtype: str, rate: float) -> None:
    """A negative rate keeps the sign."""
    gradient = sample((40,), dtype)
    result, _ = run.step("ScalingStep", learning_rate=rate).apply(made(run, [gradient]))
    near(run, result, [exact(gradient).map(lambda x: -x * number(rate))], 1.5, narrow=0.502)


@case("SCALE-003", each={"options": {"none": {}, "both": {"scale": 1.0, "learning_rate": 1.0}}})
def one_of_two(run: Run, options: dict[str, float]) -> None:
    """Neither, and both."""
    run.refused("ValueError", "ScalingStep", saying=("scale", "learning_rate"), **options)


BAD: dict[str, tuple[str, Any, str]] = {
    "nan": ("ValueError", NAN, "nan"),
    "bool": ("TypeError", True, "True"),
    "text": ("TypeError", "0.1", "0.1"),
    "list": ("TypeError", [0.1], "0.1"),
}


@case("SCALE-004", each={"name": ("scale", "learning_rate"), "value": BAD})
def bad_value(run: Run, name: str, value: tuple[str, Any, str]) -> None:
    """Each bad value, in each argument."""
    kind, given, shown = value
    run.refused(kind, "ScalingStep", saying=(name, shown), **{name: given})


@case("SCALE-004", each={"name": ("scale", "learning_rate")})
def explicit_none(run: Run, name: str) -> None:
    """None is not given."""
    run.refused("ValueError", "ScalingStep", saying=(name,), **{name: None})


@case("SCALE-005", each={"name": ("scale", "learning_rate"), "dtype": ("float32", "bfloat16")})
def count_from_zero(run: Run, name: str, dtype: str) -> None:
    """Three calls with a scale that changes with each."""
    steps = schedule("PiecewiseSchedule", boundaries=(1, 2), values=(4.0, 2.0, 0.5))
    gradient, sign = made(run, host_array([3.0], dtype)), -1.0 if name == "learning_rate" else 1.0
    step = run.step("ScalingStep", **{name: steps})
    state = step.init(gradient)
    same_bits(run.read(state), {"count": HostArray("int32", (), (0,))})
    for count, scale in enumerate((4.0, 2.0, 0.5), start=1):
        result, state = step.apply(gradient, None, state)
        same_bits(run.read(result), host_array([3.0 * sign * scale], dtype))
        same_bits(run.read(state), {"count": HostArray("int32", (), (count,))})


@case("SCALE-006", each={"dtype": REAL_DTYPES, "scale": (2.0, 0.0)})
def not_finite(run: Run, dtype: str, scale: float) -> None:
    """Beside an ordinary number."""
    gradient = host_array([NAN, INF, -INF, 1.5], dtype)
    expected = host_array([NAN, INF, -INF, 3.0] if scale else [NAN, NAN, NAN, 0.0], dtype)
    result, _ = run.step("ScalingStep", scale=scale).apply(made(run, gradient))
    same_bits(run.read(result), expected)


@case("SCALE-007", each={"scale": (-1, 3)})
def whole_scale(run: Run, scale: int) -> None:
    """A whole number in place of a float."""
    result, _ = run.step("ScalingStep", scale=scale).apply(run.array([1.5, -2.0]))
    same_bits(run.read(result), host_array([1.5 * scale, -2.0 * scale]))

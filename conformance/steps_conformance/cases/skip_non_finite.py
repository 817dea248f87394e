"""Leaving out calls with NaN or infinities."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import all_zero, same_bits
from ..descriptions import chain, description
from ..oracle.samples import sample, steady
from ..run import Run
from ..targets.protocol import Description
from .judging import ALL_DTYPES, made, same_but_for_compilers

NAN, INF = math.nan, math.inf

INNER: dict[str, Description] = {
    "adam": description("AdamStep", amsgrad=True),
    "momentum": description("MomentumStep"),
    "clip": description("GradientClippingStep", variant="global", threshold=0.5),
    "chain": chain(description("GradientClippingStep"), description("AdamStep")),
}
BAD = {"nan": [NAN, 1.0], "infinite": [INF, 1.0], "minus-infinite": [1.0, -INF], "both": [NAN, INF]}


def count(value: int) -> HostArray:
    """Return what `skipped` reads as."""
    return HostArray("int32", (), (value,))


@case("SKIP-001", each={"inner": INNER, "dtype": ("float32", "float16")})
def finite_calls(run: Run, inner: Description, dtype: str) -> None:
    """Three calls with gradients of one sign for each element."""
    alone, guarded = run.make(inner), run.step("SkipNonFiniteStep", inner=inner)
    weights = made(run, {"a": sample((3,), dtype), "b": [sample((2, 2), dtype)]})
    state, outer = alone.init(weights), guarded.init(weights)
    for vector, matrix in zip(steady((3,), 3, dtype), steady((2, 2), 3, dtype, seed=1), strict=True):
        gradients = made(run, {"a": vector, "b": [matrix]})
        expected, state = alone.apply(gradients, weights, state)
        result, outer = guarded.apply(gradients, weights, outer)
        same_but_for_compilers(run, run.read(result), run.read(expected), 8)
        wanted = {"skipped": count(0), "inner": run.read(state)}
        same_but_for_compilers(run, run.read(outer), wanted, 8)


@case("SKIP-002", each={"dtype": ALL_DTYPES, "bad": BAD})
def bad_calls(run: Run, dtype: str, bad: list[float]) -> None:
    """The bad leaf and a sound one, in the first call and in a later one."""
    step = run.step("SkipNonFiniteStep", inner=description("AdamStep", learning_rate=1.0))
    sound = made(run, {"a": host_array([1.0, 2.0], dtype), "b": host_array(3.0, dtype)})
    broken = made(run, {"a": host_array(bad, dtype), "b": host_array(3.0, dtype)})
    _, later = step.apply(sound)
    for state in (None, later):
        result, _ = step.apply(broken, None, state)
        all_zero(run.read(result))


@case("SKIP-003", each={"inner": INNER})
def inner_state_stays(run: Run, inner: Description) -> None:
    """A sound call and two bad ones."""
    step = run.step("SkipNonFiniteStep", inner=inner)
    _, state = step.apply({"a": run.array([1.0, -2.0])})
    before = run.read(state)["inner"]
    for skipped, bad in enumerate(([NAN, 1.0], [1.0, INF]), start=1):
        _, state = step.apply({"a": run.array(bad)}, None, state)
        same_bits(run.read(state), {"skipped": count(skipped), "inner": before})


@case("SKIP-004", each={"inner": INNER})
def training_goes_on(run: Run, inner: Description) -> None:
    """Six calls of which every second is bad, against the three sound ones."""
    disturbed, calm = (run.step("SkipNonFiniteStep", inner=inner) for _ in range(2))
    bad = run.array([NAN, 1.0, 2.0, 3.0])
    state, other = disturbed.init(bad), calm.init(bad)
    for seed in range(3):
        gradient = made(run, sample((4,), seed=seed))
        result, state = disturbed.apply(gradient, None, state)
        expected, other = calm.apply(gradient, None, other)
        same_bits(run.read(result), run.read(expected), path=f"call {2 * seed}")
        _, state = disturbed.apply(bad, None, state)
    same_bits(run.read(state), run.read(other) | {"skipped": count(3)})


@case("SKIP-005", each={"before": (0, 2**31 - 3, 2**31 - 2, 2**31 - 1)})
def counter_saturates(run: Run, before: int) -> None:
    """A bad call, and a sound one."""
    step = run.step("SkipNonFiniteStep", inner=description("MomentumStep"))
    first = step.init(run.array([1.0]))
    same_bits(run.read(first["skipped"]), count(0))
    _, state = step.apply(run.array([NAN]), None, first | {"skipped": run.array(before, "int32")})
    after = count(min(before + 1, 2**31 - 1))
    same_bits(run.read(state["skipped"]), after)
    _, state = step.apply(run.array([1.0]), None, state)
    same_bits(run.read(state["skipped"]), after)


@case("SKIP-006")
def large_and_finite(run: Run) -> None:
    """Clipped, not skipped."""
    clip = description("GradientClippingStep", threshold=1.0)
    step = run.step("SkipNonFiniteStep", inner=clip)
    result, state = step.apply([run.array([3.4e38, -3.4e38, 1e-40, 0.5])])
    same_bits(run.read(state["skipped"]), count(0))
    got = run.read(result)[0].values
    assert got[:2] == (1.0, -1.0), f"expected 1 and -1, got {got[:2]}"
    assert got[3] == 0.5, f"expected 0.5, got {got[3]}"


@case("SKIP-007", each={"inner": {"number": 1.0, "text": "AdamStep", "none": None}})
def no_step_inside(run: Run, inner: Any) -> None:
    """Something else inside."""
    run.refused("TypeError", "SkipNonFiniteStep", inner=inner, saying=("inner",))

"""Remembering the size of what passes."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import same_bits, within_ulps
from ..descriptions import chain, description
from ..oracle.exact import norm, number
from ..oracle.extremes import LARGE, SMALL, Extreme
from ..oracle.samples import five_binades, sample
from ..run import Run
from .judging import ALL_DTYPES, case_for_each_row, exacts, kept, made

NAN, INF = math.nan, math.inf
TRUE, FALSE = HostArray("bool", (), (True,)), HostArray("bool", (), (False,))


def seen(run: Run, gradients: Any) -> Any:
    """Return the state after gradients, a tree of HostArrays, have passed."""
    _, state = run.step("MonitorStep").apply(made(run, gradients))
    return run.read(state)


def remembers_the_norm(run: Run, gradients: Any, dtype: str | None = None) -> None:
    """Require the exact norm, within 4 ulps of a dtype, and that all is finite."""
    state = seen(run, gradients)
    length = norm([value for leaf in exacts(gradients) for value in leaf.values])
    within_ulps(state["norm"], length, 4, dtype=dtype)
    same_bits(state["finite"], TRUE)


@case("MONITOR-001", each={"dtype": ALL_DTYPES})
def gradients_pass(run: Run, dtype: str) -> None:
    """Every kind of number."""
    gradients = {"a": host_array([NAN, INF, -INF, 0.0, -0.0, 1e-40, 0.1], dtype), "b": sample((2, 2), dtype)}
    kept(run, run.step("MonitorStep").apply(made(run, gradients))[0], gradients)


@case("MONITOR-002", each={"dtype": ALL_DTYPES})
def norm_of_a_tree(run: Run, dtype: str) -> None:
    """Leaves of several ranks."""
    remembers_the_norm(
        run, {"a": sample((5, 7), dtype), "b": [sample((), dtype, seed=1), sample((9,), dtype, seed=2)]}
    )


@case("MONITOR-002")
def norm_by_hand(run: Run) -> None:
    """3, 4 and 12 make 13; nothing makes 0."""
    state = seen(run, [host_array([3.0, 4.0]), host_array(-12.0)])
    same_bits(state, {"norm": host_array(13.0), "finite": TRUE})
    same_bits(seen(run, [HostArray("float32", (0,), ())]), {"norm": host_array(0.0), "finite": TRUE})


@case("MONITOR-002", each={"other_dtype": ("float16", "float64", "complex64")})
def norm_over_two_dtypes(run: Run, other_dtype: str) -> None:
    """float32 beside another."""
    remembers_the_norm(run, [sample((6,)), sample((6,), other_dtype, seed=1)], "float32")


@case_for_each_row("MONITOR-003", LARGE | SMALL)
def extreme_norm(run: Run, row: Extreme) -> None:
    """As one leaf, and spread over at most four; a norm beyond the range is infinite."""
    dtype, values, _ = row
    remembers_the_norm(run, [host_array(values, dtype)])
    remembers_the_norm(run, [host_array(values[first::4], dtype) for first in range(min(4, len(values)))])


SWEEPS = {"float32": range(-122, 127, 4), "float64": range(-1018, 1023, 4)}


@case("MONITOR-003", each={"dtype": SWEEPS.keys()})
def every_size(run: Run, dtype: str) -> None:
    """Five powers of two of equal share, moved over the whole range, over two leaves."""
    step = run.step("MonitorStep")
    for exponent in SWEEPS[dtype]:
        vector = five_binades(exponent, dtype)
        parts = [HostArray(dtype, (85,), vector.values[:85]), HostArray(dtype, (256,), vector.values[85:])]
        _, state = step.apply(made(run, parts))
        length = number(5) ** number(0.5) * number(2) ** exponent
        within_ulps(run.read(state)["norm"], length, 4, path=f"at 2^{exponent}")


BAD = {"nan": ([1.0, NAN], NAN), "infinite": ([-INF, 1.0], INF), "both": ([INF, NAN], NAN)}


@case("MONITOR-004", each={"dtype": ALL_DTYPES, "row": BAD})
def not_finite(run: Run, dtype: str, row: tuple[list[float], float]) -> None:
    """In the second of two leaves."""
    values, expected = row
    state = seen(run, [host_array([1.0], dtype), host_array(values, dtype)])
    same_bits(state["finite"], FALSE)
    (got,) = state["norm"].values
    assert got == expected or (math.isnan(got) and math.isnan(expected)), f"expected {expected}, got {got}"


@case("MONITOR-004", each={"dtype": ("float32", "float64", "bfloat16")})
def finite_although_the_norm_is_not(run: Run, dtype: str) -> None:
    """Elements so large that their joint norm is beyond the range."""
    largest = {"float32": 3e38, "bfloat16": 3e38, "float64": 1.7e308}[dtype]
    state = seen(run, [host_array([largest, -largest], dtype), host_array([largest], dtype)])
    same_bits(state["finite"], TRUE)
    assert state["norm"].values == (INF,), f"expected an infinite norm, got {state['norm']}"


DTYPES_OF_THE_NORM = {
    "float16": "float32", "bfloat16": "float32", "float32": "float32",
    "float64": "float64", "complex64": "float32", "complex128": "float64",
}  # fmt: skip


@case("MONITOR-005", each={"dtype": ALL_DTYPES})
def dtype_of_the_norm(run: Run, dtype: str) -> None:
    """Of one dtype, with weights and without."""
    tree = made(run, [sample((2,), dtype)])
    step = run.step("MonitorStep")
    for weights in (tree, None):
        _, state = step.apply(tree, weights, step.init(tree) if weights is None else None)
        got = run.read(state)["norm"].dtype
        assert got == DTYPES_OF_THE_NORM[dtype], f"expected {DTYPES_OF_THE_NORM[dtype]}, got {got}"


@case("MONITOR-005", dtypes=("float64",))
def one_wide_weight(run: Run) -> None:
    """Beside a float32 weight; gradients are all float32."""
    weights = made(run, [sample((2,)), sample((2,), "float64")])
    gradients = made(run, [sample((2,)), sample((2,))])
    step = run.step("MonitorStep")
    state = step.init(weights)
    for moment in (state, step.apply(gradients, weights, state)[1]):
        got = run.read(moment)["norm"].dtype
        assert got == "float64", f"expected float64, got {got}"


@case("MONITOR-006")
def around_a_clip(run: Run) -> None:
    """Two calls: [3, 4] clipped to 1, then [6, 8]."""
    monitor = description("MonitorStep")
    clip = description("GradientClippingStep", variant="global", threshold=1.0)
    step, state = run.make(chain(monitor, clip, monitor)), None
    for values, before in (([3.0, 4.0], 5.0), ([6.0, 8.0], 10.0)):
        _, state = step.apply(run.array(values), None, state)
        read = run.read(state)
        within_ulps(read["step1"]["norm"], before, 4)
        within_ulps(read["step3"]["norm"], 1.0, 8)


@case("MONITOR-007")
def nothing_has_passed(run: Run) -> None:
    """At first, and when no leaf has a gradient after one that had."""
    nothing = {"norm": host_array(0.0), "finite": TRUE}
    step, weights = run.step("MonitorStep"), {"a": run.array([3.0, 4.0])}
    same_bits(run.read(step.init(weights)), nothing)
    for values in ([3.0, 4.0], [NAN, INF]):
        _, state = step.apply({"a": run.array(values)}, weights)
        _, state = step.apply({"a": None}, weights, state)
        same_bits(run.read(state), nothing)

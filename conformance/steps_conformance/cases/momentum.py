"""The decaying sum of gradients."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import same_bits
from ..descriptions import description
from ..oracle.momentum import momentum
from ..oracle.samples import steady
from ..run import Run
from .judging import ALL_DTYPES, exacts, follows


@case("MOMENTUM-001", each={"dtype": ALL_DTYPES, "decay": (0.3, 0.9)})
def decaying_sum(run: Run, dtype: str, decay: float) -> None:
    """Ten calls."""
    gradients = steady((30,), 10, dtype)
    expected = momentum(exacts(gradients), decay=decay)
    follows(run, description("MomentumStep", decay=decay), expected, gradients, wide=8)


@case("MOMENTUM-001", each={"dtype": ("float16", "bfloat16", "float32", "float64")})
def by_hand(run: Run, dtype: str) -> None:
    """Gradients 4, -2 and 0."""
    step, state = run.step("MomentumStep", decay=0.5), None
    for gradient, trace in ((4.0, 4.0), (-2.0, 0.0), (8.0, 8.0), (0.0, 4.0)):
        result, state = step.apply(run.array([gradient], dtype), None, state)
        same_bits(run.read(result), host_array([trace], dtype))


@case("MOMENTUM-001")
def default_decay(run: Run) -> None:
    """Nine tenths."""
    gradients = steady((5,), 3)
    follows(run, description("MomentumStep"), momentum(exacts(gradients)), gradients, wide=8)


@case("MOMENTUM-002", each={"dtype": ALL_DTYPES})
def nesterov(run: Run, dtype: str) -> None:
    """Ten calls."""
    gradients = steady((30,), 10, dtype)
    expected = momentum(exacts(gradients), nesterov=True)
    follows(run, description("MomentumStep", nesterov=True), expected, gradients, wide=8)


@case("MOMENTUM-002")
def nesterov_by_hand(run: Run) -> None:
    """Traces 4 and 6, results 6 and 7."""
    step, state = run.step("MomentumStep", decay=0.5, nesterov=True), None
    for expected in (6.0, 7.0):
        result, state = step.apply(run.array([4.0]), None, state)
        same_bits(run.read(result), host_array([expected]))


@case("MOMENTUM-003", each={"dtype": ALL_DTYPES, "nesterov": (False, True)})
def trace_in_the_state(run: Run, dtype: str, nesterov: bool) -> None:
    """After ten calls."""
    gradients = steady((10,), 10, dtype)
    expected = momentum(exacts(gradients), nesterov=nesterov)
    described = description("MomentumStep", nesterov=nesterov)
    state = follows(run, described, expected, gradients, wide=8, state_ulps=8)
    assert set(state) == {"trace"}, f"expected only a trace, got {sorted(state)}"


@case("MOMENTUM-003")
def zeros_at_first(run: Run) -> None:
    """The initial state."""
    state = run.step("MomentumStep").init({"a": run.array([1.0, 2.0])})
    same_bits(run.read(state), {"trace": {"a": HostArray("float32", (2,), (0.0, 0.0))}})


REFUSED: dict[str, tuple[str, str, Any]] = {
    "decay-is-one": ("ValueError", "decay", 1.0),
    "decay-negative": ("ValueError", "decay", -0.5),
    "decay-nan": ("ValueError", "decay", math.nan),
    "decay-text": ("TypeError", "decay", "0.9"),
    "decay-bool": ("TypeError", "decay", True),
    "nesterov-number": ("TypeError", "nesterov", 1),
}


@case("MOMENTUM-004", each={"row": REFUSED})
def bad_option(run: Run, row: tuple[str, str, Any]) -> None:
    """Each bad value."""
    kind, name, value = row
    run.refused(kind, "MomentumStep", saying=(name, str(value)), **{name: value})

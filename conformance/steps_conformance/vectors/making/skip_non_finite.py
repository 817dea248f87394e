"""Vectors of skipping: zeros for what is not finite, and training that goes on as if it had not been."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from steps_backends import HostArray, host_array

from ...containers import leaves, mapped
from ...descriptions import description
from ...oracle import adam as oracle
from ...oracle.exact import exact, number
from ..model import Expected, Vector, VectorCall
from .every_kind import Subject, add_every_kind
from .optimizing import expected_state, steady
from .sheet import Sheet, expect, whole

# Call number -> what stands at the second element.
_BAD = {1: math.nan, 7: math.inf, 8: -math.inf, 20: math.nan, 50: math.nan}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    inner = description("ScalingStep", scale=0.5)
    step = description("SkipNonFiniteStep", inner=inner)
    others = {"nan": "SKIP-002", "inf": "SKIP-002", "extreme": "SKIP-006"}
    add_every_kind(sheet, Subject("skip", step, _answers, "SKIP-001", others, many=True))
    for dtype in ("float32", "float16"):
        _training(sheet, dtype, 50, _BAD)
    _from_a_state(sheet)
    return sheet.listed()


def _answers(gradients: Sequence[Any], _: Any) -> list[Any]:
    return [_halved(tree) if _is_finite(tree) else mapped(_zeros, tree) for tree in gradients]


def _is_finite(tree: Any) -> bool:
    arrays = [leaf for _, leaf in leaves(tree) if leaf is not None]
    return all(math.isfinite(abs(value)) for array in arrays for value in array.values)


def _halved(tree: Any) -> Any:
    def half(host: HostArray, _: str) -> Expected:
        return expect(host, exact(host).map(lambda value: value * number(0.5)), wide=0.5, narrow=0.5)

    return mapped(half, tree)


def _zeros(host: HostArray, _: str) -> Expected:
    return Expected(host.dtype, host.shape, (0.0,) * len(host.values))


def _training(sheet: Sheet, dtype: str, count: int, bad: Mapping[int, float]) -> None:
    """Adam sees the good calls alone."""
    gradients = steady(count, dtype, seed=91)
    good = [gradient for number, gradient in enumerate(gradients, start=1) if number not in bad]
    steps = oracle.adam([exact(gradient) for gradient in good])
    calls, passed = [], 0
    for place, gradient in enumerate(gradients, start=1):
        if place in bad:
            first, _, *rest = gradient.values
            spoilt = host_array([first, bad[place], *rest], dtype)
            expected: Expected = _zeros(gradient, "")
        else:
            spoilt, passed = gradient, passed + 1
            expected = expect(gradient, steps.updates[passed - 1], wide=16)
        state = None
        if place in bad or place == count - 1:
            inner = expected_state(gradient, steps.states[passed - 1], passed, 16) if passed else _nothing()
            state = {"skipped": whole(place - passed), "inner": inner}
        calls.append(VectorCall(spoilt, None, expected, state))
    step = description("SkipNonFiniteStep", inner=description("AdamStep"))
    shows = f"{count} calls of Adam, {len(bad)} of them skipped"
    sheet.add("SKIP-004", f"{count}-calls-{dtype}", shows, step, calls)


def _nothing() -> Any:
    zeros = Expected("float32", (4,), (0.0,) * 4)
    return {"count": whole(0), "first_moment": zeros, "second_moment": zeros}


def _from_a_state(sheet: Sheet) -> None:
    """What was counted before stays counted."""
    momentum = description("MomentumStep", decay=0.5)
    step = description("SkipNonFiniteStep", inner=momentum)
    trace = host_array([2.0, 4.0])
    state = {"skipped": HostArray("int32", (), (3,)), "inner": {"trace": trace}}
    kept = {"skipped": whole(4), "inner": {"trace": Expected("float32", (2,), trace.values)}}
    after = {"skipped": whole(4), "inner": {"trace": Expected("float32", (2,), (2.0, 1.0))}}
    bad, good = host_array([math.nan, 1.0]), host_array([1.0, -1.0])
    calls = [
        VectorCall(bad, None, Expected("float32", (2,), (0.0, 0.0)), kept),
        VectorCall(good, None, Expected("float32", (2,), (2.0, 1.0)), after),
    ]
    sheet.add("SKIP-003", "state-given", "a state with skipped calls goes on", step, calls, state=state)
    last = HostArray("int32", (), (2**31 - 1,))
    full = {"skipped": whole(2**31 - 1), "inner": {"trace": Expected("float32", (2,), trace.values)}}
    one = VectorCall(bad, None, Expected("float32", (2,), (0.0, 0.0)), full)
    shows = "the counter stays at 2^31 - 1"
    sheet.add("SKIP-005", "last-count", shows, step, [one], state={**state, "skipped": last})

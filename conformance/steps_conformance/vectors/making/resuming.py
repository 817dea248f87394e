"""Vectors that start in the middle of a run, from a state that is given."""

from collections.abc import Callable
from typing import Any

from steps_backends import HostArray, host_array

from ...oracle.exact import Exact, exact
from ...oracle.sequences import Start, Steps
from ..model import VectorCall
from .optimizing import dtype_of_state, exacts_of, expected_state, steady
from .sheet import Sheet, expect, sized

_BEFORE, _AFTER = 25, 3


def add_resumed(
    sheet: Sheet,
    requirement: str,
    name: str,
    step: Any,
    rule: Callable[..., Steps],
    dtype: str,
    *,
    counts: bool,
    weighs: bool = False,
    size: float | None = None,
    ulps: float = 8,
    **options: Any,
) -> None:
    """Add three calls that go on after twenty-five, which only the oracle has seen.

    Args:
        sheet: where the vector goes.
        requirement: what it shows.
        name: the vector's name, without its end.
        step: the description.
        rule: the oracle's rule, called with gradients, perhaps weights, and options.
        dtype: of the gradients.
        counts: whether the state has a counter.
        weighs: whether the step needs weights.
        size: the magnitude whose ulps count, where summands may cancel.
        ulps: the tolerance for wide dtypes.
        **options: the oracle's.
    """
    gradients = steady(_BEFORE + _AFTER, dtype, seed=101)
    weights = steady(_BEFORE + _AFTER, dtype, seed=102) if weighs else None
    before = _run(rule, gradients[:_BEFORE], None if weights is None else weights[:_BEFORE], options)
    moments = {key: _rounded(values, dtype_of_state(dtype, key)) for key, values in before.states[-1].items()}
    start = Start(_BEFORE, {key: exact(array) for key, array in moments.items()})
    later = None if weights is None else weights[_BEFORE:]
    steps = _run(rule, gradients[_BEFORE:], later, {**options, "start": start})
    state: dict[str, Any] = {"count": HostArray("int32", (), (_BEFORE,))} if counts else {}
    of = None if size is None else sized(gradients[0], size)
    calls = []
    for number in range(_AFTER):
        gradient = gradients[_BEFORE + number]
        count = _BEFORE + number + 1 if counts else None
        wanted = expected_state(gradient, steps.states[number], count, ulps, size)
        update = expect(gradient, steps.updates[number], wide=ulps, of=of)
        calls.append(VectorCall(gradient, None if later is None else later[number], update, wanted))
    shows = f"a run goes on after {_BEFORE} calls, from the state after them"
    sheet.add(requirement, f"{name}-state-given-{dtype}", shows, step, calls, state={**state, **moments})


def _run(
    rule: Callable[..., Steps], gradients: list[HostArray], weights: list[HostArray] | None, options: Any
) -> Steps:
    given = exacts_of(gradients) or []
    return rule(given, **options) if weights is None else rule(given, exacts_of(weights), **options)


def _rounded(values: Exact, dtype: str) -> HostArray:
    kind = complex if dtype.startswith("complex") else float
    return host_array([kind(value) for value in values.values], dtype, values.shape)

"""Running the rule of one element over the steps of a training run, for every element of a leaf."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .exact import Exact, Real, Scalar, constant, number

Schedule = Callable[[int], Real]


@dataclass(frozen=True)
class Steps:
    """What a stateful rule gave, step by step: the updates, and the state after each."""

    updates: list[Exact]
    states: list[dict[str, Exact]]


ElementRule = Callable[[int, Scalar, Scalar, dict[str, Scalar]], tuple[Scalar, dict[str, Scalar]]]
"""(calls made before, gradient, weight, state) -> (update, next state) of one element, from {}."""


@dataclass(frozen=True)
class Start:
    """Where a run starts in the middle: how many calls were made before, and the state after them."""

    count: int
    state: dict[str, Exact]


def run_steps(
    rule: ElementRule,
    gradients: Sequence[Exact],
    weights: Sequence[Exact] | None,
    start: Start | None = None,
) -> Steps:
    """Return the outcome of calling rule once for each of gradients, with the weights of that call.

    Args:
        rule: of one element.
        gradients: one leaf for each call.
        weights: one leaf for each call, or None for zeros.
        start: where to start; None: at the very beginning.
    """
    given = weights if weights is not None else [constant(0, like=each) for each in gradients]
    before = Start(0, {}) if start is None else start
    state: list[dict[str, Scalar]] = [
        {name: array.values[place] for name, array in before.state.items()}
        for place in range(len(gradients[0].values))
    ]
    steps = Steps([], [])
    for count, (gradient, weight) in enumerate(zip(gradients, given, strict=True), start=before.count):
        outcome = [rule(count, *row) for row in zip(gradient.values, weight.values, state, strict=True)]
        state = [new for _, new in outcome]
        steps.updates.append(Exact(gradient.shape, tuple(update for update, _ in outcome)))
        steps.states.append(_columns(gradient.shape, state))
    return steps


def rate_at(rate: Any, count: int) -> Real:
    """Return a learning rate, given as a number or as a schedule, at the call after count others."""
    return rate(count) if callable(rate) else number(rate)


def _columns(shape: tuple[int, ...], state: Sequence[dict[str, Scalar]]) -> dict[str, Exact]:
    names = state[0] if state else {}
    return {name: Exact(shape, tuple(element[name] for element in state)) for name in names}

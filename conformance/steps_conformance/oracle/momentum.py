"""Momentum alone, and stochastic gradient descent built on it."""

from collections.abc import Sequence
from typing import Any

from .exact import Exact, Scalar, number
from .sequences import Start, Steps, rate_at, run_steps


def momentum(
    gradients: Sequence[Exact], *, decay: float = 0.9, nesterov: bool = False, start: Start | None = None
) -> Steps:
    """Return m = decay * m + g, or with nesterov g + decay * m, call by call; the sign is kept."""
    keep = number(decay)

    def rule(_: int, g: Scalar, __: Scalar, state: dict[str, Scalar]) -> tuple[Scalar, dict[str, Scalar]]:
        trace = keep * state.get("trace", 0) + g
        return (g + keep * trace if nesterov else trace), {"trace": trace}

    return run_steps(rule, gradients, None, start)


def sgd(
    gradients: Sequence[Exact],
    weights: Sequence[Exact] | None = None,
    *,
    learning_rate: Any = 1e-2,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    start: Start | None = None,
) -> Steps:
    """Return updates of gradient descent: minus the rate times (direction + weight_decay * weight)."""
    mu, decay = number(momentum), number(weight_decay)

    def rule(count: int, g: Scalar, w: Scalar, state: dict[str, Scalar]) -> tuple[Scalar, dict[str, Scalar]]:
        buffer = mu * state.get("momentum", 0) + g
        direction = g + mu * buffer if nesterov else buffer
        new = {"momentum": buffer} if momentum else {}
        return -rate_at(learning_rate, count) * (direction + decay * w), new

    return run_steps(rule, gradients, weights, start)

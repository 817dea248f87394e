"""RMSProp, with its options."""

from collections.abc import Sequence
from typing import Any

from .exact import Exact, Real, Scalar, modulus_squared, mp, number
from .sequences import Start, Steps, rate_at, run_steps


def rmsprop(
    gradients: Sequence[Exact],
    weights: Sequence[Exact] | None = None,
    *,
    learning_rate: Any = 1e-3,
    decay: float = 0.9,
    epsilon: float = 1e-8,
    epsilon_inside: bool = True,
    centered: bool = False,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    largest: float = float("inf"),
    start: Start | None = None,
) -> Steps:
    """Return updates and states of RMSProp over some calls, from start on; second moments stop at largest."""
    keep, mu, top = number(decay), number(momentum), number(largest)

    def rule(count: int, g: Scalar, w: Scalar, state: dict[str, Scalar]) -> tuple[Scalar, dict[str, Scalar]]:
        v = min(keep * state.get("second_moment", 0) + (1 - keep) * modulus_squared(g), top)
        new = {"second_moment": v}
        spread = v
        if centered:
            new["mean"] = keep * state.get("mean", 0) + (1 - keep) * g
            spread = max(v - modulus_squared(new["mean"]), mp.mpf(0))
        step = _direction(g, spread, number(epsilon), epsilon_inside)
        if momentum:
            buffer = new["momentum"] = mu * state.get("momentum", 0) + step
            step = step + mu * buffer if nesterov else buffer
        return -rate_at(learning_rate, count) * (step + number(weight_decay) * w), new

    return run_steps(rule, gradients, weights, start)


def _direction(gradient: Scalar, spread: Real, epsilon: Real, inside: bool) -> Scalar:
    denominator = mp.sqrt(spread + epsilon) if inside else mp.sqrt(spread) + epsilon
    return gradient / denominator if denominator else mp.mpf(0)

"""Adam, with its options."""

from collections.abc import Sequence
from typing import Any

from .exact import Exact, Scalar, modulus_squared, mp, number
from .sequences import Start, Steps, rate_at, run_steps


def adam(
    gradients: Sequence[Exact],
    weights: Sequence[Exact] | None = None,
    *,
    learning_rate: Any = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    epsilon_root: float = 0.0,
    amsgrad: bool = False,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    largest: float = float("inf"),
    start: Start | None = None,
) -> Steps:
    """Return updates and states of Adam over some calls, from start on; second moments stop at largest."""
    b1, b2, decay, top = number(beta1), number(beta2), number(weight_decay), number(largest)

    def rule(count: int, g: Scalar, w: Scalar, state: dict[str, Scalar]) -> tuple[Scalar, dict[str, Scalar]]:
        t = count + 1
        m = b1 * state.get("first_moment", 0) + (1 - b1) * g
        v = min(b2 * state.get("second_moment", 0) + (1 - b2) * modulus_squared(g), top)
        new = {"first_moment": m, "second_moment": v}
        corrected = v / (1 - b2**t)
        if amsgrad:
            corrected = max(state.get("second_moment_max", mp.mpf(0)), min(corrected, top))
            new["second_moment_max"] = corrected
        mean = m / (1 - b1**t)
        if nesterov:
            mean = b1 * m / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1**t)
        denominator = mp.sqrt(corrected + number(epsilon_root)) + number(epsilon)
        direction = mean / denominator if denominator else mp.mpf(0)
        return -rate_at(learning_rate, count) * (direction + decay * w), new

    return run_steps(rule, gradients, weights, start)

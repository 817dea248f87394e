"""The goals: what a step on a work may take at most, as a ratio of medians to what it is measured against."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

Medians = Mapping[str, float]

LIMIT = ("limit, all donated",)
SKLEARN = ("scikit-learn's Adam",)
TORCH = ("torch, clip_grad_norm_ + fused Adam",)
OPTAX = ("optax under jit", "optax under jit, state donated", "optax under jit, all donated")
RMSPROP = ("torch, foreach RMSprop", "torch, RMSprop leaf by leaf")

BLOCKS = "ours, numpy blocks, all donated"
NUMBA = "ours, numpy + numba, all donated"
ON_TORCH = "ours, torch compiled, all donated"
ADDED = "ours, torch compiled, all donated, weights updated"
ON_JAX = "ours, jax compiled, all donated"
PACKED = "ours, jax compiled, all donated, state packed"


@dataclass(frozen=True)
class Goal:
    """One goal.

    Attributes:
        step, work: what is measured, by its name in works.py.
        ours: our candidate.
        against: the candidates of which the fastest counts.
        at_most: the ratio.
    """

    step: str
    work: str
    ours: str
    against: tuple[str, ...]
    at_most: float

    def ratio(self, medians: Medians) -> float:
        """Return how many times longer ours takes."""
        return medians[self.ours] / min(medians[name] for name in self.against)

    def is_met(self, ratios: list[float]) -> bool:
        """Return whether the median of some runs is within the goal."""
        return statistics.median(ratios) <= self.at_most


GOALS = (
    Goal("chain", "16M", ON_TORCH, LIMIT, 1.25),
    Goal("chain", "16M", NUMBA, LIMIT, 1.35),
    Goal("chain", "16M", BLOCKS, LIMIT, 4.0),
    Goal("chain", "16M", ON_JAX, LIMIT, 2.1),
    Goal("adam", "16M", BLOCKS, SKLEARN, 0.25),
    Goal("adam", "60 leaves", BLOCKS, SKLEARN, 0.35),
    Goal("adam", "1,000 leaves", BLOCKS, SKLEARN, 0.3),
    Goal("chain", "16M", ON_TORCH, TORCH, 0.7),
    Goal("chain", "60 leaves", ON_TORCH, TORCH, 0.7),
    Goal("chain", "16M", ADDED, TORCH, 0.8),
    Goal("chain", "60 leaves", ADDED, TORCH, 0.8),
    Goal("chain", "1,000 leaves", ON_TORCH, TORCH, 0.45),
    Goal("chain", "1,000 leaves", BLOCKS, TORCH, 0.4),
    Goal("chain", "1,000 leaves", NUMBA, TORCH, 0.25),
    Goal("chain", "16M", ON_JAX, OPTAX, 0.7),
    Goal("chain", "16M", PACKED, OPTAX, 0.7),
    Goal("chain", "60 leaves", ON_JAX, OPTAX, 0.9),
    Goal("chain", "60 leaves", PACKED, OPTAX, 0.65),
    Goal("chain", "1,000 leaves", ON_JAX, OPTAX, 0.9),
    Goal("chain", "1,000 leaves", PACKED, OPTAX, 0.5),
    Goal("agc", "60 leaves", ON_JAX, ("optax under jit, all donated",), 0.85),
    Goal("rmsprop", "16M", ON_TORCH, RMSPROP, 0.5),
    Goal("rmsprop", "60 leaves", ON_TORCH, RMSPROP, 0.5),
    Goal("clip", "16M", ON_TORCH, ("torch, clip_grad_norm_",), 0.95),
    Goal("clip", "60 leaves", ON_TORCH, ("torch, clip_grad_norm_",), 0.95),
    Goal("clip", "16M", ON_JAX, OPTAX, 0.95),
    Goal("clip", "60 leaves", ON_JAX, OPTAX, 0.95),
    Goal("chain", "3 tiny leaves", ON_TORCH, TORCH, 0.8),
    Goal("chain", "3 tiny leaves", ON_JAX, OPTAX, 0.8),
    Goal("chain", "3 tiny leaves", PACKED, OPTAX, 0.8),
    Goal("adam", "3 tiny leaves", NUMBA, SKLEARN, 0.8),
    Goal("norm", "16M", "ours, numpy + numba", ("limit, plain sum of squares",), 1.5),
    Goal("norm", "16M", "ours, torch compiled", ("limit, plain sum of squares",), 1.5),
    Goal("norm", "16M", ON_JAX, ("jax, plain sum of squares",), 1.5),  # Else it would copy the gradients.
)


def cells() -> dict[tuple[str, str], list[str]]:
    """Return which candidates the goals need, by work and step."""
    found: dict[tuple[str, str], list[str]] = {}
    for goal in GOALS:
        wanted = found.setdefault((goal.work, goal.step), [])
        wanted += [name for name in (goal.ours, *goal.against) if name not in wanted]
    return found

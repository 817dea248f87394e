"""Measuring candidates side by side: one process, shuffled rounds, median and minimum."""

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

_TRIALS = 5


@dataclass(frozen=True)
class Candidate:
    """What is measured.

    Attributes:
        call: what is timed.
        prepare: what is done before each call and not timed: new gradients, where a call writes to them.
    """

    call: Callable[[], object]
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Times:
    """What one candidate took, in milliseconds.

    Attributes:
        first: the first call, tracing and compiling included.
        median, least: of the rounds.
    """

    first: float
    median: float
    least: float

    def as_json(self) -> dict[str, float]:
        """Return the numbers, rounded to what they are worth."""
        return {name: float(f"{value:.4g}") for name, value in asdict(self).items()}


def measure(candidates: Mapping[str, Callable[[], Candidate]], rounds: int) -> dict[str, Times]:
    """Return the times of candidates, each of which is made and called twice before the rounds."""
    order = random.Random(0)
    made: dict[str, Candidate] = {}
    first: dict[str, float] = {}
    for name, make in candidates.items():
        made[name] = make()
        first[name] = _milliseconds(made[name], 1)
        _milliseconds(made[name], 1)
    # The fastest of some: one call that was held up would leave a short one with few repeats.
    least = {name: min(_milliseconds(each, 1) for _ in range(_TRIALS)) for name, each in made.items()}
    repeats = {name: max(1, int(20 / max(each, 1e-3))) for name, each in least.items()}
    taken: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(rounds):
        names = list(made)
        order.shuffle(names)
        for name in names:
            time.sleep(0.003)
            taken[name].append(_milliseconds(made[name], min(repeats[name], 200)))
    return {name: Times(first[name], statistics.median(each), min(each)) for name, each in taken.items()}


def _milliseconds(candidate: Candidate, repeats: int) -> float:
    total = 0.0
    for _ in range(repeats):
        candidate.prepare()
        start = time.perf_counter()
        candidate.call()
        total += time.perf_counter() - start
    return total / repeats * 1e3

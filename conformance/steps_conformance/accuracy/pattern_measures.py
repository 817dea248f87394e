"""What the measures share that run one rule on several patterns of values."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ..run import Run
from .inputs import patterns


@dataclass(frozen=True)
class OverPatterns(ABC):
    """One rule on values of a kind, "mixed" or "equal", repeated up to a size."""

    dtype: str
    size: int
    kind: str

    def __call__(self, run: Run) -> float:
        """Return the largest error over the patterns of the kind."""
        return max(self._error(run, values) for values in patterns(self.dtype, self.kind, seed=self.size))

    @abstractmethod
    def _error(self, run: Run, values: tuple[Any, ...]) -> float:
        """Return the largest error, in ulps, for one pattern."""

"""What becomes of a mutant, and of all mutants of a module."""

from collections import Counter
from dataclasses import dataclass, field

from .mutants import Mutant


@dataclass(frozen=True)
class Fate:
    """What became of a mutant.

    Attributes:
        by: what noticed it: a case, ``"time"`` where none came to its end, ``"loading"`` where it cannot be
            imported; ``""`` where nothing did.
        tried: how many cases were run, or would have been.
        seconds: how long it took.
        message: what the case said.
    """

    by: str
    tried: int
    seconds: float
    message: str = ""

    @property
    def survives(self) -> bool:
        """Whether nothing noticed it."""
        return not self.by


@dataclass
class Score:
    """What became of the mutants of one module.

    Attributes:
        module: its name below the package.
        mutants: how many there are.
        noticed: how many of them some case notices, those that ran out of time included.
        out_of_time: how many of them never came to an end.
        explained: of the others, how many are listed with a reason, by its kind.
        survivors: those that are not noticed and not listed.
        listed_but_noticed: those that are listed one by one although a case notices them.
        seconds: how long it took.
    """

    module: str
    mutants: int = 0
    noticed: int = 0
    out_of_time: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)
    listed_but_noticed: list[tuple[Mutant, Fate]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def percent(self) -> float:
        """The share of noticed mutants among those that have to be."""
        have_to_be = self.mutants - sum(self.explained.values())
        return 100 * self.noticed / have_to_be if have_to_be else 100.0

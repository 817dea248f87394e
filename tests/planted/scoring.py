"""The mutation score: by module, how many mutants the suite notices, and why others need not be noticed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .equivalent import Explained
from .killing import Fate, Row
from .loading import Source
from .mutants import Mutant, mutants_of

# What the mutation score is of, unless all modules are asked for: the arithmetic, and the steps on top of it.
SCOPE = (
    "numerics.formats",
    "numerics.joint",
    "numerics.limits",
    "numerics.moments",
    "numerics.norms",
    "numerics.sums",
    "numerics.units",
    "steps.clipping",
    "steps.chain",
    "steps.nesting",
    "steps.custom",
)


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


def scores(
    source: Source,
    modules: Sequence[str],
    rows: Iterable[Row],
    explained: Explained,
    *,
    try_explained: bool = False,
    tried: Callable[[Mutant], None] = lambda mutant: None,
) -> list[Score]:
    """Return the score of each module.

    Args:
        source: the implementation.
        modules: names of its modules.
        rows: the backends on which a mutant is tried, one after the other until one notices; one that is not
            needed is not asked for.
        explained: the mutants that need not be noticed.
        try_explained: whether to try those too, which takes long, because each of them survives.
        tried: is told of each mutant that a row has looked at.
    """
    found = [Score(module) for module in modules]
    left = [(score, mutant) for score in found for mutant in mutants_of(source, score.module)]
    for score, _ in left:
        score.mutants += 1
    executed: set[Mutant] = set()
    for row in rows:
        executed |= {mutant for _, mutant in left if row.that_execute(mutant)}
        left = list(_survivors(row, left, explained, executed, tried, try_explained=try_explained))
        if all(explained.reason_for(mutant, is_executed=mutant in executed) for _, mutant in left):
            break
    for score, mutant in left:
        reason = explained.reason_for(mutant, is_executed=mutant in executed)
        if reason is None:
            score.survivors.append(mutant)
        else:
            score.explained[reason.kind] += 1
    return found


def _survivors(
    row: Row,
    mutants: Sequence[tuple[Score, Mutant]],
    explained: Explained,
    executed: set[Mutant],
    tried: Callable[[Mutant], None],
    *,
    try_explained: bool,
) -> Iterator[tuple[Score, Mutant]]:
    """Try mutants on a row, and yield those that it does not notice."""
    for score, mutant in mutants:
        tried(mutant)
        if not try_explained and explained.reason_for(mutant, is_executed=mutant in executed):
            yield score, mutant
            continue
        fate = row.try_out(mutant)
        score.seconds += fate.seconds
        if fate.survives:
            yield score, mutant
            continue
        score.noticed += 1
        score.out_of_time += fate.by == "time"
        if mutant.identity in explained.mutants:
            score.listed_but_noticed.append((mutant, fate))

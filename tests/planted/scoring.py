"""The mutation score: by module, how many mutants the suite notices, and why others need not be noticed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from .equivalent import Elsewhere, Explained
from .fate import Fate, Score
from .killing import Row
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


def scores(
    source: Source,
    modules: Sequence[str],
    rows: Iterable[Row],
    explained: Explained,
    *,
    confirm: Callable[[Elsewhere, Sequence[Mutant]], Iterable[Fate]] | None = None,
    try_explained: bool = False,
    tried: Callable[[Mutant], None] = lambda mutant: None,
) -> list[Score]:
    """Return the score of each module.

    Args:
        source: the implementation.
        modules: names of its modules.
        rows: the backends on which a mutant is tried, one after the other until one notices; one that is not
            needed is not asked for.
        explained: the mutants that need not be noticed, and those that a listed case notices elsewhere.
        confirm: tries mutants on those cases alone.
        try_explained: whether to try those too, which takes long, because each of them survives.
        tried: is told of each mutant that a row has looked at.
    """
    found = [Score(module) for module in modules]
    left = [(score, mutant) for score in found for mutant in mutants_of(source, score.module)]
    for score, _ in left:
        score.mutants += 1
    executed: set[Mutant] = set()
    for number, row in enumerate(rows):
        executed |= {mutant for _, mutant in left if row.that_execute(mutant)}
        left = list(_survivors(row, left, explained, executed, tried, try_explained=try_explained))
        if number == 0 and confirm is not None:
            left = list(_survivors_elsewhere(left, explained, executed, confirm))
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

    def is_listed(mutant: Mutant) -> bool:
        reason = explained.reason_for(mutant, is_executed=mutant in executed)
        return (reason is not None and not try_explained) or mutant.identity in explained.elsewhere

    fates = row.try_all([mutant for _, mutant in mutants if not is_listed(mutant)], tried)
    for score, mutant in mutants:
        if is_listed(mutant):
            tried(mutant)
            yield score, mutant
            continue
        fate = _counted(score, next(fates))
        if fate.survives:
            yield score, mutant
        elif mutant.identity in explained.mutants:
            score.listed_but_noticed.append((mutant, fate))


def _survivors_elsewhere(
    mutants: Sequence[tuple[Score, Mutant]],
    explained: Explained,
    executed: set[Mutant],
    confirm: Callable[[Elsewhere, Sequence[Mutant]], Iterable[Fate]],
) -> Iterator[tuple[Score, Mutant]]:
    """Try mutants where they are said to be noticed, and yield the others.

    One that is listed by itself and not noticed there survives; it is tried nowhere else.
    """
    places: dict[Elsewhere, list[tuple[Score, Mutant]]] = defaultdict(list)
    for score, mutant in mutants:
        is_executed = mutant in executed
        if explained.reason_for(mutant, is_executed=is_executed) is None:
            for where in explained.places_of(mutant, is_executed=is_executed):
                places[where].append((score, mutant))
    noticed: set[Mutant] = set()
    for where, all_listed in places.items():
        listed = [one for one in all_listed if one[1] not in noticed]
        fates = confirm(where, [mutant for _, mutant in listed])
        for (score, mutant), fate in zip(listed, fates, strict=True):
            if not _counted(score, fate).survives:
                noticed.add(mutant)
    for score, mutant in mutants:
        if mutant.identity in explained.elsewhere and mutant not in noticed:
            score.survivors.append(mutant)
        elif mutant not in noticed:
            yield score, mutant


def _counted(score: Score, fate: Fate) -> Fate:
    """Enter a fate in the score."""
    score.seconds += fate.seconds
    score.noticed += not fate.survives
    score.out_of_time += fate.by == "time"
    return fate

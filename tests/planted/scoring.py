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
        confirm: tries mutants on that case alone.
        try_explained: whether to try those too, which takes long, because each of them survives.
        tried: is told of each mutant that a row has looked at.
    """
    found = [Score(module) for module in modules]
    left = [(score, mutant) for score in found for mutant in mutants_of(source, score.module)]
    for score, _ in left:
        score.mutants += 1
    if confirm is not None:
        there: dict[Elsewhere, list[tuple[Score, Mutant]]] = defaultdict(list)
        for score, mutant in left:
            if mutant.identity in explained.elsewhere:
                there[explained.elsewhere[mutant.identity]].append((score, mutant))
        left = [one for one in left if one[1].identity not in explained.elsewhere]
        for where, listed in there.items():
            fates = confirm(where, [mutant for _, mutant in listed])
            for (score, mutant), fate in zip(listed, fates, strict=True):
                tried(mutant)
                if _counted(score, fate).survives:
                    score.survivors.append(mutant)
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

    def is_listed(mutant: Mutant) -> bool:
        reason = explained.reason_for(mutant, is_executed=mutant in executed)
        return reason is not None and not try_explained

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


def _counted(score: Score, fate: Fate) -> Fate:
    """Enter a fate in the score."""
    score.seconds += fate.seconds
    score.noticed += not fate.survives
    score.out_of_time += fate.by == "time"
    return fate

"""Which cases a run is made of."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from .case import Case


class SelectionError(ValueError):
    """The user asks for something that does not exist; the text names it and what is near."""


def selected(
    cases: Mapping[str, Case], *, topics: Iterable[str] = (), ids: Iterable[str] = ()
) -> dict[str, Case]:
    """Return the cases of these topics and with these ids, by id, in order; all of them where none is given.

    Args:
        cases: all cases by id.
        topics: names of topics.
        ids: ids of cases or of requirements; one that ends in ``*`` stands for all that start so.

    Raises:
        SelectionError: a topic or an id that no case has.
    """
    wanted: set[str] = set()
    for topic in topics:
        found = {case.id for case in cases.values() if case.topic == topic}
        wanted |= _some(found, "topic", topic, {case.topic for case in cases.values()})
    for identity in ids:
        found = {case.id for case in cases.values() if _matches(case, identity)}
        known = {case.requirement for case in cases.values()} | set(cases)
        wanted |= _some(found, "id", identity, known)
    if not topics and not ids:
        return dict(cases)
    return {identity: case for identity, case in cases.items() if identity in wanted}


def _matches(case: Case, pattern: str) -> bool:
    if pattern.endswith("*"):
        return case.id.startswith(pattern[:-1])
    return pattern in (case.id, case.requirement)


def _some(found: set[str], kind: str, asked: str, known: set[str]) -> set[str]:
    if not found:
        near = get_close_matches(asked, sorted(known), n=3) or sorted(known)[:10]
        raise SelectionError(f"no case has the {kind} {asked!r}; there are, for example, {', '.join(near)}")
    return found

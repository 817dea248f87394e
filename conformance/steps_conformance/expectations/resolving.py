"""From entries to cases: each entry must name what exists, and is told which planned cases it means."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import steps_backends
from packaging.utils import canonicalize_name

from ..case import Case
from .files import ExpectationError, library_of
from .model import Expectation


def resolved(
    entries: Iterable[Expectation],
    suite: Mapping[str, Case],
    planned: Collection[str],
    rows: Sequence[str] = (),
) -> tuple[Expectation, ...]:
    """Return the entries that speak of planned cases, each with those cases.

    Args:
        entries: what the files say.
        suite: all cases that there are, by id.
        planned: ids of the cases that are run.
        rows: the backends that are run; one given as ``module:attribute`` may bring a library of its own.

    Raises:
        ExpectationError: an entry names a case, requirement or library that does not exist, or a dtype that
            no case of its id has.
    """
    found = []
    for entry in entries:
        place = f"{Path(entry.file).name} ({entry.id})"
        _check_libraries(entry, rows, place)
        meant = _cases_of(entry, suite, place)
        cases = tuple(identity for identity in meant if identity in planned)
        if cases:
            found.append(replace(entry, cases=cases, whole=len(cases) == len(meant)))
    return tuple(found)


def _cases_of(entry: Expectation, suite: Mapping[str, Case], place: str) -> list[str]:
    named = [case for case in suite.values() if entry.id in (case.id, case.requirement)]
    if not named:
        known = [*suite, *dict.fromkeys(case.requirement for case in suite.values())]
        near = get_close_matches(entry.id, known, n=3)
        hint = (
            f"did you mean {' or '.join(near)}?" if near else "`steps-conformance list --cases` shows all ids"
        )
        raise ExpectationError(f"{place}: there is no case and no requirement {entry.id!r}; {hint}")
    meant = [case.id for case in named if not entry.when.dtypes or _has_dtype(case, entry.when.dtypes)]
    if not meant:
        raise ExpectationError(
            f"{place}: no case of {entry.id} has the dtype {' or '.join(entry.when.dtypes)}; "
            "correct when.dtype, or leave it out"
        )
    return meant


def _has_dtype(case: Case, dtypes: Collection[str]) -> bool:
    # a case that names no dtype makes arrays of float32
    return not (case.dtypes or {"float32"}).isdisjoint(dtypes)


def _check_libraries(entry: Expectation, rows: Sequence[str], place: str) -> None:
    if any(":" in row for row in rows):
        return
    declarations = [steps_backends.get(name).declaration for name in steps_backends.names()]
    known = sorted({canonicalize_name(declaration.library) for declaration in declarations})
    for specifier in entry.when.versions:
        if library_of(specifier) not in known:
            raise ExpectationError(
                f"{place}: when.version: no backend is of the library {library_of(specifier)!r}; "
                f"there are {', '.join(known)}"
            )

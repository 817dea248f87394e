"""From what the user asks for to backends, cases and requirements that exist."""

from collections.abc import Iterable, Sequence

import steps_backends

from ..case import Case, DoubleCaseError, load_cases
from ..loading import is_command
from ..plan import SelectionError, selected
from ..requirements import MalformedRequirementError, Requirement, load_requirements
from ..targets.host_row import HOST
from .terminal import NO_VERDICT, stop


def load_suite(exit_code: int = NO_VERDICT) -> tuple[dict[str, Requirement], dict[str, Case]]:
    """Return requirements and cases; the command ends where an id is used twice or a form is broken."""
    try:
        return load_requirements(), load_cases()
    except (MalformedRequirementError, DoubleCaseError) as error:
        raise stop(str(error), exit_code) from None


def chosen(cases: dict[str, Case], topics: Sequence[str], ids: Sequence[str]) -> dict[str, Case]:
    """Return the cases of these topics and with these ids; the command ends where there is none."""
    try:
        return selected(cases, topics=topics, ids=ids)
    except SelectionError as error:
        raise stop(str(error)) from None


def require_rules(cases: dict[str, Case], requirements: Iterable[str]) -> None:
    """End the command where a case shows a requirement that is not written down."""
    unknown = sorted({case.requirement for case in cases.values()} - set(requirements))
    if unknown:
        raise stop(f"cases show requirements that are not written down: {', '.join(unknown)}")


def rows_for(target: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the backends that the user names for a target; a command has a row of its own."""
    if not is_command(target):
        return rows_named(names)
    others = [name for name in names if name not in (HOST, "all")]
    if others:
        raise stop(
            f"a command gets values, not arrays of a library, so it runs on the row {HOST} alone, "
            f"got --backend {others[0]}; leave --backend out, or serve a Python target on that library with "
            f"'python -m steps_conformance.targets.serve TARGET --backend {others[0]}'"
        )
    return (HOST,)


def rows_named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the backends that the user names, all of them where none is named; one must exist."""
    known = steps_backends.names()
    for name in names:
        if name not in known and name != "all" and ":" not in name:
            raise stop(f"no backend is called {name!r}; there are {', '.join(known)}, and module:attribute")
    wanted = [*(known if not names or "all" in names else ()), *names]
    return tuple(name for name in dict.fromkeys(wanted) if name != "all")

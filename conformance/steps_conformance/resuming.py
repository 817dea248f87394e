"""Going on with a run that broke off: what is finished keeps its outcome, the rest is run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from .outcomes import Outcome
from .reports import jsonl
from .reports.model import Header, Report, RowFacts

_SHOWN = 60
_OF_THE_CASES = ("requirements", "expectations", "allowances")
_OF_A_ROW = ("library", "version", "device", "dtypes", "traits")


class ResumeError(Exception):
    """The report cannot be gone on with; the text says why, and what to do."""


def read_broken_off(file: Path) -> Report:
    """Return what is finished in the report of a run that broke off.

    A line that is not whole is left out. A result counts as finished unless it is NOTRUN. Errors that were
    measured are left out, since they are measured after the last case.

    Raises:
        ResumeError: there is no such report, or it is whole.
    """
    try:
        found = jsonl.read(file, broken_off=True)
    except FileNotFoundError:
        raise ResumeError(
            f"nothing to resume: there is no {file}; run the suite with --report {file.parent}"
        ) from None
    except OSError as error:
        raise ResumeError(f"nothing to resume: {file} cannot be read: {error.strerror}") from None
    except jsonl.MalformedReportError as error:
        raise ResumeError(f"nothing to resume: {error}; run the suite with --report {file.parent}") from None
    if found.complete:
        raise ResumeError(f"nothing to resume: {file} is whole; run the suite with --report {file.parent}")
    ran = {name: row for name, row in found.rows.items() if row.runs}
    finished = [one for one in found.results if one.row in ran and one.outcome is not Outcome.NOTRUN]
    return Report(found.header, ran, finished, row_warnings=found.row_warnings)


def check_same_run(kept: Report, header: Header, look_at: Callable[[str], RowFacts]) -> None:
    """Require that a run would be the one that broke off.

    Args:
        kept: what is finished of that one.
        header: the header that the run would have.
        look_at: returns what a probe finds about a backend now.

    Raises:
        ResumeError: the target, the cases, the expectations or a version differ.
    """
    differing = list(_differences(kept.header, header))
    for name, before in kept.rows.items():
        differing.extend(_row_differences(before, look_at(name)))
    if differing:
        raise ResumeError(
            "this is not the run that broke off, and results of two runs do not mix:\n  "
            + "\n  ".join(differing)
            + "\nmake them equal, or run all of it anew, with --report instead of --resume"
        )


def remaining(kept: Report | None, row: str, planned: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids that a row still has to run, in the order of the plan."""
    finished = set() if kept is None else {one.id for one in kept.results if one.row == row}
    return tuple(identity for identity in planned if identity not in finished)


def _differences(before: Header, now: Header) -> Iterator[str]:
    now = replace(now, started=before.started)
    for field in fields(Header):
        old, new = getattr(before, field.name), getattr(now, field.name)
        if old == new:
            continue
        if field.name == "target":
            parts = [part.name for part in fields(old) if getattr(old, part.name) != getattr(new, part.name)]
            for part in parts:
                yield _changed(f"target {part}", getattr(old, part), getattr(new, part))
        elif field.name == "planned":
            yield _changed_cases(old, new)
        elif field.name in _OF_THE_CASES:
            # what other cases bring with them is no difference of its own
            if before.planned == now.planned:
                yield _changed_entries(field.name, old, new)
        else:
            yield _changed(field.name, old, new)


def _changed_entries(what: str, old: Any, new: Any) -> str:
    """Say in words which requirements, expectations or allowances differ."""
    was, now = (_by_name(what, entries) for entries in (old, new))
    gone, added = [name for name in was if name not in now], [name for name in now if name not in was]
    other = [name for name in was if name in now and was[name] != now[name]]
    return f"{what}: {_listed((gone, 'gone'), (added, 'new'), (other, 'changed'))}"


def _by_name(what: str, entries: Any) -> dict[str, Any]:
    if what == "requirements":
        return dict(entries)
    name = "trait" if what == "allowances" else "id"
    found: dict[str, Any] = {}
    for entry in entries:
        # several expectations may be of one id, each under its own condition
        found.setdefault(getattr(entry, name), []).append(entry)
    return found


def _changed_cases(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    gone, added = [one for one in old if one not in new], [one for one in new if one not in old]
    if not gone and not added:
        return "planned cases: some show another requirement"
    return f"planned cases: {_listed((gone, 'gone'), (added, 'new'))}; give --id and --topic as before"


def _listed(*groups: tuple[Sequence[str], str]) -> str:
    return "; ".join(f"{len(names)} {word}, such as {names[0]}" for names, word in groups if names)


def _row_differences(before: RowFacts, now: RowFacts) -> Iterator[str]:
    if not now.runs:
        yield f"backend {before.name}: it ran, and does not run now: {now.reason}"
        return
    for name in _OF_A_ROW:
        if getattr(before, name) != getattr(now, name):
            yield _changed(f"backend {before.name}: {name}", getattr(before, name), getattr(now, name))


def _changed(what: str, old: Any, new: Any) -> str:
    return f"{what}: was {_shown(old)}, is {_shown(new)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

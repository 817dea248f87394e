"""Going on with a run that broke off: what is finished keeps its outcome, the rest is run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from .outcomes import Outcome
from .reports import jsonl
from .reports.model import Header, Report, RowFacts

_SHOWN = 60
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
    except (OSError, jsonl.MalformedReportError) as error:
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
        else:
            yield _changed(field.name, old, new)


def _changed_cases(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    gone, added = [one for one in old if one not in new], [one for one in new if one not in old]
    if not gone and not added:
        return "planned cases: some show another requirement"
    parts = [f"{len(ids)} {word}, such as {ids[0]}" for ids, word in ((gone, "gone"), (added, "new")) if ids]
    return f"planned cases: {'; '.join(parts)}"


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

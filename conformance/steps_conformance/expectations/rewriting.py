"""Bringing an expectation file up to date with a report, its comments kept.

What passes now goes, what fails and is not declared comes with a reason that is still to be written, in one
entry where all cases of a requirement end in the same way. An
entry that holds on some backends and not on others is narrowed to those where it holds. Of what the report
does not show, nothing is changed: entries of cases that were not run, and backends that an entry names and
the report lacks.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tomlkit

from ..case import Case
from ..outcomes import FAILURES, Outcome
from ..reports.model import CaseResult, Report
from .files import UNFINISHED, ExpectationError, files_of, load_expectations, parsed, text_of
from .model import Condition, Expectation, declared
from .resolving import resolved

REASON = f"{UNFINISHED}: say why"
_HEADING = re.compile(r"\s*\[\[\s*expected\s*\]\]\s*(#.*)?")
_LONGEST_COMMENT = 100


@dataclass(frozen=True)
class Update:
    """What became of a file.

    Attributes:
        text: the new text.
        removed: ids of entries that are gone.
        narrowed: ids of entries that hold on fewer backends than they said.
        added: ids of new entries, whose reasons are still to be written.
    """

    text: str
    removed: tuple[str, ...]
    narrowed: tuple[str, ...]
    added: tuple[str, ...]


def updated(file: Path, report: Report, suite: Mapping[str, Case]) -> Update:
    """Return a file as the report makes it; one that does not exist counts as empty.

    Args:
        file: the file; what it extends is read and left as it is.
        report: a report that is complete.
        suite: all cases that there are, by id.

    Raises:
        ExpectationError: the file breaks the form, or its entries are not written as ``[[expected]]`` tables.
    """
    text = _text_of(file)
    entries = parsed(text, file.resolve())
    kept = _kept(entries, report, suite)
    extended = _declared_elsewhere(file, report, suite)
    known = [*(entry for entry in kept if entry is not None), *extended]
    resolved_known = resolved(known, suite, report.header.planned.keys(), report.header.rows)
    new = _new_failures(report, resolved_known, suite)
    made = (_rewritten(text, entries, kept) + _added(text, new)).lstrip("\r\n")
    changed = [(old, now) for old, now in zip(entries, kept, strict=True) if old != now]
    wanted = [*(entry for entry in kept if entry is not None), *(one.entry() for one in new)]
    _check(made, wanted, file)
    return Update(
        made,
        removed=tuple(old.id for old, now in changed if now is None),
        narrowed=tuple(old.id for old, now in changed if now is not None),
        added=tuple(one.id for one in new),
    )


def _text_of(file: Path) -> str:
    if not file.exists():
        return ""
    try:
        return text_of(file)
    except ExpectationError as error:
        raise ExpectationError(f"{file}: {error}") from None


def _kept(
    entries: Sequence[Expectation], report: Report, suite: Mapping[str, Case]
) -> list[Expectation | None]:
    """Return for each entry what it should say, or None where it should go."""
    header = report.header
    # one by one, so that each keeps its place
    meant = [next(iter(resolved([one], suite, header.planned.keys(), header.rows)), None) for one in entries]
    met: dict[int, list[str]] = {}
    broken: dict[int, list[str]] = {}
    for row, found in _found(report).items():
        facts = report.rows[row]
        applying = {
            place: one
            for place, one in enumerate(meant)
            if one is not None
            and one.when.holds_on(row=row, library=facts.library, version=facts.version, traits=facts.traits)
        }
        made = declared(found, applying.values())
        for place, one in applying.items():
            outcomes = {result.outcome for result in made.values() if result.expectation is one}
            if Outcome.XFAIL in outcomes:
                met.setdefault(place, []).append(row)
            elif Outcome.XPASS in outcomes or _fails_otherwise(one, found):
                broken.setdefault(place, []).append(row)
    return [
        _narrowed(entry, met.get(place, []), broken.get(place, [])) for place, entry in enumerate(entries)
    ]


def _fails_otherwise(entry: Expectation, found: Mapping[str, Outcome]) -> bool:
    outcome = found.get(entry.id)
    return outcome in FAILURES and outcome is not entry.outcome


def _narrowed(entry: Expectation, met: list[str], broken: list[str]) -> Expectation | None:
    if not broken:
        return entry
    named = entry.when.backends
    left = tuple(row for row in named if row not in broken) if named else tuple(met)
    return replace(entry, when=replace(entry.when, backends=left)) if left else None


def _found(report: Report) -> dict[str, dict[str, Outcome]]:
    found: dict[str, dict[str, Outcome]] = {}
    for result in report.results:
        found.setdefault(result.row, {})[result.id] = result.outcome
    return found


def _declared_elsewhere(file: Path, report: Report, suite: Mapping[str, Case]) -> list[Expectation]:
    """Return what the files that it extends declare, and what other files declared in the run."""
    own = file.resolve()
    closure = files_of(file) if file.exists() else [own]
    others = load_expectations([one for one in closure if one != own], unfinished=True)
    seen = {str(one) for one in closure}
    return [
        *others,
        *(one for one in report.header.expectations if one.file not in seen and one.id in _ids(suite)),
    ]


def _ids(suite: Mapping[str, Case]) -> set[str]:
    return {*suite, *(case.requirement for case in suite.values())}


@dataclass(frozen=True)
class _Failing:
    """Failures that nothing declares: of one case, or of every case of a requirement, with one outcome."""

    id: str
    outcome: Outcome
    rows: tuple[str, ...]
    message: str

    def entry(self) -> Expectation:
        return Expectation(self.id, self.outcome, REASON, when=Condition(backends=self.rows))


def _new_failures(
    report: Report, known: tuple[Expectation, ...], suite: Mapping[str, Case]
) -> list[_Failing]:
    """Return the failures that nothing declares, in the order of the plan.

    Where on a backend every case of a requirement ends in the same way, the requirement stands for them.
    """
    again = Report(replace(report.header, expectations=known), report.rows, report.results)
    judged = again.judged()
    planned = report.header.planned
    cases = Counter(case.requirement for case in suite.values())
    whole = {rule for rule, count in Counter(planned.values()).items() if count == cases[rule]}
    ends: dict[tuple[str, str], set[Outcome]] = {}
    for result in judged:
        if result.outcome is not Outcome.UNSUPPORTED:
            ends.setdefault((planned[result.id], result.row), set()).add(result.outcome)
    grouped: dict[tuple[str, Outcome], list[CaseResult]] = {}
    for result in judged:
        if result.outcome in FAILURES:
            rule = planned[result.id]
            is_alike = rule in whole and ends[rule, result.row] == {result.outcome}
            grouped.setdefault((rule if is_alike else result.id, result.outcome), []).append(result)
    order = {identity: place for place, identity in enumerate(planned)}
    ordered = sorted(grouped.items(), key=lambda group: min(order[result.id] for result in group[1]))
    return [
        _Failing(
            identity, outcome, tuple(dict.fromkeys(result.row for result in results)), results[0].message
        )
        for (identity, outcome), results in ordered
    ]


def _added(text: str, new: Sequence[_Failing]) -> str:
    added = "".join(map(_written, new))
    return added.replace("\n", "\r\n") if "\r\n" in text else added


def _written(one: _Failing) -> str:
    said = one.message.strip().splitlines()[:1]
    comment = "".join(sign for sign in "".join(said)[:_LONGEST_COMMENT] if sign.isprintable())
    when = tomlkit.inline_table()
    when["backend"] = list(one.rows)
    table = tomlkit.table()
    table.update({"id": one.id, "outcome": str(one.outcome), "reason": REASON, "when": when})
    heading = f"# {comment}\n" if comment else ""
    return f"\n{heading}[[expected]]\n{table.as_string()}"


def _rewritten(text: str, entries: Sequence[Expectation], kept: Sequence[Expectation | None]) -> str:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    spans = _spans(lines)
    if len(spans) != len(entries):
        raise ExpectationError(
            "entries must be written as [[expected]] tables, each heading on a line of its own, "
            f"to be rewritten; there are {len(entries)} entries and {len(spans)} such headings"
        )
    for (start, heading, stop), old, now in reversed(list(zip(spans, entries, kept, strict=True))):
        if now is None:
            # what stands at the top of the file is about the file
            lines[(heading if start == 0 else start) : stop] = []
        elif now != old:
            lines[heading:stop] = [_with_backends("".join(lines[heading:stop]), now.when.backends)]
    return "".join(lines)


def _spans(lines: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return for each entry where the comment just above it, its heading, and what follows its data start."""
    headings = [place for place, line in enumerate(lines) if _HEADING.fullmatch(line.rstrip("\r\n"))]
    spans = []
    for heading, following in zip(headings, [*headings, len(lines)][1:], strict=True):
        start, stop = heading, following
        while start and lines[start - 1].lstrip().startswith("#"):
            start -= 1
        while not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#"):
            stop -= 1
        spans.append((start, heading, stop))
    return spans


def _with_backends(block: str, backends: Sequence[str]) -> str:
    document = tomlkit.parse(block)
    entry = document["expected"][0]
    if "when" not in entry:
        entry["when"] = tomlkit.inline_table()
    entry["when"]["backend"] = list(backends)
    return tomlkit.dumps(document)


def _check(text: str, wanted: Sequence[Expectation], file: Path) -> None:
    """Refuse a text that does not say what it should: better no new file than a wrong one."""
    try:
        made = [replace(one, file="") for one in parsed(text, file)]
    except ExpectationError:
        made = None
    if made != [replace(one, file="") for one in wanted]:
        raise ExpectationError(
            f"{file.name} is written in a way that cannot be rewritten with its comments; "
            "write each entry as a [[expected]] table of plain lines"
        )

"""The report as JSON lines: a header, then each thing as soon as it is found, and a footer.

Every line is an object with a ``record``. ``header``, ``row``, ``case``, ``warning``, ``accuracy`` and
``unmeasured`` have the fields of the classes that the model is made of. ``expected`` lines say which results
are XFAIL or XPASS, and why; they follow from the header and the cases, and a reader computes them again and
compares. A file without a ``footer`` is of a run that did not come to its end. ``report.schema.json``
describes each line.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from ..accuracy.results import Row, Unmeasured
from ..allowances import Allowance
from ..expectations.model import Condition, Expectation
from ..outcomes import COMPUTED, Outcome
from ..received import received
from ..teeth import Teeth
from .model import CaseResult, Header, Report, RequirementFacts, RowFacts, RowWarning, TargetFacts
from .verdict import judge

SCHEMA = 2
"""Number of the form; it grows when a reader has to know."""

_INFINITE = "infinity"  # JSON has no such number


class MalformedReportError(ValueError):
    """A file is no report; the text names file, line and what is wrong."""


class JsonLinesWriter:
    """The observer that writes each thing to a file as soon as it is found.

    A run that does not start, because its target or an expectation file is wrong, leaves an older report.

    Args:
        file: where the lines go.
        kept: what is finished of a run that broke off; it is written first, and the file is never without it.
    """

    def __init__(self, file: Path, kept: Report | None = None) -> None:
        self._file = file
        self._kept = kept
        self._rows: dict[str, RowFacts] = {}
        self._stream: TextIO | None = None

    def started(self, header: Header) -> None:
        """Write the header, and what is kept."""
        first = self._file if self._kept is None else self._file.with_name(f"{self._file.name}.part")
        self._stream = first.open("w", encoding="utf-8")
        self._write("header", schema=SCHEMA, **asdict(header))
        if self._kept is None:
            return
        for row in self._kept.rows.values():
            self.found_row(row)
        for result in self._kept.results:
            self.found_result(result)
        for warning in self._kept.row_warnings:
            self.found_warning(warning)
        self._stream.close()
        first.replace(self._file)
        self._stream = self._file.open("a", encoding="utf-8")

    def found_row(self, row: RowFacts) -> None:
        """Write what was found about a row, unless it stands there, from before the run broke off."""
        if self._rows.get(row.name) != row:
            self._rows[row.name] = row
            self._write("row", **asdict(row))

    def found_result(self, result: CaseResult) -> None:
        """Write a result."""
        self._write("case", **asdict(result))

    def found_warning(self, warning: RowWarning) -> None:
        """Write what makes the results of a row doubtful."""
        self._write("warning", **asdict(warning))

    def found_accuracy(self, row: Row) -> None:
        """Write a measured error."""
        infinite = row.ulps is not None and math.isinf(row.ulps)
        self._write("accuracy", **{**asdict(row), "ulps": _INFINITE if infinite else row.ulps})

    def found_unmeasured(self, unmeasured: Unmeasured) -> None:
        """Write that measuring broke off on a backend."""
        self._write("unmeasured", **asdict(unmeasured))

    def finished(self, report: Report) -> None:
        """Write what expectations make of the results, and the footer."""
        for fields in _expected(report):
            self._write("expected", **fields)
        self._write("footer", results=len(report.results), **asdict(judge(report)))
        self.close()

    def close(self) -> None:
        """Close the file, also after an interruption."""
        if self._stream is not None:
            self._stream.close()

    def _write(self, record: str, **fields: Any) -> None:
        assert self._stream is not None, "started comes first"
        self._stream.write(json.dumps({"record": record, **fields}, allow_nan=False) + "\n")
        self._stream.flush()


def write(report: Report, file: Path) -> None:
    """Write a whole report; a failure leaves the file as it was."""
    part = file.with_name(f"{file.name}.part")
    writer = JsonLinesWriter(part)
    writer.started(report.header)
    for row in report.rows.values():
        writer.found_row(row)
    for result in report.results:
        writer.found_result(result)
    for warning in report.row_warnings:
        writer.found_warning(warning)
    for measured in report.accuracy:
        writer.found_accuracy(measured)
    for unmeasured in report.unmeasured:
        writer.found_unmeasured(unmeasured)
    writer.finished(report)
    part.replace(file)


def read(file: Path, *, broken_off: bool = False) -> Report:
    """Return the report in a file; one without a footer is not complete.

    Args:
        file: the file.
        broken_off: whether to leave out a last line that is not whole.

    Raises:
        MalformedReportError: a line is no JSON object, or not of this form, or contradicts the lines above.
    """
    report: Report | None = None
    expected: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedReportError(f"{file} is no text in UTF-8: {error}") from error
    if broken_off:
        text = text[: text.rfind("\n") + 1]
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if report is not None and _is_half(line):
            break
        try:
            fields = _object(line)
            record = fields.pop("record")
            if report is None:
                report = Report(_header(record, fields))
            elif record == "expected":
                expected.append(fields)
            else:
                if record == "case" and not report.complete:
                    _check_place(report, fields, seen)
                _add(report, record, fields, expected)
        except KeyError as error:
            raise MalformedReportError(f"{file}, line {number}: lacks {error.args[0]}") from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise MalformedReportError(f"{file}, line {number}: {error}") from error
    if report is None:
        raise MalformedReportError(f"{file} is empty")
    return report


def _object(line: str) -> dict[str, Any]:
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise TypeError(f"must be an object, got {received(fields)}")
    return fields


def _is_half(line: str) -> bool:
    """Return whether a line is what a process left that ended while it wrote; only a last one can be."""
    if line.endswith("\n"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def _check_place(report: Report, fields: dict[str, Any], seen: set[tuple[str, str]]) -> None:
    row, identity = place = fields["row"], fields["id"]
    if row not in report.header.rows or identity not in report.header.planned:
        raise ValueError(f"{identity} on {row} is not planned in the header")
    if place in seen:
        raise ValueError(f"{identity} on {row} has an outcome in a line above")
    seen.add(place)


def _header(record: str, fields: dict[str, Any]) -> Header:
    schema = fields.pop("schema", None)
    if record != "header" or schema != SCHEMA:
        raise ValueError(f"must be a header with schema {SCHEMA}, is a {record} with schema {schema}")
    target = TargetFacts(**_tuples(fields.pop("target")))
    rules = {key: RequirementFacts(**value) for key, value in fields.pop("requirements").items()}
    expectations = tuple(_expectation(one) for one in fields.pop("expectations"))
    allowed = tuple(Allowance(**_tuples(one)) for one in fields.pop("allowances"))
    teeth = fields.pop("teeth", None)
    return Header(
        **_tuples(fields),
        target=target,
        requirements=rules,
        expectations=expectations,
        allowances=allowed,
        teeth=None if teeth is None else Teeth(**teeth),
    )


def _expectation(fields: dict[str, Any]) -> Expectation:
    when = Condition(**_tuples(fields.pop("when")))
    return Expectation(**{**_tuples(fields), "outcome": Outcome(fields["outcome"]), "when": when})


def _add(report: Report, record: str, fields: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    if report.complete:
        raise ValueError(f"a {record} follows the footer")
    if record == "row":
        row = RowFacts(**_tuples(fields))
        report.rows[row.name] = row
    elif record == "case":
        report.results.append(_result(fields))
    elif record == "warning":
        report.row_warnings.append(RowWarning(**fields))
    elif record == "accuracy":
        ulps = math.inf if fields["ulps"] == _INFINITE else fields["ulps"]
        report.accuracy.append(Row(**{**fields, "ulps": ulps}))
    elif record == "unmeasured":
        report.unmeasured.append(Unmeasured(**fields))
    elif record == "footer":
        _check_footer(report, fields, expected)
        report.complete = True
    else:
        raise ValueError(f"record must be row, case or footer, is {record!r}")


def _result(fields: dict[str, Any]) -> CaseResult:
    outcome = Outcome(fields["outcome"])
    if outcome in COMPUTED:
        raise ValueError(f"a case ends with its own outcome, and {outcome} is computed from expectations")
    return CaseResult(**{**fields, "outcome": outcome})


def _check_footer(report: Report, fields: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    report.sort()
    if fields["results"] != len(report.results):
        raise ValueError(f"the footer counts {fields['results']} cases, there are {len(report.results)}")
    computed = list(_expected(report))
    wrong = [one for one in [*expected, *computed] if expected.count(one) != computed.count(one)]
    if wrong:
        raise ValueError(f"the expected lines are not what the expectations give: {wrong[0]}")


def _expected(report: Report) -> Iterator[dict[str, Any]]:
    for (row, identity), made in report.declared().items():
        one = made.expectation
        fields = {"row": row, "id": identity, "outcome": str(made.outcome), "found": str(made.found)}
        yield {**fields, "declared": one.id, "reason": one.reason, "report": one.report}


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}

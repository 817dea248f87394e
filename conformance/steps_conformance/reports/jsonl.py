"""The report as JSON lines: a header, a line for each row and each case as it is found, and a footer.

Every line is an object with a ``record``: ``header``, ``row``, ``case`` or ``footer``; its other fields
are those of the classes in ``model``. A file without a footer is of a run that did not come to its end.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..outcomes import Outcome
from .model import CaseResult, Header, Report, RequirementFacts, RowFacts, TargetFacts, judge

SCHEMA = 1
"""Number of the form; it grows when a reader has to know."""


class MalformedReportError(ValueError):
    """A file is no report; the text names file, line and what is wrong."""


class JsonLinesWriter:
    """The observer that writes each thing to a file as soon as it is found."""

    def __init__(self, file: Path, *, strict: bool = False) -> None:
        self._stream = file.open("w", encoding="utf-8")
        self._strict = strict

    def started(self, header: Header) -> None:
        """Write the header."""
        self._write("header", schema=SCHEMA, **asdict(header))

    def found_row(self, row: RowFacts) -> None:
        """Write what was found about a row."""
        self._write("row", **asdict(row))

    def found_result(self, result: CaseResult) -> None:
        """Write a result."""
        self._write("case", **asdict(result))

    def finished(self, report: Report) -> None:
        """Write the footer."""
        verdict = judge(report, strict=self._strict)
        self._write("footer", results=len(report.results), **asdict(verdict))
        self._stream.close()

    def _write(self, record: str, **fields: Any) -> None:
        self._stream.write(json.dumps({"record": record, **fields}) + "\n")
        self._stream.flush()


def read(file: Path) -> Report:
    """Return the report in a file; one without a footer is not complete.

    Raises:
        MalformedReportError: a line is no JSON object, or not of this form, or the count is wrong.
    """
    report: Report | None = None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            fields = json.loads(line)
            record = fields.pop("record")
            if report is None:
                report = Report(_header(record, fields))
            else:
                _add(report, record, fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedReportError(f"{file.name}, line {number}: {error}") from error
    if report is None:
        raise MalformedReportError(f"{file.name} is empty")
    return report


def _header(record: str, fields: dict[str, Any]) -> Header:
    schema = fields.pop("schema", None)
    if record != "header" or schema != SCHEMA:
        raise ValueError(f"must be a header with schema {SCHEMA}, is a {record} with schema {schema}")
    target = TargetFacts(**_tuples(fields.pop("target")))
    rules = {key: RequirementFacts(**value) for key, value in fields.pop("requirements").items()}
    return Header(**_tuples(fields), target=target, requirements=rules)


def _add(report: Report, record: str, fields: dict[str, Any]) -> None:
    if record == "row":
        row = RowFacts(**_tuples(fields))
        report.rows[row.name] = row
    elif record == "case":
        report.results.append(CaseResult(**{**fields, "outcome": Outcome(fields["outcome"])}))
    elif record == "footer":
        if fields["results"] != len(report.results):
            raise ValueError(f"the footer counts {fields['results']} cases, there are {len(report.results)}")
        report.complete = True
    else:
        raise ValueError(f"record must be row, case or footer, is {record!r}")


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}

"""The report as JUnit XML, which CI systems read.

It is red exactly where the exit code is not 0. So a SHOULD that is not met, where it does not count, is
skipped with its reason, and where there is no verdict a suite of its own says why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from ..outcomes import FAILURES, Outcome
from .model import CaseResult, Report, RequirementFacts, RowFacts
from .showing import shown
from .tables import NOT_RUN
from .verdict import Verdict

_KINDS = {
    Outcome.FAIL: "failure",
    Outcome.XPASS: "failure",
    Outcome.ERROR: "error",
    Outcome.CRASH: "error",
    Outcome.TIMEOUT: "error",
    Outcome.NOTRUN: "error",
    Outcome.UNSUPPORTED: "skipped",
    Outcome.XFAIL: "skipped",
}


def render(report: Report, verdict: Verdict) -> str:
    """Return the report as XML: a testsuite for each backend."""
    said, judged = shown(report), shown(verdict)
    target = said.header.target
    root = ET.Element("testsuites", name=f"conformance of {target.name} {target.version}")
    reasons = _reasons(said)
    by_row: dict[str, list[CaseResult]] = {name: [] for name in said.header.rows}
    for result in said.judged():
        by_row[result.row].append(result)
    for name, results in by_row.items():
        root.append(_suite_of_row(said, name, results, reasons))
    if verdict.exit_code == 2:
        root.append(_suite_of_doubts(said, judged))
    suites = list(root)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", _seconds(result.seconds for result in said.results))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _reasons(report: Report) -> dict[tuple[str, str], str]:
    """Return why a case is declared to fail, by row and id."""
    return {
        place: f"declared as {made.expectation.outcome}: {made.expectation.reason}"
        for place, made in report.declared().items()
        if made.outcome is Outcome.XFAIL
    }


def _suite_of_row(
    report: Report, name: str, results: list[CaseResult], reasons: dict[tuple[str, str], str]
) -> ET.Element:
    row = report.rows.get(name, NOT_RUN)
    cases = [_case(report, result, reasons.get((name, result.id), "")) for result in results]
    if row.runs:
        cases += _cases_without_outcome(report, name, results)
    else:
        cases.append(_case_of_backend(report, name, row))
    return _suite(
        report, name, cases, seconds=_seconds(r.seconds for r in results), facts=_facts(report, row)
    )


def _suite(
    report: Report, name: str, cases: list[ET.Element], *, seconds: str, facts: dict[str, str]
) -> ET.Element:
    kinds = Counter(child.tag for case in cases for child in case)
    suite = ET.Element("testsuite", name=name, tests=str(len(cases)), time=seconds)
    for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(kinds[kind]))
    # the form knows no zone of time
    suite.set("timestamp", report.header.started[:19])
    properties = ET.SubElement(suite, "properties")
    for key, value in facts.items():
        ET.SubElement(properties, "property", name=key, value=value)
    suite.extend(cases)
    return suite


def _facts(report: Report, row: RowFacts) -> dict[str, str]:
    header = report.header
    return {
        "target": header.target.name,
        "target.version": header.target.version,
        "target.path": header.target.path,
        "target.sha256": header.target.hash,
        "suite.version": header.suite,
        "python.version": header.python,
        "platform": header.platform,
        "library": row.library,
        "library.version": row.version or "",
        "device": row.device,
    }


def _case(report: Report, result: CaseResult, reason: str) -> ET.Element:
    rule = report.requirement_of(result)
    case = _element(rule, result.id, _seconds([result.seconds]))
    kind = _KINDS.get(result.outcome)
    if kind is None:
        return case
    message = reason or result.message
    if result.outcome in FAILURES and rule.level == "SHOULD" and not report.header.strict:
        kind, message = "skipped", f"a SHOULD, which does not count without --strict: {message}"
    _end(case, kind, result.outcome, f"{rule.level} {rule.title}", message)
    return case


def _cases_without_outcome(report: Report, name: str, results: list[CaseResult]) -> Iterator[ET.Element]:
    missing = dict.fromkeys(report.header.planned)
    for result in results:
        del missing[result.id]
    for identity in missing:
        rule = report.header.requirements[report.header.planned[identity]]
        case = _element(rule, identity, _seconds([]))
        _end(case, "error", Outcome.NOTRUN, f"{rule.level} {rule.title}", f"{name} has no outcome of it")
        yield case


def _case_of_backend(report: Report, name: str, row: RowFacts) -> ET.Element:
    case = ET.Element("testcase", classname="backend", name=name, time=_seconds([]))
    kind = "error" if name in report.header.named else "skipped"
    _end(case, kind, Outcome.NOTRUN, "the backend did not run", row.reason or "")
    return case


def _suite_of_doubts(report: Report, verdict: Verdict) -> ET.Element:
    case = ET.Element("testcase", classname="run", name="verdict", time=_seconds([]))
    _end(case, "error", "no verdict", verdict.headline, "\n".join(verdict.reasons))
    return _suite(report, "run", [case], seconds=_seconds([]), facts=_facts(report, NOT_RUN))


def _element(rule: RequirementFacts, identity: str, seconds: str) -> ET.Element:
    return ET.Element("testcase", classname=f"{rule.topic}.{rule.id}", name=identity, time=seconds)


def _end(case: ET.Element, kind: str, outcome: str, what: str, message: str) -> None:
    first = message.partition("\n")[0]
    if kind == "skipped":
        # readers show only this attribute
        ET.SubElement(case, kind, type=outcome, message=f"{outcome}: {' '.join(message.split())}")
        return
    end = ET.SubElement(case, kind, type=outcome, message=f"{outcome}: {first}")
    end.text = f"{what}\n{message}"


def _seconds(of: Iterable[float]) -> str:
    return f"{sum(of):.3f}"

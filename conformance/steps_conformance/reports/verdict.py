"""The verdict on a report: conformant, not conformant, or impossible to say."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..outcomes import FAILURES, Outcome
from .model import Header, Report, RowFacts
from .tables import deviations

_IDS_IN_A_HEADLINE = 6


@dataclass(frozen=True)
class Verdict:
    """The judgement on a report.

    Attributes:
        exit_code: 0 conformant, perhaps with declared deviations; 1 a MUST does not hold, or a declared
            deviation did not happen; 2 it could not be judged.
        headline: the judgement in one line.
        reasons: what it rests on, one sentence each.
    """

    exit_code: int
    headline: str
    reasons: tuple[str, ...] = ()


def judge(report: Report, *, strict: bool | None = None) -> Verdict:
    """Return the verdict; a requirement that does not hold outweighs what could not be judged.

    Args:
        report: a report that is complete.
        strict: count a SHOULD like a MUST; as the report's header says where it is not given.
    """
    levels = ("MUST", "SHOULD") if (report.header.strict if strict is None else strict) else ("MUST",)
    failed = requirements_with(report, FAILURES, levels)
    stale = requirements_with(report, {Outcome.XPASS})
    doubts = tuple(_doubts(report))
    if failed or stale:
        return Verdict(1, _what_is_wrong(failed, stale), doubts)
    if doubts:
        return Verdict(2, "no verdict: the run does not show what was asked", doubts)
    unsupported = requirements_with(report, {Outcome.UNSUPPORTED}, ("MUST",))
    deviating = requirements_with(report, {Outcome.XFAIL}, levels)
    return Verdict(0, _headline(report.header, unsupported, deviating), tuple(_notes(report, levels)))


def _what_is_wrong(failed: list[str], stale: list[str]) -> str:
    which = f"{_number(stale, 'declared deviation')} did not happen: {_named(stale)}"
    if not failed:
        return f"not as declared: {which}"
    return f"not conformant: {_number(failed, 'requirement')} not met" + (f"; {which}" if stale else "")


def _headline(header: Header, unsupported: list[str], deviating: list[str]) -> str:
    headline = "conformant for the declared capabilities" if unsupported else "conformant"
    if header.is_of_a_selection:
        headline += " in a selection of the cases"
    if deviating:
        headline += f" except for {_number(deviating, 'declared deviation')}: {_named(deviating)}"
    if unsupported:
        comma = ";" if deviating else ","
        headline += f"{comma} {_number(unsupported, 'MUST')} not supported in full"
    return headline


def _notes(report: Report, levels: tuple[str, ...]) -> Iterator[str]:
    """Yield what a conformant run still has to say."""
    for deviation in deviations(report):
        rule, one = deviation.requirement, deviation.expectation
        seen = f" (see {one.report})" if one.report else ""
        if rule.level in levels:
            yield f"{rule.id} is not met on {', '.join(deviation.rows)}, as declared: {one.reason}{seen}"
    for words, outcomes in (("", FAILURES), (", as declared", {Outcome.XFAIL})):
        shoulds = requirements_with(report, outcomes, ("SHOULD",))
        if shoulds and "SHOULD" not in levels:
            yield f"SHOULD is not met{words}: {', '.join(shoulds)}"


def requirements_with(
    report: Report, outcomes: Collection[Outcome], levels: tuple[str, ...] = ("MUST", "SHOULD")
) -> list[str]:
    """Return the ids of the requirements, of some levels, of which a case has one of these outcomes."""
    rules = (report.requirement_of(result) for result in report.judged() if result.outcome in outcomes)
    return list(dict.fromkeys(rule.id for rule in rules if rule.level in levels))


def _doubts(report: Report) -> Iterator[str]:
    """Yield the reasons for which nobody could call this run conformant."""
    header = report.header
    for unmeasured in report.unmeasured:
        yield f"the accuracy on {unmeasured.backend} could not be measured: {unmeasured.reason}"
    if not report.complete:
        yield "the run did not come to its end"
    for name in header.rows:
        row = report.rows.get(name)
        if name in header.named and (row is None or not row.runs):
            yield f"{name} was asked for and did not run: {row.reason if row else 'it was never started'}"
        if row is not None and row.runs:
            yield from _doubts_of_row(report, row)
    passed = {
        report.requirement_of(result).topic
        for result in report.results
        if result.outcome is Outcome.PASS and report.requirement_of(result).level == "MUST"
    }
    if not passed:
        yield "no MUST passed anywhere"
    for topic in header.topics:
        if passed and topic not in passed:
            yield f"no MUST of the topic {topic} passed"


def _doubts_of_row(report: Report, row: RowFacts) -> Iterator[str]:
    if row.deviations:
        yield f"{row.name} is not what it says: {'; '.join(row.deviations)}"
    results = [result for result in report.results if result.row == row.name]
    missing = report.header.planned.keys() - {result.id for result in results}
    not_run = len(missing) + sum(result.outcome is Outcome.NOTRUN for result in results)
    if not_run:
        yield f"{row.name}: {not_run} of {len(report.header.planned)} planned cases did not run"


def _named(found: list[str]) -> str:
    """Return the first ids; a headline stays one line, and the reasons name them all."""
    left = len(found) - _IDS_IN_A_HEADLINE
    return ", ".join(found[:_IDS_IN_A_HEADLINE]) + (f" and {left} more" if left > 0 else "")


def _number(found: list[str], noun: str) -> str:
    return f"{len(found)} {noun}" + ("s" if len(found) != 1 and noun != "MUST" else "")

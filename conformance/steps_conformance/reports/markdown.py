"""The report as Markdown: short enough for a job summary."""

from ..accuracy.table import markdown_table
from ..markdown_text import block, code, plain
from .model import Report
from .tables import Failure, declared_allowances, deviations, failures, outcomes_seen, row_summaries
from .verdict import Verdict

_FAILURES_SHOWN = 50


def render(report: Report, verdict: Verdict) -> str:
    """Return the report as Markdown."""
    target = report.header.target
    parts = [
        f"# Conformance of {plain(target.name)} {plain(target.version)}",
        f"**{plain(verdict.headline)}** (exit code {verdict.exit_code})",
        "\n".join(f"- {plain(reason)}" for reason in verdict.reasons),
        _table(report),
        _failures(failures(report), declared=bool(report.header.expectations)),
        _deviations(report),
        _allowances(report),
        _accuracy(report),
        "## What was tested",
        _facts(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(report: Report) -> str:
    header = report.header
    facts = [
        f"tested copy: `{code(header.target.path)}`",
        f"SHA-256 of its sources: `{code(header.target.hash)}`",
        f"suite {header.suite}, Python {header.python}, {header.platform}, started {header.started}",
        f"{len(header.planned)} planned cases for {len(header.requirements)} requirements",
    ]
    return "\n".join(f"- {fact}" for fact in facts)


def _table(report: Report) -> str:
    outcomes = outcomes_seen(report)
    lines = [
        f"| backend | library | device | {' | '.join(outcomes)} | time | result |",
        f"| --- | --- | --- | {' | '.join('---:' for _ in outcomes)} | ---: | --- |",
    ]
    for row in row_summaries(report):
        facts = row.facts
        counts = [str(row.counts[outcome]) if facts.runs else "" for outcome in outcomes]
        why = "; ".join([*([facts.reason] if facts.reason else []), *facts.deviations])
        result = f"{row.state}: {why}" if why else row.state
        library = f"{facts.library} {facts.version or ''}".strip()
        time = f"{row.seconds:.1f} s" if facts.runs else ""
        cells = [row.name, library, facts.device, *counts, time, result]
        lines.append(f"| {' | '.join(plain(cell) for cell in cells)} |")
    return "\n".join(lines)


def _deviations(report: Report) -> str:
    parts = []
    for found in deviations(report):
        rule, one = found.requirement, found.expectation
        seen = f" Reported: {plain(one.report)}." if one.report else ""
        when = f" Declared {plain(str(one.when))}." if str(one.when) else ""
        parts.append(
            f"- **{rule.id}** ({rule.level}) {plain(rule.title)}: {one.outcome} of "
            f"{_cases(found.cases)} on {plain(', '.join(found.rows))}. {plain(one.reason)}{seen}{when}"
        )
    return "\n".join(["## Declared deviations of the target", "", *parts]) if parts else ""


def _cases(cases: tuple[str, ...]) -> str:
    return f"`{code(cases[0])}`" if len(cases) == 1 else f"{len(cases)} cases"


def _allowances(report: Report) -> str:
    parts = [
        f"- {plain(', '.join(rows))}: {plain(one.trait)}, {plain(one.condition)}. There, "
        f"{plain(one.allowed)}, because {plain(one.reason)}. It bears on {', '.join(one.requirements)}."
        for one, rows in declared_allowances(report)
    ]
    return "\n".join(["## Declared deviations of backends", "", *parts]) if parts else ""


def _accuracy(report: Report) -> str:
    broken = [
        f"- {plain(one.backend)} could not be measured: {plain(one.reason)}" for one in report.unmeasured
    ]
    parts = [markdown_table(report.accuracy).rstrip()] if report.accuracy else ["## Accuracy"][: len(broken)]
    return "\n\n".join([*parts, *(["\n".join(broken)] if broken else [])])


def _failures(found: list[Failure], *, declared: bool) -> str:
    if not found:
        return ""
    parts = ["## Requirements not met" + (", or not as declared" if declared else "")]
    for failure in found[:_FAILURES_SHOWN]:
        rule = failure.requirement
        parts.append(
            f"**{rule.id}** ({rule.level}) {plain(rule.title)}  \n"
            f"`{code(failure.id)}`: {failure.outcome} on {plain(', '.join(failure.rows))}\n\n"
            f"{block(failure.message)}"
        )
    if len(found) > _FAILURES_SHOWN:
        parts.append(f"{len(found) - _FAILURES_SHOWN} more stand in report.jsonl and report.html.")
    return "\n\n".join(parts)

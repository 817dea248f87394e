"""The report as Markdown: short enough for a job summary."""

from collections import Counter
from collections.abc import Iterable

from ..accuracy.table import markdown_table
from ..markdown_text import block, code, plain
from .budget import fitting
from .model import Report
from .showing import shown
from .tables import Failure, declared_allowances, deviations, failures, outcomes_seen, row_summaries
from .verdict import Verdict

LARGEST = 900 * 1024
"""No report is longer, in bytes: GitHub drops a job summary of more than 1 MiB, and steps may share one."""

_FAILURES_SHOWN = 50
_LONGEST_TEXT = 3000
_LARGEST_SECTION = 120 * 1024


def render(report: Report, verdict: Verdict) -> str:
    """Return the report as Markdown, at most ``LARGEST`` bytes long; what is left out is counted."""
    said, judged = shown(report, _LONGEST_TEXT), shown(verdict, _LONGEST_TEXT)
    target = said.header.target
    parts = [
        f"# Conformance of {plain(target.name)} {plain(target.version)}",
        f"**{plain(judged.headline)}** (exit code {judged.exit_code})",
        _section("", (f"- {plain(reason)}" for reason in judged.reasons)),
        _section("", (f"- warning: {plain(warning)}" for warning in said.warnings())),
        _table(said),
        _failures(failures(said), declared=bool(said.header.expectations)),
        _section("## Declared deviations of the target", _deviations(said)),
        _section("## Declared deviations of backends", _allowances(said)),
        _accuracy(said),
        "## What was tested",
        _facts(said),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(heading: str, items: Iterable[str]) -> str:
    """Return a list under its heading, cut where it is too long; nothing where it is empty."""
    kept, left = fitting(items, _LARGEST_SECTION)
    if left:
        kept.append(f"- {left:,} more of {len(kept) + left:,} stand in report.jsonl.")
    listed = "\n".join(kept)
    return f"{heading}\n\n{listed}".lstrip() if listed else ""


def _facts(report: Report) -> str:
    header = report.header
    facts = [
        f"tested copy: `{code(header.target.path)}`",
        f"SHA-256 of its sources: `{code(header.target.hash)}`",
        plain(f"suite {header.suite}, Python {header.python}, {header.platform}, started {header.started}"),
        f"SHA-256 of the suite: `{code(header.suite_hash)}`",
        f"planned: {header.planned_in_words()}",
        *([header.teeth.sentence] if header.teeth else []),
    ]
    return "\n".join(f"- {fact}" for fact in facts)


def _table(report: Report) -> str:
    outcomes = outcomes_seen(report)
    head = [
        f"| backend | library | device | {' | '.join(outcomes)} | time | result |",
        f"| --- | --- | --- | {' | '.join('---:' for _ in outcomes)} | ---: | --- |",
    ]
    lines = []
    for row in row_summaries(report):
        facts = row.facts
        counts = [str(row.counts[outcome]) if facts.runs else "" for outcome in outcomes]
        why = "; ".join([*([facts.reason] if facts.reason else []), *facts.deviations])
        result = f"{row.state}: {why}" if why else row.state
        library = f"{facts.library} {facts.version or ''}".strip()
        time = f"{row.seconds:.1f} s" if facts.runs else ""
        cells = [row.name, library, facts.device, *counts, time, result]
        lines.append(f"| {' | '.join(plain(cell) for cell in cells)} |")
    kept, left = fitting(lines, _LARGEST_SECTION)
    rest = [f"\n{left:,} more of {len(lines):,} backends stand in report.jsonl."] if left else []
    return "\n".join([*head, *kept, *rest])


def _deviations(report: Report) -> Iterable[str]:
    for found in deviations(report):
        rule, one = found.requirement, found.expectation
        seen = f" Reported: {plain(one.report)}." if one.report else ""
        when = f" Declared {plain(str(one.when))}." if str(one.when) else ""
        yield (
            f"- **{rule.id}** ({rule.level}) {plain(rule.title)}: {one.outcome} of "
            f"{_cases(found.cases)} on {plain(', '.join(found.rows))}. {plain(one.reason)}{seen}{when}"
        )


def _cases(cases: tuple[str, ...]) -> str:
    return f"`{code(cases[0])}`" if len(cases) == 1 else f"{len(cases)} cases"


def _allowances(report: Report) -> Iterable[str]:
    for one, rows in declared_allowances(report):
        yield (
            f"- {plain(', '.join(rows))}: {plain(one.trait)}, {plain(one.condition)}. There, "
            f"{plain(one.allowed)}, because {plain(one.reason)}. It bears on {', '.join(one.requirements)}."
        )


def _accuracy(report: Report) -> str:
    broken = _section(
        "",
        (f"- {plain(one.backend)} could not be measured: {plain(one.reason)}" for one in report.unmeasured),
    )
    table = markdown_table(report.accuracy).rstrip() if report.accuracy else "## Accuracy" if broken else ""
    if len(table.encode()) > _LARGEST_SECTION:
        table = f"## Accuracy\n\n{len(report.accuracy):,} measured errors stand in report.jsonl."
    return "\n\n".join(part for part in (table, broken) if part)


def _failures(found: list[Failure], *, declared: bool) -> str:
    """Return the first failures in full, and how many there are of the others, by requirement."""
    if not found:
        return ""
    heading = "## Requirements not met" + (", or not as declared" if declared else "")
    kept, _ = fitting(map(_failure, found[:_FAILURES_SHOWN]), 3 * _LARGEST_SECTION)
    rest = found[len(kept) :]
    if not rest:
        return "\n\n".join([heading, *kept])
    counts = Counter(failure.requirement.id for failure in rest)
    others = _section("", (f"- {identity}: {count:,}" for identity, count in counts.items()))
    told = f"{len(rest):,} more of {len(found):,} stand in report.jsonl and report.html. By requirement:"
    return "\n\n".join([heading, *kept, told, others])


def _failure(failure: Failure) -> str:
    rule = failure.requirement
    return (
        f"**{rule.id}** ({rule.level}) {plain(rule.title)}  \n"
        f"`{code(failure.id)}`: {failure.outcome} on {plain(', '.join(failure.rows))}\n\n"
        f"{block(failure.message)}"
    )

"""What a person sees of a run: progress while it goes on, then a table and what failed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from steps_backends import LEAF_DTYPES

from .accuracy.results import Row, Unmeasured
from .coverage import Coverage, TopicCoverage, percent
from .outcomes import COUNTED_AGAINST, FAILURES, Outcome
from .reports.model import CaseResult, Header, Report, RowFacts, RowWarning
from .reports.showing import shown, shown_text
from .reports.tables import (
    Failure,
    RowSummary,
    declared_allowances,
    deviations,
    failures,
    outcomes_seen,
    row_summaries,
)
from .reports.verdict import Verdict
from .requirements import Requirement

_FAILURES_SHOWN = 20
_LINES_SHOWN = 6
_STYLES = {
    "passed": "green",
    "as declared": "yellow",
    "failed": "bold red",
    "doubtful": "yellow",
    "not run": "dim",
}


class ProgressBars:
    """The observer that shows a bar for each row; where there is no terminal, a line when a row is over.

    Args:
        console: where they are shown.
        kept: results of a run that broke off, with which the bars start.
    """

    def __init__(self, console: Console, kept: Sequence[CaseResult] = ()) -> None:
        self._console = console
        self._kept = kept
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}", style="bold red"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._failed: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._measured = ""

    def started(self, header: Header) -> None:
        """Show the bars."""
        self._progress.start()
        for row in header.rows:
            self._left[row] = len(header.planned)
            self._failed[row] = 0
            self._tasks[row] = self._progress.add_task(row, start=False, total=self._left[row], failed="")
        for result in self._kept:
            self.found_result(result)

    def found_row(self, row: RowFacts) -> None:
        """Start the row's bar, or take it away."""
        if row.runs:
            self._progress.start_task(self._tasks[row.name])
        else:
            self._progress.remove_task(self._tasks[row.name])
            self._say(f"{row.name}: not run, {row.reason}")

    def found_result(self, result: CaseResult) -> None:
        """Move the row's bar."""
        row = result.row
        self._left[row] -= 1
        self._failed[row] += result.outcome in FAILURES
        failed = f"{self._failed[row]} failed" if self._failed[row] else ""
        self._progress.update(self._tasks[row], advance=1, failed=failed)
        if not self._left[row]:
            self._say(f"{row}: {failed or 'no case failed'}")

    def found_warning(self, warning: RowWarning) -> None:
        """Leave it for the end: the command shows all warnings there."""

    def found_accuracy(self, row: Row) -> None:
        """Say once which backend is being measured."""
        if row.backend != self._measured:
            self._measured = row.backend
            self._console.print(f"{row.backend}: measuring its accuracy", markup=False, highlight=False)

    def found_unmeasured(self, unmeasured: Unmeasured) -> None:
        """Say that measuring broke off."""
        self._say(f"{unmeasured.backend}: its accuracy could not be measured, {unmeasured.reason}")

    def finished(self, report: Report) -> None:
        """Take the bars away."""
        self.close()

    def close(self) -> None:
        """Take the bars away, also after an interruption."""
        self._progress.stop()

    def _say(self, line: str) -> None:
        if not self._console.is_terminal:
            self._console.print(shown_text(line), markup=False, highlight=False, soft_wrap=True)


def backends_table(rows: Sequence[RowFacts]) -> Group:
    """Return what the command `backends` prints."""
    table = _plain_table("backend", "version", "device", "state", "without the dtypes")
    for row in rows:
        state = "not run" if not row.runs else "doubtful" if row.deviations else "runs"
        lacking = " ".join(dtype for dtype in LEAF_DTYPES if dtype not in row.dtypes)
        cells = (row.name, row.version or "", row.device, state, lacking)
        table.add_row(*(Text(cell, style=_STYLES.get(state, "")) for cell in cells))
    return Group(table, *_remarks(rows))


def _remarks(rows: Iterable[RowFacts]) -> list[Text]:
    """Return a line for each row that does not run, and for each deviation."""
    lines = []
    for row in rows:
        if row.reason:
            lines.append(Text(f"{row.name} does not run: {row.reason}", style="dim"))
        if row.deviations:
            lines.append(Text(f"{row.name} is not what it says: {'; '.join(row.deviations)}", style="yellow"))
    return lines


def requirements_table(rules: Iterable[Requirement], cases: Counter[str]) -> Table:
    """Return the table of the command `list`."""
    table = _plain_table("requirement", "level", "cases", "what holds")
    for rule in rules:
        count = Text(str(cases[rule.id]), style="" if cases[rule.id] else "bold red")
        table.add_row(rule.id, rule.level, count, Text(rule.title))
    return table


def coverage_table(found: Coverage) -> Table:
    """Return the table of `list --coverage`."""
    table = _plain_table("topic")
    for column in ("requirements", "with a live case", "cases", "of a requirement", "live"):
        table.add_column(column, justify="right")
    for topic in found.topics:
        table.add_row(topic.topic, *_coverage_cells(topic))
    totals = [
        sum(getattr(topic, count) for topic in found.topics)
        for count in ("requirements", "covered", "cases", "ruled", "live")
    ]
    table.add_row(Text("all", style="bold"), *_coverage_cells(TopicCoverage("all", *totals)))
    return table


def _coverage_cells(topic: TopicCoverage) -> list[Text]:
    parts = (
        (topic.covered, topic.requirements),
        (topic.ruled, topic.cases),
        (topic.live, topic.cases),
    )
    covered, ruled, live = (
        Text(percent(part, whole), style="" if part == whole else "bold red") for part, whole in parts
    )
    return [Text(str(topic.requirements)), covered, Text(str(topic.cases)), ruled, live]


def _plain_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def summary(report: Report, verdict: Verdict, folder: Path | None = None) -> Group:
    """Return what is printed at the end; nothing that a target says acts on a terminal or a CI system.

    Args:
        report: what a run found.
        verdict: the judgement on it.
        folder: where the report was written; None where it was not.
    """
    where_all_are = "--report DIR writes them all" if folder is None else f"all stand in {folder}"
    report, verdict = shown(report), shown(verdict)
    target = report.header.target
    style = {0: "bold green", 1: "bold red", 2: "bold yellow"}[verdict.exit_code]
    if verdict.exit_code == 0 and deviations(report):
        style = "bold yellow"
    parts: list[Table | Text] = [
        Text(f"{target.name} {target.version}  {target.path}  sha256 {target.hash[:12]}", style="dim"),
        _table(report),
        *_remarks(summary.facts for summary in row_summaries(report)),
        Text(),
        *_failures(report, where_all_are),
        *_declared(report),
        Text(verdict.headline, style=style),
        *(Text(f"  {reason}") for reason in verdict.reasons),
    ]
    return Group(*parts)


def _table(report: Report) -> Table:
    outcomes = outcomes_seen(report)
    table = _plain_table("backend", "version", "device")
    for outcome in outcomes:
        table.add_column(outcome, justify="right", min_width=len(outcome))
    table.add_column("time", justify="right", min_width=7)
    table.add_column("result", min_width=8)
    for row in row_summaries(report):
        table.add_row(*_cells(row, outcomes))
    return table


def _cells(row: RowSummary, outcomes: list[Outcome]) -> list[str | Text]:
    style = _STYLES[row.state]
    facts = row.facts
    counts: list[str | Text] = [_count(row, outcome) if facts.runs else "" for outcome in outcomes]
    time = f"{row.seconds:.1f} s" if facts.runs else ""
    return [
        Text(row.name, style=style),
        Text(facts.version or ""),
        facts.device,
        *counts,
        time,
        Text(row.state, style=style),
    ]


def _count(row: RowSummary, outcome: Outcome) -> Text:
    count = row.counts[outcome]
    bad = outcome in COUNTED_AGAINST or outcome is Outcome.NOTRUN
    return Text(str(count), style="dim" if not count else "bold red" if bad else "")


def _failures(report: Report, where_all_are: str) -> list[Text]:
    found = failures(report)
    texts: list[Text] = []
    shown = ""
    for failure in found[:_FAILURES_SHOWN]:
        rule = failure.requirement
        if rule.id != shown:
            texts.append(Text.assemble((f"{rule.id} ({rule.level}) ", "bold"), rule.title))
            shown = rule.id
        texts.append(_failure(failure))
    if len(found) > _FAILURES_SHOWN:
        texts.append(Text(f"{len(found) - _FAILURES_SHOWN:,} more failures; {where_all_are}\n"))
    return texts


def _declared(report: Report) -> list[Text]:
    """Return a line for each deviation that is declared, of the target and of backends."""
    lines = [
        Text.assemble(
            (f"{found.expectation.outcome} as declared ", "yellow"),
            f"{found.expectation.id} on {', '.join(found.rows)}: {found.expectation.reason}",
        )
        for found in deviations(report)
    ]
    lines += [
        Text(
            f"{', '.join(rows)}: {one.allowed}, as declared ({one.trait}); "
            f"this bears on {', '.join(one.requirements)}",
            style="dim",
        )
        for one, rows in declared_allowances(report)
    ]
    return [*lines, Text()] if lines else []


def _failure(failure: Failure) -> Text:
    lines = failure.message.splitlines()
    if len(lines) > _LINES_SHOWN:
        lines[_LINES_SHOWN:] = [f"... {len(lines) - _LINES_SHOWN} more lines in the report"]
    return Text.assemble(
        (f"  {failure.outcome} ", "red"),
        f"{failure.id} on {', '.join(failure.rows)}\n",
        ("".join(f"    {line}\n" for line in lines), "dim"),
    )

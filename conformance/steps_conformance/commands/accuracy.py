"""The command `accuracy`."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..accuracy.measures import all_measures
from ..accuracy.results import Row, Unmeasured
from ..accuracy.table import markdown_table, rich_table
from ..accuracy.taking import MeasuringError, take
from ..reports import jsonl
from ..reports.model import Report
from ..reports.verdict import judge
from ..runner import TargetDidNotStartError, look_at_backend, look_at_target
from ..worker_process import Limits
from .choosing import chosen, load_suite, rows_for
from .options import TARGET, Backends, Ids, Largest, Target, Topics
from .report_folder import LINES, make_folder, read_whole, write_readable
from .terminal import NO_VERDICT, errors, output, stop


def accuracy_command(
    backend: Backends = None,
    target: Target = TARGET,
    topic: Topics = None,
    identity: Ids = None,
    largest: Largest = 100_000,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Folder of a report of the same target, into which the table goes."),
    ] = None,
) -> None:
    """Measure how far results lie from exact ones, in ulps, by requirement, dtype and size.

    In a folder without report.jsonl the table alone is added to report.md.
    """
    if report is not None:
        make_folder("--report", report)
    lines = report / LINES if report is not None and (report / LINES).exists() else None
    # read before anything is measured, which takes its time
    into = _report_of(lines, target) if lines is not None else None
    requirements = _measurable(topic or (), identity or ())
    taken, broken = _measured(
        rows_for(target, backend or ()), target, largest, requirements, named=backend or ()
    )
    output.print(rich_table(taken))
    if into is not None and lines is not None:
        backends = {row.backend for row in taken} | {one.backend for one in broken}
        again = {(name, one) for name in backends for one in requirements}
        into.accuracy = [row for row in into.accuracy if (row.backend, row.requirement) not in again] + taken
        into.unmeasured = [one for one in into.unmeasured if one.backend not in backends] + broken
        jsonl.write(into, lines)
        write_readable(into, judge(into), lines.parent)
    elif report is not None:
        with (report / "report.md").open("a", encoding="utf-8") as stream:
            stream.write(f"\n{markdown_table(taken)}")
        output.print(f"report: {report / 'report.md'}", markup=False, soft_wrap=True)
    raise typer.Exit(NO_VERDICT if broken else 0)


def _measurable(topics: Sequence[str], ids: Sequence[str]) -> set[str]:
    """Return the requirements of the user's choice that a measure backs; there must be one."""
    _, suite = load_suite()
    asked = {case.requirement for case in chosen(suite, topics, ids).values()}
    measured = {one.requirement for one in all_measures(1)}
    if not asked & measured:
        raise stop(
            f"nothing is measured of {', '.join(sorted(asked))}; measured are {', '.join(sorted(measured))}"
        )
    return asked & measured


def _measured(
    rows: Sequence[str], target: str, largest: int, requirements: set[str], *, named: Sequence[str]
) -> tuple[list[Row], list[Unmeasured]]:
    taken: list[Row] = []
    broken: list[Unmeasured] = []
    for name in rows:
        facts = look_at_backend(name)
        if not facts.runs:
            output.print(f"{name}: not run: {facts.reason}", markup=False, soft_wrap=True)
            if name in named:
                raise typer.Exit(NO_VERDICT)
            continue
        try:
            with output.status(f"measuring on {name}"):
                taken.extend(take(name, target, largest, requirements))
        except MeasuringError as error:
            errors.print(f"{name}: {error}", style="red", markup=False, soft_wrap=True)
            broken.append(Unmeasured(name, str(error)))
    return taken, broken


def _report_of(file: Path, target: str) -> Report:
    """Return the report in a file, which must be of this target."""
    found = read_whole(file)
    try:
        with tempfile.TemporaryDirectory(prefix="steps-conformance-") as folder:
            facts = look_at_target(target, Path(folder) / "target", Limits())
    except TargetDidNotStartError as error:
        raise stop(str(error)) from None
    if facts.hash != found.header.target.hash:
        raise stop(
            f"{file} is of {found.header.target.name} with the hash {found.header.target.hash[:12]}, and "
            f"{target} has the hash {facts.hash[:12]}; run the suite again, with --accuracy"
        )
    return found

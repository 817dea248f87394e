"""The command `run`."""

from pathlib import Path
from typing import Annotated

import typer

from ..accuracy.table import rich_table
from ..console import ProgressBars, summary
from ..expectations.files import ExpectationError
from ..memory import MemoryLimitError, check_memory_limit
from ..reports.jsonl import JsonLinesWriter
from ..reports.model import Report
from ..reports.showing import shown_text
from ..reports.verdict import judge
from ..resuming import ResumeError, read_broken_off
from ..runner import TargetDidNotStartError
from ..session import Observer, Plan, run
from ..worker_process import Limits
from .choosing import chosen, load_suite, require_rules, rows_for
from .options import (
    JOBS,
    TARGET,
    Backends,
    CaseSeconds,
    Expectations,
    GithubSummary,
    Ids,
    Jobs,
    Largest,
    MemoryLimit,
    ReportFolder,
    Restarts,
    Resume,
    Strict,
    Summary,
    Target,
    Topics,
)
from .report_folder import LINES, append_summary, make_folder, summary_files, write_readable
from .terminal import INTERRUPTED, errors, output, stop


def run_command(
    backend: Backends = None,
    target: Target = TARGET,
    topic: Topics = None,
    identity: Ids = None,
    report: ReportFolder = None,
    summary_file: Summary = None,
    github_summary: GithubSummary = False,
    expectations: Expectations = None,
    measure: Annotated[
        bool, typer.Option("--accuracy", help="After the cases, measure errors in ulps on each backend.")
    ] = False,
    largest: Largest = 100_000,
    strict: Strict = False,
    jobs: Jobs = JOBS,
    case_seconds: CaseSeconds = Limits.case_seconds,
    restarts: Restarts = Limits.restarts,
    memory_limit: MemoryLimit = None,
    resume: Resume = None,
) -> None:
    """Run the suite, by default on every backend that can run here.

    Exit code: 0 conformant, where expectation files are given with the deviations that they declare;
    1 a MUST does not hold, or a declared deviation did not happen; 2 no verdict, because a backend that was
    named did not run, planned cases were not run, nothing passed, the target did not start, or an
    expectation file is wrong.
    """
    kept = _kept(resume, report)
    if memory_limit is not None:
        _check_memory_limit()
    summaries = summary_files(summary_file, github=github_summary)
    requirements, suite = load_suite()
    cases = chosen(suite, topic or (), identity or ())
    require_rules(cases, requirements)
    plan = Plan(
        target,
        rows_for(target, backend or ()),
        cases,
        requirements,
        named=tuple(name for name in backend or () if name != "all"),
        topics=tuple(topic or ()),
        limits=Limits(case_seconds=case_seconds, restarts=restarts, memory=memory_limit),
        jobs=jobs,
        suite=suite,
        expectations=tuple(expectations or ()),
        strict=strict,
        accuracy=largest if measure else None,
        kept=kept,
    )
    report = report or resume
    if report is not None:
        make_folder("--report", report)
    found = _run(plan, report)
    verdict = judge(found)
    if report is not None:
        write_readable(found, verdict, report)
    append_summary(found, verdict, summaries)
    if found.accuracy:
        output.print(rich_table(found.accuracy))
    for warning in found.warnings():
        errors.print(f"warning: {shown_text(warning)}", style="yellow", markup=False, soft_wrap=True)
    output.print(summary(found, verdict, report))
    raise typer.Exit(verdict.exit_code)


def _kept(resume: Path | None, report: Path | None) -> Report | None:
    if resume is None:
        return None
    if report is not None:
        raise stop(
            f"--resume goes on in the folder that it names, got --report {report} too; leave --report out"
        )
    try:
        return read_broken_off(resume / LINES)
    except ResumeError as error:
        raise stop(str(error)) from None


def _check_memory_limit() -> None:
    try:
        check_memory_limit()
    except MemoryLimitError as error:
        raise stop(str(error)) from None


def _run(plan: Plan, folder: Path | None) -> Report:
    bars = ProgressBars(output, plan.kept.results if plan.kept is not None else ())
    observers: list[Observer] = [bars]
    lines = None if folder is None else JsonLinesWriter(folder / LINES, plan.kept)
    if lines is not None:
        observers.append(lines)
    try:
        return run(plan, observers)
    except (TargetDidNotStartError, ExpectationError, ResumeError) as error:
        raise stop(str(error)) from None
    except KeyboardInterrupt:
        errors.print(f"interrupted; {LINES} has no footer" if folder else "interrupted")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bars.close()
        if lines is not None:
            lines.close()

"""The command `run`."""

from pathlib import Path
from typing import Annotated

import typer

from ..accuracy.table import rich_table
from ..console import ProgressBars, summary
from ..expectations.files import ExpectationError
from ..reports.jsonl import JsonLinesWriter
from ..reports.model import Report
from ..reports.verdict import judge
from ..runner import TargetDidNotStartError
from ..session import Observer, Plan, run
from ..worker_process import Limits
from .choosing import chosen, load_suite, require_rules, rows_named
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
    ReportFolder,
    Restarts,
    Strict,
    Summary,
    Target,
    Topics,
)
from .report_folder import LINES, append_summary, summary_files, write_readable
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
) -> None:
    """Run the suite, by default on every backend that can run here.

    Exit code: 0 conformant, where expectation files are given with the deviations that they declare;
    1 a MUST does not hold, or a declared deviation did not happen; 2 no verdict, because a backend that was
    named did not run, planned cases were not run, nothing passed, the target did not start, or an
    expectation file is wrong.
    """
    summaries = summary_files(summary_file, github=github_summary)
    requirements, suite = load_suite()
    cases = chosen(suite, topic or (), identity or ())
    require_rules(cases, requirements)
    plan = Plan(
        target,
        rows_named(backend or ()),
        cases,
        requirements,
        named=tuple(name for name in backend or () if name != "all"),
        topics=tuple(topic or ()),
        limits=Limits(case_seconds=case_seconds, restarts=restarts),
        jobs=jobs,
        suite=suite,
        expectations=tuple(expectations or ()),
        strict=strict,
        accuracy=largest if measure else None,
    )
    found = _run(plan, report)
    verdict = judge(found)
    if report is not None:
        write_readable(found, verdict, report)
    append_summary(found, verdict, summaries)
    if found.accuracy:
        output.print(rich_table(found.accuracy))
    output.print(summary(found, verdict))
    raise typer.Exit(verdict.exit_code)


def _run(plan: Plan, folder: Path | None) -> Report:
    bars = ProgressBars(output)
    observers: list[Observer] = [bars]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        observers.append(JsonLinesWriter(folder / LINES))
    try:
        return run(plan, observers)
    except (TargetDidNotStartError, ExpectationError) as error:
        raise stop(str(error)) from None
    except KeyboardInterrupt:
        errors.print(f"interrupted; {LINES} has no footer" if folder else "interrupted")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bars.close()

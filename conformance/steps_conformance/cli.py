"""Run the conformance suite of gradient-processing steps, and look at what it is made of."""

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import steps_backends
import typer
from rich.console import Console

from .accuracy.results import Row, Unmeasured
from .accuracy.table import markdown_table, rich_table
from .accuracy.taking import MeasuringError, take
from .case import Case, DoubleCaseError, load_cases
from .console import ProgressBars, backends_table, coverage_table, requirements_table, summary
from .coverage import Coverage, coverage, shipped_capabilities, shipped_declarations
from .expectations.files import ExpectationError
from .expectations.rewriting import updated
from .plan import SelectionError, selected
from .reports import html, jsonl, markdown
from .reports.jsonl import JsonLinesWriter, MalformedReportError
from .reports.model import Report
from .reports.verdict import Verdict, judge
from .requirements import MalformedRequirementError, Requirement, load_requirements
from .runner import TargetDidNotStartError, look_at_backend, look_at_target
from .session import Observer, Plan, run
from .vectors.files import differing_files, write_files
from .vectors.model import load_vectors
from .worker_process import Limits

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=__doc__,
)
expectations_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Files of known deviations.")
app.add_typer(expectations_app, name="expectations")
output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

TARGET = "steps_conformance.targets.steps_core:target"
NO_VERDICT = 2
INTERRUPTED = 130
_JOBS = min(os.cpu_count() or 1, 4)

Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend", help="A row of `backends`, or module:attribute; `all` for every row that can run."
    ),
]
Target = Annotated[str, typer.Option("--target", help="What to test: module:attribute of a target.")]
Topics = Annotated[list[str] | None, typer.Option("--topic", help="Only the cases of this topic.")]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", help="Only this case or this requirement; CLIP-* for all that start so."),
]
ReportFolder = Annotated[
    Path | None, typer.Option("--report", help="Folder for report.jsonl, report.md and report.html.")
]
Expectations = Annotated[
    list[Path] | None,
    typer.Option("--expectations", help="A TOML file of known deviations; may be given several times."),
]
Largest = Annotated[int, typer.Option("--largest", min=1, help="The largest size of inputs of --accuracy.")]
Strict = Annotated[bool, typer.Option("--strict", help="A SHOULD counts like a MUST.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="How many backends run at a time.")]
CaseSeconds = Annotated[float, typer.Option("--case-seconds", min=0.1, help="Time limit of one case.")]
Restarts = Annotated[
    int, typer.Option("--restarts", min=0, help="How often a backend's process is restarted.")
]


def main() -> None:
    """Run the command; a request to terminate is an interruption like one from the keyboard."""
    # SIGINT too: a shell starts what runs in the background with SIGINT ignored, and Python keeps that
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.default_int_handler)
    app()


@app.command("run")
def run_command(
    backend: Backends = None,
    target: Target = TARGET,
    topic: Topics = None,
    identity: Ids = None,
    report: ReportFolder = None,
    expectations: Expectations = None,
    measure: Annotated[
        bool, typer.Option("--accuracy", help="After the cases, measure errors in ulps on each backend.")
    ] = False,
    largest: Largest = 100_000,
    strict: Strict = False,
    jobs: Jobs = _JOBS,
    case_seconds: CaseSeconds = Limits.case_seconds,
    restarts: Restarts = Limits.restarts,
) -> None:
    """Run the suite, by default on every backend that can run here.

    Exit code: 0 conformant, where expectation files are given with the deviations that they declare;
    1 a MUST does not hold, or a declared deviation did not happen; 2 no verdict, because a backend that was
    named did not run, planned cases were not run, nothing passed, the target did not start, or an
    expectation file is wrong.
    """
    requirements, suite = _suite()
    cases = _selected(suite, topic or (), identity or ())
    _require_rules(cases, requirements)
    plan = Plan(
        target,
        _rows(backend or ()),
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
        _write(found, verdict, report)
    if found.accuracy:
        output.print(rich_table(found.accuracy))
    output.print(summary(found, verdict))
    raise typer.Exit(verdict.exit_code)


@app.command("list")
def list_command(
    topic: Topics = None,
    show_cases: Annotated[bool, typer.Option("--cases", help="The ids of the cases, one a line.")] = False,
    show_coverage: Annotated[
        bool, typer.Option("--coverage", help="How far requirements and cases cover each other, in percent.")
    ] = False,
) -> None:
    """Show the requirements and their cases; exit code 1 where one lacks the other, or a case never runs."""
    if show_cases and show_coverage:
        raise _stop("--cases and --coverage exclude each other; pass one of them")
    requirements, cases = _suite(exit_code=1)
    found = coverage(requirements, cases, shipped_declarations(), shipped_capabilities())
    shown = _selected(cases, topic or (), ())
    if show_cases:
        for identity in shown:
            output.print(identity, markup=False, soft_wrap=True)
    elif show_coverage:
        kept = tuple(one for one in found.topics if not topic or one.topic in topic)
        output.print(coverage_table(replace(found, topics=kept)))
    else:
        rules = [rule for rule in requirements.values() if not topic or rule.topic in topic]
        output.print(requirements_table(rules, Counter(case.requirement for case in shown.values())))
    output.print(f"{len(requirements)} requirements, {len(cases)} cases")
    for line in _missing(found):
        errors.print(line, style="red", markup=False, soft_wrap=True)
    raise typer.Exit(0 if found.complete else 1)


def _missing(found: Coverage) -> Iterator[str]:
    for identity, why in found.requirements_without_case.items():
        # "has no case" is what a reader looks for, and which cases are dead is said below
        yield f"{identity} has no case" if why == "it has no case" else f"{identity} has no live case: {why}"
    for identity in found.cases_without_requirement:
        yield f"{identity} shows no requirement that is written down"
    for identity, why in found.dead_cases.items():
        yield f"{identity} can never run: {why}"


@app.command("backends")
def backends_command() -> None:
    """Show every backend, whether it can run here, and why not."""
    with ThreadPoolExecutor(max_workers=_JOBS) as pool:
        facts = list(pool.map(look_at_backend, steps_backends.names()))
    output.print(backends_table(facts))


@app.command("vectors")
def vectors_command(
    check: Annotated[
        bool, typer.Option("--check", help="Make them again and compare byte for byte.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Replace the files with what is made.")] = False,
) -> None:
    """Show the files of vectors; with --check exit code 1 where one is not what the oracle makes today."""
    if check and write:
        raise _stop("--check and --write exclude each other; pass one of them")
    if write:
        output.print(f"written: {', '.join(write_files()) or 'nothing, all files are as made'}")
        return
    for topic, listed in load_vectors().items():
        output.print(f"{topic}.json: {len(listed)} vectors", highlight=False)
    if not check:
        return
    differing = differing_files()
    for name in differing:
        errors.print(f"{name} is not what is made today; run `vectors --write`", style="red", markup=False)
    if not differing:
        output.print("all files are what is made today, byte for byte")
    raise typer.Exit(1 if differing else 0)


@app.command("accuracy")
def accuracy_command(
    backend: Backends = None,
    target: Target = TARGET,
    largest: Largest = 100_000,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Folder of a report of the same target, into which the table goes."),
    ] = None,
) -> None:
    """Measure how far results lie from exact ones, in ulps, by requirement, dtype and size.

    In a folder without report.jsonl the table alone is added to report.md.
    """
    lines = report / "report.jsonl" if report is not None and (report / "report.jsonl").exists() else None
    # read before anything is measured, which takes its time
    into = _report_of(lines, target) if lines is not None else None
    taken, broken = _measured(_rows(backend or ()), target, largest, named=backend or ())
    output.print(rich_table(taken))
    if into is not None and lines is not None:
        again = {row.backend for row in taken} | {one.backend for one in broken}
        into.accuracy = [row for row in into.accuracy if row.backend not in again] + taken
        into.unmeasured = [one for one in into.unmeasured if one.backend not in again] + broken
        jsonl.write(into, lines)
        _write(into, judge(into), lines.parent)
    elif report is not None:
        report.mkdir(parents=True, exist_ok=True)
        with (report / "report.md").open("a", encoding="utf-8") as stream:
            stream.write(f"\n{markdown_table(taken)}")
        output.print(f"report: {report / 'report.md'}", markup=False, soft_wrap=True)
    raise typer.Exit(NO_VERDICT if broken else 0)


def _measured(
    rows: Sequence[str], target: str, largest: int, *, named: Sequence[str]
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
                taken.extend(take(name, target, largest))
        except MeasuringError as error:
            errors.print(f"{name}: {error}", style="red", markup=False, soft_wrap=True)
            broken.append(Unmeasured(name, str(error)))
    return taken, broken


def _report_of(file: Path, target: str) -> Report:
    """Return the report in a file, which must be of this target."""
    found = _read(file)
    try:
        with tempfile.TemporaryDirectory(prefix="steps-conformance-") as folder:
            facts = look_at_target(target, Path(folder) / "target", Limits())
    except TargetDidNotStartError as error:
        raise _stop(str(error)) from None
    if facts.hash != found.header.target.hash:
        raise _stop(
            f"{file} is of {found.header.target.name} with the hash {found.header.target.hash[:12]}, and "
            f"{target} has the hash {facts.hash[:12]}; run the suite again, with --accuracy"
        )
    return found


def _read(file: Path) -> Report:
    """Return the report in a file, which must be whole."""
    try:
        found = jsonl.read(file)
    except (OSError, MalformedReportError) as error:
        raise _stop(str(error)) from None
    if not found.complete:
        raise _stop(f"{file} has no footer: its run did not come to its end; run the suite again")
    return found


@expectations_app.command("update")
def expectations_update_command(
    file: Annotated[Path, typer.Argument(help="The expectation file; made where there is none.")],
    report: Annotated[Path, typer.Option("--report", help="The report.jsonl of a run.")],
) -> None:
    """Bring an expectation file up to date with a report; its comments are kept.

    Entries that pass now are removed or narrowed to the backends where they hold, and new failures are added
    with the reason "TODO: say why". `run` refuses a file with such a reason.
    """
    found = _read(report)
    _, suite = _suite()
    try:
        update = updated(file, found, suite)
    except ExpectationError as error:
        raise _stop(str(error)) from None
    part = file.with_name(f"{file.name}.part")
    part.write_text(update.text, encoding="utf-8", newline="")
    part.replace(file)
    for word, ids in (
        ("removed", update.removed),
        ("narrowed", update.narrowed),
        ("added, say why", update.added),
    ):
        for identity in ids:
            output.print(f"{word}: {identity}", markup=False, soft_wrap=True)
    if not (update.removed or update.narrowed or update.added):
        output.print("nothing to change")


def _suite(exit_code: int = NO_VERDICT) -> tuple[dict[str, Requirement], dict[str, Case]]:
    """Return requirements and cases; the command ends where an id is used twice or a form is broken."""
    try:
        return load_requirements(), load_cases()
    except (MalformedRequirementError, DoubleCaseError) as error:
        raise _stop(str(error), exit_code) from None


def _selected(cases: dict[str, Case], topics: Sequence[str], ids: Sequence[str]) -> dict[str, Case]:
    try:
        return selected(cases, topics=topics, ids=ids)
    except SelectionError as error:
        raise _stop(str(error)) from None


def _require_rules(cases: dict[str, Case], requirements: Iterable[str]) -> None:
    unknown = sorted({case.requirement for case in cases.values()} - set(requirements))
    if unknown:
        raise _stop(f"cases show requirements that are not written down: {', '.join(unknown)}")


def _rows(names: Sequence[str]) -> tuple[str, ...]:
    known = steps_backends.names()
    for name in names:
        if name not in known and name != "all" and ":" not in name:
            raise _stop(f"no backend is called {name!r}; there are {', '.join(known)}, and module:attribute")
    wanted = [*(known if not names or "all" in names else ()), *names]
    return tuple(name for name in dict.fromkeys(wanted) if name != "all")


def _run(plan: Plan, folder: Path | None) -> Report:
    bars = ProgressBars(output)
    observers: list[Observer] = [bars]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        observers.append(JsonLinesWriter(folder / "report.jsonl"))
    try:
        return run(plan, observers)
    except (TargetDidNotStartError, ExpectationError) as error:
        raise _stop(str(error)) from None
    except KeyboardInterrupt:
        errors.print("interrupted; report.jsonl has no footer" if folder else "interrupted")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bars.close()


def _write(report: Report, verdict: Verdict, folder: Path) -> None:
    (folder / "report.md").write_text(markdown.render(report, verdict), encoding="utf-8")
    (folder / "report.html").write_text(html.render(report, verdict), encoding="utf-8")
    output.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)


def _stop(message: str, exit_code: int = NO_VERDICT) -> typer.Exit:
    errors.print(message, style="red", markup=False, soft_wrap=True)
    return typer.Exit(exit_code)

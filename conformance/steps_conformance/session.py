"""A whole run: every row of a plan, several at a time, with observers told of each thing found."""

import platform
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from .accuracy.results import Row, Unmeasured
from .accuracy.taking import MeasuringError, take
from .allowances import allowances
from .case import Case
from .expectations.files import load_expectations
from .expectations.model import Expectation
from .expectations.resolving import resolved
from .reports.model import CaseResult, Header, Report, RequirementFacts, RowFacts, RowWarning, TargetFacts
from .requirements import Requirement
from .resuming import check_same_run, remaining
from .runner import RowRun, look_at_backend, look_at_target
from .targets.provenance import source_hash
from .teeth import load_teeth
from .worker import Order
from .worker_process import Limits

# Requirements, vectors and expectations decide what a case says, as its code does.
_SUITE_SOURCES = (".py", ".md", ".json", ".toml")


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        target: the target as the user names it.
        rows: names of the backends, in order.
        cases: the cases, by id, in order.
        requirements: the requirements, by id.
        named: the rows that the user asked for by name.
        topics: the topics that the user asked for by name.
        package: the package of the cases.
        suite: all cases that there are, by id; an expectation may speak of any of them.
        expectations: expectation files; those of the target come on top.
        strict: whether a SHOULD counts like a MUST.
        accuracy: largest size of inputs up to which errors are measured after the cases; None for not at all.
        limits: limits of time and restarts.
        jobs: how many rows run at a time.
        kept: what is finished of a run that broke off and is gone on with.
    """

    target: str
    rows: Sequence[str]
    cases: Mapping[str, Case]
    requirements: Mapping[str, Requirement]
    named: Sequence[str] = ()
    topics: Sequence[str] = ()
    package: str = "steps_conformance.cases"
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1
    suite: Mapping[str, Case] | None = None
    expectations: Sequence[Path] = ()
    strict: bool = False
    accuracy: int | None = None
    kept: Report | None = None


class Observer(Protocol):
    """Is told what a run finds; calls never overlap."""

    def started(self, header: Header) -> None:
        """The run starts."""
        ...

    def found_row(self, row: RowFacts) -> None:
        """It is known whether a row runs."""
        ...

    def found_result(self, result: CaseResult) -> None:
        """A case has an outcome."""
        ...

    def found_warning(self, warning: RowWarning) -> None:
        """The results of a row are doubtful."""
        ...

    def found_accuracy(self, row: Row) -> None:
        """An error was measured."""
        ...

    def found_unmeasured(self, unmeasured: Unmeasured) -> None:
        """Measuring broke off on a backend."""
        ...

    def finished(self, report: Report) -> None:
        """The run is over."""
        ...


class Recorder:
    """The observer that keeps the report, and tells the others one at a time."""

    def __init__(self, header: Header, observers: Sequence[Observer], kept: Report | None = None) -> None:
        self.report = Report(header)
        if kept is not None:
            self.report = Report(
                kept.header, dict(kept.rows), list(kept.results), row_warnings=list(kept.row_warnings)
            )
        self._observers = observers
        self._lock = threading.Lock()

    def start(self) -> None:
        """Tell the observers that the run starts."""
        for observer in self._observers:
            observer.started(self.report.header)

    def found_row(self, row: RowFacts) -> None:
        """Keep what was found about a row."""
        with self._lock:
            self.report.rows[row.name] = row
            for observer in self._observers:
                observer.found_row(row)

    def found_result(self, result: CaseResult) -> None:
        """Keep a result."""
        with self._lock:
            self.report.results.append(result)
            for observer in self._observers:
                observer.found_result(result)

    def found_warning(self, warning: RowWarning) -> None:
        """Keep what makes the results of a row doubtful."""
        with self._lock:
            if warning in self.report.row_warnings:
                return
            self.report.row_warnings.append(warning)
            for observer in self._observers:
                observer.found_warning(warning)

    def found_accuracy(self, row: Row) -> None:
        """Keep a measured error."""
        self.report.accuracy.append(row)
        for observer in self._observers:
            observer.found_accuracy(row)

    def found_unmeasured(self, unmeasured: Unmeasured) -> None:
        """Keep that measuring broke off on a backend."""
        self.report.unmeasured.append(unmeasured)
        for observer in self._observers:
            observer.found_unmeasured(unmeasured)

    def finish(self) -> None:
        """Put the results in the order of the plan, and tell the observers that the run is over."""
        self.report.sort()
        self.report.complete = True
        for observer in self._observers:
            observer.finished(self.report)


def run(plan: Plan, observers: Sequence[Observer] = ()) -> Report:
    """Carry out a plan and return the report.

    Raises:
        TargetDidNotStartError: the target could not be looked at.
        ExpectationError: an expectation file is wrong.
        ResumeError: it would not be the run that broke off.
    """
    with tempfile.TemporaryDirectory(prefix="steps-conformance-") as temporary:
        folder = Path(temporary)
        target = look_at_target(plan.target, folder / "target", plan.limits)
        header = header_of(plan, target)
        if plan.kept is not None:
            check_same_run(plan.kept, header, look_at_backend)
        recorder = Recorder(header, observers, plan.kept)
        recorder.start()
        stop = threading.Event()
        runs = [
            RowRun(
                Order(plan.target, row, plan.package, ids),
                folder / f"row{place}",
                plan.limits,
                found_row=recorder.found_row,
                found_result=recorder.found_result,
                found_warning=recorder.found_warning,
                stop=stop,
                target_hash=target.hash,
            )
            for place, row in enumerate(plan.rows)
            # nothing is left of a row that had come to its end
            if (ids := remaining(plan.kept, row, plan.cases)) or not plan.cases
        ]
        _run_all(runs, plan.jobs, stop)
        if plan.accuracy is not None:
            _measure(plan, plan.accuracy, recorder)
        recorder.finish()
    return recorder.report


def header_of(plan: Plan, target: TargetFacts) -> Header:
    """Return what is known before the rows run."""
    used = dict.fromkeys(case.requirement for case in plan.cases.values())
    rules = [plan.requirements[identity] for identity in used]
    return Header(
        suite=_suite_version(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        target=target,
        rows=tuple(plan.rows),
        named=tuple(plan.named),
        requirements={
            rule.id: RequirementFacts(rule.id, rule.level, rule.title, rule.topic) for rule in rules
        },
        planned={identity: case.requirement for identity, case in plan.cases.items()},
        topics=tuple(plan.topics),
        expectations=_expectations(plan, target),
        allowances=allowances(rules),
        strict=plan.strict,
        target_option=plan.target,
        suite_hash=source_hash(Path(__file__).parent, _SUITE_SOURCES),
        suite_cases=len(plan.cases if plan.suite is None else plan.suite),
        # the figures are of the cases of this package, and of no other
        teeth=load_teeth() if plan.package == Plan.package else None,
    )


def _expectations(plan: Plan, target: TargetFacts) -> tuple[Expectation, ...]:
    entries = load_expectations([*plan.expectations, *map(Path, target.expectations)])
    suite = plan.cases if plan.suite is None else plan.suite
    return resolved(entries, suite, plan.cases.keys(), plan.rows)


def _measure(plan: Plan, largest: int, recorder: Recorder) -> None:
    """Measure one backend after the other, so that they do not slow each other down."""
    requirements = {case.requirement for case in plan.cases.values()}
    for name in plan.rows:
        row = recorder.report.rows.get(name)
        if row is None or not row.runs:
            continue
        try:
            for measured in take(name, plan.target, largest, requirements):
                recorder.found_accuracy(measured)
        except MeasuringError as error:
            recorder.found_unmeasured(Unmeasured(name, str(error)))


def _run_all(runs: Sequence[RowRun], jobs: int, stop: threading.Event) -> None:
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(row.run) for row in runs]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise


def _suite_version() -> str:
    try:
        return version("steps-core")
    except PackageNotFoundError:
        return "a checkout that is not installed"

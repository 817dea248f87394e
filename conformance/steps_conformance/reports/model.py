"""What a conformance run found, and the verdict on it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..outcomes import FAILURES, Outcome


@dataclass(frozen=True)
class TargetFacts:
    """Which implementation was tested."""

    name: str
    version: str
    path: str
    hash: str
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequirementFacts:
    """What a report says about a requirement."""

    id: str
    level: str
    title: str
    topic: str


@dataclass(frozen=True)
class Header:
    """What was known when the run started.

    Attributes:
        suite: version of the suite.
        python: version of Python.
        platform: operating system and processor.
        started: date and time in UTC, ISO 8601.
        target: what was tested.
        rows: names of the backends, in order.
        named: those that the user asked for by name.
        requirements: every requirement of the planned cases, by id.
        planned: requirement id of every planned case, by case id, in order.
        topics: topics that the user asked for by name.
    """

    suite: str
    python: str
    platform: str
    started: str
    target: TargetFacts
    rows: tuple[str, ...]
    named: tuple[str, ...]
    requirements: dict[str, RequirementFacts]
    planned: dict[str, str]
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowFacts:
    """What was found about one backend.

    Attributes:
        name: the row's name.
        runs: whether its cases could be started.
        reason: why they could not.
        library: import name of the library.
        version: version of the library.
        device: declared device.
        dtypes: declared leaf dtypes.
        traits: declared traits.
        deviations: where declaration and reality disagree, and whether another copy was loaded.
    """

    name: str
    runs: bool
    reason: str | None = None
    library: str = ""
    version: str | None = None
    device: str = ""
    dtypes: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseResult:
    """What became of one case on one backend."""

    row: str
    id: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0


@dataclass
class Report:
    """Everything that a run found.

    Attributes:
        header: what was known at the start.
        rows: what was found about each backend, by name.
        results: one for each planned case on each backend that ran.
        complete: whether the run came to its end.
    """

    header: Header
    rows: dict[str, RowFacts] = field(default_factory=dict)
    results: list[CaseResult] = field(default_factory=list)
    complete: bool = False

    def requirement_of(self, result: CaseResult) -> RequirementFacts:
        """Return the requirement that a result is about."""
        return self.header.requirements[self.header.planned[result.id]]

    def counts(self, row: str) -> Counter[Outcome]:
        """Return how many results of a row have each outcome."""
        return Counter(result.outcome for result in self.results if result.row == row)

    def failures(self, level: str | None = None) -> Iterator[CaseResult]:
        """Yield the results that show that a requirement, of one level or any, does not hold."""
        for result in self.results:
            if result.outcome in FAILURES and level in (None, self.requirement_of(result).level):
                yield result

    def by_cell(self) -> dict[tuple[str, str], list[CaseResult]]:
        """Return the results by requirement id and row."""
        cells: dict[tuple[str, str], list[CaseResult]] = {}
        for result in self.results:
            cells.setdefault((self.header.planned[result.id], result.row), []).append(result)
        return cells


@dataclass(frozen=True)
class Verdict:
    """The judgement on a report.

    Attributes:
        exit_code: 0 conformant, 1 a MUST does not hold, 2 it could not be judged.
        headline: the judgement in one line.
        reasons: what it rests on, one sentence each.
    """

    exit_code: int
    headline: str
    reasons: tuple[str, ...] = ()


def judge(report: Report, *, strict: bool = False) -> Verdict:
    """Return the verdict; a requirement that does not hold outweighs what could not be judged.

    Args:
        report: a report that is complete.
        strict: count a SHOULD like a MUST.
    """
    failed = _failed_requirements(report, "MUST" if not strict else None)
    doubts = tuple(_doubts(report))
    if failed:
        return Verdict(1, f"not conformant: {_number(failed, 'requirement')} not met", doubts)
    if doubts:
        return Verdict(2, "no verdict: the run does not show what was asked", doubts)
    unsupported = _requirements_with(report, Outcome.UNSUPPORTED)
    shoulds = _failed_requirements(report, "SHOULD")
    notes = [f"SHOULD is not met: {', '.join(shoulds)}"] if shoulds else []
    if unsupported:
        declared = "conformant for the declared capabilities"
        return Verdict(0, f"{declared}, {_number(unsupported, 'MUST')} not supported in full", tuple(notes))
    return Verdict(0, "conformant", tuple(notes))


def _failed_requirements(report: Report, level: str | None) -> list[str]:
    return _unique(report.header.planned[result.id] for result in report.failures(level))


def _requirements_with(report: Report, outcome: Outcome) -> list[str]:
    """Return the ids of the MUST requirements that have a case with that outcome."""
    found = (result for result in report.results if result.outcome == outcome)
    return _unique(r.id for r in map(report.requirement_of, found) if r.level == "MUST")


def _doubts(report: Report) -> Iterator[str]:
    """Yield the reasons for which nobody could call this run conformant."""
    header = report.header
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


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _number(found: list[str], noun: str) -> str:
    return f"{len(found)} {noun}" + ("s" if len(found) != 1 and noun != "MUST" else "")

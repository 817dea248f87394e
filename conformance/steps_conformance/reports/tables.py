"""What the readable forms of a report share: rows, cells and failures, ready to be set."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..allowances import Allowance
from ..expectations.model import Expectation
from ..outcomes import COUNTED_AGAINST, Outcome
from .model import CaseResult, Report, RequirementFacts, RowFacts

NOT_RUN = RowFacts("", runs=False, reason="the run ended before its turn")


@dataclass(frozen=True)
class RowSummary:
    """One line of the table of backends."""

    facts: RowFacts
    name: str
    counts: Counter[Outcome]
    seconds: float

    @property
    def state(self) -> str:
        """``passed``, ``as declared`` (fails where declared), ``failed``, ``doubtful`` or ``not run``."""
        if not self.facts.runs:
            return "not run"
        if any(self.counts[outcome] for outcome in COUNTED_AGAINST):
            return "failed"
        if self.facts.deviations or self.counts[Outcome.NOTRUN] or not self.counts[Outcome.PASS]:
            return "doubtful"
        return "as declared" if self.counts[Outcome.XFAIL] else "passed"


@dataclass(frozen=True)
class Cell:
    """One requirement on one row.

    Attributes:
        state: ``passed``, ``failed``, ``unsupported``, ``partly`` (passed where supported), ``as declared``
            (fails where that is declared), or ``not run``.
        text: counts of its outcomes, such as ``3/4``.
        title: the same in words.
        outcomes: the outcomes that occur.
    """

    state: str
    text: str
    title: str
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class Failure:
    """One case that a person must look at, with the rows where it ended alike.

    Attributes:
        requirement: the requirement that it shows.
        id: of the case; or of the requirement, where all its cases pass and are declared to fail.
        outcome: how it ended.
        message: why.
        rows: where.
    """

    requirement: RequirementFacts
    id: str
    outcome: Outcome
    message: str
    rows: tuple[str, ...]


@dataclass(frozen=True)
class Deviation:
    """A requirement that is not met, as an expectation declares.

    Attributes:
        requirement: the requirement.
        expectation: what declares it.
        cases: the cases that failed.
        rows: the rows where they did.
    """

    requirement: RequirementFacts
    expectation: Expectation
    cases: tuple[str, ...]
    rows: tuple[str, ...]


def deviations(report: Report) -> list[Deviation]:
    """Return the declared deviations that were seen, those of one requirement together."""
    grouped: dict[Expectation, list[tuple[str, str]]] = {}
    for place, made in report.declared().items():
        if made.outcome is Outcome.XFAIL:
            grouped.setdefault(made.expectation, []).append(place)
    order = {identity: place for place, identity in enumerate(report.header.planned)}
    found = []
    for expectation, places in grouped.items():
        cases = sorted({identity for _, identity in places}, key=order.__getitem__)
        rule = report.header.requirements[report.header.planned[cases[0]]]
        found.append(Deviation(rule, expectation, tuple(cases), tuple(dict.fromkeys(r for r, _ in places))))
    rules = {identity: place for place, identity in enumerate(report.header.requirements)}
    return sorted(found, key=lambda one: (rules[one.requirement.id], order[one.cases[0]]))


def declared_allowances(report: Report) -> list[tuple[Allowance, list[str]]]:
    """Return what backends that ran are allowed by what they declare, with their names."""
    found = [
        (one, [name for name in rows_that_ran(report) if one.trait in report.rows[name].traits])
        for one in report.header.allowances
    ]
    return [(one, rows) for one, rows in found if rows]


def outcomes_seen(report: Report) -> list[Outcome]:
    """Return the outcomes that occur, PASS always among them."""
    seen = {result.outcome for result in report.judged()} | {Outcome.PASS}
    return [outcome for outcome in Outcome if outcome in seen]


def row_summaries(report: Report) -> list[RowSummary]:
    """Return the table of backends."""
    return [
        RowSummary(
            report.rows.get(name, NOT_RUN),
            name,
            report.counts(name),
            sum(result.seconds for result in report.results if result.row == name),
        )
        for name in report.header.rows
    ]


def matrix(report: Report) -> Iterator[tuple[str, list[tuple[RequirementFacts, list[Cell]]]]]:
    """Yield each topic with its requirements, each with one cell for each row that ran."""
    columns, results = rows_that_ran(report), report.by_cell()
    topics = dict.fromkeys(rule.topic for rule in report.header.requirements.values())
    for topic in topics:
        rules = [rule for rule in report.header.requirements.values() if rule.topic == topic]
        yield topic, [(rule, [_cell(results.get((rule.id, row), [])) for row in columns]) for rule in rules]


def rows_that_ran(report: Report) -> list[str]:
    """Return the names of the rows that ran, in order."""
    return [name for name in report.header.rows if name in report.rows and report.rows[name].runs]


def _cell(results: list[CaseResult]) -> Cell:
    outcomes = Counter(result.outcome for result in results)
    total, passed = outcomes.total(), outcomes[Outcome.PASS]
    words = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "no case"
    state, text = _state(outcomes, passed, total)
    return Cell(state, text, words, tuple(outcome for outcome in Outcome if outcomes[outcome]))


def _state(outcomes: Counter[Outcome], passed: int, total: int) -> tuple[str, str]:
    text = f"{passed}/{total}"
    if any(outcomes[outcome] for outcome in COUNTED_AGAINST):
        return "failed", text
    if outcomes[Outcome.XFAIL]:
        return "as declared", text
    if outcomes[Outcome.NOTRUN] or not total:
        return "not run", text
    if outcomes[Outcome.UNSUPPORTED]:
        return ("partly", text) if passed else ("unsupported", "\N{EN DASH}")
    return "passed", str(passed)


def failures(report: Report) -> list[Failure]:
    """Return failures and XPASSes in the order of the plan; rows with the same message stand together.

    Where a whole requirement passes that is declared to fail, that is one entry and not one for each case.
    """
    made = report.declared()
    grouped: dict[tuple[str, Outcome, str], list[CaseResult]] = {}
    for result in report.failures():
        identity = result.id
        if result.outcome is Outcome.XPASS:
            identity = made[result.row, result.id].expectation.id
        grouped.setdefault((identity, result.outcome, result.message), []).append(result)
    order = {identity: place for place, identity in enumerate(report.header.planned)}
    return [
        Failure(
            report.requirement_of(results[0]),
            identity,
            outcome,
            message,
            tuple(dict.fromkeys(result.row for result in results)),
        )
        for (identity, outcome, message), results in sorted(
            grouped.items(), key=lambda item: order[item[1][0].id]
        )
    ]


def slowest(report: Report, count: int = 10) -> list[CaseResult]:
    """Return the results that took longest, of those that took a second or more."""
    long = [result for result in report.results if result.seconds >= 1]
    return sorted(long, key=lambda result: -result.seconds)[:count]

"""What a conformance run found: the one model that every form of a report is made of."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..accuracy.results import Row, Unmeasured
from ..allowances import Allowance
from ..expectations.model import Declared, Expectation, declared
from ..outcomes import COUNTED_AGAINST, Outcome
from ..teeth import Teeth


@dataclass(frozen=True)
class TargetFacts:
    """Which implementation was tested.

    Attributes:
        name: what it calls itself.
        version: its version.
        path: the file or folder that was tested.
        hash: SHA-256 of the sources there.
        capabilities: what it claims.
        expectations: its own expectation files.
        warnings: what makes it doubtful that this implementation alone was tested.
    """

    name: str
    version: str
    path: str
    hash: str
    capabilities: tuple[str, ...] = ()
    expectations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


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
        expectations: the known deviations that speak of planned cases.
        allowances: what the traits that backends declare allow under the planned requirements.
        strict: whether a SHOULD counts like a MUST.
        target_option: the value of ``--target``; empty where it is not known.
        suite_hash: SHA-256 of the sources of the suite.
        suite_cases: how many cases the suite has, from which the planned ones were chosen; 0: not known.
        teeth: how many planted faults the suite catches; None where that is not known.
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
    expectations: tuple[Expectation, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    strict: bool = False
    target_option: str = ""
    suite_hash: str = ""
    suite_cases: int = 0
    teeth: Teeth | None = None

    def planned_in_words(self) -> str:
        """Return how many cases were planned, of how many there are."""
        of_all = f" of {self.suite_cases:,}" if self.is_of_a_selection else ""
        rules = len(self.requirements)
        return f"{len(self.planned):,}{of_all} cases, for {rules:,} requirement{'s' if rules != 1 else ''}"

    @property
    def is_of_a_selection(self) -> bool:
        """Whether the planned cases are fewer than there are."""
        return len(self.planned) < self.suite_cases


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
class RowWarning:
    """What came up while the cases of a backend ran: perhaps not the target alone was tested."""

    row: str
    text: str


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
        accuracy: the errors that were measured, backend by backend.
        unmeasured: the backends on which measuring broke off.
        row_warnings: what came up while cases ran, backend by backend.
        complete: whether the run came to its end.
    """

    header: Header
    rows: dict[str, RowFacts] = field(default_factory=dict)
    results: list[CaseResult] = field(default_factory=list)
    complete: bool = False
    accuracy: list[Row] = field(default_factory=list)
    unmeasured: list[Unmeasured] = field(default_factory=list)
    row_warnings: list[RowWarning] = field(default_factory=list)

    def warnings(self) -> list[str]:
        """Return what makes it doubtful that the target alone was tested."""
        return [*self.header.target.warnings, *(f"{one.row}: {one.text}" for one in self.row_warnings)]

    def requirement_of(self, result: CaseResult) -> RequirementFacts:
        """Return the requirement that a result is about."""
        return self.header.requirements[self.header.planned[result.id]]

    def declared(self) -> dict[tuple[str, str], Declared]:
        """Return what expectations make of the results, by row and case id."""
        if not self.header.expectations:
            return {}
        found: dict[str, dict[str, Outcome]] = {}
        for result in self.results:
            found.setdefault(result.row, {})[result.id] = result.outcome
        made = {
            name: declared(found[name], self._expectations_on(row))
            for name, row in self.rows.items()
            if name in found
        }
        places = [(result.row, result.id) for result in self.results]
        return {(row, identity): made[row][identity] for row, identity in places if identity in made[row]}

    def _expectations_on(self, row: RowFacts) -> list[Expectation]:
        return [
            one
            for one in self.header.expectations
            if one.when.holds_on(row=row.name, library=row.library, version=row.version, traits=row.traits)
        ]

    def sort(self) -> None:
        """Put the results in the order of the plan; rows that run side by side give them in any order."""
        rows = {name: place for place, name in enumerate(self.header.rows)}
        cases = {identity: place for place, identity in enumerate(self.header.planned)}
        self.results.sort(key=lambda result: (rows[result.row], cases[result.id]))

    def judged(self) -> list[CaseResult]:
        """Return the results with XFAIL and XPASS where expectations say so; the order is kept."""
        made = self.declared()
        if not made:
            return self.results
        return [_judged(result, made.get((result.row, result.id))) for result in self.results]

    def counts(self, row: str) -> Counter[Outcome]:
        """Return how many results of a row have each outcome."""
        return Counter(result.outcome for result in self.judged() if result.row == row)

    def failures(self) -> Iterator[CaseResult]:
        """Yield the results that show that a requirement does not hold, or that an expectation does not."""
        for result in self.judged():
            if result.outcome in COUNTED_AGAINST:
                yield result

    def by_cell(self) -> dict[tuple[str, str], list[CaseResult]]:
        """Return the results by requirement id and row."""
        cells: dict[tuple[str, str], list[CaseResult]] = {}
        for result in self.judged():
            cells.setdefault((self.header.planned[result.id], result.row), []).append(result)
        return cells


def _judged(result: CaseResult, made: Declared | None) -> CaseResult:
    if made is None:
        return result
    if made.outcome is Outcome.XFAIL:
        return replace(result, outcome=made.outcome)
    return replace(result, outcome=made.outcome, message=made.why())

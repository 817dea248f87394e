"""What changed from one report to another, by case id and backend; never by counts, which hide a swap."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ..outcomes import COUNTED_AGAINST, Outcome
from .model import CaseResult, Report


class CannotCompareError(ValueError):
    """Two reports have nothing in common; the text says so."""


class Kind(StrEnum):
    """What kind of change it is."""

    NEWLY_FAILING = "newly failing"
    NEWLY_PASSING = "newly passing"
    CHANGED = "changed outcome"
    NEW = "new id"
    GONE = "gone id"


@dataclass(frozen=True)
class Change:
    """One case on one backend that is not what it was.

    Attributes:
        kind: what kind of change it is.
        row: the backend.
        id: of the case.
        requirement: the id of its requirement.
        level: MUST or SHOULD.
        old: its outcome before; None where there was none.
        new: its outcome now; None where there is none.
        message: why it is so now.
        worse: whether it fails and did not before, or passed and was not seen to pass again.
    """

    kind: Kind
    row: str
    id: str
    requirement: str
    level: str
    old: Outcome | None
    new: Outcome | None
    message: str
    worse: bool


@dataclass(frozen=True)
class Diff:
    """All changes, and how much is the same.

    Attributes:
        changes: in the order of the newer plan; what is gone comes last.
        same: how many cases on backends have the outcome that they had.
    """

    changes: tuple[Change, ...]
    same: int

    @property
    def worse(self) -> bool:
        """Whether something is worse than it was."""
        return any(change.worse for change in self.changes)

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Return the changes of one kind."""
        return tuple(change for change in self.changes if change.kind is kind)


def diff(old: Report, new: Report) -> Diff:
    """Return what changed.

    A new case that fails is worse. A pass that is gone is worse too, unless the suite is another version that
    no longer plans the case: what was not looked at is not known to hold.

    Raises:
        CannotCompareError: no case on a backend has an outcome in both.
    """
    before = {(result.row, result.id): result for result in old.judged()}
    now = {(result.row, result.id): result for result in new.judged()}
    shared = before.keys() & now.keys()
    if not shared:
        raise CannotCompareError(
            f"no case has an outcome in both reports on a backend of the same name: the older one is of "
            f"{', '.join(_ran(old)) or 'no backend'}, the newer one of {', '.join(_ran(new)) or 'no backend'}"
        )
    same = sum(before[place].outcome is now[place].outcome for place in shared)
    return Diff((*_seen_now(new, before, now), *_gone(old, new, before, now)), same)


def _ran(report: Report) -> list[str]:
    return list(dict.fromkeys(result.row for result in report.results))


def _seen_now(
    new: Report, before: dict[tuple[str, str], CaseResult], now: dict[tuple[str, str], CaseResult]
) -> Iterator[Change]:
    for place, result in now.items():
        known = before.get(place)
        if known is None:
            failing = result.outcome in COUNTED_AGAINST
            yield _change(Kind.NEW, new, result, None, result.outcome, worse=failing)
        elif known.outcome is not result.outcome:
            kind, worse = _judged(known.outcome, result.outcome)
            yield _change(kind, new, result, known.outcome, result.outcome, worse=worse)


def _judged(old: Outcome, new: Outcome) -> tuple[Kind, bool]:
    if new in COUNTED_AGAINST and old not in COUNTED_AGAINST:
        return Kind.NEWLY_FAILING, True
    if new is Outcome.PASS:
        return Kind.NEWLY_PASSING, False
    return Kind.CHANGED, old is Outcome.PASS


def _gone(
    old: Report,
    new: Report,
    before: dict[tuple[str, str], CaseResult],
    now: dict[tuple[str, str], CaseResult],
) -> Iterator[Change]:
    for place, result in before.items():
        if place not in now:
            retired = old.header.suite != new.header.suite and result.id not in new.header.planned
            lost = result.outcome is Outcome.PASS and not retired
            yield _change(Kind.GONE, old, result, result.outcome, None, worse=lost)


def _change(
    kind: Kind, report: Report, result: CaseResult, old: Outcome | None, new: Outcome | None, *, worse: bool
) -> Change:
    rule = report.requirement_of(result)
    message = result.message if new is not None else ""
    return Change(kind, result.row, result.id, rule.id, rule.level, old, new, message, worse)

"""Several reports as one: of one target and one suite, over different backends or shares of the cases.

Nothing is guessed. Where two reports contradict each other, by what was tested, by what was planned, by what
is declared or by an outcome, there is no merged report, because its verdict would be true of neither.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..expectations.model import Expectation
from .model import CaseResult, Header, Report, RowFacts

_T = TypeVar("_T")


class MergeError(ValueError):
    """Reports that contradict each other; the text says which and by what."""


def merge(reports: Sequence[tuple[str, Report]]) -> Report:
    """Return one report with everything that the given ones found.

    A backend that runs in one report and could not run in another is one that runs. Cases that stand in
    several reports with the same outcome and message count once.

    Args:
        reports: each with the name by which an error calls it; all whole.

    Raises:
        MergeError: two of them contradict each other, or there is none.
    """
    if not reports:
        raise MergeError("there is no report to merge; name at least one")
    for name, report in reports[1:]:
        _check_same(reports[0], (name, report))
    for place, later in enumerate(reports):
        for earlier in reports[:place]:
            _check_expectations(earlier, later)
    merged = Report(
        _header([report.header for _, report in reports], _planned(reports)),
        _rows(reports),
        _results(reports),
        complete=True,
        accuracy=_once(reports, lambda r: r.accuracy, _place_of_accuracy, "the accuracy of"),
        unmeasured=list(dict.fromkeys(one for _, report in reports for one in report.unmeasured)),
        row_warnings=list(dict.fromkeys(one for _, report in reports for one in report.row_warnings)),
    )
    merged.sort()
    return merged


def _check_same(first: tuple[str, Report], other: tuple[str, Report]) -> None:
    """Refuse reports that are not of one suite and one target."""
    for what, value_of in (
        ("the version of the suite", lambda header: header.suite),
        ("the hash of the suite", lambda header: header.suite_hash),
        ("the target's name", lambda header: header.target.name),
        ("the target's version", lambda header: header.target.version),
        ("the target's hash", lambda header: header.target.hash),
        ("what the target claims", lambda header: sorted(header.target.capabilities)),
        ("--strict", lambda header: header.strict),
    ):
        _same(what, *((name, value_of(report.header)) for name, report in (first, other)))


def _same(what: str, first: tuple[str, Any], other: tuple[str, Any]) -> None:
    if first[1] != other[1]:
        raise MergeError(
            f"{what} must be the same in all reports, is {first[1]!r} in {first[0]} and {other[1]!r} in "
            f"{other[0]}; run the suite again on one copy, or compare them with `report diff`"
        )


def _check_expectations(first: tuple[str, Report], other: tuple[str, Report]) -> None:
    """Refuse where one report declares what another, which planned the same case, does not."""
    shared = first[1].header.planned.keys() & other[1].header.planned.keys()
    found = [_declarations(report.header, shared) for _, report in (first, other)]
    differing = sorted(found[0] ^ found[1], key=str)
    if differing:
        where, elsewhere = (first[0], other[0]) if differing[0] in found[0] else (other[0], first[0])
        raise MergeError(
            f"{differing[0][0]} is declared as {differing[0][1]} in {where} and not in {elsewhere}, where "
            f"{differing[0][-1]} is planned too; run both with the same --expectations"
        )


def _declarations(header: Header, shared: Iterable[str]) -> set[tuple[Any, ...]]:
    kept = set(shared)
    return {
        (*_key_of_expectation(one), identity)
        for one in header.expectations
        for identity in one.cases
        if identity in kept
    }


def _planned(reports: Sequence[tuple[str, Report]]) -> dict[str, str]:
    planned: dict[str, tuple[str, str]] = {}
    facts: dict[str, tuple[str, Any]] = {}
    for name, report in reports:
        for identity, rule in report.header.planned.items():
            _same(f"the requirement of {identity}", planned.setdefault(identity, (name, rule)), (name, rule))
        for identity, found in report.header.requirements.items():
            _same(f"the requirement {identity}", facts.setdefault(identity, (name, found)), (name, found))
    return {identity: rule for identity, (_, rule) in planned.items()}


def _header(headers: Sequence[Header], planned: dict[str, str]) -> Header:
    first = headers[0]
    target = replace(
        first.target,
        expectations=_union(header.target.expectations for header in headers),
        warnings=_union(header.target.warnings for header in headers),
    )
    return replace(
        first,
        python=", ".join(dict.fromkeys(header.python for header in headers)),
        platform=", ".join(dict.fromkeys(header.platform for header in headers)),
        started=min(header.started for header in headers),
        target=target,
        rows=_union(header.rows for header in headers),
        named=_union(header.named for header in headers),
        requirements={key: rule for header in headers for key, rule in header.requirements.items()},
        planned=planned,
        topics=_union(header.topics for header in headers),
        expectations=_expectations(headers, planned),
        allowances=_union(header.allowances for header in headers),
    )


def _union(groups: Iterable[Iterable[_T]]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(one for group in groups for one in group))


def _expectations(headers: Sequence[Header], planned: Iterable[str]) -> tuple[Expectation, ...]:
    grouped: dict[tuple[Any, ...], list[Expectation]] = {}
    for header in headers:
        for one in header.expectations:
            grouped.setdefault(_key_of_expectation(one), []).append(one)
    order = {identity: place for place, identity in enumerate(planned)}
    return tuple(
        replace(
            same[0],
            cases=tuple(sorted({case for one in same for case in one.cases}, key=order.__getitem__)),
            # that shares make up the whole is known to the suite, and not to their headers
            whole=any(one.whole for one in same),
        )
        for same in grouped.values()
    )


def _key_of_expectation(one: Expectation) -> tuple[Any, ...]:
    # the file lies elsewhere on each machine
    return one.id, one.outcome, one.reason, one.report, one.when


def _rows(reports: Sequence[tuple[str, Report]]) -> dict[str, RowFacts]:
    found: dict[str, tuple[str, RowFacts]] = {}
    for name, report in reports:
        for key, row in report.rows.items():
            known = found.get(key)
            if known is None or (row.runs and not known[1].runs):
                found[key] = (name, row)
            elif row.runs:
                _same(f"what is known about the backend {key}", known, (name, row))
    return {key: row for key, (_, row) in found.items()}


def _results(reports: Sequence[tuple[str, Report]]) -> list[CaseResult]:
    def without_time(result: CaseResult) -> CaseResult:
        return replace(result, seconds=0.0)

    return _once(reports, lambda r: r.results, lambda one: (one.id, one.row), "the outcome of", without_time)


def _place_of_accuracy(one: Any) -> tuple[Any, ...]:
    return one.name, one.dtype, one.size, one.requirement, one.backend


def _once(
    reports: Sequence[tuple[str, Report]],
    parts_of: Callable[[Report], Iterable[_T]],
    place_of: Callable[[_T], tuple[Any, ...]],
    what: str,
    compared: Callable[[_T], _T] = lambda one: one,
) -> list[_T]:
    """Return the parts of all reports, one for each place; two that differ in one place are refused."""
    found: dict[tuple[Any, ...], tuple[str, _T]] = {}
    for name, report in reports:
        for part in parts_of(report):
            place = place_of(part)
            known = found.setdefault(place, (name, part))
            told = f"{what} {' '.join(map(str, place[:-1]))} on {place[-1]}"
            _same(told, (known[0], compared(known[1])), (name, compared(part)))
    return [part for _, part in found.values()]

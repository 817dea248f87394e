"""What runs on other libraries found, small enough to be kept: docs/peers.json."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...expectations.model import Declared
from ...outcomes import Outcome
from ...reports.jsonl import read
from ...reports.model import CaseResult, Report

PEERS = ("optax", "torch", "keras", "mlx")
"""The libraries, in the order of the page."""

KINDS = {
    "range": "a finite input comes out as 0, NaN, infinite or unclipped, or raises",
    "rule": "another formula, or another meaning of an option",
    "precision": "right but for roundings: computed in the leaf's own dtype, or constants rounded to float32",
    "refusal": "a value that makes no sense is taken without a word",
    "convention": "NaN, infinities, epsilon 0 and the like, where the library promises nothing",
}
"""The kinds of deviation, the gravest first; a reason starts with one of them."""


@dataclass(frozen=True)
class Counts:
    """How many cases of one requirement ended in which way.

    Attributes:
        holds: they passed.
        deviates: they failed, as declared.
        undeclared: they failed, and no expectation file says so, or they passed although one says otherwise.
        not_expressible: the library has no such step, option, dtype or form, and says so.
    """

    holds: int = 0
    deviates: int = 0
    undeclared: int = 0
    not_expressible: int = 0


@dataclass(frozen=True)
class Deviation:
    """One entry of an expectation file, and how many cases it was seen in.

    Attributes:
        id: requirement or case.
        outcome: FAIL, ERROR, CRASH or TIMEOUT.
        when: the condition in words, empty where there is none.
        kind: one of KINDS.
        reason: why.
        report: address of the public report, empty where there is none.
        cases: how many cases it explains.
    """

    id: str
    outcome: str
    when: str
    kind: str
    reason: str
    report: str
    cases: int


@dataclass(frozen=True)
class PeerSummary:
    """One library on one backend.

    Attributes:
        name: of the library.
        version: of the library.
        row: the backend that the arrays came from.
        row_version: version of the backend's library.
        date: of the run.
        python: version of Python.
        hash: SHA-256 of the sources that were tested.
        requirements: counts by requirement id.
        deviations: what its expectation file declares, and was seen.
    """

    name: str
    version: str
    row: str
    row_version: str
    date: str
    python: str
    hash: str
    requirements: Mapping[str, Counts]
    deviations: tuple[Deviation, ...]


def summary_of(report: Report) -> PeerSummary:
    """Return the summary of a run on one backend.

    Raises:
        ValueError: the run is not whole, or has no single backend, or a reason starts with no kind.
    """
    (row,) = report.rows.values()
    if not report.complete or not row.runs:
        raise ValueError(f"the run on {row.name} did not come to its end: {row.reason or 'no footer'}")
    judged: dict[str, list[CaseResult]] = {}
    for result in report.judged():
        judged.setdefault(report.header.planned[result.id], []).append(result)
    target = report.header.target
    return PeerSummary(
        name=target.name,
        version=target.version,
        row=row.name,
        row_version=row.version or "",
        date=report.header.started[:10],
        python=report.header.python,
        hash=target.hash,
        requirements={identity: _counts(results) for identity, results in judged.items()},
        deviations=tuple(_deviations(report.declared().values())),
    )


def _counts(results: Iterable[CaseResult]) -> Counts:
    found = Counter(result.outcome for result in results)
    known = {
        "holds": found.pop(Outcome.PASS, 0),
        "deviates": found.pop(Outcome.XFAIL, 0),
        "not_expressible": found.pop(Outcome.UNSUPPORTED, 0),
    }
    return Counts(undeclared=found.total(), **known)


def _deviations(declared: Iterable[Declared]) -> Iterable[Deviation]:
    seen = Counter(one.expectation for one in declared if one.outcome is Outcome.XFAIL)
    for one, cases in seen.items():
        kind, reason = kind_and_reason(one.reason)
        yield Deviation(one.id, str(one.outcome), str(one.when), kind, reason, one.report, cases)


def kind_and_reason(text: str) -> tuple[str, str]:
    """Return the kind that a reason starts with, and the rest.

    Raises:
        ValueError: it starts with none.
    """
    kind, colon, reason = text.partition(": ")
    if not colon or kind not in KINDS:
        raise ValueError(f"a reason must start with one of {', '.join(KINDS)} and a colon, got {text!r}")
    return kind, reason


def collect(folder: Path) -> list[PeerSummary]:
    """Return the summaries of ``LIBRARY/report.jsonl`` in a folder, for every library that has one."""
    files = [folder / name / "report.jsonl" for name in PEERS]
    return [summary_of(read(file)) for file in files if file.exists()]


def to_json(summaries: Iterable[PeerSummary]) -> str:
    """Return summaries as JSON, one requirement a line, so that a change reads well."""
    parts = []
    for one in summaries:
        fields = {**asdict(one)}
        counts: dict[str, Counts] = dict(one.requirements)
        fields["requirements"] = {
            identity: [c.holds, c.deviates, c.undeclared, c.not_expressible] for identity, c in counts.items()
        }
        parts.append(fields)
    return _lines(parts) + "\n"


def _lines(value: Any, depth: int = 0) -> str:
    """Return JSON whose innermost objects and lists stand on one line each."""
    pad = " " * (depth + 1)
    if isinstance(value, dict) and any(isinstance(part, (dict, list, tuple)) for part in value.values()):
        rows = [f"{pad}{json.dumps(key)}: {_lines(part, depth + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{' ' * depth}}}"
    if isinstance(value, (list, tuple)) and any(isinstance(part, dict) for part in value):
        rows = [pad + _lines(part, depth + 1) for part in value]
        return "[\n" + ",\n".join(rows) + f"\n{' ' * depth}]"
    return json.dumps(value)


def from_json(text: str) -> list[PeerSummary]:
    """Return the summaries that ``to_json`` wrote."""
    return [
        PeerSummary(
            **{
                **fields,
                "requirements": {key: Counts(*counts) for key, counts in fields["requirements"].items()},
                "deviations": tuple(Deviation(**one) for one in fields["deviations"]),
            }
        )
        for fields in json.loads(text)
    ]

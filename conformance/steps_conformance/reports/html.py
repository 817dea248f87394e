"""The report as one HTML file that needs no network.

The page forbids itself to load anything, and runs no script but its own: so even a mistake in escaping gives
what a target says no power.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, StrictUndefined, Template

from ..accuracy import table
from ..outcomes import COUNTED_AGAINST, MEANINGS
from .model import Report
from .replaying import command, vector_text
from .showing import shown
from .tables import (
    Deviation,
    Failure,
    declared_allowances,
    deviations,
    failures,
    matrix,
    outcomes_seen,
    row_summaries,
    rows_that_ran,
    slowest,
)
from .verdict import Verdict

LARGEST = 5_000_000
"""No page is longer, in bytes: a browser opens it at once, and it goes by mail."""

_LONGEST_TEXT = 8000
_MOST_FAILURES, _LARGEST_FAILURES = 1000, 2_000_000
_MOST_DEVIATIONS = 300
_REASONS_IN_SIGHT = 8
CASES_OF_A_DEVIATION = 50


@dataclass(frozen=True)
class Shown:
    """A failure with the means to see it again.

    Attributes:
        failure: the failure.
        command: runs it alone.
        vector: its input and what is expected, where it is a vector that did not stand before.
        columns: the places of its backends among the columns.
    """

    failure: Failure
    command: str
    vector: str | None
    columns: tuple[int, ...]


def render(report: Report, verdict: Verdict) -> str:
    """Return the report as HTML, at most ``LARGEST`` bytes long; what a target or backend said is escaped."""
    said = shown(report, _LONGEST_TEXT)
    style, script = _part("report.css"), _part("report.js")
    found, declared = failures(said), deviations(said)
    kept = list(_shown_failures(said, found))
    return _template().render(
        report=said,
        header=said.header,
        verdict=shown(verdict, _LONGEST_TEXT),
        reasons_in_sight=_REASONS_IN_SIGHT,
        outcomes=outcomes_seen(said),
        meanings=MEANINGS,
        bad=COUNTED_AGAINST,
        rows=row_summaries(said),
        columns=rows_that_ran(said),
        topics=list(matrix(said)),
        failures=[(r, list(few)) for r, few in groupby(kept, lambda one: one.failure.requirement)],
        failures_shown=len(kept),
        failures_all=len(found),
        slowest=slowest(said),
        deviations=declared[:_MOST_DEVIATIONS],
        deviations_left=len(declared[_MOST_DEVIATIONS:]),
        anchors=_anchors(kept, declared[:_MOST_DEVIATIONS]),
        cases_of_a_deviation=CASES_OF_A_DEVIATION,
        allowances=declared_allowances(said),
        accuracy_columns=table.columns(said.accuracy),
        accuracy_groups=table.groups(said.accuracy),
        style=style,
        script=script,
        policy=_policy(style, script),
    )


def _template() -> Template:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(_part("report.html.j2"))


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the content security policy: nothing is loaded, and only these two texts count."""
    parts = {"style-src": style, "script-src": script}
    hashes = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in parts.items()
    }
    allowed = "; ".join(f"{name} 'sha256-{value}'" for name, value in hashes.items())
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; {allowed}"


def _shown_failures(report: Report, found: list[Failure]) -> Iterator[Shown]:
    """Yield the first failures, as many as a page has room for."""
    places = {name: place for place, name in enumerate(rows_that_ran(report))}
    room, vectors = _LARGEST_FAILURES, set[str]()
    for failure in found[:_MOST_FAILURES]:
        vector = None if failure.id in vectors else vector_text(failure)
        vectors.add(failure.id)
        one = Shown(
            failure, command(report.header, failure), vector, tuple(places[row] for row in failure.rows)
        )
        room -= len(one.command) + len(failure.message) + len(vector or "") + 500
        if room < 0:
            return
        yield one


def _anchors(kept: list[Shown], declared: list[Deviation]) -> frozenset[str]:
    """Return the anchors there are, so that no cell leads to one that was left out."""
    failed = {f"failed-{one.failure.requirement.id}" for one in kept}
    return frozenset(failed | {f"declared-{one.requirement.id}" for one in declared})

"""Reports made for tests: a table of outcomes becomes a report."""

from collections.abc import Mapping, Sequence
from typing import Any

from steps_conformance.outcomes import Outcome
from steps_conformance.reports.model import (
    CaseResult,
    Header,
    Report,
    RequirementFacts,
    RowFacts,
    TargetFacts,
)

TARGET = TargetFacts("clipper", "1.0", "/checkout/clipper", "ab" * 32, ("negates",))


def made_report(
    outcomes: Mapping[str, Sequence[str | None]],
    rows: Sequence[str] = ("numpy",),
    *,
    message: str = "3 expected, got 4",
    not_run: Mapping[str, str] | None = None,
    seconds: float = 0.25,
    complete: bool = True,
    **header: Any,
) -> Report:
    """Return a report.

    Args:
        outcomes: by case id the outcome on each row; None for none. A requirement whose id has SHOULD in
            it is one, and the first part of an id is the topic.
        rows: the backends that ran.
        message: why, of everything but a PASS.
        not_run: backends that did not run, with the reason.
        seconds: the time of each case.
        complete: whether there is a footer.
        header: other fields of the header than the usual ones.
    """
    absent = not_run or {}
    rules = dict.fromkeys(identity.partition("/")[0] for identity in outcomes)
    fields = {
        "suite": "1.2",
        "python": "3.11",
        "platform": "Linux x86_64",
        "started": "2026-01-02T03:04:05+00:00",
        "target": TARGET,
        "rows": (*rows, *absent),
        "named": (),
        "requirements": {rule: _rule(rule) for rule in rules},
        "planned": {identity: identity.partition("/")[0] for identity in outcomes},
        "target_option": "clipper.target:target",
    }
    found = {name: RowFacts(name, True, None, name, "2.4", "cpu", ("float32",)) for name in rows}
    found |= {name: RowFacts(name, False, reason, name) for name, reason in absent.items()}
    results = [
        CaseResult(row, identity, Outcome(outcome), "" if outcome == "PASS" else message, seconds)
        for place, row in enumerate(rows)
        for identity, outcome in ((identity, listed[place]) for identity, listed in outcomes.items())
        if outcome is not None
    ]
    return Report(Header(**(fields | header)), found, results, complete=complete)


def _rule(identity: str) -> RequirementFacts:
    level = "SHOULD" if "SHOULD" in identity else "MUST"
    return RequirementFacts(identity, level, f"what {identity} says", identity.partition("-")[0].lower())

"""The verdict as a badge: JSON in the endpoint form of shields.io."""

import json
from typing import Any

from ..outcomes import FAILURES, Outcome
from .model import Report
from .verdict import Verdict, requirements_with

_COLORS = {
    "passed": "brightgreen",
    "declared": "yellowgreen",
    "selection": "blue",
    "failed": "red",
    "none": "lightgrey",
}


def badge(report: Report, verdict: Verdict) -> dict[str, Any]:
    """Return label, message and color.

    A message counts cases on backends, what is not supported among them; or requirements that are not met.
    """
    message, color = _message(report, verdict)
    return {"schemaVersion": 1, "label": "conformance", "message": message, "color": color}


def render(report: Report, verdict: Verdict) -> str:
    """Return the badge as JSON."""
    return json.dumps(badge(report, verdict)) + "\n"


def _message(report: Report, verdict: Verdict) -> tuple[str, str]:
    results = report.judged()
    if verdict.exit_code == 2:
        return "no verdict", _COLORS["none"]
    if verdict.exit_code == 1:
        return _what_is_wrong(report), _COLORS["failed"]
    levels = ("MUST", "SHOULD") if report.header.strict else ("MUST",)
    deviating = requirements_with(report, {Outcome.XFAIL}, levels)
    if deviating:
        plural = "s" if len(deviating) > 1 else ""
        return f"conformant, {len(deviating)} deviation{plural}", _COLORS["declared"]
    passed = sum(result.outcome is Outcome.PASS for result in results)
    if report.header.is_of_a_selection:
        return f"conformant in a selection {passed:,}/{len(results):,}", _COLORS["selection"]
    color = _COLORS["passed"] if passed == len(results) else "green"
    return f"conformant {passed:,}/{len(results):,}", color


def _what_is_wrong(report: Report) -> str:
    levels = ("MUST", "SHOULD") if report.header.strict else ("MUST",)
    failed = {level: len(requirements_with(report, FAILURES, (level,))) for level in levels}
    parts = [f"{count} {level}" for level, count in failed.items() if count]
    if parts:
        return f"not conformant: {', '.join(parts)}"
    return f"not as declared: {len(requirements_with(report, {Outcome.XPASS}))} XPASS"

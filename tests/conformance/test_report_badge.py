"""The badge: one line that does not say more than the verdict."""

import json

import pytest
from made_reports import made_report
from steps_conformance.expectations.model import Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports import badge
from steps_conformance.reports.verdict import judge


def declared(*identities):
    return tuple(
        Expectation(one, Outcome.FAIL, "it rounds", file="e.toml", cases=(one,)) for one in identities
    )


def many(outcome, count, name="MUST"):
    return {f"A-{name}-{number:03}/x": [outcome] for number in range(1, count + 1)}


PASSED = {"B-MUST-001/x": ["PASS"]}


@pytest.mark.parametrize(
    ("report", "message", "color"),
    [
        (
            made_report({f"A-MUST-001/{n}": ["PASS"] * 3 for n in range(1152)}, ("a", "b", "c")),
            "conformant 3,456/3,456",
            "brightgreen",
        ),
        (
            made_report(PASSED | {"A-MUST-001/x": ["UNSUPPORTED"]}),
            "conformant 1/2",
            "green",
        ),
        (made_report(PASSED | {"A-SHOULD-001/x": ["FAIL"]}), "conformant 1/2", "green"),
        (
            made_report(PASSED | many("FAIL", 2), expectations=declared("A-MUST-001/x", "A-MUST-002/x")),
            "conformant, 2 deviations",
            "yellowgreen",
        ),
        (
            made_report(PASSED | many("FAIL", 1), expectations=declared("A-MUST-001/x")),
            "conformant, 1 deviation",
            "yellowgreen",
        ),
        (made_report(PASSED | many("CRASH", 3)), "not conformant: 3 MUST", "red"),
        (
            made_report(PASSED | many("FAIL", 3) | many("FAIL", 1, "SHOULD")),
            "not conformant: 3 MUST",
            "red",
        ),
        (
            made_report(PASSED | many("FAIL", 3) | many("FAIL", 1, "SHOULD"), strict=True),
            "not conformant: 3 MUST, 1 SHOULD",
            "red",
        ),
        (made_report(PASSED, expectations=declared("B-MUST-001/x")), "not as declared: 1 XPASS", "red"),
        (made_report(PASSED, complete=False), "no verdict", "lightgrey"),
        (made_report({"A-MUST-001/x": ["NOTRUN"]}), "no verdict", "lightgrey"),
    ],
)
def test_the_badge_says_the_verdict(report, message, color):
    found = json.loads(badge.render(report, judge(report)))

    # exactly the fields of the endpoint form
    assert found == {"schemaVersion": 1, "label": "conformance", "message": message, "color": color}

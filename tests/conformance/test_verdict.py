"""The verdict on a report: what makes it conformant, not conformant, or no verdict at all."""

import pytest
from steps_conformance.outcomes import FAILURES, Outcome
from steps_conformance.reports.model import (
    CaseResult,
    Header,
    Report,
    RequirementFacts,
    RowFacts,
    TargetFacts,
)
from steps_conformance.reports.verdict import judge

RULES = {
    "A-MUST-001": RequirementFacts("A-MUST-001", "MUST", "a", "topic_a"),
    "A-SHOULD-001": RequirementFacts("A-SHOULD-001", "SHOULD", "b", "topic_a"),
    "B-MUST-001": RequirementFacts("B-MUST-001", "MUST", "c", "topic_b"),
}


def report(a="PASS", should="PASS", b="PASS", **changes):
    """Return a report of one row with one case for each requirement; None leaves a case without outcome."""
    outcomes = {"A-MUST-001/x": a, "A-SHOULD-001/x": should, "B-MUST-001/x": b}
    header = Header(
        suite="1",
        python="3",
        platform="p",
        started="s",
        target=TargetFacts("t", "1", "path", "0"),
        rows=changes.get("rows", ("numpy",)),
        named=changes.get("named", ()),
        requirements=RULES,
        planned={identity: identity.split("/")[0] for identity in outcomes},
        topics=changes.get("topics", ()),
    )
    results = [CaseResult("numpy", key, Outcome(value)) for key, value in outcomes.items() if value]
    rows = {"numpy": RowFacts("numpy", runs=True, deviations=changes.get("deviations", ()))}
    return Report(header, {**rows, **changes.get("other_rows", {})}, results, changes.get("complete", True))


def test_all_passed_is_conformant():
    assert (judge(report()).exit_code, judge(report()).headline) == (0, "conformant")


@pytest.mark.parametrize("outcome", sorted(FAILURES))
def test_a_must_that_does_not_hold_is_not_conformant(outcome):
    verdict = judge(report(a=outcome))

    assert (verdict.exit_code, verdict.headline) == (1, "not conformant: 1 requirement not met")


@pytest.mark.parametrize("outcome", sorted(FAILURES))
def test_a_should_is_shown_and_counts_only_where_that_is_asked(outcome):
    verdict = judge(report(should=outcome))

    assert verdict.exit_code == 0
    assert verdict.reasons == ("SHOULD is not met: A-SHOULD-001",)
    assert judge(report(should=outcome), strict=True).exit_code == 1


def test_unsupported_stands_in_the_headline():
    verdict = judge(report(a="UNSUPPORTED"))

    assert verdict.exit_code == 0
    assert verdict.headline == "conformant for the declared capabilities, 1 MUST not supported in full"


def test_an_unsupported_should_does_not():
    assert judge(report(should="UNSUPPORTED")).headline == "conformant"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"a": None}, "numpy: 1 of 3 planned cases did not run"),
        ({"a": "NOTRUN", "b": "NOTRUN"}, "numpy: 2 of 3 planned cases did not run"),
        ({"a": "UNSUPPORTED", "b": "UNSUPPORTED"}, "no MUST passed anywhere"),
        ({"b": "UNSUPPORTED", "topics": ("topic_b",)}, "no MUST of the topic topic_b passed"),
        ({"complete": False}, "the run did not come to its end"),
        ({"deviations": ("float16 lies",)}, "numpy is not what it says: float16 lies"),
        (
            {
                "rows": ("numpy", "cupy"),
                "named": ("cupy",),
                "other_rows": {"cupy": RowFacts("cupy", runs=False, reason="no CUDA device")},
            },
            "cupy was asked for and did not run: no CUDA device",
        ),
        (
            {"rows": ("numpy", "cupy"), "named": ("cupy",)},
            "cupy was asked for and did not run: it was never started",
        ),
    ],
)
def test_what_cannot_be_judged_is_no_verdict(changes, reason):
    verdict = judge(report(**changes))

    assert verdict.exit_code == 2
    assert verdict.headline == "no verdict: the run does not show what was asked"
    assert reason in verdict.reasons


def test_a_row_that_nobody_asked_for_by_name_may_be_missing():
    missing = {"cupy": RowFacts("cupy", runs=False, reason="no CUDA device")}

    assert judge(report(rows=("numpy", "cupy"), other_rows=missing)).exit_code == 0


def test_a_requirement_that_does_not_hold_outweighs_a_doubt():
    verdict = judge(report(a="FAIL", b="NOTRUN"))

    assert verdict.exit_code == 1
    assert "numpy: 1 of 3 planned cases did not run" in verdict.reasons


def test_nothing_at_all_is_no_verdict():
    assert judge(report(a=None, should=None, b=None)).exit_code == 2

"""The verdict on a report: what makes it conformant, not conformant, or no verdict at all."""

from dataclasses import replace

import pytest
from made_reports import made_report
from steps_conformance.accuracy.results import Unmeasured
from steps_conformance.expectations.model import Condition, Expectation
from steps_conformance.outcomes import FAILURES, Outcome
from steps_conformance.reports import html, markdown
from steps_conformance.reports.badge import badge
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


def declared(found, *identities, **changes):
    """Return the report with a declared FAIL of each of these cases."""
    expectations = tuple(
        Expectation(
            identity,
            Outcome.FAIL,
            "it rounds",
            "https://example.org/1",
            Condition(**changes),
            cases=(identity,),
        )
        for identity in identities
    )
    return replace(found, header=replace(found.header, expectations=expectations))


def test_a_declared_deviation_of_a_must_stands_in_the_headline():
    verdict = judge(declared(report(a="FAIL"), "A-MUST-001/x"))

    assert (verdict.exit_code, verdict.headline) == (
        0,
        "conformant except for 1 declared deviation: A-MUST-001",
    )
    assert verdict.reasons == (
        "A-MUST-001 is not met on numpy, as declared: it rounds (see https://example.org/1)",
    )


def test_of_many_deviations_the_headline_names_the_first_and_the_reasons_all():
    names = [f"A-MUST-{number:03}" for number in range(1, 10)]
    verdict = judge(many_deviations(names))

    assert verdict.headline == (
        "conformant except for 9 declared deviations: A-MUST-001, A-MUST-002, A-MUST-003, A-MUST-004, "
        "A-MUST-005, A-MUST-006 and 3 more"
    )
    assert [reason.partition(" ")[0] for reason in verdict.reasons] == names


def test_a_page_of_many_deviations_is_not_green_and_folds_its_reasons():
    names = [f"A-MUST-{number:03}" for number in range(1, 10)]
    several, one = many_deviations(names), many_deviations(names[:1])

    page, short = html.render(several, judge(several)), html.render(one, judge(one))

    assert '<div class="verdict exit-0 deviating">' in page
    assert "<details><summary>9 reasons</summary>" in page
    assert '<div class="verdict exit-0 deviating">' in short
    assert "reasons</summary>" not in short


def many_deviations(names):
    outcomes = {**{f"{name}/x": ["FAIL"] for name in names}, "A-MUST-099/x": ["PASS"]}
    return declared(made_report(outcomes), *(f"{name}/x" for name in names))


def test_a_selection_of_the_cases_is_named_as_one_in_every_form():
    whole, part = (made_report({"A-MUST-001/x": ["PASS"]}, suite_cases=number) for number in (1, 4354))

    assert judge(whole).headline == "conformant"
    assert judge(part).headline == "conformant in a selection of the cases"
    assert badge(whole, judge(whole))["message"] == "conformant 1/1"
    assert badge(part, judge(part)) == {
        "schemaVersion": 1,
        "label": "conformance",
        "message": "conformant in a selection 1/1",
        "color": "blue",
    }
    assert "1 of 4,354 cases, for 1 requirement" in html.render(part, judge(part))
    assert "planned: 1 of 4,354 cases, for 1 requirement" in markdown.render(part, judge(part))


def test_declared_deviations_and_what_is_not_supported_both_stand_in_the_headline():
    found = report(a="UNSUPPORTED", b="FAIL", rows=("numpy", "torch"))
    found.rows["torch"] = RowFacts("torch", runs=True)
    found.results += [CaseResult("torch", identity, Outcome.PASS) for identity in found.header.planned]

    assert judge(declared(found, "B-MUST-001/x", backends=("numpy",))).headline == (
        "conformant for the declared capabilities except for 1 declared deviation: B-MUST-001; "
        "1 MUST not supported in full"
    )


def test_a_declared_deviation_that_does_not_happen_is_not_as_declared():
    verdict = judge(declared(report(), "A-MUST-001/x", "A-SHOULD-001/x"))

    assert verdict.exit_code == 1
    assert verdict.headline == (
        "not as declared: 2 declared deviations did not happen: A-MUST-001, A-SHOULD-001"
    )


def test_a_failure_and_a_declared_deviation_that_does_not_happen_are_both_named():
    verdict = judge(declared(report(b="FAIL"), "A-MUST-001/x"))

    assert (verdict.exit_code, verdict.headline) == (
        1,
        "not conformant: 1 requirement not met; 1 declared deviation did not happen: A-MUST-001",
    )


@pytest.mark.parametrize("outcome", ["ERROR", "CRASH", "TIMEOUT"])
def test_a_failure_of_another_kind_than_declared_is_not_conformant(outcome):
    assert judge(declared(report(a=outcome), "A-MUST-001/x")).exit_code == 1


def test_a_declaration_for_another_backend_excuses_nothing():
    assert judge(declared(report(a="FAIL"), "A-MUST-001/x", backends=("jax",))).exit_code == 1


def test_a_declared_should_is_a_remark_and_with_strict_a_deviation():
    found = declared(report(should="FAIL"), "A-SHOULD-001/x")

    assert judge(found).headline == "conformant"
    assert judge(found).reasons == ("SHOULD is not met, as declared: A-SHOULD-001",)
    strict = judge(found, strict=True)
    assert (strict.exit_code, strict.headline) == (
        0,
        "conformant except for 1 declared deviation: A-SHOULD-001",
    )


def test_what_is_declared_is_no_pass():
    verdict = judge(declared(report(a="FAIL", b="FAIL"), "A-MUST-001/x", "B-MUST-001/x"))

    assert verdict.exit_code == 2
    assert "no MUST passed anywhere" in verdict.reasons


def test_a_report_says_itself_whether_it_is_strict():
    found = report(should="FAIL")
    strict = replace(found, header=replace(found.header, strict=True))

    assert (judge(strict).exit_code, judge(strict, strict=False).exit_code) == (1, 0)


def test_an_accuracy_that_was_asked_for_and_not_measured_is_no_verdict():
    found = replace(report(), unmeasured=[Unmeasured("numpy", "it died")])

    assert judge(found).exit_code == 2
    assert judge(found).reasons == ("the accuracy on numpy could not be measured: it died",)

"""The difference of two reports: by case and backend, never by counts."""

import itertools

import pytest
from made_reports import made_report
from steps_conformance.expectations.model import Expectation
from steps_conformance.outcomes import COUNTED_AGAINST, Outcome
from steps_conformance.reports.diffing import CannotCompareError, Kind, diff

CASE, KEPT = "A-MUST-001/x", {"B-MUST-001/x": ["PASS"]}


def report(outcome=None, **changes):
    """Return a report with this outcome of one case, XFAIL and XPASS by declaration."""
    declared = (Expectation(CASE, Outcome.FAIL, "it rounds", file="e.toml", cases=(CASE,)),)
    found = {"XFAIL": "FAIL", "XPASS": "PASS"}.get(outcome, outcome)
    if found != outcome:
        changes["expectations"] = declared
    cases = KEPT if outcome is None else {CASE: [found], **KEPT}
    return made_report(cases, **changes)


@pytest.mark.parametrize(
    ("old", "new", "kind", "worse"),
    [
        ("PASS", "FAIL", Kind.NEWLY_FAILING, True),
        ("PASS", "XPASS", Kind.NEWLY_FAILING, True),
        ("XFAIL", "FAIL", Kind.NEWLY_FAILING, True),
        ("XFAIL", "CRASH", Kind.NEWLY_FAILING, True),
        ("UNSUPPORTED", "TIMEOUT", Kind.NEWLY_FAILING, True),
        ("NOTRUN", "ERROR", Kind.NEWLY_FAILING, True),
        ("FAIL", "PASS", Kind.NEWLY_PASSING, False),
        ("XFAIL", "PASS", Kind.NEWLY_PASSING, False),
        ("UNSUPPORTED", "PASS", Kind.NEWLY_PASSING, False),
        ("FAIL", "CRASH", Kind.CHANGED, False),
        ("FAIL", "XFAIL", Kind.CHANGED, False),
        ("PASS", "XFAIL", Kind.CHANGED, True),
        ("PASS", "UNSUPPORTED", Kind.CHANGED, True),
        ("PASS", "NOTRUN", Kind.CHANGED, True),
        (None, "PASS", Kind.NEW, False),
        (None, "FAIL", Kind.NEW, True),
        ("PASS", None, Kind.GONE, True),
        ("FAIL", None, Kind.GONE, False),
    ],
)
def test_each_change_has_its_kind_and_is_worse_or_not(old, new, kind, worse):
    found = diff(report(old), report(new))

    (change,) = found.changes
    assert (change.kind, change.worse, found.worse) == (kind, worse, worse)
    assert (change.row, change.id, change.requirement, change.level) == ("numpy", CASE, "A-MUST-001", "MUST")
    assert (change.old, change.new) == (old, new)
    assert found.same == 1


def test_every_pair_of_outcomes_is_judged_by_two_rules():
    for old, new in itertools.permutations([str(one) for one in Outcome], 2):
        if {old, new} == {"PASS", "XPASS"} and new == "PASS":
            expected = False
        else:
            expected = old == "PASS" or (new in COUNTED_AGAINST and old not in COUNTED_AGAINST)

        assert diff(report(old), report(new)).worse == expected, (old, new)


@pytest.mark.parametrize("outcome", sorted(Outcome))
def test_the_same_outcome_is_no_change(outcome):
    found = diff(report(str(outcome)), report(str(outcome)))

    assert (found.changes, found.same, found.worse) == ((), 2, False)


def test_a_swap_that_counts_do_not_show_is_seen():
    old = made_report({"A-MUST-001/x": ["PASS"], "A-MUST-001/y": ["FAIL"]})
    new = made_report({"A-MUST-001/x": ["FAIL"], "A-MUST-001/y": ["PASS"]})

    found = diff(old, new)

    assert [change.id for change in found.of(Kind.NEWLY_FAILING)] == ["A-MUST-001/x"]
    assert [change.id for change in found.of(Kind.NEWLY_PASSING)] == ["A-MUST-001/y"]
    assert found.worse


def test_a_pass_that_a_newer_suite_no_longer_plans_is_gone_and_not_worse():
    newer = diff(report("PASS"), report(suite="1.3"))
    same_suite = diff(report("PASS"), report())

    assert [change.kind for change in newer.changes] == [Kind.GONE]
    assert (newer.worse, same_suite.worse) == (False, True)


def test_a_backend_that_vanishes_is_worse_even_where_all_that_is_left_passes():
    old = made_report({CASE: ["PASS", "PASS"]}, ("numpy", "torch"))
    new = made_report({CASE: ["PASS"]}, ("numpy",), not_run={"torch": "not installed"}, suite="1.3")

    found = diff(old, new)

    assert [(change.row, change.kind) for change in found.changes] == [("torch", Kind.GONE)]
    assert found.worse


def test_the_message_is_of_now():
    (change,) = diff(report("PASS"), report("FAIL", message="new words")).changes

    assert change.message == "new words"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (made_report(KEPT, ("numpy",)), made_report(KEPT, ("torch",)), "of numpy, the newer one of torch"),
        (made_report(KEPT), made_report({CASE: ["PASS"]}), "no case has an outcome in both reports"),
        (made_report(KEPT), made_report({"B-MUST-001/x": []}, ()), "the newer one of no backend"),
    ],
)
def test_reports_with_nothing_in_common_cannot_be_compared(old, new, text):
    with pytest.raises(CannotCompareError, match=text):
        diff(old, new)

"""Merging: several reports become one, and two that contradict each other become none."""

from dataclasses import replace

import pytest
from made_reports import TARGET, made_report
from steps_conformance.accuracy.results import Row, Unmeasured
from steps_conformance.expectations.model import Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports.merging import MergeError, merge
from steps_conformance.reports.verdict import judge

TWO = {"A-MUST-001/x": ["PASS"], "B-MUST-001/x": ["PASS"]}


def merged(*reports):
    return merge([(f"report {place}", report) for place, report in enumerate(reports, start=1)])


def with_header(report, **changes):
    return replace(report, header=replace(report.header, **changes))


def outcomes(report):
    return {(result.row, result.id): str(result.outcome) for result in report.results}


def test_reports_of_different_backends_become_one_with_all_of_them():
    report = merged(made_report(TWO, ("numpy",)), made_report(TWO, ("torch",)))

    assert report.header.rows == ("numpy", "torch")
    assert len(report.results) == 4
    assert (judge(report).exit_code, judge(report).headline) == (0, "conformant")


def test_shares_of_the_cases_on_the_same_backend_become_one_plan():
    first, second = ({identity: ["PASS"]} for identity in TWO)

    both = ("numpy", "torch")

    report = merged(*(made_report({identity: ["PASS"] * 2}, both) for identity in (*first, *second)))

    assert list(report.header.planned) == list(TWO)
    # backend by backend, as a run writes them
    assert list(outcomes(report)) == [(row, identity) for row in both for identity in TWO]
    assert judge(report).exit_code == 0


def test_a_share_that_a_backend_lacks_is_no_verdict():
    first, second = ({identity: ["PASS"]} for identity in TWO)

    report = merged(made_report(first, ("numpy",)), made_report(second, ("torch",)))

    assert judge(report).exit_code == 2
    assert "numpy: 1 of 2 planned cases did not run" in judge(report).reasons


def test_the_order_of_the_reports_does_not_change_the_verdict():
    one, other = made_report(TWO, ("numpy",)), made_report({**TWO, "A-MUST-001/x": ["FAIL"]}, ("torch",))

    assert judge(merged(one, other)).exit_code == judge(merged(other, one)).exit_code == 1
    assert outcomes(merged(one, other)) == outcomes(merged(other, one))


def test_a_backend_that_runs_on_one_machine_only_is_one_that_runs():
    without = made_report(TWO, ("numpy",), not_run={"cupy": "no CUDA device"})
    with_it = with_header(made_report(TWO, ("cupy",)), named=("cupy",))

    for report in (merged(without, with_it), merged(with_it, without)):
        assert report.rows["cupy"].runs
        assert judge(report).exit_code == 0


def test_the_same_outcome_twice_counts_once_and_its_time_does_not_matter():
    report = merged(made_report(TWO, seconds=1.0), made_report(TWO, seconds=2.0))

    assert len(report.results) == 2


def test_one_report_merged_is_itself():
    report = made_report(TWO, ("numpy", "torch")[:1])

    assert merged(report) == report


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"suite": "1.3"}, "the version of the suite must be the same in all reports, is '1.2' in report 1"),
        ({"target": replace(TARGET, hash="cd" * 32)}, "the target's hash must be the same"),
        ({"target": replace(TARGET, name="other")}, "the target's name must be the same"),
        ({"target": replace(TARGET, version="2")}, "the target's version must be the same"),
        ({"target": replace(TARGET, capabilities=())}, "what the target claims must be the same"),
        ({"strict": True}, "--strict must be the same in all reports, is False in report 1 and True in"),
        (
            {"planned": {"A-MUST-001/x": "B-MUST-001", "B-MUST-001/x": "B-MUST-001"}},
            "the requirement of A-MUST-001/x must be the same in all reports, is 'A-MUST-001' in report 1",
        ),
    ],
)
def test_reports_that_contradict_each_other_are_refused(change, text):
    with pytest.raises(MergeError, match=text):
        merged(made_report(TWO), with_header(made_report(TWO, ("torch",)), **change))


def test_a_requirement_that_says_something_else_is_refused():
    other = made_report(TWO, ("torch",))
    rules = {key: replace(rule, level="SHOULD") for key, rule in other.header.requirements.items()}

    with pytest.raises(MergeError, match="the requirement A-MUST-001 must be the same in all reports"):
        merged(made_report(TWO), with_header(other, requirements=rules))


@pytest.mark.parametrize("second", ["FAIL", "NOTRUN", "UNSUPPORTED"])
def test_two_outcomes_of_one_case_on_one_backend_are_refused(second):
    with pytest.raises(MergeError, match="the outcome of A-MUST-001/x on numpy must be the same"):
        merged(made_report(TWO), made_report({**TWO, "A-MUST-001/x": [second]}))


def test_a_backend_of_another_version_is_refused():
    other = made_report({"C-MUST-001/x": ["PASS"]})
    other.rows["numpy"] = replace(other.rows["numpy"], version="9.9")

    with pytest.raises(MergeError, match="what is known about the backend numpy must be the same"):
        merged(made_report(TWO), other)


def test_two_errors_measured_in_one_place_are_refused_and_others_are_kept():
    measured = Row("numpy", "A-MUST-001", "norm", "float32", 10, 1.0)
    first, second = made_report(TWO), made_report(TWO, ("torch",))
    first.accuracy, second.accuracy = [measured], [replace(measured, backend="torch")]
    second.unmeasured = [Unmeasured("torch", "it died")]

    assert len(merged(first, second).accuracy) == 2
    assert merged(first, second).unmeasured == second.unmeasured
    second.accuracy = [replace(measured, ulps=2.0)]
    with pytest.raises(MergeError, match="the accuracy of norm float32 10 A-MUST-001 on numpy must be the"):
        merged(first, second)


def declaring(report, *cases, **changes):
    one = Expectation("A-MUST-001", Outcome.FAIL, "it rounds", file="e.toml", cases=cases)
    return with_header(report, expectations=(replace(one, **changes),))


def test_what_one_report_declares_and_another_does_not_is_refused():
    failing = {**TWO, "A-MUST-001/x": ["FAIL"]}

    with pytest.raises(MergeError, match=r"A-MUST-001 is declared as FAIL in report 1 and not in report 2"):
        merged(declaring(made_report(failing), "A-MUST-001/x"), made_report(failing, ("torch",)))


def test_shares_of_one_declared_requirement_are_one_declaration_again():
    shares = [
        declaring(
            made_report({identity: ["FAIL"], f"B-MUST-001/{identity[-1]}": ["PASS"]}), identity, file=file
        )
        for identity, file in (("A-MUST-001/x", "/one/e.toml"), ("A-MUST-001/y", "/other/e.toml"))
    ]

    report = merged(*shares)

    (one,) = report.header.expectations
    assert one.cases == ("A-MUST-001/x", "A-MUST-001/y")
    assert judge(report).headline == "conformant except for 1 declared deviation: A-MUST-001"


def test_a_declared_requirement_that_passes_everywhere_is_xpass_also_when_merged():
    reports = [declaring(made_report(TWO, (row,)), "A-MUST-001/x") for row in ("numpy", "torch")]

    assert judge(merged(*reports)).headline.startswith("not as declared: 1 declared deviation")


def test_nothing_cannot_be_merged():
    with pytest.raises(MergeError, match="there is no report to merge; name at least one"):
        merged()

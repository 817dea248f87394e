"""Every report says how many planted faults the suite catches."""

import pytest
from made_reports import made_report
from steps_conformance.case import load_cases
from steps_conformance.reports import html, jsonl, markdown
from steps_conformance.reports.model import TargetFacts
from steps_conformance.reports.verdict import judge
from steps_conformance.requirements import load_requirements
from steps_conformance.session import Plan, header_of
from steps_conformance.teeth import Teeth, load_teeth

TEETH = Teeth(faults=12, caught=11, mutants=3456, noticed=3400, catalogue="ab" * 32)
SENTENCE = (
    "this suite catches 11 of 12 planted faults, and 3,400 of 3,456 mutants of its reference implementation"
)


def test_the_figures_stand_in_words():
    assert TEETH.sentence == SENTENCE
    assert Teeth(2, 2, 0, 0, "").sentence == "this suite catches 2 of 2 planted faults"


@pytest.mark.parametrize("form", [markdown, html])
def test_a_readable_report_says_the_figures(form):
    report, without = (made_report({"A-001/case": ["PASS"]}, teeth=teeth) for teeth in (TEETH, None))

    assert SENTENCE in form.render(report, judge(report))
    assert "planted faults" not in form.render(without, judge(without))


@pytest.mark.parametrize("teeth", [TEETH, None])
def test_the_figures_are_read_back(teeth, tmp_path):
    report = made_report({"A-001/case": ["PASS"]}, teeth=teeth)

    jsonl.write(report, tmp_path / "report.jsonl")

    assert jsonl.read(tmp_path / "report.jsonl").header.teeth == teeth


def test_a_report_of_before_there_were_figures_is_read(tmp_path):
    file = tmp_path / "report.jsonl"
    jsonl.write(made_report({"A-001/case": ["PASS"]}), file)
    file.write_text(file.read_text().replace(', "teeth": null', ""))

    assert jsonl.read(file).header.teeth is None


@pytest.mark.parametrize("package", ["steps_conformance.cases", "planted_suite.cases"])
def test_the_figures_are_of_the_cases_that_are_shipped_with_them(package):
    plan = Plan("target", ("numpy",), load_cases(), load_requirements(), package=package)
    target = TargetFacts("clipper", "1.0", "/checkout/clipper", "ab" * 32)

    expected = load_teeth() if package == "steps_conformance.cases" else None
    assert header_of(plan, target).teeth == expected

"""Large reports: the forms stay readable and uploadable, and say what they leave out."""

import json
import re

import pytest
from made_reports import made_report
from steps_conformance.accuracy.results import Row
from steps_conformance.expectations.model import Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports import html, junit, markdown
from steps_conformance.reports.budget import fitting
from steps_conformance.reports.model import CaseResult
from steps_conformance.reports.verdict import judge

ROWS = tuple("abcdef")
GITHUB_LIMIT = 1024 * 1024


def failing(cases, rows=ROWS, *, rules=400, message="x"):
    """Return a report where each case fails on each backend with a message of its own."""
    found = {f"T{n % rules % 7}-RULE-{n % rules:03}/case-{n}": ["FAIL"] * len(rows) for n in range(cases)}
    report = made_report(found, rows)
    report.results = [
        CaseResult(one.row, one.id, one.outcome, f"{message} {one.row} {one.id}", one.seconds)
        for one in report.results
    ]
    return report


def test_ten_thousand_failures_fit_a_job_summary_and_the_rest_is_counted():
    report = failing(10_000, ("numpy",), message="a long message, line by line\n" * 40)

    text = markdown.render(report, judge(report))

    assert len(text.encode()) < 900 * 1024
    assert "9,950 more of 10,000 stand in report.jsonl and report.html. By requirement:" in text
    shown = text.count(": FAIL on numpy")
    counted = re.findall(r"^- T\d-RULE-\d{3}: ([\d,]+)$", text, re.MULTILINE)
    assert shown + sum(int(number) for number in counted) == 10_000


@pytest.mark.parametrize("part", ["message", "reasons", "deviations", "backends", "accuracy", "names"])
def test_no_part_of_a_report_makes_the_markdown_too_long(part):
    long = "word " * 40_000
    report = failing(300, ("numpy",), message="\N{EURO SIGN}" * 20_000 if part == "message" else "x")
    header = {}
    if part == "reasons":
        header = {"named": tuple(f"backend-{n} {long[:500]}" for n in range(3000))}
        header["rows"] = (*report.header.rows, *header["named"])
    if part == "deviations":
        header["expectations"] = tuple(
            Expectation(one, Outcome.FAIL, long, file="e.toml", cases=(one,)) for one in report.header.planned
        )
    if part == "backends":
        header["rows"] = ("numpy", *(f"backend-{n} {long[:500]}" for n in range(3000)))
    if part == "accuracy":
        report.accuracy = [Row("numpy", "A-ONE-001", "norm", "float32", n, 1.0) for n in range(1, 30_000)]
    if part == "names":
        header["target"] = report.header.target.__class__(*(["word " * 200_000] * 4))
    report.header = report.header.__class__(**(vars(report.header) | header))

    text = markdown.render(report, judge(report))

    assert len(text.encode()) < 900 * 1024 < GITHUB_LIMIT
    assert "report.jsonl" in text


def test_a_list_is_cut_at_the_first_part_that_has_no_room():
    assert fitting(["aa", "b" * 100, "c"], 20) == (["aa"], 2)
    assert fitting(["aa", "bb"], 8) == (["aa", "bb"], 0)
    assert fitting(["\N{EURO SIGN}"], 4) == ([], 1)


def test_four_thousand_cases_on_six_backends_that_all_fail_are_a_page_of_a_few_megabytes():
    report = failing(4000, message="got this and that, " * 20)

    text = html.render(report, judge(report))

    assert len(text.encode()) < html.LARGEST == 5_000_000
    left = re.search(r"<p>([\d,]+) more of 24,000 stand in report.jsonl.</p>", text)
    assert text.count('class="case"') + int(left[1].replace(",", "")) == 24_000


def test_no_link_of_a_large_page_leads_to_what_was_left_out():
    text = html.render(report := failing(4000), judge(report))

    ids = set(re.findall(r' id="([^"]*)"', text))

    assert set(re.findall(r'href="#([^"]*)"', text)) <= ids


def test_many_declared_deviations_are_counted_too():
    report = failing(4000)
    few = tuple(
        Expectation(one, Outcome.FAIL, "it rounds", file="e.toml", cases=(one,))
        for one in report.header.planned
    )
    report.header = report.header.__class__(**(vars(report.header) | {"expectations": few}))

    text = html.render(report, judge(report))

    assert len(text.encode()) < html.LARGEST
    assert "<p>3,700 more of 4,000 stand in report.jsonl.</p>" in text


def test_a_deviation_of_many_cases_shows_some_and_counts_the_rest():
    report = failing(200, rules=1)
    one = Expectation("T0-RULE-000", Outcome.FAIL, "all", file="e.toml", cases=tuple(report.header.planned))
    rules = {**report.header.requirements}
    planned = dict.fromkeys(report.header.planned, next(iter(rules)))
    report.header = report.header.__class__(
        **(vars(report.header) | {"expectations": (one,), "planned": planned})
    )

    text = html.render(report, judge(report))

    assert "200 cases" in text and "150 more stand in report.jsonl" in text


def test_junit_leaves_nothing_out():
    report = failing(1000)

    text = junit.render(report, judge(report))

    assert text.count("<testcase ") == 6000 and json.dumps(text)

"""The forms of a report: nothing is lost in JSON lines, and nothing that a target says becomes markup."""

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console
from steps_conformance.console import summary
from steps_conformance.outcomes import Outcome
from steps_conformance.reports import html, markdown
from steps_conformance.reports.jsonl import JsonLinesWriter, MalformedReportError, read
from steps_conformance.reports.model import (
    CaseResult,
    Header,
    Report,
    RequirementFacts,
    RowFacts,
    TargetFacts,
)
from steps_conformance.reports.tables import matrix, row_summaries, slowest
from steps_conformance.reports.verdict import judge

EVIL = "<script>alert(1)</script>"


def planted_report():
    rules = {
        "A-ONE-001": RequirementFacts("A-ONE-001", "MUST", f"a <b>rule</b> {EVIL}", "topic_a"),
        "A-ONE-002": RequirementFacts("A-ONE-002", "SHOULD", "another", "topic_a"),
        "B-ONE-001": RequirementFacts("B-ONE-001", "MUST", "a third", "topic_b"),
    }
    planned = {"A-ONE-001/x": "A-ONE-001", "A-ONE-001/y": "A-ONE-001", "A-ONE-002/x": "A-ONE-002"}
    planned["B-ONE-001/x"] = "B-ONE-001"
    header = Header(
        suite="1.2",
        python="3.11",
        platform="Linux",
        started="2026-01-02T03:04:05+00:00",
        target=TargetFacts(EVIL, "<i>1</i>", f"/path/`{EVIL}|", "0" * 64, ("negates",)),
        rows=("numpy", "torch", "cupy", "late"),
        named=("numpy",),
        requirements=rules,
        planned=planned,
        topics=(),
    )
    rows = {
        "numpy": RowFacts("numpy", True, None, "numpy", "2.4", "cpu", ("float32",), ("eager",)),
        "torch": RowFacts("torch", True, None, "torch", "2.13", "cpu", deviations=("float16 is missing",)),
        "cupy": RowFacts("cupy", False, f"no CUDA device {EVIL}", "cupy", None, "cuda"),
    }
    outcomes = {
        "numpy": [Outcome.PASS, Outcome.FAIL, Outcome.PASS, Outcome.PASS],
        "torch": [Outcome.PASS, Outcome.UNSUPPORTED, Outcome.UNSUPPORTED, Outcome.NOTRUN],
    }
    results = [
        CaseResult(
            row, identity, outcome, "" if outcome == "PASS" else f"why | `not` {EVIL}\nsecond line", 1.5
        )
        for row, found in outcomes.items()
        for identity, outcome in zip(planned, found, strict=True)
    ]
    return Report(header, rows, results, complete=True)


@pytest.fixture
def report():
    return planted_report()


def written(report, file):
    writer = JsonLinesWriter(file)
    writer.started(report.header)
    for row in report.rows.values():
        writer.found_row(row)
    for result in report.results:
        writer.found_result(result)
    return writer


def test_json_lines_keep_everything(report, tmp_path):
    file = tmp_path / "report.jsonl"
    written(report, file).finished(report)

    assert read(file) == report


def test_json_lines_are_there_as_soon_as_they_are_found(report, tmp_path):
    file = tmp_path / "report.jsonl"
    writer = written(report, file)

    truncated = read(file)

    assert truncated == replace(report, complete=False)
    assert judge(truncated).exit_code == 1
    writer.finished(report)


def test_the_header_names_what_was_tested_and_planned(report, tmp_path):
    file = tmp_path / "report.jsonl"
    written(report, file).finished(report)

    header, *_, footer = map(json.loads, file.read_text().splitlines())

    assert header["record"] == "header"
    assert header["target"]["hash"] == "0" * 64
    assert list(header["planned"]) == list(report.header.planned)
    assert (footer["record"], footer["exit_code"], footer["results"]) == ("footer", 1, 8)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"schema": 2', '"schema": 3', "line 1: must be a header with schema 2, is a header with schema 3"),
        ('"record": "header"', '"record": "row"', "line 1: must be a header"),
        ('"outcome": "FAIL"', '"outcome": "FINE"', "line 6: 'FINE' is not a valid Outcome"),
        ('"record": "case"', '"record": "cases"', "record must be row, case or footer, is 'cases'"),
        ('"results": 8', '"results": 9', "the footer counts 9 cases, there are 8"),
        ('"runs": true', '"ran": true', "line 2: .*unexpected keyword argument 'ran'"),
        ("{", "", "line 1"),
    ],
)
def test_a_malformed_report_is_refused(report, tmp_path, old, new, text):
    file = tmp_path / "report.jsonl"
    written(report, file).finished(report)
    file.write_text(file.read_text().replace(old, new, 1))

    with pytest.raises(MalformedReportError, match=text):
        read(file)


def test_an_empty_report_is_refused(tmp_path):
    (tmp_path / "report.jsonl").touch()

    with pytest.raises(MalformedReportError, match=r"report.jsonl is empty"):
        read(tmp_path / "report.jsonl")


class Page(HTMLParser):
    """Reads a page: its elements, its text, and the addresses that it would load."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.loaded, self.ids = Counter(), [], [], Counter()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.ids.update(value for name, value in attributes if name == "id")
        self.loaded += [value for name, value in attributes if name in ("src", "href") and value[0] != "#"]

    def handle_data(self, data):
        self.text.append(data)


def test_html_escapes_what_a_target_says(report):
    page = Page(html.render(report, judge(report)))

    # the page has one script of its own
    assert page.tags["script"] == 1
    assert page.tags["b"] == page.tags["i"] == 0
    assert "".join(page.text).count(EVIL) >= 6


def test_html_is_offline_and_each_id_stands_once(report):
    page = Page(html.render(report, judge(report)))

    assert page.loaded == []
    assert max(page.ids.values()) == 1


def test_html_says_what_there_is_to_know(report):
    text = " ".join("".join(Page(html.render(report, judge(report))).text).split())

    for part in (
        "not conformant: 1 requirement not met",
        "0" * 64,
        "torch is not what it says: float16 is missing",
        "no CUDA device",
        "the run ended before its turn",
        "A-ONE-001/y",
        "topic a",
        "1/2",
        "second line",
    ):
        assert part in text


def test_markdown_escapes_what_a_target_says(report):
    text = markdown.render(report, judge(report))
    shown = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    outside_code = "".join(part for place, part in enumerate(shown.split("`")) if place % 2 == 0)

    assert "<" not in outside_code
    assert "no CUDA device &lt;script&gt;" in text


def test_the_table_in_markdown_has_cells_for_every_row(report):
    lines = [line for line in markdown.render(report, judge(report)).splitlines() if line.startswith("|")]

    assert len(lines) == 2 + len(report.header.rows)
    assert {line.replace("\\|", "").count("|") for line in lines} == {10}


def test_each_row_has_a_state(report):
    assert [row.state for row in row_summaries(report)] == ["failed", "doubtful", "not run", "not run"]


def test_the_matrix_has_a_cell_for_each_requirement_and_row(report):
    cells = {
        rule.id: [(cell.state, cell.text) for cell in row] for _, rows in matrix(report) for rule, row in rows
    }

    assert cells == {
        "A-ONE-001": [("failed", "1/2"), ("partly", "1/2")],
        "A-ONE-002": [("passed", "1"), ("unsupported", "\N{EN DASH}")],
        "B-ONE-001": [("passed", "1"), ("not run", "0/1")],
    }


def test_the_slowest_cases_are_those_of_a_second_and_more(report):
    report.results[3] = replace(report.results[3], seconds=9.0)
    report.results[4] = replace(report.results[4], seconds=0.9)

    found = slowest(report)

    assert found[0] == report.results[3]
    assert len(found) == 7


def test_the_summary_for_a_terminal_fits_80_columns(report):
    stream = StringIO()
    Console(file=stream, width=80).print(summary(report, judge(report)))
    printed = stream.getvalue()

    assert max(map(len, printed.splitlines())) <= 80
    for part in (
        "A-ONE-001 (MUST) a <b>rule</b>",
        "FAIL A-ONE-001/y on numpy",
        "cupy does not run: no CUDA device",
    ):
        assert part in printed

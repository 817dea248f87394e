"""The forms of a report: nothing is lost in JSON lines, and nothing that a target says becomes markup."""

import json
import math
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from io import StringIO

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console
from steps_conformance.accuracy.results import Row, Unmeasured
from steps_conformance.allowances import Allowance
from steps_conformance.console import summary
from steps_conformance.expectations.model import Condition, Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports import html, markdown
from steps_conformance.reports.jsonl import JsonLinesWriter, MalformedReportError, read, write
from steps_conformance.reports.model import (
    CaseResult,
    Header,
    Report,
    RequirementFacts,
    RowFacts,
    TargetFacts,
)
from steps_conformance.reports.tables import failures, matrix, row_summaries, slowest
from steps_conformance.reports.verdict import judge

EVIL = "<script>alert(1)</script>"
jsonl_package = "steps_conformance.reports"


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


def with_everything():
    """Return the report with declared deviations of the target and of backends, and with accuracy."""
    report = planted_report()
    expectations = (
        Expectation(
            "A-ONE-001",
            Outcome.FAIL,
            f"it rounds {EVIL}",
            f"https://example.org/{EVIL}",
            Condition(backends=("numpy",)),
            file="/f/expected.toml",
            cases=("A-ONE-001/x", "A-ONE-001/y"),
        ),
        Expectation("A-ONE-002/x", Outcome.CRASH, "it died", file="/f/expected.toml", cases=("A-ONE-002/x",)),
    )
    allowances = (
        Allowance("eager", "each operation runs at once", f"it {EVIL} may", "why it may", ("B-ONE-001",)),
    )
    report.header = replace(
        report.header, expectations=expectations, allowances=allowances, strict=True, rows=("numpy", "torch")
    )
    report.accuracy = [
        Row("numpy", "A-ONE-001", f"norm {EVIL}", "float32", 1000, 1.25),
        Row("torch", "A-ONE-001", f"norm {EVIL}", "float32", 1000, math.inf),
        Row("torch", "A-ONE-001", "norm", "float64", 10, None, "torch does not declare float64"),
    ]
    report.unmeasured = [Unmeasured("torch", f"it died {EVIL}")]
    return report


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


@pytest.mark.parametrize("make", [planted_report, with_everything])
def test_a_report_is_written_and_read_whole_and_each_line_keeps_to_the_schema(tmp_path, make):
    schema = json.loads((files(jsonl_package) / "report.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    file = tmp_path / "report.jsonl"

    write(make(), file)

    assert read(file) == make()
    assert list(tmp_path.iterdir()) == [file]
    for line in file.read_text().splitlines():
        Draft202012Validator(schema).validate(json.loads(line))


def test_the_schema_refuses_an_accuracy_without_a_unit_of_size_and_a_case_that_ends_with_xfail():
    schema = Draft202012Validator(json.loads((files(jsonl_package) / "report.schema.json").read_text()))
    good = {"backend": "n", "requirement": "A-ONE-001", "name": "norm", "dtype": "float32", "size": 1}
    good |= {"record": "accuracy", "ulps": 1.5, "reason": ""}
    case = {"record": "case", "row": "n", "id": "A-ONE-001/x", "outcome": "PASS", "message": "", "seconds": 0}

    assert schema.is_valid(good) and schema.is_valid(case)
    assert not schema.is_valid({**good, "size": 0})
    assert not schema.is_valid({**good, "ulps": "many"})
    assert not schema.is_valid({**case, "outcome": "XFAIL"})


def test_json_lines_say_what_is_expected_and_why(tmp_path):
    write(with_everything(), tmp_path / "report.jsonl")

    lines = map(json.loads, (tmp_path / "report.jsonl").read_text().splitlines())

    assert [line for line in lines if line["record"] == "expected"] == [
        {
            "record": "expected",
            "row": "numpy",
            "id": "A-ONE-001/y",
            "outcome": "XFAIL",
            "found": "FAIL",
            "declared": "A-ONE-001",
            "reason": f"it rounds {EVIL}",
            "report": f"https://example.org/{EVIL}",
        },
        {
            "record": "expected",
            "row": "numpy",
            "id": "A-ONE-002/x",
            "outcome": "XPASS",
            "found": "PASS",
            "declared": "A-ONE-002/x",
            "reason": "it died",
            "report": "",
        },
    ]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"outcome": "XFAIL"', '"outcome": "XPASS"', "the expected lines are not what the expectations give"),
        ('"found": "PASS"', '"found": "FAIL"', "the expected lines are not what the expectations give"),
        ('"record": "expected"', '"record": "footer", "results": 8', "not what the expectations give"),
        ('"outcome": "PASS"', '"outcome": "XPASS"', "ends with its own outcome, and XPASS is computed from"),
        ('"ulps": 1.25', '"ups": 1.25', "lacks ulps"),
    ],
)
def test_a_report_that_contradicts_its_expectations_is_refused(tmp_path, old, new, text):
    file = tmp_path / "report.jsonl"
    write(with_everything(), file)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))

    with pytest.raises(MalformedReportError, match=text):
        read(file)


def test_results_of_rows_that_ran_side_by_side_are_read_in_the_order_of_the_plan(tmp_path):
    report = with_everything()
    mixed = replace(report, results=report.results[::-1])
    write(mixed, tmp_path / "report.jsonl")

    assert read(tmp_path / "report.jsonl") == report


def test_nothing_follows_the_footer(report, tmp_path):
    file = tmp_path / "report.jsonl"
    write(report, file)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-2]]))

    with pytest.raises(MalformedReportError, match="a case follows the footer"):
        read(file)


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


@pytest.mark.parametrize("make", [planted_report, with_everything])
def test_html_escapes_what_a_target_says(make):
    report = make()
    page = Page(html.render(report, judge(report)))

    # the page has one script of its own
    assert page.tags["script"] == 1
    assert page.tags["b"] == page.tags["i"] == 0
    assert "".join(page.text).count(EVIL) >= 6


@pytest.mark.parametrize("make", [planted_report, with_everything])
def test_html_is_offline_and_each_id_stands_once(make):
    report = make()
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


DECLARED = (
    "Declared deviations of the target",
    f"it rounds {EVIL}",
    f"https://example.org/{EVIL}",
    "on numpy",
    "XPASS",
    "declared as CRASH (it died), but it passes; remove the entry A-ONE-002/x from /f/expected.toml",
    "Declared deviations of backends",
    f"it {EVIL} may",
    "each operation runs at once",
    "why it may",
    "Accuracy",
    f"norm {EVIL}",
    "1.25",
    "inf",
    f"torch could not be measured: it died {EVIL}",
)


def test_html_says_what_is_declared_and_measured():
    report = with_everything()
    text = " ".join("".join(Page(html.render(report, judge(report))).text).split())

    for part in DECLARED:
        assert part in text


def test_markdown_says_what_is_declared_and_measured():
    report = with_everything()
    text = markdown.render(report, judge(report)).replace("&lt;", "<").replace("&gt;", ">").replace("\\", "")

    for part in DECLARED:
        assert part in text


def test_what_is_declared_is_yellow_in_the_matrix_and_what_passes_against_it_is_red():
    report = with_everything()
    cells = {rule.id: [cell.state for cell in row] for _, rows in matrix(report) for rule, row in rows}

    assert cells["A-ONE-001"] == ["as declared", "partly"]
    assert cells["A-ONE-002"] == ["failed", "unsupported"]
    assert [row.state for row in row_summaries(report)] == ["failed", "doubtful"]


def test_a_requirement_that_passes_against_its_declaration_is_one_entry():
    report = with_everything()
    report.results = [replace(result, outcome=Outcome.PASS) for result in report.results]

    found = [(failure.id, failure.outcome, failure.rows) for failure in failures(report)]

    assert found == [
        ("A-ONE-001", "XPASS", ("numpy",)),
        ("A-ONE-002/x", "XPASS", ("numpy", "torch")),
    ]


def test_a_row_that_fails_only_where_it_is_declared_is_as_declared():
    report = with_everything()
    report.header = replace(report.header, expectations=report.header.expectations[:1])

    assert row_summaries(report)[0].state == "as declared"


@pytest.mark.parametrize("make", [planted_report, with_everything])
def test_markdown_escapes_what_a_target_says(make):
    report = make()
    text = markdown.render(report, judge(report))
    shown = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    outside_code = "".join(part for place, part in enumerate(shown.split("`")) if place % 2 == 0)

    assert "<" not in outside_code
    assert "no CUDA device &lt;script&gt;" in text or make is with_everything


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


def test_the_summary_for_a_terminal_says_what_is_declared():
    stream = StringIO()
    report = with_everything()
    Console(file=stream, width=200).print(summary(report, judge(report)))
    printed = stream.getvalue()

    assert f"FAIL as declared A-ONE-001 on numpy: it rounds {EVIL}" in printed
    assert f"numpy: it {EVIL} may, as declared (eager); this bears on B-ONE-001" in printed
    assert "XPASS A-ONE-002/x on numpy" in printed

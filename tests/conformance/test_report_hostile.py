"""What a target says stays text in every form: no markup, no control of a terminal, no command of a CI."""

import json
import re
import unicodedata
from html.parser import HTMLParser
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from hostile_reports import HOSTILE, SCRIPT, hostile_report
from rich.console import Console
from steps_conformance.console import ProgressBars, summary
from steps_conformance.reports.forms import FORMS
from steps_conformance.reports.jsonl import read, write
from steps_conformance.reports.showing import shown_text
from steps_conformance.reports.verdict import judge

COMMAND = re.compile(r"^\s*::[a-z-]+( [^:]*)?::|##\[|##vso\[", re.MULTILINE | re.IGNORECASE)


@pytest.fixture(scope="module")
def forms():
    report = hostile_report()
    return {name: render(report, judge(report)) for name, render in FORMS.items()}


@pytest.fixture(scope="module")
def printed():
    stream, report = StringIO(), hostile_report()
    console = Console(file=stream, width=80)
    bars = ProgressBars(console)
    bars.started(report.header)
    for row in report.rows.values():
        bars.found_row(row)
    bars.finished(report)
    console.print(summary(report, judge(report)))
    return stream.getvalue()


def unsafe(text):
    """Return the signs of a text that a terminal acts on, or that nobody sees."""
    kinds = ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")
    return {sign for sign in text if sign not in "\n\t" and unicodedata.category(sign) in kinds}


@pytest.mark.parametrize("name", FORMS)
def test_no_form_holds_a_control_or_an_invisible_sign(forms, name):
    assert unsafe(forms[name]) == set()
    # nothing is lost: what cannot be shown is spelled
    assert name == "badge.json" or all(sign in forms[name] for sign in (r"\x1b[31m", r"\u202e", r"\x00"))


@pytest.mark.parametrize("name", FORMS)
def test_no_line_of_a_form_is_a_command_of_a_ci_system(forms, name):
    assert COMMAND.search(HOSTILE)
    assert COMMAND.findall(forms[name]) == []


def test_no_line_on_a_terminal_is_a_command_or_holds_a_control(printed):
    assert COMMAND.findall(printed) == []
    assert unsafe(printed) == set()
    for part in (SCRIPT, r"\x1b[31mred", r"\x3a:error file=a.py,line=1::boom", r"\x23#[error]bad"):
        assert part in printed


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.addresses, self.handlers = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.addresses += [value for name, value in attributes if name in ("href", "src", "action")]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data):
        self.text.append(data)


def test_html_has_only_its_own_elements_and_one_script(forms):
    page = Page(forms["report.html"])

    assert forms["report.html"].count("<script>") == 1
    assert page.tags.isdisjoint({"img", "iframe", "object", "link", "base"})
    assert all(address.startswith("#") for address in page.addresses)
    assert page.handlers == []
    text = "".join(page.text)
    for part in (SCRIPT, "]]> & \"double\" 'single'", "{{ 7 * 7 }}", "| `tick` ```"):
        assert part in text


def test_html_allows_itself_nothing_from_outside(forms):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', forms["report.html"])[1]

    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy


def test_junit_is_well_formed_and_says_it_all(forms):
    root = ET.fromstring(forms["report.xml"])  # noqa: S314 - our own text

    failure = root.find(".//failure").text
    assert SCRIPT in root.get("name")
    assert f"{SCRIPT} ]]> & \"double\" 'single'" in failure
    assert "| `tick` ```" in failure
    assert root.find(".//script") is None


def test_markdown_has_no_html_no_links_and_no_headings_of_others(forms):
    lines = forms["report.md"].splitlines()
    outside = [line for line in lines if not line.startswith("    ")]
    text = "".join("".join(line.split("`")[::2]) for line in outside)

    assert "<" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    headings = [line for line in lines if line.startswith("#")]
    assert all(re.match(r"# Conformance of |## [A-Z][A-Za-z, ]+$", line) for line in headings)
    tables = [line for line in lines if line.startswith("|")]
    assert len({re.sub(r"\\.", "", line).count("|") for line in tables}) == 1


def test_the_badge_is_json_of_our_own_words(forms):
    assert json.loads(forms["badge.json"])["message"] == "not conformant: 2 MUST"


def test_json_lines_keep_every_sign_as_it_is(tmp_path):
    write(hostile_report(), tmp_path / "report.jsonl")

    assert read(tmp_path / "report.jsonl") == hostile_report()
    assert (tmp_path / "report.jsonl").read_bytes().isascii()
    for line in (tmp_path / "report.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, with a\ttab\nand a line", "plain, with a\ttab\nand a line"),
        ("\x1b[0m", r"\x1b[0m"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("\u202e\U000e0041", r"\u202e\U000e0041"),
        ("::error::x", r"\x3a:error::x"),
        ("a::warning file=b::x", r"a\x3a:warning file=b::x"),
        ("std::sort, a::b", "std::sort, a::b"),
        ("x[::2]", "x[::2]"),
        ("##[group]", r"\x23#[group]"),
        ("## heading", "## heading"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE} \N{CJK UNIFIED IDEOGRAPH-4E00} \N{GRINNING FACE}",) * 2,
    ],
)
def test_only_what_would_act_is_spelled(text, expected):
    assert shown_text(text) == expected


def test_a_long_text_is_cut_and_says_by_how_much():
    assert shown_text("abcdef", 4) == "abcd\n... 2 more characters in report.jsonl"

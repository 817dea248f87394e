"""JUnit XML: of the form that CI systems read, and red exactly where the exit code is not 0."""

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from made_reports import TARGET, made_report
from steps_conformance.expectations.model import Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports import junit
from steps_conformance.reports.verdict import judge

# The rules of the schema that the xUnit plugin of Jenkins publishes (junit-10.xsd), which also the readers of
# GitLab and GitHub actions accept: per element its attributes, those that must be there, and its children.
RULES = {
    "testsuites": (
        {"name", "time", "tests", "failures", "errors", "skipped", "disabled"},
        set(),
        {"testsuite"},
    ),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"name", "tests"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, {"name", "value"}, set()),
    "testcase": (
        {"name", "classname", "time", "status", "assertions"},
        {"name", "classname"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "skipped": ({"message", "type"}, set(), set()),
    "error": ({"message", "type"}, set(), set()),
    "failure": ({"message", "type"}, set(), set()),
}
NUMBER, TIME, MOMENT = r"\d+", r"\d+\.\d{3}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
VALUES = dict.fromkeys(("tests", "failures", "errors", "skipped"), NUMBER) | {
    "time": TIME,
    "timestamp": MOMENT,
}

EVERY_OUTCOME = {
    "A-MUST-001/pass": ["PASS"],
    "A-MUST-002/fail": ["FAIL"],
    "A-MUST-003/error": ["ERROR"],
    "A-MUST-004/crash": ["CRASH"],
    "A-MUST-005/timeout": ["TIMEOUT"],
    "A-MUST-006/unsupported": ["UNSUPPORTED"],
    "A-MUST-007/notrun": ["NOTRUN"],
    "A-MUST-008/xfail": ["FAIL"],
    "A-MUST-009/xpass": ["PASS"],
    "A-MUST-010/missing": [None],
    "A-SHOULD-001/should": ["FAIL"],
}


def declared(*identities):
    return tuple(
        Expectation(one, Outcome.FAIL, "it rounds", file="e.toml", cases=(one,)) for one in identities
    )


def every_outcome(**changes):
    expectations = declared("A-MUST-008/xfail", "A-MUST-009/xpass")
    return made_report(EVERY_OUTCOME, expectations=expectations, **changes)


def rendered(report):
    return ET.fromstring(junit.render(report, judge(report)))  # noqa: S314 - our own text


def broken_rules(element):
    """Yield each rule of the form that an element or one below it breaks."""
    attributes, needed, children = RULES[element.tag]
    if not needed <= set(element.keys()) <= attributes:
        yield f"{element.tag} has the attributes {sorted(element.keys())}"
    for name, pattern in VALUES.items():
        if name in element.keys() and not re.fullmatch(pattern, element.get(name)):  # noqa: SIM118
            yield f"{element.tag} {name} is {element.get(name)}"
    tags = [child.tag for child in element]
    if not set(tags) <= children:
        yield f"{element.tag} holds {tags}"
    elif element.tag == "testsuite" and tags.index("properties") != 0:
        yield "properties come first"
    if element.tag == "testcase" and len(tags) > 1:
        yield "a case ends in one way"
    if element.tag in ("testsuites", "testsuite"):
        for count, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            if int(element.get(count)) != len(list(element.iter(tag))):
                yield f"{element.tag} counts {element.get(count)} {count}"
    for child in element if set(tags) <= children else ():
        yield from broken_rules(child)


@pytest.mark.parametrize(
    "report",
    [
        every_outcome(),
        every_outcome(not_run={"cupy": "no CUDA device"}, named=("cupy",)),
        every_outcome(complete=False, strict=True),
        made_report({"A-MUST-001/x": ["PASS", "FAIL"]}, ("numpy", "torch")),
        made_report({"A-MUST-001/x": []}, (), not_run={"cupy": "no CUDA device"}),
    ],
)
def test_the_xml_keeps_to_the_rules_of_the_schema(report):
    assert list(broken_rules(rendered(report))) == []


def test_the_rules_refuse_a_wrong_count_a_strange_attribute_and_two_ends_of_a_case():
    root = rendered(every_outcome())
    root.set("failures", "7")
    root[0].set("color", "red")
    ET.SubElement(root[0][1], "error")
    ET.SubElement(root[0][1], "error")

    broken = list(broken_rules(root))

    assert "testsuites counts 7 failures" in broken
    assert "a case ends in one way" in broken
    assert any("color" in rule for rule in broken)


@pytest.mark.parametrize(
    ("case", "kind", "message"),
    [
        ("A-MUST-001/pass", None, None),
        ("A-MUST-002/fail", "failure", "FAIL: 3 expected, got 4"),
        ("A-MUST-003/error", "error", "ERROR: 3 expected, got 4"),
        ("A-MUST-004/crash", "error", "CRASH: 3 expected, got 4"),
        ("A-MUST-005/timeout", "error", "TIMEOUT: 3 expected, got 4"),
        ("A-MUST-006/unsupported", "skipped", "UNSUPPORTED: 3 expected, got 4"),
        ("A-MUST-007/notrun", "error", "NOTRUN: 3 expected, got 4"),
        ("A-MUST-008/xfail", "skipped", "XFAIL: declared as FAIL: it rounds"),
        ("A-MUST-009/xpass", "failure", "XPASS: declared as FAIL (it rounds), but it passes; remove the"),
        ("A-MUST-010/missing", "error", "NOTRUN: numpy has no outcome of it"),
        ("A-SHOULD-001/should", "skipped", "FAIL: a SHOULD, which does not count without --strict: 3 exp"),
    ],
)
def test_each_outcome_ends_a_case_in_its_way(case, kind, message):
    element = rendered(every_outcome()).find(f".//testcase[@name='{case}']")

    ends = [(end.tag, end.get("message")) for end in element]

    assert [tag for tag, _ in ends] == ([kind] if kind else [])
    assert not ends or ends[0][1].startswith(message)


def test_each_backend_is_a_suite_with_what_was_tested():
    root = rendered(made_report({"A-MUST-001/x": ["PASS", "PASS"]}, ("numpy", "torch")))

    assert [suite.get("name") for suite in root] == ["numpy", "torch"]
    facts = {one.get("name"): one.get("value") for one in root[1].iter("property")}
    assert facts["target.sha256"] == TARGET.hash
    assert (facts["target.version"], facts["suite.version"]) == ("1.0", "1.2")
    assert (facts["library"], facts["library.version"], facts["device"]) == ("torch", "2.4", "cpu")


def test_times_stand_at_each_case_and_add_up():
    root = rendered(made_report({"A-MUST-001/x": ["PASS"], "A-MUST-001/y": ["PASS"]}, seconds=1.25))

    assert [case.get("time") for case in root.iter("testcase")] == ["1.250", "1.250"]
    assert root.get("time") == root[0].get("time") == "2.500"


@pytest.mark.parametrize(("named", "kind"), [((), "skipped"), (("cupy",), "error")])
def test_a_backend_that_did_not_run_is_never_a_pass(named, kind):
    report = made_report({"A-MUST-001/x": ["PASS"]}, not_run={"cupy": "no CUDA device"}, named=named)

    (case,) = rendered(report).find("testsuite[@name='cupy']").iter("testcase")

    assert [(end.tag, end.get("message")) for end in case] == [(kind, "NOTRUN: no CUDA device")]


def test_it_is_red_exactly_where_the_exit_code_is_not_0():
    outcomes = [str(one) for one in Outcome if one not in (Outcome.XFAIL, Outcome.XPASS)]
    seen = set()
    for must, should, strict, complete in itertools.product(outcomes, outcomes, (False, True), (False, True)):
        found = {"A-MUST-001/x": [must], "A-SHOULD-001/x": [should], "A-MUST-002/x": ["PASS"]}
        report = made_report(found, strict=strict, complete=complete)
        root, code = rendered(report), judge(report).exit_code
        red = int(root.get("failures")) + int(root.get("errors"))

        assert bool(red) == bool(code), (must, should, strict, complete)
        seen.add(code)
    assert seen == {0, 1, 2}


def test_where_there_is_no_verdict_a_suite_says_why():
    root = rendered(made_report({"A-MUST-001/x": ["PASS"]}, complete=False))

    (case,) = root.find("testsuite[@name='run']").iter("testcase")

    assert (case[0].tag, case[0].get("message")) == ("error", "no verdict: the run did not come to its end")
    assert "no verdict: the run does not show what was asked" in case[0].text

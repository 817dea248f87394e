"""Every outcome and every way to each exit code of `run`: real worker processes on the planted suite."""

from functools import partial
from pathlib import Path

import pytest
from steps_conformance.case import load_cases
from steps_conformance.cli import app
from steps_conformance.commands import running
from steps_conformance.outcomes import Outcome
from steps_conformance.reports.jsonl import read
from steps_conformance.requirements import load_requirements
from steps_conformance.session import Plan
from typer.testing import CliRunner

PASS, LAST = "PLANT-PASS-001", "PLANT-LAST-001"
WRONG = "PLANT-FAIL-001/wrong-value"
HONEST = ("planted_suite.backends:honest",)
TARGET = "planted_suite.targets:target"
CRASH = "PLANT-CRASH-001/ends-the-process-with-success"


@pytest.fixture
def run_planted(planted, monkeypatch, tmp_path):
    """Run the command on the planted suite; return its exit code, what it printed, and the report if any."""
    package = "planted_suite.cases"
    folder = tmp_path / "report"
    rules = load_requirements(Path(planted.__file__).parent / "requirements")
    monkeypatch.setattr(running, "load_suite", lambda: (rules, load_cases(package)))
    monkeypatch.setattr(running, "Plan", partial(Plan, package=package))

    def run(ids, *, backends=HONEST, target=TARGET, declared=(), options=()):
        call = ["run", "--target", target, "--report", str(folder), "--case-seconds", "1", *options]
        call += [word for one in ids for word in ("--id", one)]
        call += [word for one in backends for word in ("--backend", one)]
        if declared:
            file = tmp_path / "expected.toml"
            entry = '[[expected]]\nid = "{}"\noutcome = "{}"\nreason = "planted"\n'
            file.write_text("\n".join(entry.format(*one) for one in declared))
            call += ["--expectations", str(file)]
        done = CliRunner().invoke(app, call)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        lines = folder / "report.jsonl"
        return done.exit_code, " ".join(done.output.split()), read(lines) if lines.exists() else None

    return run


RUNS = {
    "a pass": (0, {"PASS"}, "conformant", {"ids": [PASS]}),
    "a pass beside what is not supported": (
        0,
        {"PASS", "UNSUPPORTED"},
        "conformant for the declared capabilities in a selection of the cases, 1 MUST not supported in full",
        {"ids": [PASS, "PLANT-PASS-002"]},
    ),
    "a SHOULD that does not hold": (
        0,
        {"PASS", "ERROR"},
        "SHOULD is not met: PLANT-ERROR-001",
        {"ids": [PASS, "PLANT-ERROR-001/raises"]},
    ),
    "a declared deviation": (
        0,
        {"PASS", "XFAIL"},
        "conformant in a selection of the cases except for 1 declared deviation: PLANT-FAIL-001",
        {"ids": [PASS, WRONG], "declared": [(WRONG, "FAIL")]},
    ),
    "a declared deviation of another kind": (
        1,
        {"PASS", "FAIL"},
        "not conformant: 1 requirement not met",
        {"ids": [PASS, WRONG], "declared": [(WRONG, "ERROR")]},
    ),
    "a declared deviation that passes": (
        1,
        {"PASS", "XPASS"},
        "not as declared: 1 declared deviation did not happen: PLANT-LAST-001",
        {"ids": [PASS, LAST], "declared": [(LAST, "FAIL")]},
    ),
    "a wrong value": (1, {"FAIL"}, "not conformant", {"ids": [WRONG]}),
    "a refusal": (1, {"FAIL"}, "the target refused", {"ids": ["PLANT-FAIL-001/refused"]}),
    "a strict SHOULD": (
        1,
        {"PASS", "ERROR"},
        "not conformant: 1 requirement not met",
        {"ids": [PASS, "PLANT-ERROR-001/raises"], "options": ["--strict"]},
    ),
    "a crash": (1, {"CRASH"}, "not conformant", {"ids": [CRASH]}),
    "a timeout": (1, {"TIMEOUT"}, "not conformant", {"ids": ["PLANT-TIMEOUT-001"]}),
    "a failure beside a backend that did not run": (
        1,
        {"FAIL"},
        "planted_suite.backends:absent was asked for and did not run",
        {"ids": [WRONG], "backends": [*HONEST, "planted_suite.backends:absent"]},
    ),
    "a backend that did not run": (
        2,
        {"PASS"},
        "planted_suite.backends:absent was asked for and did not run: no_such_library is not installed",
        {"ids": [PASS], "backends": [*HONEST, "planted_suite.backends:absent"]},
    ),
    "a backend that is not what it declares": (
        2,
        {"PASS"},
        "flushes_subnormals is declared, but it is not seen",
        {"ids": [PASS], "backends": ["planted_suite.backends:boastful"]},
    ),
    "planned cases without an outcome": (
        2,
        {"XFAIL", "NOTRUN"},
        "1 of 2 planned cases did not run",
        {"ids": [CRASH, LAST], "declared": [(CRASH, "CRASH")], "options": ["--restarts", "0"]},
    ),
    "nothing that passed": (2, {"UNSUPPORTED"}, "no MUST passed anywhere", {"ids": ["PLANT-PASS-002"]}),
    "a target that changes": (
        2,
        {"PASS"},
        "is not what it says",
        {"ids": [PASS], "target": "planted_suite.targets:changing"},
    ),
    "a target that does not start": (
        2,
        None,
        "target planted_suite.dying_target:target: the process ended with status 3",
        {"ids": [PASS], "target": "planted_suite.dying_target:target"},
    ),
    "an expectation of nothing": (
        2,
        None,
        "PLANT-PASS-009",
        {"ids": [PASS], "declared": [("PLANT-PASS-009", "FAIL")]},
    ),
    "an id of nothing": (2, None, "no case has the id 'PLANT-NONE-001'", {"ids": ["PLANT-NONE-001"]}),
    "a backend of nothing": (
        2,
        None,
        "no backend is called 'nunpy'",
        {"ids": [PASS], "backends": ["nunpy"]},
    ),
}


@pytest.mark.parametrize("what", RUNS)
def test_a_run_ends_with_its_exit_code(run_planted, what):
    code, outcomes, text, asked = RUNS[what]

    found_code, printed, report = run_planted(**asked)

    assert found_code == code, printed
    assert text in printed
    seen = None if report is None else {str(result.outcome) for result in report.judged()}
    assert seen == outcomes


def test_the_table_reaches_every_outcome_and_every_exit_code():
    codes = {code for code, *_ in RUNS.values()}
    outcomes = set().union(*(found for _, found, *_ in RUNS.values() if found))

    assert codes == {0, 1, 2}
    assert outcomes == {str(outcome) for outcome in Outcome}

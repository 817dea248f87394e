"""One case: each way to end gives its outcome, and nothing but PASS is a pass."""

import os
import warnings

import pytest
import steps_backends
from steps_conformance.case import Case, load_cases
from steps_conformance.execution import execute
from steps_conformance.outcomes import FAILURES, MEANINGS, Outcome

NUMPY = steps_backends.get("numpy")


def outcome_of(function, planted):
    case = Case("DEMO-RUN-002/demo", "DEMO-RUN-002", "demo", function, {}, frozenset(), frozenset())
    return execute(case, NUMPY, planted.target)


@pytest.mark.parametrize(
    ("name", "outcome", "message"),
    [
        ("PASS-001/identity-keeps-bits[float32]", Outcome.PASS, ""),
        (
            "PASS-002/needs-what-the-target-lacks",
            Outcome.UNSUPPORTED,
            "the target does not claim state_files",
        ),
        ("FAIL-001/wrong-value", Outcome.FAIL, "expected 2.0 (0x1.0000000000000p+1), got 1.0"),
        ("FAIL-001/plain-assertion", Outcome.FAIL, "does not hold: assert 1 + 1 == 3"),
        ("FAIL-001/refused", Outcome.FAIL, "the target refused: KeyError: no step is called 'UnknownStep'"),
        ("ERROR-001/raises", Outcome.ERROR, "ZeroDivisionError: planted"),
        ("ERROR-001/warns", Outcome.ERROR, "RuntimeWarning: look out"),
        ("ERROR-001/leaves-with-system-exit", Outcome.ERROR, "SystemExit: 0"),
        ("ERROR-001/is-a-generator", Outcome.ERROR, "the case returned generator"),
    ],
)
def test_each_ending_has_its_outcome(planted, name, outcome, message):
    case = load_cases("planted_suite.cases")[f"PLANT-{name}"]

    result = execute(case, NUMPY, planted.target)

    assert result.outcome is outcome
    assert message in result.message
    assert bool(result.message) == (outcome is not Outcome.PASS)


def test_a_warning_is_an_error_whatever_the_filters_say(planted):
    case = load_cases("planted_suite.cases")["PLANT-ERROR-001/warns"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = execute(case, NUMPY, planted.target)

    assert result.outcome is Outcome.ERROR


def test_a_dtype_that_is_not_declared_is_unsupported(planted):
    case = load_cases("planted_suite.cases")["PLANT-PASS-001/identity-keeps-bits[float16]"]

    result = execute(case, steps_backends.get("array-api-strict"), planted.target)

    assert result.outcome is Outcome.UNSUPPORTED
    assert result.message == "array-api-strict does not declare float16"


def test_a_skip_of_a_test_tool_is_no_pass(planted):
    result = outcome_of(lambda run: pytest.skip("not today"), planted)

    assert result.outcome is Outcome.ERROR
    assert "Skipped: not today" in result.message


def test_an_assertion_of_a_library_is_an_error(planted, tmp_path, monkeypatch):
    (tmp_path / "asserting_library.py").write_text("def check():\n    assert False, 'internal'\n")
    monkeypatch.syspath_prepend(tmp_path)
    library = pytest.importorskip("asserting_library")

    result = outcome_of(lambda run: library.check(), planted)

    assert result.outcome is Outcome.ERROR
    assert "AssertionError: internal" in result.message


def test_a_value_that_is_returned_is_no_pass(planted):
    assert outcome_of(lambda run: False, planted).outcome is Outcome.ERROR


def test_the_message_names_places_and_no_folder_of_the_machine(planted):
    result = outcome_of(lambda run: run.step("RaisingStep").apply(run.array([1.0])), planted)

    assert "planted_suite/targets.py line" in result.message
    assert os.getcwd() not in result.message  # noqa: PTH109


def test_an_interrupt_is_not_swallowed(planted):
    def interrupted(run):
        raise KeyboardInterrupt("planted")

    with pytest.raises(KeyboardInterrupt, match="planted"):
        outcome_of(interrupted, planted)


def test_every_outcome_has_a_meaning():
    assert set(MEANINGS) == set(Outcome)
    assert set(Outcome) - FAILURES == {
        *(Outcome.PASS, Outcome.UNSUPPORTED, Outcome.NOTRUN),
        *(Outcome.XFAIL, Outcome.XPASS),
    }

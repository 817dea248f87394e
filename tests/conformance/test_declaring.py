"""What a target declares that it lacks is UNSUPPORTED, and nothing that fails can be hidden behind it."""

from dataclasses import dataclass

import pytest
import steps_backends
from steps_conformance.case import Case
from steps_conformance.descriptions import description
from steps_conformance.execution import execute
from steps_conformance.needs import needs_of
from steps_conformance.outcomes import Outcome
from steps_conformance.requirements import load_requirements
from steps_conformance.targets.protocol import NotExpressible

NUMPY = steps_backends.get("numpy")
ALL = frozenset({"float16", "float32"})


@dataclass
class Doubling:
    """A step that doubles, and fails where it is told to."""

    raises_in: str = ""
    dtypes: frozenset[str] = ALL

    def init(self, weights):
        self._maybe_raise("init")
        return {"count": 0}

    def apply(self, gradients, weights, state):
        self._maybe_raise("apply")
        return 2 * gradients, {"count": 1}

    def _maybe_raise(self, where):
        if self.raises_in == where:
            raise NotExpressible(f"said in {where}")


class DoublingTarget:
    name, version, path, hash = "doubling", "1", "", ""

    def __init__(self, capabilities=(), **options):
        self.capabilities = frozenset(capabilities)
        self._options = options

    def make(self, described):
        if described["step"] != "Doubling":
            raise NotExpressible(f"it has no {described['step']}")
        return Doubling(**self._options)


def outcome_of(function, target, dtypes=()):
    case = Case("DEMO-LACK-001/demo", "DEMO-LACK-001", "demo", function, {}, frozenset(dtypes), frozenset())
    return execute(case, NUMPY, target)


def doubles(run):
    step = run.step("Doubling")
    result, _ = step.apply(run.array([1.0]), None, step.init(run.array([1.0])))
    assert run.read(result).values == (2.0,)


def test_a_step_that_a_target_has_is_judged():
    assert outcome_of(doubles, DoublingTarget()).outcome is Outcome.PASS


def test_a_step_that_a_target_does_not_have_is_unsupported_with_its_reason():
    result = outcome_of(lambda run: run.step("AdamStep"), DoublingTarget())

    assert result.outcome is Outcome.UNSUPPORTED
    assert result.message == "doubling cannot express this: it has no AdamStep"


def test_a_case_that_makes_the_step_itself_ends_alike():
    result = outcome_of(lambda run: run.target.make(description("AdamStep")), DoublingTarget())

    assert result.outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize("where", ["init", "apply"])
def test_a_step_that_was_made_cannot_declare_itself_inexpressible(where):
    result = outcome_of(doubles, DoublingTarget(raises_in=where))

    assert result.outcome is Outcome.ERROR
    assert f"said in {where}" in result.message


def test_a_wrong_result_is_a_failure_whatever_else_is_declared():
    def halves(run):
        result, _ = run.step("Doubling").apply(run.array([1.0]))
        assert run.read(result).values == (0.5,)
        run.step("AdamStep")

    assert outcome_of(halves, DoublingTarget()).outcome is Outcome.FAIL


def test_a_refusal_that_is_asked_for_is_not_given_by_having_no_such_step():
    def refused(run):
        run.refused("ValueError", "AdamStep", learning_rate="fast")

    assert outcome_of(refused, DoublingTarget()).outcome is Outcome.UNSUPPORTED


def test_a_step_that_declares_fewer_dtypes_is_unsupported_for_the_others():
    target = DoublingTarget(dtypes=frozenset({"float32"}))

    assert outcome_of(doubles, target).outcome is Outcome.PASS
    assert outcome_of(doubles, target, dtypes=["float16"]).outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize(
    "look",
    [
        lambda run, state: state["count"],
        lambda run, state: list(state),
        lambda run, state: state | {"count": 2},
        lambda run, state: state == {"count": 1},
        lambda run, state: state.keys(),
        lambda run, state: run.read(state),
        lambda run, state: run.step("Doubling").apply(run.array([1.0]), None, {"count": 1}),
    ],
    ids=["an-entry", "the-keys", "a-copy", "the-whole", "a-method", "its-arrays", "a-state-of-its-own"],
)
def test_a_state_is_looked_into_only_where_the_target_claims_its_form(look):
    def looks(run):
        _, state = run.step("Doubling").apply(run.array([1.0]))
        look(run, state)

    assert outcome_of(looks, DoublingTarget()).outcome is Outcome.UNSUPPORTED
    assert outcome_of(looks, DoublingTarget(["state_form"])).outcome is not Outcome.UNSUPPORTED


def test_a_state_is_carried_on_without_its_form_being_claimed():
    def twice(run):
        step = run.step("Doubling")
        _, state = step.apply(run.array([1.0]))
        step.apply(run.array([1.0]), None, state)

    assert outcome_of(twice, DoublingTarget()).outcome is Outcome.PASS


def test_requirements_that_need_a_form_are_written_down():
    from steps_conformance import needs

    listed = [identity for ids in needs._NEEDS.values() for identity in ids]

    assert set(listed) <= load_requirements().keys()
    assert needs_of("CONTRACT-013") == {"state_form", "error_form"}
    assert needs_of("CLIP-GLOBAL-001") == frozenset()

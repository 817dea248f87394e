"""Which requirements a declared trait loosens: those whose own text speaks of it."""

import pytest
import steps_backends
from steps_conformance.allowances import allowances
from steps_conformance.requirements import Requirement, load_requirements


def a_rule(text="Rule.", accuracy="exact bits.", title="what holds"):
    return Requirement("A-ONE-001", "MUST", title, text, accuracy, "s", "topic_a")


@pytest.mark.parametrize(
    "rule",
    [
        a_rule(text="Subnormal elements too."),
        a_rule(accuracy="4 ulps; a subnormal result may be zero."),
        a_rule(title="right where results are flushed"),
        a_rule(text="Where the backend declares `flushes_subnormals`, zero."),
    ],
)
def test_a_requirement_that_speaks_of_subnormal_numbers_is_named(rule):
    (found,) = allowances([rule])

    assert (found.trait, found.requirements) == ("flushes_subnormals", ("A-ONE-001",))
    assert found.condition == "arithmetic in float32 takes subnormal inputs for zero, and gives zero for them"


@pytest.mark.parametrize(
    "rule", [a_rule(), a_rule(text="Subnormal numbers are valid input.", accuracy="does not apply.")]
)
def test_a_requirement_that_fixes_no_subnormal_value_is_not(rule):
    assert allowances([rule]) == ()


def test_the_suite_names_the_rules_of_tiny_norms_and_no_rule_about_errors():
    (found,) = allowances(load_requirements().values())

    assert {"CLIP-GLOBAL-005", "CLIP-GLOBAL-006", "MONITOR-001"} <= set(found.requirements)
    assert "CONTRACT-007" not in found.requirements
    assert len(found.requirements) < 10


def test_the_trait_is_one_that_a_backend_declares():
    traits = {
        trait for name in steps_backends.names() for trait in steps_backends.get(name).declaration.traits
    }

    assert {one.trait for one in allowances(load_requirements().values())} <= traits

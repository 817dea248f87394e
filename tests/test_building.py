"""Describing a step as JSON, and building it from that."""

import json

import numpy as np
import pytest
from catalogue import SAMPLES

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    ChainedStep,
    ConstraintStep,
    GradientClippingStep,
    LinearSchedule,
    MaskedStep,
    ScalingStep,
    SGDStep,
    Step,
    UnknownNameError,
    build,
    graph,
)
from steps_core.schedules import SCHEDULES
from steps_core.steps import STEPS

DESCRIBABLE = {
    name: step for name, step in SAMPLES.items() if not (isinstance(step, MaskedStep) and callable(step.mask))
}


@pytest.mark.parametrize("step", DESCRIBABLE.values(), ids=DESCRIBABLE)
def test_a_described_step_comes_back_equal(step: Step) -> None:
    """Through JSON text, with the same hash and description."""
    again = build(json.loads(json.dumps(step.describe())))
    assert type(again) is type(step) and again == step and hash(again) == hash(step)
    assert again.describe() == step.describe()


@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_built_by_its_name(name: str) -> None:
    """The name is that of the class."""
    needed = {
        "ScalingStep": {"scale": 1},
        "ConstraintStep": {"constraint": "nonnegative"},
        "SkipNonFiniteStep": {"inner": {"step": "SGDStep"}},
        "MaskedStep": {"inner": {"step": "SGDStep"}, "mask": True},
        "CustomStep": {"graph": graph(lambda g: -g).describe()},
    }
    step = build({"step": name, "options": needed.get(name, {})})
    assert type(step).__name__ == name == step.describe()["step"]


def test_only_options_that_differ_are_described() -> None:
    """Floats as exact hexadecimal texts, bools and texts as they are."""
    assert AdamStep().describe() == {"step": "AdamStep", "options": {}}
    step = AdamStep(learning_rate=0.001, beta1=0.1, amsgrad=True)
    assert step.describe()["options"] == {"beta1": {"float": "0x1.999999999999ap-4"}, "amsgrad": True}
    axes = GradientClippingStep(variant="per-weight-relative", unit_axis=(0, -1), threshold=None)
    assert axes.describe()["options"] == {
        "variant": "per-weight-relative",
        "threshold": None,
        "unit_axis": [0, -1],
    }


def test_set_breakpoint_is_described_and_metadata_is_not() -> None:
    """It is an option; metadata is the user's own."""
    for step in (SGDStep(set_breakpoint=True, metadata={"a": 1}), ChainedStep(set_breakpoint=True)):
        assert step.describe()["options"] == {"set_breakpoint": True}
        assert build(step.describe()) == step


def test_a_chain_is_described_by_its_slots() -> None:
    """In their order, with the gaps."""
    chain = ChainedStep(step2=SGDStep(), step0=ScalingStep(scale=2))
    assert list(chain.describe()["options"]) == ["step2", "step0"]
    long = ChainedStep(*[SGDStep()] * 12, None, SGDStep())
    assert build(long.describe()) == long
    assert list(build(long.describe()).state_keys)[-2:] == ["step12", "step14"]


def test_extreme_floats_survive() -> None:
    """Infinity, the smallest number and the last bit."""
    for threshold in (np.inf, 5e-324, 1 + 2.0**-52, 1e308):
        step = GradientClippingStep(threshold=threshold)
        assert build(step.describe()).threshold == threshold
    box = ConstraintStep("box", lower=-np.inf, upper=0)
    assert build(box.describe()) == box


def test_plain_numbers_may_stand_for_floats() -> None:
    """A description written by hand."""
    assert build({"step": "AdamStep", "options": {"beta1": 0.5, "epsilon": 1}}) == AdamStep(
        beta1=0.5, epsilon=1
    )
    assert build({"step": "AdamStep"}) == AdamStep()


def test_an_unknown_function_cannot_be_described() -> None:
    """The text names it and the way out."""

    def my_warm_up(count: object) -> object:
        return count

    with pytest.raises(ArgumentTypeError, match=r"my_warm_up is not known by name.*use a schedule such as"):
        ChainedStep(SGDStep(learning_rate=my_warm_up)).describe()


def test_an_unknown_name_lists_the_known_ones() -> None:
    """Steps, schedules, options and slots."""
    with pytest.raises(
        UnknownNameError, match=r"description\['step'\] must name one of AdamStep.*got 'Adam'"
    ):
        build({"step": "Adam"})
    rate = {"schedule": "Linear", "options": {}}
    with pytest.raises(
        UnknownNameError, match=r"\['learning_rate'\]\['schedule'\] must name one of Const.*'Linear'"
    ):
        build({"step": "SGDStep", "options": {"learning_rate": rate}})
    with pytest.raises(
        UnknownNameError, match=r"description\['options'\] must name one of.*beta1.*got 'beta3'"
    ):
        build({"step": "AdamStep", "options": {"beta3": 1}})
    for slot in ("step", "stepx", "step-1", "step00", "first", "step10001", "step１"):
        with pytest.raises(UnknownNameError, match=f"got {slot!r}"):
            build({"step": "ChainedStep", "options": {slot: {"step": "SGDStep"}}})


@pytest.mark.parametrize("description", [None, "AdamStep", 3, ["AdamStep"]], ids=repr)
def test_a_description_is_a_mapping(description: object) -> None:
    """Anything else is a wrong type."""
    with pytest.raises(ArgumentTypeError, match=r'description must be \{"step": name.*pass what describe'):
        build(description)


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"step": 3},
        {"step": "AdamStep", "options": []},
        {"step": "AdamStep", "options": {}, "more": 1},
        {"schedule": "ConstantSchedule", "options": {"value": 1}},
    ],
    ids=repr,
)
def test_a_description_has_one_form(description: dict) -> None:
    """A name and options, nothing else."""
    with pytest.raises(ArgumentError, match=r'description must be \{"step": name, "options"'):
        build(description)


@pytest.mark.parametrize("text", ["x", "0x1.0p99999", 3, None, ""], ids=repr)
def test_a_tagged_float_must_be_hexadecimal(text: object) -> None:
    """The place is named."""
    with pytest.raises(
        ArgumentError, match=r"\['options'\]\['beta1'\] must hold a hexadecimal float"
    ) as caught:
        build({"step": "AdamStep", "options": {"beta1": {"float": text}}})
    assert caught.value.argument == "description['options']['beta1']"


def test_a_needed_option_that_is_missing_is_named() -> None:
    """For steps and for schedules."""
    with pytest.raises(ArgumentError, match="give constraint, which ConstraintStep needs"):
        build({"step": "ConstraintStep"})
    rate = {"schedule": "LinearSchedule", "options": {"initial": 1, "final": 0}}
    with pytest.raises(ArgumentError, match="give steps, which LinearSchedule needs"):
        build({"step": "SGDStep", "options": {"learning_rate": rate}})


def test_a_bad_option_is_refused_as_by_the_constructor() -> None:
    """The same class, the same argument."""
    with pytest.raises(ArgumentError, match="beta1 must be at least 0 and below 1, got 2") as caught:
        build({"step": "AdamStep", "options": {"beta1": 2}})
    assert caught.value.argument == "beta1"
    with pytest.raises(ArgumentTypeError, match="beta1 must be a number"):
        build({"step": "AdamStep", "options": {"beta1": {"step": "SGDStep"}}})


def test_keys_that_are_no_texts_are_refused() -> None:
    """JSON has none."""
    with pytest.raises(ArgumentError, match=r"description\['options'\] must have texts as keys"):
        build({"step": "AdamStep", "options": {1: 2}})


def test_nesting_is_bounded() -> None:
    """A hundred levels are more than anyone writes, and less than Python's stack."""
    description = {"step": "SGDStep"}
    for _ in range(40):
        description = {"step": "ChainedStep", "options": {"step1": description}}
    assert build(description).negates
    for _ in range(100):
        description = {"step": "ChainedStep", "options": {"step1": description}}
    with pytest.raises(ArgumentError, match="must be nested at most 100 levels deep"):
        build(description)


def test_schedules_nest_in_schedules() -> None:
    """A warm-up describes what follows it."""
    text = json.dumps(SAMPLES["scaling by a schedule"].describe())
    assert '"schedule": "PiecewiseSchedule"' in text
    assert set(SCHEDULES) >= {"WarmupSchedule", "PiecewiseSchedule"}
    step = SGDStep(learning_rate=LinearSchedule(1, 0, 5))
    assert step.describe()["options"]["learning_rate"]["options"]["steps"] == 5

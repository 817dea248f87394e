"""The contract of every step: ports, results, signs, breakpoints and metadata."""

import dataclasses
import inspect
from typing import Any

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
    MomentumStep,
    MonitorStep,
    RMSPropStep,
    ScalingStep,
    SGDStep,
    SkipNonFiniteStep,
    Step,
    StepLike,
    StepResult,
    check_end_to_end,
)
from steps_core.steps import STEPS

FALLING = LinearSchedule(-1.0, -2.0, 10)

NEGATES = {
    AdamStep(): True,
    AdamStep(learning_rate=0.0): True,
    AdamStep(learning_rate=-1.0): False,
    AdamStep(learning_rate=FALLING): True,
    RMSPropStep(): True,
    RMSPropStep(learning_rate=-1.0): False,
    SGDStep(): True,
    SGDStep(learning_rate=-1.0): False,
    SGDStep(learning_rate=FALLING): True,
    ScalingStep(learning_rate=0.1): True,
    ScalingStep(learning_rate=-0.1): False,
    ScalingStep(learning_rate=FALLING): True,
    ScalingStep(scale=-0.1): True,
    ScalingStep(scale=0.0): False,
    ScalingStep(scale=0.1): False,
    ScalingStep(scale=FALLING): False,
    GradientClippingStep(): False,
    MomentumStep(): False,
    MonitorStep(): False,
    ConstraintStep("nonnegative"): False,
    SkipNonFiniteStep(AdamStep()): True,
    ChainedStep(AdamStep(), ScalingStep(scale=-1.0)): False,
}

BY_POSITION = {
    "CustomStep": ["graph", "graph_signature", "overrides"],
    "ConstraintStep": ["constraint"],
    "SkipNonFiniteStep": ["inner"],
    "MaskedStep": ["inner", "mask"],
}


@pytest.mark.parametrize("step", NEGATES, ids=repr)
def test_a_step_knows_its_sign(step: Step) -> None:
    """A number below 0 turns it round; a schedule counts as positive."""
    assert step.negates is NEGATES[step]


@pytest.mark.parametrize("step", NEGATES, ids=repr)
def test_check_end_to_end_accepts_what_negates(step: Step) -> None:
    """And refuses the others with the way out."""
    if step.negates:
        check_end_to_end(step)
        return
    with pytest.raises(ArgumentError, match=r"end the chain with ScalingStep\(scale=-1.0\)") as caught:
        check_end_to_end(step)
    assert caught.value.argument == "step" and caught.value.value is step
    check_end_to_end(ChainedStep(step, ScalingStep(scale=-1.0))) if not step.constrains else None


def test_a_call_returns_a_named_pair() -> None:
    """It unpacks and has names."""
    result = SGDStep(learning_rate=1.0)(np.asarray([2.0]))
    assert isinstance(result, StepResult)
    gradients, state = result
    assert gradients is result.gradients and state is result.state


@pytest.mark.parametrize("step", SAMPLES.values(), ids=SAMPLES)
def test_the_ports_have_names(step: Step) -> None:
    """gradients, weights, state: by position and by keyword, the last two with the default None.

    The name of a node in a graph goes by keyword alone.
    """
    parameters = dict(inspect.signature(step).parameters)
    assert parameters.pop("name").kind is inspect.Parameter.KEYWORD_ONLY
    assert [(name, p.default) for name, p in parameters.items()][1:] == [("weights", None), ("state", None)]
    assert next(iter(parameters)) == "gradients"
    leaf = np.asarray([1.0, 2.0])
    by_keyword = step(state=step.init(weights=leaf), weights=leaf, gradients=leaf).gradients
    np.testing.assert_array_equal(by_keyword, step(leaf, leaf, step.init(leaf)).gradients)
    assert isinstance(step, StepLike)


def test_without_a_state_a_step_starts_afresh() -> None:
    """From the weights where they are given, else from the gradients."""
    gradients, weights = np.asarray([1.0], "float16"), np.asarray([2.0], "float64")
    assert AdamStep()(gradients).state["first_moment"].dtype == np.float32
    assert AdamStep()(gradients, weights).state["first_moment"].dtype == np.float64
    assert "restarts" in Step.__call__.__doc__


@pytest.mark.parametrize("name", [name for name in STEPS if name != "ConstraintStep"])
def test_options_are_keyword_only_but_those_that_read_as_a_sentence(name: str) -> None:
    """Both ports that every step has are among them, with their defaults."""
    parameters = inspect.signature(STEPS[name]).parameters
    positional = [n for n, p in parameters.items() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == BY_POSITION.get(name, [])
    assert parameters["set_breakpoint"].kind is parameters["metadata"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["set_breakpoint"].default is False


@pytest.mark.parametrize("step", SAMPLES.values(), ids=SAMPLES)
def test_a_step_cannot_be_changed(step: Step) -> None:
    """It is frozen: one object may serve many models."""
    for field in dataclasses.fields(step):
        with pytest.raises(dataclasses.FrozenInstanceError, match=field.name):
            setattr(step, field.name, None)


def test_one_object_serves_two_models() -> None:
    """Their states do not meet."""
    step = MomentumStep(decay=0.5)
    one, other = step.init(np.zeros(1)), step.init(np.zeros(2))
    _, one = step(np.ones(1), state=one)
    _, other = step(np.full(2, 5.0), state=other)
    assert step(np.ones(1), state=one).gradients == [1.5]


@pytest.mark.parametrize("step", SAMPLES.values(), ids=SAMPLES)
def test_the_state_is_a_plain_dict_with_the_keys_that_are_told(step: Step) -> None:
    """Before and after a call."""
    leaf = np.asarray([1.0, 2.0])
    for state in (step.init(leaf), step(leaf, leaf).state):
        assert type(state) is dict
        assert sorted(state) == sorted(step.state_keys)


def test_metadata_is_kept_read_only_and_apart_from_equality() -> None:
    """A copy of what is given; no part of equality, hash or description."""
    given = {"note": [1]}
    step = AdamStep(metadata=given)
    given["more"] = 1
    assert dict(step.metadata) == {"note": [1]} and len(step.metadata) == 1
    with pytest.raises(TypeError, match="does not support item assignment"):
        step.metadata["note"] = 2
    assert step == AdamStep() and hash(step) == hash(AdamStep())
    assert step.describe() == AdamStep().describe()
    assert dict(AdamStep().metadata) == {} == dict(ChainedStep().metadata)
    assert repr(step) == repr(AdamStep())


@pytest.mark.parametrize("step", SAMPLES.values(), ids=SAMPLES)
def test_every_step_stops_in_the_debugger_if_asked(step: Step, monkeypatch: Any) -> None:
    """Once a call, through sys.breakpointhook; by default not."""
    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda *args, **kwargs: stops.append(args))
    leaf = np.asarray([1.0, 2.0])
    step(leaf, leaf)
    assert stops == []
    options = dict(step.slots) if isinstance(step, ChainedStep) else _options(step)
    stopping = type(step)(**options, set_breakpoint=True)
    stopping(leaf, leaf)
    assert len(stops) == 1
    assert stopping != step


def _options(step: Step) -> dict[str, Any]:
    own = [
        field.name for field in dataclasses.fields(step) if field.name not in ("set_breakpoint", "metadata")
    ]
    return {name: getattr(step, name) for name in own}


def test_a_step_inside_a_chain_stops_too(monkeypatch: Any) -> None:
    """Each one that asks."""
    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(1))
    ChainedStep(SGDStep(set_breakpoint=True), MonitorStep(), set_breakpoint=True)(np.ones(1))
    assert len(stops) == 2


def test_python_can_switch_breakpoints_off(monkeypatch: Any) -> None:
    """PYTHONBREAKPOINT=0 is what sys.breakpointhook itself honours."""
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    assert SGDStep(learning_rate=1.0, set_breakpoint=True)(np.ones(1)).gradients == [-1.0]


def test_set_breakpoint_none_is_not_given() -> None:
    """A graph's empty port."""
    assert SGDStep(set_breakpoint=None) == SGDStep()


def test_a_class_that_is_no_step_cannot_be_made() -> None:
    """Step itself is an interface."""
    with pytest.raises(TypeError, match="abstract"):
        Step()


def test_a_wrapper_asks_for_a_step_not_its_class() -> None:
    """The way out says how to make one."""
    with pytest.raises(ArgumentTypeError, match=r"make the step: AdamStep\(\)"):
        SkipNonFiniteStep(AdamStep)

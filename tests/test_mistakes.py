"""Mistakes that were once accepted silently, or answered with an error of the machinery."""

from typing import Any

import numpy as np
import pytest

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    ChainedStep,
    MaskedStep,
    SGDStep,
    TreeMismatchError,
    build,
    check_end_to_end,
    load_state,
    register_container,
    save_state,
)

GRADIENTS = np.asarray([3.0, 4.0], np.float32)


class Foreign:
    """A step of another make, whose call returns what it is told to."""

    negates = False

    def __init__(self, result: Any) -> None:
        self.result = result

    def init(self, weights: Any) -> Any:
        return {}

    def __call__(self, gradients: Any, weights: Any = None, state: Any = None) -> Any:
        return self.result


def test_a_mask_does_not_follow_later_changes_of_the_callers_dict():
    mask = {"a": True, "b": False}
    step = MaskedStep(SGDStep(learning_rate=1.0), mask)
    mask["a"] = False

    assert step({"a": GRADIENTS, "b": GRADIENTS}).gradients["a"].tolist() == [-3.0, -4.0]


@pytest.mark.parametrize("result", [GRADIENTS, None, (GRADIENTS,)], ids=["array", "none", "single"])
def test_a_foreign_step_must_return_a_pair(result):
    text = "the result of Foreign must be a pair of gradients and state"
    with pytest.raises(ArgumentTypeError, match=text) as caught:
        ChainedStep(Foreign(result))(GRADIENTS)

    assert caught.value.slot == "step1"


def test_a_foreign_step_must_keep_the_shapes():
    with pytest.raises(TreeMismatchError, match=r"the result of Foreign must have the shape \(2,\)"):
        ChainedStep(Foreign((np.ones(7, np.float32), {})))(GRADIENTS)


@pytest.mark.parametrize("wrong", [AdamStep, 5, None], ids=["class", "number", "none"])
def test_what_is_no_step_is_not_end_to_end(wrong):
    with pytest.raises(ArgumentTypeError, match="step must be a step, got"):
        check_end_to_end(wrong)


def test_a_whole_result_is_no_state(tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"state must be a state.*got StepResult.*second part"):
        save_state(AdamStep()(GRADIENTS), tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", [None, 5, b"x", ""], ids=repr)
def test_a_file_must_be_a_path(file):
    state = AdamStep().init(GRADIENTS)
    with pytest.raises(ArgumentTypeError, match="file must be a path, got"):
        save_state(state, file)
    with pytest.raises(ArgumentTypeError, match="file must be a path, got"):
        load_state(file, like=state)


@pytest.mark.parametrize("like", [None, 5], ids=repr)
def test_like_must_be_a_state(tmp_path, like):
    save_state(AdamStep().init(GRADIENTS), tmp_path / "state")
    with pytest.raises(ArgumentTypeError, match=r"like must be a state.*pass step.init\(weights\)"):
        load_state(tmp_path / "state", like=like)


def test_a_class_of_arrays_is_no_container():
    with pytest.raises(ArgumentTypeError, match="kind must be a container, no class of arrays"):
        register_container(np.ndarray, lambda array: ((), None), lambda _, __: None)


@pytest.mark.parametrize("text", ["abc", "10", "1e3", "0x1", ""])
def test_only_the_whole_hexadecimal_form_is_a_float(text):
    with pytest.raises(ArgumentError, match="must hold a hexadecimal float"):
        build({"step": "SGDStep", "options": {"learning_rate": {"float": text}}})

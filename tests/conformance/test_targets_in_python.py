"""A mistake in a target written in Python is said in the words of its author, and not as a riddle of ours."""

import json
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import steps_backends
from steps_backends import host_array
from steps_conformance.case import Case
from steps_conformance.execution import execute
from steps_conformance.loading import load_target
from steps_conformance.outcomes import Outcome
from steps_conformance.targets.checking import NoTargetError, checked_target
from steps_conformance.targets.serve import Server
from steps_conformance.targets.steps_core import target as package_target
from steps_conformance.targets.wire import encoded

NUMPY = steps_backends.get("numpy")


def parts(**changed: Any) -> dict[str, Any]:
    right = {"name": "mine", "version": "1", "path": "mine.py", "hash": "0", "capabilities": frozenset()}
    return {**right, "make": lambda description: None, **changed}


def test_a_target_that_has_everything_is_one():
    found = SimpleNamespace(**parts())

    assert checked_target(found, "my_target:target") is found
    assert load_target("steps_conformance.targets.steps_core:target") is package_target


def test_a_function_is_told_what_a_target_has():
    with pytest.raises(
        NoTargetError,
        match=r"a target must have name, version, path, hash, capabilities and make, and "
        r"steps_conformance.descriptions:chain, a function, has no name, version, path, hash, .*; "
        r".* docs/test-your-implementation.md shows a whole one",
    ):
        load_target("steps_conformance.descriptions:chain")


def test_a_class_is_told_to_be_made_an_instance():
    with pytest.raises(
        NoTargetError,
        match=r"steps_core:PackageTarget is a class, and a target is an instance of one: write target = "
        r"PackageTarget\(\) in steps_conformance.targets.steps_core, and name that, --target "
        r"steps_conformance.targets.steps_core:target$",
    ):
        load_target("steps_conformance.targets.steps_core:PackageTarget")


WRONG_PARTS = {
    "version": ({"version": 1.0}, "version of my:target must be a text, got 1.0 (float); write str(...)"),
    "capabilities": (
        {"capabilities": ["trees"]},
        "must be a set of names, such as frozenset({'state_form'}), got ['trees'] (list)",
    ),
    "make": ({"make": "Adam"}, "make of my:target must be a method that returns a step, got 'Adam' (str)"),
    "scope": (
        {"scope": {"steps": ()}},
        "scope of my:target must be a steps_conformance.targets.scope.Scope, got {'steps': ()} (dict)",
    ),
    "claim": (
        {"capabilities": {"state_files"}, "save_state": print},
        "my:target claims state_files and has no method load_state; add it, or do not claim it",
    ),
}


@pytest.mark.parametrize(("changed", "text"), WRONG_PARTS.values(), ids=WRONG_PARTS.keys())
def test_a_part_of_another_kind_is_shown(changed, text):
    with pytest.raises(NoTargetError, match=re.escape(text)):
        checked_target(SimpleNamespace(**parts(**changed)), "my:target")


@dataclass
class Returning:
    """A step whose apply returns what it is told to."""

    result: Any

    def init(self, weights: Any) -> Any:
        return {}

    def apply(self, gradients: Any, weights: Any, state: Any) -> Any:
        return self.result


ARRAY = NUMPY.array(host_array([1.0]))
APPLY = "apply must return (gradients, state), a tuple of two, got "
MAKE = "make must return a step, with the methods init and apply, got "
WRONG_RETURNS = {
    "nothing": (
        Returning(None),
        f"{APPLY}None (NoneType); a step that remembers nothing returns {{}} as its",
    ),
    "gradients-alone": (Returning({"a": ARRAY}), f"{APPLY}{{'a': array([1.], dtype=float32)}} (dict)"),
    "a-tree-of-two": (Returning({"a": ARRAY, "b": ARRAY}), f"{APPLY}{{'a': "),
    "a-list-of-two": (Returning([ARRAY, {}]), f"{APPLY}["),
    "three": (
        Returning((ARRAY, {}, None)),
        f"{APPLY}3 values, (array([1.], dtype=float32), {{}}, None) (tuple)",
    ),
    "no-step": (None, f"{MAKE}None (NoneType); where there is no such step, raise NotExpressible"),
    "a-function": (len, f"{MAKE}<built-in function len>"),
}


@pytest.mark.parametrize(("step", "text"), WRONG_RETURNS.values(), ids=WRONG_RETURNS.keys())
def test_what_a_step_wrongly_returns_is_shown_and_no_frame_of_the_suite(step, text):
    found = SimpleNamespace(**parts(make=lambda description: step))

    result = execute(
        Case("DEMO-001/x", "DEMO-001", "demo", applies, {}, frozenset(), frozenset()), NUMPY, found
    )

    assert result.outcome is Outcome.ERROR
    assert result.message.startswith(f"the target broke the protocol: {text}")
    assert "line" not in result.message


def applies(run):
    run.step("Any").apply(run.array([1.0]))


@pytest.mark.parametrize(("step", "text"), WRONG_RETURNS.values(), ids=WRONG_RETURNS.keys())
def test_a_server_says_the_same(step, text):
    server = Server(SimpleNamespace(**parts(make=lambda description: step)), NUMPY)
    make = {"id": 1, "do": "make", "description": {"step": "Any", "options": {}}}
    trees = {"gradients": encoded(host_array([1.0])), "weights": None, "state": None}

    answers = [
        server.answer(json.dumps(one).encode())
        for one in (make, {"id": 2, "do": "apply", "step": 0, **trees})
    ]

    assert any(text in answer["error"]["message"] for answer in answers if "error" in answer)

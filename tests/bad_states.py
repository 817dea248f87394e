"""States that must be refused, each with the place of the first wrong entry."""

from typing import Any

import numpy as np
from bad_input import Bad
from bad_trees import ADAM, BIAS, ONE, tree

from steps_core import (
    AdamStep,
    ChainedStep,
    CosineSchedule,
    MaskedStep,
    MomentumStep,
    MonitorStep,
    SGDStep,
    SkipNonFiniteStep,
    StateError,
    Step,
    WeightDecayStep,
)


def _bad_state(what: str, step: Step, state: Any, path: str, *says: str, slot: str | None = None) -> Bad:
    return Bad(what, lambda: step(tree(ONE), tree(ONE), state), StateError, "state", says, path, slot)


def _changed(step: Step, changes: dict[str, Any], *, drop: str | None = None) -> dict[str, Any]:
    state = {**step.init(tree(ONE)), **changes}
    state.pop(drop, None)
    return state


COUNT = np.zeros((), "int32")
CHAIN = ChainedStep(ADAM, MonitorStep())
COUNTED = SGDStep(learning_rate=CosineSchedule(1.0, 5))
WAY_OUT = "pass the state that this step returned for these weights, or step.init(weights)"
ROWS: list[Bad] = [
    *(
        _bad_state(
            f"{what} instead of a dict",
            ADAM,
            state,
            "state",
            "state must be a dict with the entries ['count'",
            WAY_OUT,
        )
        for what, state in (("a tuple", (1, 2)), ("an array", ONE), ("a list", []), ("text", "state"))
    ),
    _bad_state(
        "no moment",
        ADAM,
        _changed(ADAM, {}, drop="second_moment"),
        "state['second_moment']",
        "state must have exactly the entries ['count', 'first_moment', 'second_moment']",
        "missing: state['second_moment']",
        "(dict)",
        WAY_OUT,
    ),
    _bad_state(
        "an unknown entry", ADAM, _changed(ADAM, {"step": 1}), "state['step']", "not known: state['step']"
    ),
    _bad_state("a key that is no text", ADAM, _changed(ADAM, {1: 1}), "state[1]", "not known: state[1]"),
    _bad_state(
        "amsgrad's state for Adam",
        ADAM,
        AdamStep(amsgrad=True).init(tree(ONE)),
        "state['second_moment_max']",
        "not known",
    ),
    _bad_state(
        "Adam's state for amsgrad",
        AdamStep(amsgrad=True),
        ADAM.init(tree(ONE)),
        "state['second_moment_max']",
        "missing",
    ),
    _bad_state(
        "a state for a stateless step", WeightDecayStep(), ADAM.init(tree(ONE)), "state['count']", "not known"
    ),
    _bad_state("{} for a step with one", MomentumStep(), {}, "state['trace']", "missing: state['trace']"),
    *(
        _bad_state(
            f"a count that is {what}",
            ADAM,
            _changed(ADAM, {"count": count}),
            "state['count']",
            "state['count'] must be a 0-d array",
            says,
        )
        for what, count, says in (
            ("a number", 3, "got 3 (int)"),
            ("None", None, "None (NoneType)"),
            ("int64", np.zeros((), "int64"), "int32"),
            ("a vector", np.zeros(1, "int32"), "shape (1,)"),
            ("a float", np.zeros((), "float32"), "dtype float32"),
        )
    ),
    _bad_state(
        "a schedule's count of int64",
        COUNTED,
        {"count": np.zeros((), "int64")},
        "state['count']",
        "must be a 0-d array of dtype int32",
    ),
    *(
        _bad_state(
            f"a moment {what}",
            ADAM,
            _changed(ADAM, {"first_moment": tree(moment)}),
            f"state['first_moment']{BIAS}",
            *says,
        )
        for what, moment, says in (
            (
                "of another shape",
                np.zeros(4, "float32"),
                ("must be an array like gradients", "shape (3,)", "got an array of shape (4,)"),
            ),
            ("of another dtype", np.zeros(3, "float64"), ("dtype float32", "float64 (ndarray)")),
            ("of float16", np.zeros(3, "float16"), ("dtype float32", "float16 (ndarray)")),
            ("that is complex", np.zeros(3, "complex64"), ("dtype float32", "complex64 (ndarray)")),
            ("that is None", None, ("None (NoneType)",)),
            ("that is a number", 0.0, ("0.0 (float)",)),
        )
    ),
    _bad_state(
        "a moment of another structure",
        ADAM,
        _changed(ADAM, {"first_moment": {"layer1": {"kernel": ONE}}}),
        f"state['first_moment']{BIAS}",
        "must have the same tree structure",
        "nothing at state['first_moment']['layer1']['bias']",
    ),
    _bad_state(
        "a complex second moment",
        ADAM,
        _changed(ADAM, {"second_moment": tree(np.zeros(3, "complex64"))}),
        f"state['second_moment']{BIAS}",
        "dtype float32",
    ),
    _bad_state(
        "a norm that is a number",
        MonitorStep(),
        {"norm": 0.0, "finite": np.asarray(True)},
        "state['norm']",
        "0-d array of dtype float32 or float64",
        "0.0 (float)",
    ),
    _bad_state(
        "a norm of int32",
        MonitorStep(),
        {"norm": COUNT, "finite": np.asarray(True)},
        "state['norm']",
        "float32 or float64",
    ),
    _bad_state(
        "a flag of int32",
        MonitorStep(),
        {"norm": np.zeros((), "float32"), "finite": COUNT},
        "state['finite']",
        "0-d array of dtype bool",
    ),
    _bad_state(
        "a flag that is a bool",
        MonitorStep(),
        {"norm": np.zeros((), "float32"), "finite": True},
        "state['finite']",
        "True (bool)",
    ),
    _bad_state(
        "a counter of skips of int64",
        SkipNonFiniteStep(ADAM),
        {"inner": ADAM.init(tree(ONE)), "skipped": np.asarray(0)},
        "state['skipped']",
        "int32",
    ),
    _bad_state(
        "a bad inner state",
        SkipNonFiniteStep(ADAM),
        {"inner": {}, "skipped": COUNT},
        "state['inner']['count']",
        "state['inner'] must have exactly",
        "missing",
    ),
    _bad_state(
        "a bad masked state",
        MaskedStep(ADAM, True),
        {"inner": {}},
        "state['inner']['count']",
        "missing: state['inner']['count']",
    ),
    _bad_state(
        "a chain's missing slot",
        CHAIN,
        {"step1": ADAM.init(tree(ONE))},
        "state['step2']",
        "missing: state['step2']",
    ),
    _bad_state(
        "a chain's extra slot",
        ChainedStep(ADAM),
        CHAIN.init(tree(ONE)),
        "state['step2']",
        "not known: state['step2']",
    ),
    _bad_state(
        "a bare state for a chain",
        ChainedStep(ADAM),
        ADAM.init(tree(ONE)),
        "state['step1']",
        "missing: state['step1']",
    ),
    _bad_state(
        "a bad count inside a chain",
        CHAIN,
        {**CHAIN.init(tree(ONE)), "step1": _changed(ADAM, {"count": 3})},
        "state['step1']['count']",
        "state['step1']['count'] must be a 0-d array of dtype int32",
        slot="step1",
    ),
    _bad_state(
        "a bad moment deep inside",
        ChainedStep(step2=ChainedStep(step0=ADAM)),
        {"step2": {"step0": _changed(ADAM, {"first_moment": tree(np.zeros(4, "float32"))})}},
        f"state['step2']['step0']['first_moment']{BIAS}",
        "shape (3,)",
        slot="step2.step0",
    ),
]

"""Planted faults: each is noticed by the vectors of every step that can have it."""

import numpy as np
import pytest
import steps_backends
from steps_conformance.compare import Mismatch
from steps_conformance.containers import mapped
from steps_conformance.run import Run
from steps_conformance.targets.steps_core import target
from steps_conformance.vectors.coverage import SUBJECTS, by_subject
from steps_conformance.vectors.model import load_vectors
from steps_conformance.vectors.playing import play

STATEFUL = (
    "AdamStep", "RMSPropStep", "MomentumStep", "ScalingStep", "ChainedStep", "SkipNonFiniteStep", "MaskedStep"
)  # fmt: skip
LITTLE = np.float32(1 + 3e-6)
# One dtype and few calls: a fault is of the rule, and the whole set would take its time for each.
SHORT = by_subject(
    vector
    for listed in load_vectors().values()
    for vector in listed
    if vector.dtypes() <= {"float32"} and len(vector.calls) <= 8
)


class Faulty:
    """The real steps with a fault around them."""

    capabilities = frozenset({"state_form", "trees", "error_form"})

    def __init__(self, fault):
        self.fault = fault

    def make(self, description):
        made = Faulty(self.fault)
        made.step = target.make(description)
        made.init = made.step.init
        return made

    def apply(self, gradients, weights, state):
        return self.fault(self.step, gradients, weights, state)


def each(change, tree):
    return mapped(lambda leaf, _: change(leaf), tree)


def forgets(step, gradients, weights, state):
    return step.apply(gradients, weights, step.init(gradients if weights is None else weights))


def takes_nan_for_zero(step, gradients, weights, state):
    zeroed = each(lambda leaf: np.where(np.isnan(leaf), np.float32(0), leaf), gradients)
    return step.apply(zeroed, weights, state)


def takes_infinities_for_large(step, gradients, weights, state):
    finite = each(lambda leaf: np.clip(leaf, -3.4e38, 3.4e38), gradients)
    return step.apply(finite, weights, state)


def loses_subnormal_results(step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    return each(lambda leaf: np.where(np.abs(leaf) < 1.17549435e-38, leaf * 0, leaf), result), state


def is_off_by_little(step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    return each(lambda leaf: leaf * LITTLE, result), state


def loses_shapes(step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    return each(lambda leaf: leaf.reshape(-1), result), state


def fills_in_for_none(step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    return filled(result), state


def filled(tree):
    if isinstance(tree, dict):
        return {key: filled(part) for key, part in tree.items()}
    return np.zeros(1, np.float32) if tree is None else tree


def moves_the_state(step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    return result, each(lambda leaf: leaf - 1 if leaf.dtype == np.int32 else leaf * LITTLE, state)


FAULTS = {
    fault: [name for name in subjects if SHORT[name]]
    for fault, subjects in {
        forgets: STATEFUL,
        takes_nan_for_zero: SUBJECTS,
        takes_infinities_for_large: SUBJECTS,
        loses_subnormal_results: ("MonitorStep", "MomentumStep", "ScalingStep", "per-weight", "per-layer"),
        is_off_by_little: SUBJECTS,
        loses_shapes: SUBJECTS,
        fills_in_for_none: SUBJECTS,
        moves_the_state: (*STATEFUL, "MonitorStep"),
    }.items()
}
ROWS = [(fault, name) for fault, names in FAULTS.items() for name in names]


def is_caught(fault, vector):
    try:
        with np.errstate(all="ignore"):
            play(Run(steps_backends.get("numpy"), Faulty(fault)), vector)
    except Mismatch:
        return True
    return False


@pytest.mark.parametrize(("fault", "name"), ROWS, ids=[f"{fault.__name__}-{name}" for fault, name in ROWS])
def test_a_fault_is_noticed_by_the_vectors_of_each_step(fault, name):
    assert any(is_caught(fault, vector) for vector in reversed(SHORT[name]))


def test_the_steps_without_a_fault_pass():
    def nothing(step, gradients, weights, state):
        return step.apply(gradients, weights, state)

    assert not any(is_caught(nothing, vector) for listed in SHORT.values() for vector in listed)

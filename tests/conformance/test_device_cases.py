"""The cases of devices and tracing fail where a step reads values, or moves what must stay."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
import steps_backends
from steps_backends import host_array
from steps_backends.torch_dtensor import WAYS, way_of
from steps_conformance.case import load_cases
from steps_conformance.cases.devices import near_each_other
from steps_conformance.cases.shards import SHAPES
from steps_conformance.compare import Mismatch
from steps_conformance.containers import mapped
from steps_conformance.execution import execute
from steps_conformance.outcomes import Outcome
from steps_conformance.targets.steps_core import PackageTarget

CASES = load_cases()


@dataclass(frozen=True)
class SpoiltStep:
    """A step of steps_core, with something done to its result."""

    step: Any
    spoil: Any

    def init(self, weights):
        return self.step.init(weights)

    def apply(self, gradients, weights, state):
        result, state = self.step.apply(gradients, weights, state)
        return self.spoil(result), state


@dataclass(frozen=True)
class SpoiltTarget(PackageTarget):
    spoil: Any = None

    def make(self, description):
        return SpoiltStep(super().make(description), self.spoil)


def branched(tree):
    """As in ``if norm > threshold``."""
    return mapped(lambda leaf, _: leaf if (leaf * 0 == 0).all() else -leaf, tree)


def strictly_branched(tree):
    import array_api_strict as strict

    return mapped(lambda leaf, _: leaf if strict.all(leaf == leaf) else -leaf, tree)


def gathered(tree):
    """All leaves go to one device, and back."""
    home = next(iter(tree.values())).device
    return mapped(lambda leaf, _: leaf.to_device(home).to_device(leaf.device), tree)


def left_behind(tree):
    home = next(iter(tree.values())).device
    return mapped(lambda leaf, _: leaf.to_device(home), tree)


def outcome(identity, row, spoil):
    backend = steps_backends.get(row)
    probe = backend.probe()
    if not probe.runs:
        pytest.skip(probe.reason)
    return execute(CASES[identity], backend, SpoiltTarget(spoil=spoil))


def test_the_shapes_of_the_cases_of_shards_meet_every_way_to_lie():
    """Where a plain leaf, or a copied one, is missing, no case would say so."""
    assert {way_of(shape) for shape in SHAPES.values() if shape} == set(range(WAYS))


def test_a_difference_is_judged_by_the_ulps_of_what_it_was_subtracted_from():
    """One ulp of 0.25 is 32 of 2**-7."""
    reading = SimpleNamespace(read=lambda tree: tree)
    weights = {"['a']": host_array([0.25])}
    exact, off, far_off = ({"a": host_array([2.0**-7 + n * 2.0**-25])} for n in (0, 1, 9))

    near_each_other(reading, off, exact, 8, minuends=weights)
    with pytest.raises(Mismatch, match="off by 32 ulps"):
        near_each_other(reading, off, exact, 8)
    with pytest.raises(Mismatch, match="off by 9 ulps"):
        near_each_other(reading, far_off, exact, 8, minuends=weights)


@pytest.mark.parametrize(
    ("row", "spoil"),
    [("torch", branched), ("jax", branched), ("array-api-strict-device1", strictly_branched)],
)
def test_a_branch_on_a_value_fails(row, spoil):
    result = outcome("DEVICE-001/nothing-is-read[clip-global]", row, spoil)

    assert (result.outcome, result.message[:30]) == (Outcome.FAIL, "a value was read on the host: ")


def test_a_leaf_that_travels_and_comes_back_fails():
    result = outcome("DEVICE-004/only-numbers-move[sgd]", "array-api-strict", gathered)

    assert result.outcome is Outcome.FAIL
    assert "arrays of the shapes [(4,), (4,), (5,), (5,)] moved" in result.message


def test_a_result_on_another_device_fails():
    result = outcome("DEVICE-002/results-stay[sgd]", "array-api-strict", left_behind)

    assert result.outcome is Outcome.FAIL
    assert "result of call 1['leaf1']: expected device device1, got cpu" in result.message


def test_a_branch_cannot_be_batched():
    result = outcome("TRACE-002/batched[clip-and-adam]", "torch", branched)

    assert result.outcome is Outcome.ERROR


def test_a_case_does_not_run_on_a_row_without_its_trait():
    backend = steps_backends.get("numpy")
    result = execute(CASES["TRACE-003/state-as-a-carry"], backend, PackageTarget())

    assert result.outcome is Outcome.UNSUPPORTED
    assert result.message == "numpy does not declare the trait scans"
    everything = replace(CASES["TRACE-003/state-as-a-carry"], traits=frozenset())
    assert everything.unsupported(backend.declaration, PackageTarget().capabilities) is None

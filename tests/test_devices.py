"""Trees over several devices: those that array-api-strict pretends to have."""

from typing import Any

import numpy as np
import optree
import pytest
from comparing import leaves_of, read_tree
from libraries import Library

from steps_core import (
    AdamStep,
    ChainedStep,
    GradientClippingStep,
    MomentumStep,
    MonitorStep,
    SGDStep,
    SkipNonFiniteStep,
    StateError,
    TreeMismatchError,
    apply_updates,
)

CHAIN = ChainedStep(MonitorStep(), GradientClippingStep(variant="global", threshold=2.0), AdamStep())


@pytest.fixture
def strict() -> Library:
    """The library whose devices exist everywhere."""
    pytest.importorskip("array_api_strict")
    return Library("array_api_strict")


@pytest.fixture
def gradients_on_two_devices(strict: Library) -> dict[str, Any]:
    """3 and 4 here, 12 there."""
    there = strict.module.Device("device1")
    return {"here": strict.array([3.0, 4.0]), "there": strict.array([12.0], device=there)}


def devices(tree: Any) -> list[str]:
    """Return the device of each leaf."""
    return [str(leaf.device) for leaf in leaves_of(tree)]


def test_leaves_stay_on_their_device(gradients_on_two_devices: dict) -> None:
    """Outputs, moments and new weights, of every step of a chain, over several calls."""
    tree, expected = gradients_on_two_devices, devices(gradients_on_two_devices)
    chain = ChainedStep(SkipNonFiniteStep(CHAIN), MomentumStep())
    state = chain.init(tree)
    for _ in range(3):
        updates, state = chain(tree, tree, state)
        assert devices(updates) == devices(apply_updates(tree, updates)) == expected
        inner = state["step1"]["inner"]["step3"]
        assert devices(inner["first_moment"]) == devices(inner["second_moment"]) == expected
        assert devices(state["step2"]["trace"]) == expected
    assert int(inner["count"]) == 3


def test_one_norm_is_taken_over_two_devices(strict: Library, gradients_on_two_devices: dict) -> None:
    """3, 4 and 12 have the norm 13, wherever they are."""
    _, state = MonitorStep()(gradients_on_two_devices)
    assert float(state["norm"]) == 13.0
    clipped = GradientClippingStep(variant="global", threshold=6.5)(gradients_on_two_devices).gradients
    read = read_tree(strict, clipped)
    assert read["here"].tolist() == [1.5, 2.0] and read["there"] == [6.0]


def test_one_bad_element_skips_on_both_devices(strict: Library, gradients_on_two_devices: dict) -> None:
    """The flag travels, the leaves do not."""
    gradients_on_two_devices["there"] = strict.array([np.nan], device=strict.module.Device("device1"))
    updates, state = SkipNonFiniteStep(AdamStep())(gradients_on_two_devices)
    assert [leaf.tolist() for leaf in leaves_of(read_tree(strict, updates))] == [[0.0, 0.0], [0.0]]
    assert int(state["skipped"]) == 1


def test_a_schedule_reaches_both_devices(strict: Library, gradients_on_two_devices: dict) -> None:
    """Its value is one number."""
    step = SGDStep(learning_rate=lambda count: count + 1.0, momentum=0.5)
    updates = read_tree(strict, step(gradients_on_two_devices).gradients)
    assert updates["here"].tolist() == [-3.0, -4.0] and updates["there"] == [-12.0]


def test_a_partner_on_another_device_is_refused(strict: Library, gradients_on_two_devices: dict) -> None:
    """In weights and in state: the path and both devices are named; nothing is moved silently."""
    cpu = strict.module.Device("CPU_DEVICE")
    here = optree.tree_map(lambda leaf: leaf.to_device(cpu), gradients_on_two_devices)
    says = r"\['there'\] must be on the device.*device1.*got.*CPU_DEVICE.*move one of the two"
    with pytest.raises(TreeMismatchError, match=f"weights{says}"):
        AdamStep()(gradients_on_two_devices, here)
    state = AdamStep().init(here)
    with pytest.raises(StateError, match=rf"state\['first_moment'\]{says}"):
        AdamStep()(gradients_on_two_devices, state=state)

"""MonitorStep: what passed is seen, and passes."""

import math
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_within_ulps
from libraries import Library

import steps_core.call
from steps_core import ChainedStep, GradientClippingStep, MonitorStep, ScalingStep


def test_gradients_pass_and_their_norm_is_kept(kind: tuple[Library, str]) -> None:
    """3-4-12 in two leaves, in every dtype."""
    library, dtype = kind
    gradients = [library.array([3.0, -4.0], dtype), library.array(12.0, dtype)]
    passed, state = MonitorStep()(gradients)
    for before, after in zip(gradients, passed, strict=True):
        assert_same_bits(library.read(after), library.read(before))
    norm = library.read(state["norm"])
    assert_within_ulps(norm, 13.0, 1)
    assert norm.dtype == (np.float64 if dtype in ("float64", "complex128") else np.float32)
    assert bool(state["finite"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_element_that_is_not_finite_is_seen(library: Library, bad: float) -> None:
    """And the next call sees that it is gone."""
    step = MonitorStep()
    _, state = step([library.array([1.0, bad]), library.array([1.0])])
    assert not bool(state["finite"])
    assert not math.isfinite(float(state["norm"]))
    _, state = step([library.array([3.0, 4.0]), library.array([0.0])], state=state)
    assert bool(state["finite"]) and float(state["norm"]) == 5.0


def test_a_norm_beyond_the_format_is_infinite_and_the_gradients_are_not(library: Library) -> None:
    """The flag is about elements."""
    _, state = MonitorStep()(library.array([3e38, 3e38]))
    assert float(state["norm"]) == np.inf
    assert bool(state["finite"])


def test_no_gradient_has_norm_zero(library: Library) -> None:
    """All None: nothing passed, and nothing was infinite."""
    weights = [library.array([1.0])]
    _, state = MonitorStep()([library.array([np.nan])], weights)
    passed, state = MonitorStep()([None], weights, state)
    assert passed == [None]
    assert float(state["norm"]) == 0.0 and bool(state["finite"])


def test_it_sees_what_the_step_before_it_returned(library: Library) -> None:
    """In a chain its place counts."""
    chain = ChainedStep(MonitorStep(), ScalingStep(scale=2.0), MonitorStep())
    _, state = chain(library.array([3.0, 4.0]))
    assert float(state["step1"]["norm"]) == 5.0
    assert float(state["step3"]["norm"]) == 10.0


def test_it_shares_its_reduction_with_a_neighbouring_clip(monkeypatch: Any) -> None:
    """One norm is computed for both; after the clip it is another one."""
    norms = []
    original = steps_core.call.joint_norm

    def counted(xp: Any, leaves: Any) -> Any:
        norms.append(len(leaves))
        return original(xp, leaves)

    monkeypatch.setattr(steps_core.call, "joint_norm", counted)
    clip = GradientClippingStep(variant="global")
    ChainedStep(MonitorStep(), clip)(np.asarray([3.0, 4.0]))
    assert norms == [1]
    ChainedStep(MonitorStep(), clip, MonitorStep())(np.asarray([3.0, 4.0]))
    assert len(norms) == 3

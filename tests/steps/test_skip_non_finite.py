"""SkipNonFiniteStep: a call with NaN or infinity gives zeros and leaves the inner state."""

import numpy as np
import pytest
from comparing import assert_same_trees, read_tree
from libraries import Library

from steps_core import (
    AdamStep,
    ChainedStep,
    ConstraintStep,
    MomentumStep,
    MonitorStep,
    SGDStep,
    SkipNonFiniteStep,
)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_element_anywhere_skips_the_call(kind: tuple[Library, str], bad: float) -> None:
    """Zeros come out, the inner state keeps its bits, and the call is counted."""
    library, dtype = kind
    step = SkipNonFiniteStep(AdamStep())
    _, before = step([library.array([1.0, 2.0], dtype), library.array([3.0], dtype)])
    updates, after = step([library.array([1.0, bad], dtype), library.array([3.0], dtype)], state=before)
    assert [library.read(leaf).tolist() for leaf in updates] == [[0.0, 0.0], [0.0]]
    assert_same_trees(read_tree(library, after["inner"]), read_tree(library, before["inner"]))
    assert (int(before["skipped"]), int(after["skipped"])) == (0, 1)


def test_finite_gradients_run_the_inner_step(library: Library) -> None:
    """With the same bits and the same state."""
    gradients, inner = library.array([1.5, -3.0]), ChainedStep(MonitorStep(), AdamStep())
    expected, expected_state = inner(gradients)
    updates, state = SkipNonFiniteStep(inner)(gradients)
    assert_same_trees(read_tree(library, updates), read_tree(library, expected))
    assert_same_trees(read_tree(library, state["inner"]), read_tree(library, expected_state))
    assert int(state["skipped"]) == 0


def test_gradients_whose_norm_overflows_are_finite(library: Library) -> None:
    """3e38 twice is not skipped."""
    updates, state = SkipNonFiniteStep(SGDStep(learning_rate=1.0))(library.array([3e38, 3e38]))
    assert int(state["skipped"]) == 0
    assert (library.read(updates) < -2e38).all()


def test_it_recovers_after_any_number_of_bad_calls(library: Library) -> None:
    """No call lets NaN in; the count goes on."""
    step = SkipNonFiniteStep(MomentumStep(decay=0.5))
    _, state = step(library.array([4.0]))
    for _ in range(3):
        _, state = step(library.array([np.nan]), state=state)
    updates, state = step(library.array([1.0]), state=state)
    assert library.read(updates) == [3.0]
    assert int(state["skipped"]) == 3


def test_no_gradient_is_finite(library: Library) -> None:
    """None throughout runs the inner step, which counts the call."""
    updates, state = SkipNonFiniteStep(AdamStep())([None], [library.array([1.0])])
    assert updates == [None]
    assert int(state["skipped"]) == 0 and int(state["inner"]["count"]) == 1


def test_it_is_what_it_wraps() -> None:
    """In sign, in its need of weights, and as a constraint."""
    assert SkipNonFiniteStep(AdamStep()).negates
    assert not SkipNonFiniteStep(MomentumStep()).negates
    assert SkipNonFiniteStep(SGDStep(weight_decay=0.1)).needs_weights
    assert not SkipNonFiniteStep(SGDStep()).needs_weights
    assert SkipNonFiniteStep(ConstraintStep("nonnegative")).constrains

"""MomentumStep: a decaying sum of the gradients."""

import numpy as np
import pytest
from libraries import Library
from peers import assert_agrees_with_optax

from steps_core import ChainedStep, MomentumStep, ScalingStep


@pytest.mark.parametrize(("nesterov", "expected"), [(False, [2.0, 5.0, 2.5]), (True, [3.0, 6.5, 1.25])])
def test_past_gradients_decay(kind: tuple[Library, str], nesterov: bool, expected: list) -> None:
    """Gradients 2, 4 and 0 with decay 0.5, in every dtype."""
    library, dtype = kind
    step, state = MomentumStep(decay=0.5, nesterov=nesterov), None
    for gradient, direction in zip([2.0, 4.0, 0.0], expected, strict=True):
        directions, state = step(library.array([gradient], dtype), state=state)
        assert library.read(directions) == [direction]


def test_decay_zero_passes_the_gradient_on(library: Library) -> None:
    """The past counts nothing."""
    step, state = MomentumStep(decay=0.0), None
    for gradient in (2.0, 4.0):
        directions, state = step(library.array([gradient]), state=state)
        assert library.read(directions) == [gradient]


def test_the_trace_shares_no_memory_with_what_is_given_out() -> None:
    """Whoever changes the direction in place must not change the next step."""
    gradients = np.asarray([2.0])
    directions, state = MomentumStep()(gradients)
    directions[...] = 99.0
    assert state["trace"] == [2.0]
    assert gradients == [2.0]


def test_the_trace_shares_no_memory_with_what_pytorch_gets() -> None:
    """As with NumPy."""
    torch = pytest.importorskip("torch")
    directions, state = MomentumStep()(torch.asarray([2.0]))
    directions.mul_(99.0)
    assert state["trace"].tolist() == [2.0]


@pytest.mark.parametrize("nesterov", [False, True])
def test_before_a_rate_it_is_gradient_descent_with_momentum(nesterov: bool) -> None:
    """As optax's trace and scale, chained."""
    optax = pytest.importorskip("optax")
    ours = ChainedStep(MomentumStep(decay=0.9, nesterov=nesterov), ScalingStep(learning_rate=0.05))
    theirs = optax.chain(optax.trace(decay=0.9, nesterov=nesterov), optax.scale(-0.05))
    assert_agrees_with_optax(ours, theirs)

"""RMSPropStep: its equations, its options, its extremes, and its peers."""

import itertools
from typing import Any

import numpy as np
import pytest
from comparing import assert_within_ulps, read_tree
from libraries import Library
from peers import assert_agrees_with_optax, assert_agrees_with_torch

from steps_core import LinearSchedule, RMSPropStep

GRID = [
    {"epsilon_inside": inside, "centered": centered, "momentum": momentum, "nesterov": nesterov}
    for inside, centered, (momentum, nesterov) in itertools.product(
        (True, False), (True, False), ((0.0, False), (0.8, False), (0.8, True))
    )
]


def by_the_equations(gradients: Any, weights: Any, **options: Any) -> np.ndarray:
    """Return the last update of a run with decay 0.9, epsilon 1e-4 and rate 0.01."""
    v, mean, buffer = 0.0, 0.0, 0.0
    for g in gradients:
        v, mean = 0.9 * v + 0.1 * abs(g) ** 2, 0.9 * mean + 0.1 * g
        s = v - abs(mean) ** 2 if options["centered"] else v
        d = g / (np.sqrt(s + 1e-4) if options["epsilon_inside"] else np.sqrt(s) + 1e-4)
        buffer = options["momentum"] * buffer + d
        direction = d + options["momentum"] * buffer if options["nesterov"] else buffer
        u = -0.01 * (direction + options.get("weight_decay", 0.0) * weights)
    return u


@pytest.mark.parametrize("options", GRID, ids=str)
def test_every_combination_of_options_follows_the_equations(options: dict) -> None:
    """Six steps in float64, without and with weight decay, real and complex."""
    rng = np.random.default_rng(9)
    for decay, imaginary in itertools.product((0.0, 0.1), (0, 1j)):
        draw = [rng.normal(size=4) + imaginary * rng.normal(size=4) for _ in range(7)]
        weights, gradients = draw[0], draw[1:]
        step = RMSPropStep(learning_rate=0.01, epsilon=1e-4, weight_decay=decay, **options)
        state = step.init(weights)
        for gradient in gradients:
            updates, state = step(gradient, weights, state)
        expected = by_the_equations(gradients, weights, weight_decay=decay, **options)
        np.testing.assert_allclose(updates, expected, rtol=1e-10)


def test_every_library_follows_the_equations(library: Library) -> None:
    """In float32, centred with Nesterov's momentum."""
    options = {"centered": True, "momentum": 0.8, "nesterov": True}
    step, state = RMSPropStep(learning_rate=0.01, epsilon=1e-4, **options), None
    gradients = [[1.0, -10.0, 0.125], [3.0, 1.0, 0.25], [-2.0, 0.5, 0.125]]
    for gradient in gradients:
        updates, state = step(library.array(gradient), state=state)
    expected = by_the_equations(np.asarray(gradients), 0.0, epsilon_inside=True, **options)
    assert_within_ulps(library.read(updates), expected, 16)


@pytest.mark.parametrize("centered", [False, True])
def test_a_zero_gradient_gives_zero(kind: tuple[Library, str], centered: bool) -> None:
    """Also with no epsilon."""
    library, dtype = kind
    for epsilon in (0.0, 1e-8):
        step = RMSPropStep(epsilon=epsilon, centered=centered)
        assert library.read(step(library.array([0.0, 0.0], dtype)).gradients).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("centered", [False, True])
def test_one_huge_gradient_does_not_freeze_it(library: Library, centered: bool) -> None:
    """The second moment saturates at the largest number, the centred one too, and comes down again."""
    step = RMSPropStep(decay=0.5, centered=centered)
    updates, state = step(library.array([1e30, 3e38]))
    assert centered or np.isfinite(library.read(updates)).all()
    assert read_tree(library, state)["second_moment"].tolist() == [np.finfo("float32").max] * 2
    for sign in (1.0, -1.0) * 150:
        updates, state = step(library.array([sign, sign]), state=state)
    assert (np.abs(library.read(updates)) > 5e-4).all()


def test_a_constant_gradient_leaves_a_centred_variance_of_zero(library: Library) -> None:
    """Rounding may make v - mean^2 negative, whose root would be NaN."""
    step, state = RMSPropStep(centered=True, epsilon=1e-8, decay=0.5), None
    for _ in range(60):
        updates, state = step(library.array([1.1, 3.3, 0.7]), state=state)
        assert not np.isnan(library.read(updates)).any()


def test_a_schedule_starts_at_zero(library: Library) -> None:
    """The count is kept for it alone."""
    step, state = RMSPropStep(learning_rate=LinearSchedule(1.0, 0.0, 4), decay=0.0, epsilon=0.0), None
    for rate in (1.0, 0.75, 0.5):
        updates, state = step(library.array([2.0]), state=state)
        assert library.read(updates) == [-rate]
    assert int(state["count"]) == 3


def test_the_momentum_is_kept_without_the_rate() -> None:
    """So that a change of the rate acts at once."""
    step = RMSPropStep(learning_rate=100.0, decay=0.0, epsilon=0.0, momentum=0.5)
    _, state = step(np.asarray([3.0]))
    assert state["momentum"] == [1.0]


def test_the_state_is_told_by_the_options() -> None:
    """Nothing is kept that no option asks for."""
    assert set(RMSPropStep().init(np.zeros(1))) == {"second_moment"}
    everything = RMSPropStep(centered=True, momentum=0.5, learning_rate=LinearSchedule(1, 0, 1))
    assert set(everything.init(np.zeros(1))) == {"second_moment", "mean", "momentum", "count"}


def test_a_complex_gradient_has_a_real_second_moment_and_a_complex_mean() -> None:
    """And the wide dtypes of the leaf."""
    state = RMSPropStep(centered=True, momentum=0.5).init(np.zeros(1, "complex64"))
    assert state["second_moment"].dtype == np.float32
    assert state["mean"].dtype == state["momentum"].dtype == np.complex64


@pytest.mark.parametrize(
    "options", [{}, {"centered": True}, {"momentum": 0.8}, {"momentum": 0.8, "nesterov": True}], ids=str
)
def test_twenty_steps_agree_with_optax(options: dict) -> None:
    """Its epsilon stands inside the root, as ours by default."""
    optax = pytest.importorskip("optax")
    ours = RMSPropStep(learning_rate=0.01, epsilon=1e-4, **options)
    assert_agrees_with_optax(ours, optax.rmsprop(0.01, decay=0.9, eps=1e-4, **options))


@pytest.mark.parametrize("options", [{}, {"centered": True}, {"momentum": 0.8}], ids=str)
def test_twenty_steps_agree_with_torch(options: dict) -> None:
    """Its epsilon stands outside the root."""
    torch = pytest.importorskip("torch")
    ours = RMSPropStep(learning_rate=0.01, decay=0.99, epsilon=1e-8, epsilon_inside=False, **options)
    assert_agrees_with_torch(ours, torch.optim.RMSprop, lr=0.01, relative=1e-10, **options)

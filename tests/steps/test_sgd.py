"""SGDStep: its equations, its options, and its peers."""

import numpy as np
import pytest
from libraries import Library
from peers import assert_agrees_with_optax, assert_agrees_with_torch

from steps_core import LinearSchedule, SGDStep

MOMENTA = [{}, {"momentum": 0.5}, {"momentum": 0.5, "nesterov": True}]
DIRECTIONS = [[-1, -2], [-1, -2.5], [-1.5, -3.25]]


def test_a_plain_step_is_minus_the_rate_times_the_gradient(kind: tuple[Library, str]) -> None:
    """In every dtype; it keeps no state."""
    library, dtype = kind
    updates, state = SGDStep(learning_rate=0.5)(library.array([2.0, -6.0, 0.0], dtype))
    assert library.read(updates).tolist() == [-1.0, 3.0, 0.0]
    assert state == {}


@pytest.mark.parametrize(("options", "expected"), list(zip(MOMENTA, DIRECTIONS, strict=True)))
def test_momentum_adds_up_past_gradients(library: Library, options: dict, expected: list) -> None:
    """Gradients 2 and 4 at rate 0.5: b = 2, then 0.5 * 2 + 4 = 5; nesterov: g + 0.5 * b."""
    step, state = SGDStep(learning_rate=0.5, **options), None
    for gradient, update in zip([2.0, 4.0], expected, strict=True):
        updates, state = step(library.array([gradient]), state=state)
        assert library.read(updates) == [update]


def test_weight_decay_enters_neither_the_momentum_nor_its_state() -> None:
    """It is decoupled and times the rate: -0.5 * (2 + 0.25 * 8)."""
    step = SGDStep(learning_rate=0.5, momentum=0.5, weight_decay=0.25)
    updates, state = step(np.asarray([2.0]), np.asarray([8.0]))
    assert updates == [-2.0]
    assert state["momentum"] == [2.0]


def test_a_schedule_starts_at_zero(library: Library) -> None:
    """Rates 1, 0.5 and 0, and 0 from there on."""
    step, state = SGDStep(learning_rate=LinearSchedule(1.0, 0.0, 2)), None
    for rate in (1.0, 0.5, 0.0, 0.0):
        updates, state = step(library.array([2.0]), state=state)
        assert library.read(updates) == [-2.0 * rate]
    assert int(state["count"]) == 4


def test_the_momentum_of_a_narrow_gradient_is_float32() -> None:
    """1 + 0.75 * 2^-11 needs more digits than float16 has."""
    step, state = SGDStep(momentum=0.75), None
    for gradient in (2.0**-11, 1.0):
        _, state = step(np.asarray([gradient], "float16"), state=state)
    assert state["momentum"].dtype == np.float32
    assert state["momentum"] == [1 + 0.75 * 2.0**-11]


def test_the_state_is_told_by_the_options() -> None:
    """Momentum keeps a buffer, a schedule a count."""
    assert set(SGDStep(momentum=0.5).init(np.zeros(1))) == {"momentum"}
    assert set(SGDStep(learning_rate=LinearSchedule(1, 0, 1)).init(np.zeros(1))) == {"count"}


@pytest.mark.parametrize("options", MOMENTA, ids=str)
def test_twenty_steps_agree_with_optax(options: dict) -> None:
    """The difference of the weights stays below 1e-4 of each in float32."""
    optax = pytest.importorskip("optax")
    assert_agrees_with_optax(SGDStep(learning_rate=0.05, **options), optax.sgd(0.05, **options))


@pytest.mark.parametrize("options", MOMENTA, ids=str)
def test_twenty_steps_agree_with_torch(options: dict) -> None:
    """The relative difference of the weights stays below 1e-12 in float64."""
    torch = pytest.importorskip("torch")
    assert_agrees_with_torch(SGDStep(learning_rate=0.05, **options), torch.optim.SGD, lr=0.05, **options)

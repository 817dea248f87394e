"""AdamStep: its equations, its options, its extremes, and its peers."""

import itertools
from typing import Any

import numpy as np
import pytest
from comparing import assert_within_ulps, read_tree
from libraries import NARROW, Library
from peers import assert_agrees_with_optax, assert_agrees_with_torch

from steps_core import AdamStep, LinearSchedule

OPTIONS = {"amsgrad": True, "nesterov": True, "weight_decay": 0.1, "epsilon_root": 1e-3}
SOME_OF_THEM = [
    dict(some) for n in range(len(OPTIONS) + 1) for some in itertools.combinations(OPTIONS.items(), n)
]


def by_the_paper(gradients: Any, weights: Any, **options: Any) -> np.ndarray:
    """Return the last update, by the equations as the papers write them."""
    options = {"amsgrad": False, "nesterov": False, "weight_decay": 0.0, "epsilon_root": 0.0, **options}
    m, v, largest = 0.0, 0.0, 0.0
    for t, g in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * abs(g) ** 2
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.99**t)
        if options["nesterov"]:
            m_hat = 0.9 * m / (1 - 0.9 ** (t + 1)) + 0.1 * g / (1 - 0.9**t)
        largest = np.maximum(largest, v_hat)
        v_hat = largest if options["amsgrad"] else v_hat
        u = -0.01 * (
            m_hat / (np.sqrt(v_hat + options["epsilon_root"]) + 1e-6) + options["weight_decay"] * weights
        )
    return u


@pytest.mark.parametrize("options", SOME_OF_THEM, ids="-".join)
def test_every_combination_of_options_follows_the_equations(options: dict) -> None:
    """Six steps of growing and shrinking gradients, in float64."""
    rng = np.random.default_rng(8)
    weights = rng.normal(size=5)
    gradients = [rng.normal(size=5) * size for size in (1, 10, 100, 0.1, 0.01, 1)]
    step = AdamStep(learning_rate=0.01, beta2=0.99, epsilon=1e-6, **options)
    state = step.init(weights)
    for gradient in gradients:
        updates, state = step(gradient, weights, state)
    np.testing.assert_allclose(updates, by_the_paper(gradients, weights, **options), rtol=1e-12)


def test_every_library_follows_the_equations(library: Library) -> None:
    """In float32, with all options but the decay."""
    options = {"amsgrad": True, "nesterov": True, "epsilon_root": 1e-3}
    step, state = AdamStep(learning_rate=0.01, beta2=0.99, epsilon=1e-6, **options), None
    gradients = [[1.0, -10.0, 0.01], [3.0, 1.0, 0.02], [-2.0, 0.1, 0.01]]
    for gradient in gradients:
        updates, state = step(library.array(gradient), state=state)
    expected = by_the_paper([np.asarray(g, "float32").astype(float) for g in gradients], 0.0, **options)
    assert_within_ulps(library.read(updates), expected, 8)


def test_a_complex_gradient_counts_with_its_squared_modulus() -> None:
    """The second moment is real, and the update keeps the phase."""
    gradients = [np.asarray([3 + 4j, 1j]), np.asarray([-1 + 2j, 5.0])]
    step, state = AdamStep(learning_rate=0.01, beta2=0.99, epsilon=1e-6), None
    for gradient in gradients:
        updates, state = step(gradient, state=state)
    np.testing.assert_allclose(updates, by_the_paper(gradients, 0.0), rtol=1e-12)
    assert state["second_moment"].dtype == np.float64


def test_the_first_update_is_the_rate_times_the_sign(library: Library) -> None:
    """Whatever the gradient's size."""
    for size in (1e-15, 1.0, 1e15):
        updates, state = AdamStep(learning_rate=0.5, epsilon=0.0)(library.array([size, -size]))
        assert_within_ulps(library.read(updates), [-0.5, 0.5], 4)
    assert int(state["count"]) == 1


def test_a_zero_gradient_gives_zero(kind: tuple[Library, str]) -> None:
    """In float16, too, where 1e-8 rounds to 0; and with no epsilon at all."""
    library, dtype = kind
    for step in (AdamStep(), AdamStep(epsilon=0.0, nesterov=True), AdamStep(epsilon=0.0, amsgrad=True)):
        assert library.read(step(library.array([0.0, -0.0], dtype)).gradients).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("amsgrad", [False, True])
def test_one_huge_gradient_does_not_freeze_it(library: Library, amsgrad: bool) -> None:
    """The second moment saturates; without amsgrad it comes down again."""
    step = AdamStep(amsgrad=amsgrad, beta2=0.5)
    _, state = step(library.array([1e30, 3e38]))
    moments = read_tree(library, state)
    assert moments["second_moment"].tolist() == [np.finfo("float32").max] * 2
    assert all(np.isfinite(moment).all() for moment in moments.values())
    for _ in range(300):
        updates, state = step(library.array([1.0, 1.0]), state=state)
    assert np.isfinite(library.read(updates)).all()
    assert amsgrad or (np.abs(library.read(updates)) > 5e-4).all()


@pytest.mark.parametrize("dtype", NARROW)
def test_a_narrow_gradient_is_computed_in_float32(library: Library, dtype: str) -> None:
    """Its update is the float32 update, rounded once; its moments are float32."""
    if dtype not in library.dtypes:
        pytest.skip(f"{library.name} has no {dtype}")
    values, step = library.read(library.array([1.5, -0.02, 700.0], dtype)), AdamStep()
    narrow, state = step(library.array(values, dtype))
    wide, _ = step(library.array(values.astype("float32")))
    assert library.read(narrow).tobytes() == library.read(wide).astype(values.dtype).tobytes()
    assert read_tree(library, state)["first_moment"].dtype == np.float32


def test_a_schedule_starts_at_zero(library: Library) -> None:
    """Bias correction counts from 1, the schedule from 0."""
    step, state = AdamStep(learning_rate=LinearSchedule(1.0, 0.0, 4), epsilon=0.0), None
    for rate in (1.0, 0.75, 0.5):
        updates, state = step(library.array([2.0]), state=state)
        assert_within_ulps(library.read(updates), [-rate], 4)


def test_the_count_stays_at_the_last_int32(library: Library) -> None:
    """And the update is still that of a long run."""
    step = AdamStep(learning_rate=1.0)
    state = step.init(library.array([1.0]))
    state["count"] = library.array(2**31 - 1, "int32")
    _, state = step(library.array([1.0]), state=state)
    assert int(state["count"]) == 2**31 - 1


def test_a_negative_rate_of_one_is_the_core_rule() -> None:
    """The same numbers with the gradient's sign."""
    plain = AdamStep(learning_rate=1.0)(np.asarray([2.0, -3.0])).gradients
    np.testing.assert_array_equal(AdamStep(learning_rate=-1.0)(np.asarray([2.0, -3.0])).gradients, -plain)


def test_weight_decay_is_decoupled_and_times_the_rate() -> None:
    """A zero gradient moves the weight by -rate * decay * weight."""
    step = AdamStep(learning_rate=0.5, weight_decay=0.25)
    np.testing.assert_allclose(step(np.zeros(2), np.asarray([8.0, -2.0])).gradients, [-1.0, 0.25])


def test_where_a_gradient_is_none_nothing_moves(library: Library) -> None:
    """Its moments keep their bits; the count still counts the call."""
    step = AdamStep()
    weights = [library.array([1.0]), library.array([2.0])]
    _, before = step(weights, weights)
    updates, after = step([None, library.array([1.0])], weights, before)
    assert updates[0] is None
    assert library.read(after["first_moment"][0]) == library.read(before["first_moment"][0])
    assert library.read(after["first_moment"][1]) != library.read(before["first_moment"][1])
    assert int(after["count"]) == 2


def test_the_state_is_told_by_the_options() -> None:
    """Amsgrad adds the largest second moment."""
    assert set(AdamStep().init(np.zeros(1))) == {"count", "first_moment", "second_moment"}
    assert set(AdamStep(amsgrad=True).init(np.zeros(1))) == {
        "count",
        "first_moment",
        "second_moment",
        "second_moment_max",
    }


@pytest.mark.parametrize(
    ("name", "options"),
    [("adam", {}), ("adam", {"nesterov": True}), ("amsgrad", {}), ("adamw", {"weight_decay": 0.1})],
)
def test_twenty_steps_agree_with_optax(name: str, options: dict) -> None:
    """The difference of the weights stays below 1e-4 of each in float32."""
    optax = pytest.importorskip("optax")
    ours = AdamStep(learning_rate=0.05, amsgrad=name == "amsgrad", **options)
    assert_agrees_with_optax(ours, getattr(optax, name)(0.05, **options))


def test_twenty_steps_agree_with_torch() -> None:
    """The relative difference of the weights stays below 1e-12 in float64, decoupled decay included."""
    torch = pytest.importorskip("torch")
    assert_agrees_with_torch(AdamStep(learning_rate=0.05), torch.optim.Adam, lr=0.05)
    options = {"weight_decay": 0.1}
    assert_agrees_with_torch(AdamStep(learning_rate=0.05, **options), torch.optim.AdamW, lr=0.05, **options)

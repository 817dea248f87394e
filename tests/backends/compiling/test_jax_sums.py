"""The plain sums of squares of compiled steps on JAX: taken where they are exact, and only there."""

from typing import Any

import numpy as np
import pytest
from comparing import assert_same_trees, assert_within_ulps
from steps_backends import compile as compiled
from steps_backends.compiling.jax_sums import JaxReductions

from steps_core import AdamStep, ChainedStep, GradientClippingStep, MonitorStep, Step

jax = pytest.importorskip("jax")

SIZE = 3000  # beyond the few elements of which no plain sum is taken
RANDOM = np.random.default_rng(0).normal(size=SIZE).astype("float32")
ONE_LARGE = np.where(np.arange(SIZE) == 7, np.float32(2.0**41), RANDOM)


def norm_of(*leaves: Any) -> float:
    """Return the joint norm that a compiled step takes of leaves."""
    step = compiled(MonitorStep())
    trees = [jax.numpy.asarray(leaf) for leaf in leaves]
    _, state = step(trees, None, step.init(trees))
    return float(state["norm"])


@pytest.mark.parametrize("exponent", [-140, -120, -75, -52, -50, -49, 0, 39, 41, 60, 100, 120])
def test_norms_are_right_at_every_size_of_elements(exponent: int) -> None:
    """The squares of the smallest vanish, and those of the largest overflow."""
    leaf = np.clip(np.abs(RANDOM), 0.5, 2.0) * np.float32(2.0**exponent)
    if exponent < -126:
        leaf = np.zeros(SIZE, "float32")  # JAX flushes subnormal numbers
    expected = np.linalg.norm(leaf.astype("float64"))
    assert_within_ulps(np.float32(norm_of(leaf)), np.float32(expected), 4)


@pytest.mark.parametrize("small", [1e-30, 1e-16, 1e-10])
def test_small_elements_beside_one_that_counts_are_not_lost(small: float) -> None:
    """Also where they make up the larger part of the norm."""
    leaf = np.full(SIZE, small, "float32")
    leaf[0] = 2 * small
    expected = np.linalg.norm(np.concatenate([leaf, leaf[:5]]).astype("float64"))
    assert_within_ulps(np.float32(norm_of(leaf, leaf[:5])), np.float32(expected), 4)


@pytest.mark.parametrize(("bad", "expected"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "inf")])
def test_what_is_not_finite_shows_in_the_norm(bad: float, expected: str) -> None:
    """It fails the check of the plain sum, and the sums by range tell which it was."""
    leaf = RANDOM.copy()
    leaf[-1] = bad
    assert str(norm_of(RANDOM, leaf)) == expected


@pytest.mark.parametrize("variant", ["global", "per-layer", "per-weight-relative"])
def test_clipping_agrees_with_the_plain_step(variant: str) -> None:
    """With dead units, huge ones and tiny ones beside usual ones."""
    step = GradientClippingStep(variant=variant, threshold=0.1)
    scales = np.asarray([1.0, 0.0, 1e30, 1e-30, 1e10, 1e-10], "float32")
    gradients = [RANDOM.reshape(500, 6) * scales, RANDOM.reshape(500, 6), ONE_LARGE]
    gradients = [jax.numpy.asarray(leaf) for leaf in gradients]
    weights = [leaf + 1 for leaf in gradients]
    actual, expected = compiled(step)(gradients, weights), step(gradients, weights)
    for one, other in zip(actual.gradients, expected.gradients, strict=True):
        assert_within_ulps(np.asarray(one), np.asarray(other), 4)


@pytest.mark.parametrize(("scale", "are_exact_needed"), [(1.0, False), (0.0, False), (1e-30, True)])
def test_a_leaf_of_zeros_does_not_take_the_slow_sums(
    monkeypatch: Any, scale: float, are_exact_needed: bool
) -> None:
    """Dead units are frequent; a leaf whose squares vanish looks the same, and has to be told from them."""
    chosen = JaxReductions._chosen

    def spoilt(self: Any, *arrays: Any, by_range: Any, **options: Any) -> Any:
        def bad() -> Any:
            return jax.tree.map(lambda part: part * float("nan"), by_range())

        return chosen(self, *arrays, by_range=bad, **options)

    monkeypatch.setattr(JaxReductions, "_chosen", spoilt)
    gradients = [jax.numpy.asarray(RANDOM), jax.numpy.asarray(RANDOM * np.float32(scale))]
    clipped = compiled(GradientClippingStep(variant="per-layer"))(gradients).gradients
    assert bool(jax.numpy.isnan(clipped[0]).any()) == are_exact_needed


def test_leaves_within_the_norm_keep_their_bits() -> None:
    """Whichever sums were taken."""
    for leaf in (RANDOM, RANDOM * np.float32(1e-30), ONE_LARGE):
        gradients = jax.numpy.asarray(leaf)
        clipped, _ = compiled(GradientClippingStep(variant="global", threshold=1e20))(gradients)
        assert_same_trees(clipped, gradients)


def test_donated_arrays_are_written_to_and_not_copied() -> None:
    """Beside them a call needs no memory but that of the sums by range, which seldom run."""
    step: Step = ChainedStep(GradientClippingStep(variant="global"), AdamStep())
    fast = compiled(step, donate=("gradients", "state"))
    gradients = jax.numpy.asarray(RANDOM)
    state = step.init(gradients)
    _, after = fast(gradients, None, state)
    moments = [state["step2"]["first_moment"], state["step2"]["second_moment"]]
    assert all(array.is_deleted() for array in (gradients, *moments))
    # A minimum with a constant had XLA compute the second moment twice, from copies of what was donated.
    text = jax.jit(AdamStep(), donate_argnums=(0, 2)).lower(jax.numpy.asarray(RANDOM), None, after["step2"])
    assert f"copy = f32[{SIZE}]" not in text.compile().as_text()
    assert text.compile().memory_analysis().temp_size_in_bytes < 4 * SIZE


def test_a_step_that_stops_in_the_debugger_is_traced_without_a_warning(monkeypatch: Any) -> None:
    """The plain call has stopped."""
    stops: list[int] = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(1))
    fast = compiled(AdamStep(set_breakpoint=True))
    gradients = jax.numpy.asarray(RANDOM)
    state = fast.init(gradients)
    for _ in range(2):
        _, state = fast(gradients, None, state)
    assert (len(stops), int(state["count"])) == (2, 2)


def test_trees_met_before_are_told_from_all_others() -> None:
    """By structure, by None, and by the library of each leaf."""
    step = AdamStep()
    fast, leaf = compiled(step), jax.numpy.asarray(RANDOM)
    state = step.init({"b": leaf, "a": leaf})
    for gradients in ({"b": leaf, "a": leaf * 2}, {"b": leaf, "a": None}, {"a": leaf, "b": leaf * 3}):
        for _ in range(2):
            updates, new_state = fast(gradients, None, state)
            expected, expected_state = step(gradients, None, state)
            assert {*updates} == {*expected}
            for key, update in updates.items():
                assert (update is None) == (gradients[key] is None)
                assert update is None or np.allclose(update, expected[key], rtol=1e-6)
            assert list(new_state) == list(expected_state)
    with pytest.raises(Exception, match=r"must be an array (of jax|like)"):
        fast({"b": leaf, "a": leaf}, None, {**state, "first_moment": {"b": RANDOM, "a": RANDOM}})

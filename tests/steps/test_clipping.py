"""GradientClippingStep: what each variant limits, at every size, on every library."""

from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_within_ulps, read_tree
from libraries import Library

from steps_core import GradientClippingStep

VARIANTS = ("per-weight", "per-layer", "global", "per-weight-relative")


def clip(library: Library, values: Any, dtype: str = "float32", weights: Any = None, **options: Any) -> Any:
    """Return the clipped values of one leaf."""
    gradients = library.array(values, dtype)
    weights = None if weights is None else library.array(weights, dtype)
    return library.read(GradientClippingStep(**options)(gradients, weights).gradients)


def test_the_spellings_of_the_source_mean_the_same() -> None:
    """The default spelling per-parameter shows as per-weight."""
    assert GradientClippingStep().variant == "per-weight"
    assert GradientClippingStep(variant="per-parameter") == GradientClippingStep(variant="per-weight")
    relative = GradientClippingStep(variant="per-parameter-relative")
    assert relative.variant == "per-weight-relative"


@pytest.mark.parametrize("variant", ["per-layer", "global"])
def test_huge_gradients_are_clipped_not_zeroed(library: Library, variant: str) -> None:
    """float32 [1e30, 1e30] to 1.0: every element keeps its share, although the squares overflow."""
    result = clip(library, [1e30, 1e30], variant=variant, threshold=1.0)
    assert_within_ulps(result, [0.7071067811865476] * 2, 1)


@pytest.mark.parametrize("variant", ["per-layer", "global"])
def test_tiny_gradients_are_clipped_not_kept(library: Library, variant: str) -> None:
    """float32 [1e-30, 1e-30] to 1e-31: the squares underflow."""
    result = clip(library, [1e-30, 1e-30], variant=variant, threshold=1e-31)
    assert_within_ulps(result, [7.071067811865476e-32] * 2, 4)


@pytest.mark.parametrize("variant", ["per-layer", "global"])
def test_float16_gradients_are_clipped_in_float32(library: Library, variant: str) -> None:
    """float16 [60000] * 3 to 1e-4: neither the norm nor the factor fits float16."""
    if "float16" not in library.dtypes:
        pytest.skip(f"{library.name} has no float16")
    result = clip(library, [60000.0] * 3, "float16", variant=variant, threshold=1e-4)
    assert_within_ulps(result, [5.773502691896258e-05] * 3, 0.5001)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_norm_equal_to_the_threshold_is_kept(kind: tuple[Library, str], variant: str) -> None:
    """Bit for bit, in every dtype: 3-4-5, and weights of norm 1 in the relative variant."""
    library, dtype = kind
    values = [5.0, -5.0] if variant == "per-weight" else [3.0, -4.0]
    result = clip(library, values, dtype, weights=[1.0, 0.0], variant=variant, threshold=5.0)
    assert_same_bits(result, library.read(library.array(values, dtype)))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_norm_above_the_threshold_is_limited(kind: tuple[Library, str], variant: str) -> None:
    """[6, -8] to 5 in every dtype."""
    library, dtype = kind
    result = clip(library, [6.0, -8.0], dtype, weights=[1.0, 0.0], variant=variant, threshold=5.0)
    expected = [5.0, -5.0] if variant == "per-weight" else [3.0, -4.0]
    assert_within_ulps(result, expected, 1)


def test_per_weight_limits_each_element(library: Library) -> None:
    """NaN stays, infinity becomes the threshold, small elements keep their bits."""
    result = clip(library, [np.nan, np.inf, -np.inf, 0.1, -0.0, -7.0], threshold=0.3)
    expected = np.asarray([np.nan, 0.3, -0.3, 0.1, -0.0, -0.3], "float32")
    np.testing.assert_array_equal(result, expected)
    assert np.signbit(result[4])


def test_per_weight_keeps_the_phase_of_a_complex_element(library: Library) -> None:
    """Its modulus is limited, not its parts."""
    result = clip(library, [3 + 4j, -3e30 - 4e30j, 0.3 + 0.4j], "complex64", threshold=1.0)
    assert_within_ulps(result, [0.6 + 0.8j, -0.6 - 0.8j, np.complex64(0.3 + 0.4j)], 2)


def test_a_threshold_beyond_the_dtype_keeps_every_element(library: Library) -> None:
    """Casting it must not overflow, nor warn."""
    for variant in VARIANTS:
        result = clip(library, [3e38, -1.0], weights=[1.0, 1.0], variant=variant, threshold=1e300)
        assert_same_bits(result, np.asarray([3e38, -1.0], "float32"))


def test_per_layer_takes_each_leaf_by_itself(library: Library) -> None:
    """NaN stays in its leaf, infinity makes finite elements 0 in its own."""
    gradients = {
        "long": library.array([6.0, 8.0]),
        "short": library.array([0.1]),
        "nan": library.array([np.nan, 1.0]),
        "inf": library.array([np.inf, 1.0]),
    }
    result = read_tree(library, GradientClippingStep(variant="per-layer")(gradients).gradients)
    assert_within_ulps(result["long"], [0.6, 0.8], 1)
    assert result["short"] == np.float32(0.1)
    assert np.isnan(result["nan"]).all()
    assert np.isnan(result["inf"][0]) and result["inf"][1] == 0


def test_per_layer_takes_a_leaf_of_any_rank_whole(library: Library) -> None:
    """2, 4, 4 and 8 in two rows have the norm 10."""
    result = clip(library, [[2.0, 4.0], [4.0, 8.0]], variant="per-layer", threshold=5.0)
    assert_within_ulps(result, [[1.0, 2.0], [2.0, 4.0]], 1)


def test_global_scales_the_tree_by_one_factor(library: Library) -> None:
    """3, 4 and 12 in three leaves have the norm 13."""
    gradients = {"a": library.array([[3.0]]), "b": (library.array(-4.0), library.array([12.0, 0.0]))}
    result = GradientClippingStep(variant="global", threshold=6.5)(gradients).gradients
    read = read_tree(library, result)
    assert read["a"] == [[1.5]] and read["b"][0] == -2.0
    assert read["b"][1].tolist() == [6.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_global_shows_what_is_not_finite_everywhere(library: Library, bad: float) -> None:
    """NaN makes the tree NaN; infinity makes finite elements 0 and itself NaN."""
    gradients = [library.array([bad, 1.0]), library.array([2.0])]
    first, second = read_tree(library, GradientClippingStep(variant="global")(gradients).gradients)
    assert np.isnan(first[0])
    assert np.isnan(second).all() if np.isnan(bad) else second == [0.0]
    assert np.isnan(first[1]) if np.isnan(bad) else first[1] == 0.0


def test_global_takes_leaves_of_different_dtypes() -> None:
    """A float16 leaf of 100 beside a float32 one of 1e5 keeps its share, 1e-3."""
    gradients = [np.asarray([100.0], "float16"), np.asarray([1e5], "float32"), np.asarray([1e-290])]
    result = GradientClippingStep(variant="global", threshold=1.0)(gradients).gradients
    norm = np.hypot(100.0, 1e5)
    for leaf, expected in zip(result, [100 / norm, 1e5 / norm, 1e-290 / norm], strict=True):
        assert_within_ulps(leaf, [expected], 4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_threshold_zero_gives_zeros(library: Library, variant: str) -> None:
    """Also for 0 / 0 and for NaN; no -0 appears where a positive number was."""
    result = clip(library, [3.0, 0.0, np.nan, np.inf], weights=[1.0] * 4, variant=variant, threshold=0)
    assert_same_bits(result, np.zeros(4, "float32"))


@pytest.mark.parametrize("variant", VARIANTS)
def test_zeros_are_within_threshold_zero(library: Library, variant: str) -> None:
    """Their norm equals it, so they come back bit for bit."""
    result = clip(library, [0.0, -0.0], weights=[1.0, 1.0], variant=variant, threshold=0)
    assert_same_bits(result, np.asarray([0.0, -0.0], "float32"))


@pytest.mark.parametrize("options", [{"variant": None}, *({"threshold": t} for t in (None, np.inf))])
@pytest.mark.parametrize("variant", VARIANTS)
def test_clipping_switched_off_changes_nothing(library: Library, variant: str, options: dict) -> None:
    """NaN included, and the relative variant then needs no weights."""
    values = [np.nan, np.inf, 1e30, -0.0]
    result = clip(library, values, **{"variant": variant, **options})
    assert_same_bits(result, library.read(library.array(values)))


def test_relative_limits_each_column_of_a_matrix(library: Library) -> None:
    """The output axis is last; a quiet column beside a loud one is left alone."""
    gradients = [[3.0, 0.03, 3.0], [4.0, 0.04, 4.0]]
    weights = [[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    options = {"variant": "per-weight-relative", "threshold": 0.5, "weights": weights}
    result = clip(library, gradients, **options)
    assert_within_ulps(result, [[0.3, np.float32(0.03), 0.6], [0.4, np.float32(0.04), 0.8]], 2)
    rows = clip(library, gradients, unit_axis=0, **options)
    limit = 0.5 * np.linalg.norm(weights[0])
    assert_within_ulps(rows[0], np.asarray(gradients[0]) * limit / np.linalg.norm(gradients[0]), 4)


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 3), (2, 3, 2), (2, 1, 3, 2), (1, 2, 2, 2, 2)])
def test_relative_takes_the_units_of_every_rank(shape: tuple[int, ...]) -> None:
    """Against norms taken by NumPy over the axes of the paper's convention."""
    rng = np.random.default_rng(5)
    gradients, weights = rng.normal(size=shape), rng.normal(size=shape)
    whole = sum(length > 1 for length in shape) <= 1
    axes = tuple(range(len(shape))) if whole else (0,) if len(shape) <= 3 else tuple(range(len(shape) - 1))
    norm, limit = (np.sqrt((x**2).sum(axis=axes, keepdims=True)) for x in (gradients, weights))
    expected = gradients * np.minimum(1.0, 0.4 * np.maximum(limit, 1e-3) / norm)
    step = GradientClippingStep(variant="per-weight-relative", threshold=0.4)
    assert_within_ulps(step(gradients, weights).gradients, expected, 8)


def test_relative_has_a_floor_for_the_weights(library: Library) -> None:
    """A norm of weights below epsilon counts as epsilon; None is 0."""
    options = {"variant": "per-weight-relative", "threshold": 0.5, "weights": [0.0, 0.0]}
    assert_within_ulps(clip(library, [3.0, 4.0], epsilon=0.1, **options), [0.03, 0.04], 2)
    assert_within_ulps(clip(library, [3.0, 4.0], **options), [3e-4, 4e-4], 2)
    assert clip(library, [3.0, 4.0], epsilon=None, **options).tolist() == [0.0, 0.0]


def test_relative_keeps_nan_in_its_unit(library: Library) -> None:
    """Whether it stands in the gradient or in the weights; an infinite weight limits nothing."""
    gradients = [[np.nan, 3.0, 3.0, np.inf], [1.0, 4.0, 4.0, 1.0]]
    weights = [[1.0, np.nan, np.inf, 1.0], [0.0, 0.0, 0.0, 0.0]]
    result = clip(library, gradients, weights=weights, variant="per-weight-relative")
    assert np.isnan(result[:, :2]).all()
    assert result[:, 2].tolist() == [3.0, 4.0]
    assert np.isnan(result[0, 3]) and result[1, 3] == 0.0


def test_relative_is_right_for_weights_of_any_size(library: Library) -> None:
    """Norms of weights that overflow, and limits far from the gradients."""
    weights = [[1e30, 3e38, 1e-30], [1e30, 3e38, 1e-30]]
    result = clip(library, np.full((2, 3), 3e38), weights=weights, variant="per-weight-relative", epsilon=0.0)
    assert_within_ulps(result, np.asarray(weights).astype("float32").astype(float), 4)


@pytest.mark.parametrize("threshold", [1e-30, 1e-3, 1.0, 1e20])
def test_a_clipped_tree_has_the_threshold_as_its_norm(library: Library, threshold: float) -> None:
    """Random trees of random sizes: the norm is the threshold within 4 ulps, the direction stays."""
    rng = np.random.default_rng(6)
    for size in (1e-25, 1e-5, 1e5, 1e25):
        values = (rng.normal(size=(4, 25)) * size).astype("float32")
        leaves = [library.array(row) for row in values]
        result = GradientClippingStep(variant="global", threshold=threshold)(leaves).gradients
        read, norm = np.stack(read_tree(library, result)), np.linalg.norm(values.astype(float))
        factor = min(1.0, threshold / norm)
        assert_within_ulps(read, values.astype(float) * factor, 4 if factor < 1 else 0)


def test_relative_agrees_with_optax() -> None:
    """Where no norm is extreme, the rule is that of its adaptive_grad_clip."""
    optax = pytest.importorskip("optax")
    rng = np.random.default_rng(7)
    library = Library("jax")
    for shape in [(3,), (3, 4), (2, 2, 3, 4)]:
        gradients, weights = (library.array(rng.normal(size=shape)) for _ in range(2))
        update = library.module.jit(optax.adaptive_grad_clip(0.4).update)
        theirs, _ = update(gradients, optax.EmptyState(), weights)
        step = library.module.jit(GradientClippingStep(variant="per-weight-relative", threshold=0.4))
        result = library.read(step(gradients, weights).gradients)
        np.testing.assert_allclose(result, np.asarray(theirs), rtol=2e-6)

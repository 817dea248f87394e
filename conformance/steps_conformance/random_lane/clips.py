"""Vectors of the four variants of clipping on any tree."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from steps_backends import HostArray

from ..containers import leaves as paths_of
from ..descriptions import description
from ..oracle.exact import Exact, exact, norm, number
from ..oracle.units import by_unit
from ..vectors.making.every_kind import Answer
from ..vectors.making.limits import limited_as_one, limited_by_element, limited_by_leaf, limited_by_weights
from ..vectors.model import Vector, VectorCall
from .numbers import Range, like, trees

RULES = {
    "per-weight": "CLIP-WEIGHT-001",
    "per-layer": "CLIP-LAYER-001",
    "global": "CLIP-GLOBAL-001",
    "per-weight-relative": "CLIP-REL-001",
}
"""The requirement of each variant."""

NEAR = 1e-3
"""How near a norm must not be to its limit: there rounding decides whether the bits are kept."""

_EPSILON = 1e-3


def clip(variant: str, threshold: float) -> Any:
    """Return the description of a clipping step."""
    return description("GradientClippingStep", variant=variant, threshold=threshold)


@st.composite
def clip_vectors(draw: DrawFn, within: Range, variant: str, *, finite: bool = False) -> Vector:
    """Draw a vector of one call of a clipping step."""
    weighs = variant == "per-weight-relative"
    gradients = draw(trees(within, finite=finite or weighs))
    weights = like(draw, gradients, within) if weighs else None
    return clip_vector(variant, draw(thresholds(variant, gradients, weights)), gradients, weights)


def clip_vector(variant: str, threshold: float, gradients: Any, weights: Any = None) -> Vector:
    """Return the vector of one call of a clipping step."""
    (expected,) = _answer(variant, threshold)([gradients], [weights])
    one = VectorCall(gradients, weights, expected)
    rule = RULES[variant]
    return Vector(
        f"{rule}/v-random", rule, f"a {variant} clip", "", clip(variant, threshold), None, None, (one,)
    )


def _answer(variant: str, threshold: float) -> Answer:
    if variant == "global":
        return lambda gradients, _: [limited_as_one(tree, threshold) for tree in gradients]
    makers: dict[str, Callable[[float], Answer]] = {
        "per-weight": limited_by_element,
        "per-layer": limited_by_leaf,
        "per-weight-relative": limited_by_weights,
    }
    return makers[variant](threshold)


@st.composite
def thresholds(draw: DrawFn, variant: str, gradients: Any, weights: Any = None) -> float:
    """Draw a threshold, most often near enough to a norm that some are above it and some below."""
    finite = [length for length in lengths(variant, gradients, weights) if 0 < length < math.inf]
    powers = st.integers(-40, 40).map(lambda n: 2.0**n)
    if finite:
        shares = st.sampled_from((0.5, 2.0, 0.75, 1.5, 1e-3, 1e3)) | st.floats(1e-6, 4)
        powers = st.builds(lambda length, share: length * share, st.sampled_from(finite), shares) | powers
    threshold = draw(powers)
    # a threshold that is no normal double is one for the cases of that requirement
    assume(1e-290 < threshold < 1e300)
    assume(
        all(not 1 - NEAR < length / threshold < 1 + NEAR for length in lengths(variant, gradients, weights))
    )
    return threshold


def lengths(variant: str, gradients: Any, weights: Any = None) -> list[float]:
    """Return what is compared with the threshold: moduli or norms, for the relative variant their shares."""
    arrays = dict(paths_of(gradients))
    found = [exact(array) for array in arrays.values() if array is not None]
    if variant == "per-weight":
        return [float(abs(value)) for leaf in found for value in leaf.values]
    if variant == "per-layer":
        return [float(norm(leaf.values)) for leaf in found]
    if variant == "global":
        return [float(norm([value for leaf in found for value in leaf.values]))]
    weighed = dict(paths_of(weights))
    return [
        share
        for path, array in arrays.items()
        if array is not None
        for share in _shares(exact(array), exact(weighed[path]))
    ]


def _shares(gradient: Exact, weight: Exact) -> list[float]:
    shares: list[float] = []

    def rule(one: Sequence[Any], other: Sequence[Any]) -> Sequence[Any]:
        shares.append(float(norm(one) / max(norm(other), number(_EPSILON))))
        return one

    by_unit(rule, "auto", gradient, weight)
    return shares


def arrays_of(tree: Any) -> list[HostArray]:
    """Return the arrays of a tree, None left out."""
    return [leaf for _, leaf in paths_of(tree) if leaf is not None]

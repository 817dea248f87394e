"""Vectors of steps with a memory, and of chains and a graph, over a few calls.

Each element keeps its sign from call to call, and weights have the signs of their gradients: nothing cancels,
so that an error in ulps of the result means something.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from steps_backends import HostArray, host_array

from ..containers import mapped
from ..descriptions import chain, description
from ..graph_documents import both, custom, node
from ..oracle import adam as adam_oracle
from ..oracle import clipping as clipping_oracle
from ..oracle import momentum as momentum_oracle
from ..oracle.exact import Exact, exact, number
from ..targets.protocol import Description
from ..vectors.making.every_kind import by_path_of, callwise
from ..vectors.making.sheet import expect
from ..vectors.model import Expected, Vector, VectorCall
from .clips import NEAR, clip, lengths
from .numbers import Range, leaves, shapes, trees

Rule = Callable[[Sequence[Exact], Sequence[Exact] | None], Sequence[Exact]]
"""Gradients and weights of one leaf, call by call -> its updates."""

_LONGEST = 6
_FRACTIONS = st.integers(16, 64).map(lambda n: n / 64)
_DECAYS = st.sampled_from((0.0, 0.5, 0.9, 0.99)) | st.integers(0, 990).map(lambda n: n / 1000)
_RATES = st.sampled_from((1e-3, 0.1, 0.5, 1.0)) | st.integers(1, 1000).map(lambda n: n / 1024)


@st.composite
def steady(draw: DrawFn, dtype: str, *, calls: int, exponent: int) -> list[HostArray]:
    """Draw for one leaf its gradients, each element with one sign in all calls; the last ones are weights."""
    shape = draw(shapes())
    count = math.prod(shape)
    signs = draw(st.lists(st.sampled_from((1.0, -1.0)), min_size=count, max_size=count))
    size = 2.0**exponent
    made = []
    for scale in [*[size] * calls, *[1.0] * calls]:
        sizes = draw(st.lists(_FRACTIONS, min_size=count, max_size=count))
        values = [scale * sign * one for sign, one in zip(signs, sizes, strict=True)]
        turned = [complex(value, -value / 2) for value in values] if dtype.startswith("complex") else values
        made.append(host_array(turned, dtype, shape))
    return made


@st.composite
def _run(draw: DrawFn, within: Range) -> tuple[list[Any], list[Any]]:
    """Draw the gradients and the weights of some calls."""
    calls = draw(st.integers(1, _LONGEST))
    exponent = draw(st.integers(-12, 12))
    columns = draw(trees(within, leaf=lambda dtype: _held(steady(dtype, calls=calls, exponent=exponent))))
    at = [mapped(partial(_at, place), columns) for place in range(2 * calls)]
    return at[:calls], at[calls:]


def _at(place: int, column: "_Column", _: str) -> HostArray:
    return column.arrays[place]


class _Column:
    """The arrays of one leaf, call by call; no container, so that trees of it can be walked."""

    def __init__(self, arrays: list[HostArray]) -> None:
        self.arrays = arrays


def _held(arrays: SearchStrategy[list[HostArray]]) -> SearchStrategy[_Column]:
    return arrays.map(_Column)


def _vector(
    requirement: str,
    shows: str,
    step: Any,
    gradients: Sequence[Any],
    weights: Sequence[Any] | None,
    rule: Rule,
    ulps: float,
) -> Vector:
    """Return the vector of some calls; a complex result may be half as far off again in each part."""

    def answers(given: list[HostArray], weighed: list[HostArray | None]) -> list[Expected]:
        exacts = [exact(one) for one in weighed if one is not None] if weights is not None else None
        wide = ulps * 1.5 if given[0].dtype.startswith("complex") else ulps
        updates = rule([exact(one) for one in given], exacts)
        return [expect(one, update, wide=wide) for one, update in zip(given, updates, strict=True)]

    given = list(weights) if weights is not None else [None] * len(gradients)
    expected = callwise(answers)(gradients, given)
    calls = tuple(VectorCall(*row) for row in zip(gradients, given, expected, strict=True))
    return Vector(f"{requirement}/v-random", requirement, shows, "", step, None, None, calls)


@st.composite
def adam_vectors(draw: DrawFn, within: Range) -> Vector:
    """Draw a vector of Adam with any of its options."""
    gradients, weights = draw(_run(within))
    options: dict[str, Any] = {
        "learning_rate": draw(_RATES),
        "beta1": draw(_DECAYS),
        "beta2": draw(st.sampled_from((0.999, 0.9999)) | _DECAYS),
        "epsilon": draw(st.sampled_from((1e-8, 0.0, 1e-3, 0.125))),
        "epsilon_root": draw(st.sampled_from((0.0, 1e-6))),
        "amsgrad": draw(st.booleans()),
        "nesterov": draw(st.booleans()),
        "weight_decay": draw(st.sampled_from((0.0, 0.01, 0.5))),
    }
    decays = weights if options["weight_decay"] else None
    step = description("AdamStep", **options)

    def rule(given: Sequence[Exact], weighed: Sequence[Exact] | None) -> Sequence[Exact]:
        return adam_oracle.adam(given, weighed, **options).updates

    return _vector("ADAM-001", "Adam with these options", step, gradients, decays, rule, 8)


@st.composite
def sgd_vectors(draw: DrawFn, within: Range) -> Vector:
    """Draw a vector of gradient descent with any of its options."""
    gradients, weights = draw(_run(within))
    momentum = draw(_DECAYS)
    options: dict[str, Any] = {
        "learning_rate": draw(_RATES),
        "momentum": momentum,
        "nesterov": draw(st.booleans()) if momentum else False,
        "weight_decay": draw(st.sampled_from((0.0, 0.01, 0.5))),
    }
    decays = weights if options["weight_decay"] else None

    def rule(given: Sequence[Exact], weighed: Sequence[Exact] | None) -> Sequence[Exact]:
        return momentum_oracle.sgd(given, weighed, **options).updates

    step = description("SGDStep", **options)
    return _vector("SGD-002", "descent with these options", step, gradients, decays, rule, 8)


@st.composite
def momentum_vectors(draw: DrawFn, within: Range) -> Vector:
    """Draw a vector of momentum."""
    gradients, _ = draw(_run(within))
    decay, nesterov = draw(_DECAYS), draw(st.booleans())

    def rule(given: Sequence[Exact], _: Sequence[Exact] | None) -> Sequence[Exact]:
        return momentum_oracle.momentum(given, decay=decay, nesterov=nesterov).updates

    step = description("MomentumStep", decay=decay, nesterov=nesterov)
    return _vector("MOMENTUM-001", "momentum with these options", step, gradients, None, rule, 8)


@st.composite
def scaling_vectors(draw: DrawFn, within: Range) -> Vector:
    """Draw a vector of scaling: leaves of any size, so that products leave the range at both ends."""
    gradients = draw(trees(within, leaf=lambda dtype: leaves(dtype, within, finite=True)))
    scale = draw(st.sampled_from((-1.0, 0.1, 3.0)) | st.integers(-4096, 4096).map(lambda n: n / 64))

    def rule(given: Sequence[Exact], _: Sequence[Exact] | None) -> Sequence[Exact]:
        return [one.map(lambda g: g * number(scale)) for one in given]

    return _vector(
        "SCALE-001", "times a number", description("ScalingStep", scale=scale), [gradients], None, rule, 1.5
    )


@st.composite
def decay_vectors(draw: DrawFn, within: Range, *, as_graph: bool) -> Vector:
    """Draw a vector of a chain, or of a graph, that adds a share of the weights and then scales."""
    gradients, weights = draw(_run(within))
    share, rate = draw(st.sampled_from((0.01, 0.25, 1.0))), draw(_RATES)
    requirement = "CUSTOM-002" if as_graph else "CHAIN-001"
    shows = f"a {'graph' if as_graph else 'chain'} that decays and scales"

    def rule(given: Sequence[Exact], weighed: Sequence[Exact] | None) -> Sequence[Exact]:
        pairs = zip(given, weighed or (), strict=True)
        return [g.map(lambda x, w: -number(rate) * (x + number(share) * w), weight) for g, weight in pairs]

    step = _decaying_graph(share, rate) if as_graph else _decaying_chain(share, rate)
    return _vector(requirement, shows, step, gradients, weights, rule, 4)


def _decaying_graph(share: float, rate: float) -> Description:
    return custom(
        both(
            node("share", "multiply", "weights", share),
            node("sum", "add", "gradients", "share"),
            node("result", "multiply", "sum", -rate),
        )
    )


def _decaying_chain(share: float, rate: float) -> Description:
    decay = description("WeightDecayStep", weight_decay=share)
    return chain(decay, None, description("ScalingStep", learning_rate=rate))


@st.composite
def clipped_descent_vectors(draw: DrawFn, within: Range) -> Vector:
    """Draw a vector of a chain that clips the joint norm and then descends with momentum, in one dtype."""
    dtype = draw(st.sampled_from(within.dtypes))
    gradients, _ = draw(_run(Range((dtype,), within.subnormals)))
    momentum, rate = draw(_DECAYS), draw(_RATES)
    norms = [lengths("global", tree)[0] for tree in gradients]
    threshold = draw(st.sampled_from((0.6, 0.3, 1.7))) * (max(norms) or 1.0)
    assume(all(not 1 - NEAR < length / threshold < 1 + NEAR for length in norms))
    step = chain(clip("global", threshold), description("SGDStep", learning_rate=rate, momentum=momentum))
    columns = _columns([_clipped(tree, threshold) for tree in gradients])
    updates = {
        path: momentum_oracle.sgd(given, learning_rate=rate, momentum=momentum).updates
        for path, given in columns.items()
    }
    calls = tuple(
        VectorCall(tree, None, mapped(partial(_expected, updates, place), tree))
        for place, tree in enumerate(gradients)
    )
    shows = "a chain of clip and descent"
    return Vector("CHAIN-001/v-random", "CHAIN-001", shows, "", step, None, None, calls)


def _clipped(tree: Any, threshold: float) -> dict[str, Exact]:
    arrays = by_path_of(tree)
    clipped = clipping_oracle.global_norm([exact(array) for array in arrays.values()], threshold)
    return dict(zip(arrays, clipped, strict=True))


def _columns(calls: Sequence[dict[str, Exact]]) -> dict[str, list[Exact]]:
    return {path: [call[path] for call in calls] for path in calls[0]}


def _expected(updates: dict[str, list[Exact]], place: int, host: HostArray, path: str) -> Expected:
    # the clip may be off by 4 ulps, the descent by 8
    wide = 18 if host.dtype.startswith("complex") else 12
    return expect(host, updates[path][place], wide=wide)

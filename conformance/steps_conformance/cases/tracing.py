"""Steps inside of what array libraries do with functions: compile, batch, loop, differentiate."""

import math
from collections.abc import Callable
from typing import Any

from steps_backends import HostArray

from ..case import case
from ..compare import Mismatch, all_finite, all_zero
from ..containers import leaves, mapped
from ..descriptions import chain, description
from ..oracle.samples import sample, steady
from ..run import Run
from ..targets.protocol import Description
from .battery import ADAM, STEPS, Entry
from .devices import near_each_other
from .judging import made

ULPS = 8
GLOBAL = description("GradientClippingStep", variant="global", threshold=0.5)
WHOLE: dict[str, Description] = {
    "clip-and-adam": chain(
        description("MonitorStep"),
        GLOBAL,
        description("SkipNonFiniteStep", inner=description("AdamStep", **ADAM)),
    ),
    "relative-and-momentum": chain(
        description("GradientClippingStep", variant="per-weight-relative", threshold=0.5),
        description("SGDStep", momentum=0.9, nesterov=True, weight_decay=0.1),
        description("ConstraintStep", constraint="norm-ball", radius=0.75),
    ),
}
"""Chains that between them hold the reductions and the kinds of state that there are."""


def tree(*, seed: int = 0) -> Any:
    """Return a small tree with a container in it."""
    return {"kernel": sample((3, 2), seed=seed), "rest": [sample((4,), seed=seed + 1)]}


def trees(calls: int) -> list[Any]:
    """Return gradients for several calls, each element of one sign: moving averages do not cancel."""
    kernel, rest = steady((3, 2), calls, seed=1), steady((4,), calls, seed=2)
    return [{"kernel": one, "rest": [other]} for one, other in zip(kernel, rest, strict=True)]


def plain(run: Run, described: Description, gradients: list[Any], weights: Any) -> tuple[list[Any], Any]:
    """Return the results and the last state of calls with a state of the target's own."""
    step = run.made_by_the_target(described)
    state = step.init(weights)
    results = []
    for each in gradients:
        result, state = step.apply(each, weights, state)
        results.append(result)
    return results, state


@case("TRACE-001", each={"described": WHOLE}, needs={"transforms"}, traits={"compiles"}, in_process=True)
def compiled_whole(run: Run, described: Description) -> None:
    """Two calls of the compiled step, the second with the state of the first."""
    gradients, weights = [made(run, each) for each in trees(2)], made(run, tree(seed=7))
    expected, last = plain(run, described, gradients, weights)
    step = run.made_by_the_target(described)
    backend: Any = run.backend
    apply, state = backend.compiled(step.apply), step.init(weights)
    for each, wanted in zip(gradients, expected, strict=True):
        result, state = apply(each, weights, state)
        near_each_other(run, result, wanted, ULPS)
    near_each_other(run, state, last, ULPS)


def stacked(those: list[Any]) -> Any:
    """Return one tree of HostArrays with those of several stacked along a new first axis."""
    others = [dict(leaves(each)) for each in those]

    def stack(leaf: HostArray, path: str) -> HostArray:
        values = tuple(value for other in others for value in other[path].values)
        return HostArray(leaf.dtype, (len(those), *leaf.shape), values)

    return mapped(stack, those[0])


def taken(batch: Any, index: int) -> Any:
    """Return one of the trees that stand in a stacked tree of HostArrays."""

    def take(leaf: HostArray, _: str) -> HostArray:
        size = math.prod(leaf.shape[1:])
        return HostArray(leaf.dtype, leaf.shape[1:], leaf.values[index * size : (index + 1) * size])

    return mapped(take, batch)


@case("TRACE-002", each={"described": WHOLE}, needs={"transforms"}, traits={"batches"}, in_process=True)
def batched(run: Run, described: Description) -> None:
    """Three trees at once, of which one is large; their results against the plain calls."""
    given, weights = [tree(), tree(seed=20), tree(seed=30)], tree(seed=7)
    given[1]["kernel"] = sample((3, 2), seed=20, scale=1e30)
    step = run.made_by_the_target(described)
    backend: Any = run.backend
    together = backend.batched(lambda gradients, old: step.apply(gradients, old, None)[0])
    result = run.read(together(made(run, stacked(given)), made(run, stacked([weights] * 3))))
    for index, one in enumerate(given):
        expected = run.made_by_the_target(described).apply(made(run, one), made(run, weights), None)[0]
        near_each_other(run, made(run, taken(result, index)), expected, ULPS)


@case("TRACE-003", needs={"transforms"}, traits={"scans"}, in_process=True)
def state_as_a_carry(run: Run) -> None:
    """Three calls in one operation."""
    described = WHOLE["clip-and-adam"]
    given, weights = trees(3), made(run, tree(seed=7))
    expected, last = plain(run, described, [made(run, each) for each in given], weights)
    step = run.made_by_the_target(described)

    def body(state: Any, gradients: Any) -> tuple[Any, Any]:
        result, state = step.apply(gradients, weights, state)
        return state, result

    backend: Any = run.backend
    state, results = backend.scanned(body, step.init(weights), made(run, stacked(given)))
    for index, wanted in enumerate(expected):
        near_each_other(run, made(run, taken(run.read(results), index)), wanted, ULPS)
    near_each_other(run, state, last, ULPS)


def summed(step: Any) -> Callable[..., Any]:
    """Return the sum of all elements of a step's result, as a function of gradients and weights."""

    def total(gradients: Any, weights: Any) -> Any:
        result = step.apply(gradients, weights, None)[0]
        return sum(leaf.sum() for _, leaf in leaves(result))

    return total


ROOTS = (
    "clip-per-weight",
    "clip-per-layer",
    "clip-global",
    "clip-relative",
    "adam-amsgrad",
    "rmsprop-centered",
    "norm-ball",
    "unit-norm",
)
"""Steps with a root or a quotient of what may be 0."""


@case(
    "TRACE-004",
    each={"entry": {name: STEPS[name] for name in ROOTS}},
    needs={"transforms"},
    traits={"differentiates"},
    in_process=True,
)
def finite_derivatives(run: Run, entry: Entry) -> None:
    """At 0, at a part of 0, and at ordinary gradients."""
    backend: Any = run.backend
    derivative = backend.derivative(summed(run.made_by_the_target(entry.described)))
    weights = run.array([0.25, -0.5])
    for values in ([0.0, 0.0], [3.0, 0.0], [0.1, -0.1]):
        all_finite(run.read(derivative(run.array(values), weights)), path=f"derivative at {values}")


@case("TRACE-005", needs={"transforms"}, traits={"differentiates"}, in_process=True)
def derivative_of_a_global_clip(run: Run) -> None:
    """Within the threshold, and at twice and at ten times it."""
    backend: Any = run.backend
    step = run.made_by_the_target(description("GradientClippingStep", variant="global", threshold=1.0))
    derivative = backend.derivative(summed(step))
    for first, second in ((0.3, -0.4), (1.2, 1.6), (6.0, -8.0)):
        found = run.read(derivative([run.array([first]), run.array([second])], None))
        norm, total = math.hypot(first, second), first + second
        for got, value in zip(found, (first, second), strict=True):
            expected = 1.0 if norm <= 1 else (1 - value * total / norm**2) / norm
            within = 0.0 if norm <= 1 else 1e-6 / norm
            if not abs(got.values[0] - expected) <= within:
                raise Mismatch(f"the derivative at {(first, second)} must be {expected}, got {got}")


@case("TRACE-005", needs={"transforms"}, traits={"differentiates"}, in_process=True)
def weights_are_constants(run: Run) -> None:
    """Weight decay and a clip relative to the weights."""
    backend: Any = run.backend
    for described in (
        description("WeightDecayStep", weight_decay=0.5),
        description("GradientClippingStep", variant="per-weight-relative", threshold=0.5),
    ):
        total = summed(run.made_by_the_target(described))
        derivative = backend.derivative(lambda weights, gradients, total=total: total(gradients, weights))
        all_zero(run.read(derivative(run.array([0.25, -0.5]), run.array([3.0, 4.0]))))

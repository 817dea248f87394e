"""The oracle of graphs by hand: what the cases of operations and custom steps leave open."""

from typing import Any

import pytest
from steps_conformance.oracle.exact import Exact, number
from steps_conformance.oracle.graphs import GraphRun

HEAD, CONV = "['head']", "['conv'][0]"
INFINITE = {"float": "inf"}


def leaf(*values: float) -> Exact:
    """Return an array of one axis."""
    return Exact((len(values),), tuple(map(number, values)))


def node(name: str, operation: str, *inputs: Any, **options: Any) -> dict[str, Any]:
    """Return a node as the document has it."""
    return {"name": name, "operation": operation, "inputs": list(inputs), "options": options}


def step(name: str, *inputs: str, **options: Any) -> dict[str, Any]:
    """Return a node with a step."""
    return {"name": "out", "step": {"step": name, "options": options}, "inputs": list(inputs)}


def run_of(*nodes: dict[str, Any]) -> GraphRun:
    """Return a run of a graph whose output is the node out."""
    return GraphRun({"placeholders": ["gradients", "weights"], "nodes": list(nodes), "output": "out"})


def result(*nodes: dict[str, Any], of: Exact) -> Exact:
    """Return what a graph makes of one leaf."""
    return run_of(*nodes).call({HEAD: of})[HEAD]


def test_streams_go_apart_and_together_again() -> None:
    """Each by the first key of its path, whichever comes first."""
    run = run_of(
        node("tail", "extract_streams", "gradients", names=["conv", "norm"]),
        node("head", "extract_streams", "gradients", names=["head"]),
        node("double", "multiply", "head", 2),
        node("out", "merge_streams", "tail", "double"),
    )
    assert run.call({HEAD: leaf(1.0), CONV: leaf(3.0, 4.0)}) == {HEAD: leaf(2.0), CONV: leaf(3.0, 4.0)}


def test_a_counter_says_how_many_calls_were_made_before() -> None:
    """0 at the first."""
    run = run_of(
        node("n", "counter"), node("zero", "multiply", "gradients", 0), node("out", "add", "zero", "n")
    )
    assert [run.call({HEAD: leaf(7.0)})[HEAD] for _ in range(3)] == [leaf(0.0), leaf(1.0), leaf(2.0)]


@pytest.mark.parametrize(("options", "factor"), [({"scale": 4}, 4.0), ({"learning_rate": 0.5}, -0.5)])
def test_scaling_takes_the_gradients_of_its_call(options: Any, factor: float) -> None:
    """Not those of a call before, and not the weights."""
    run = run_of(step("ScalingStep", "gradients", "weights", **options))
    for value in (1.0, 2.0, 3.0):
        assert run.call({HEAD: leaf(value)}, {HEAD: leaf(9.0)}) == {HEAD: leaf(factor * value)}


def test_momentum_gathers_the_gradients_of_all_calls() -> None:
    """m = m / 2 + g: 4, 6, 7; whatever the weights are."""
    run = run_of(step("MomentumStep", "gradients", "weights", decay=0.5))
    found = [run.call({HEAD: leaf(4.0)}, {HEAD: leaf(9.0)})[HEAD] for _ in range(3)]
    assert found == [leaf(4.0), leaf(6.0), leaf(7.0)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (1.0, 1.0)),
        ({"variant": "per-weight", "threshold": 3}, (3.0, 3.0)),
        ({"variant": "per-layer", "threshold": 2.5}, (1.5, 2.0)),
        ({"variant": "global", "threshold": 2.5}, (1.5, 2.0)),
    ],
)
def test_clipping_by_each_norm(options: Any, expected: tuple[float, float]) -> None:
    """Each element to 1 where nothing else is said; and the weights have no part in it."""
    run = run_of(step("GradientClippingStep", "gradients", "weights", **options))
    assert run.call({HEAD: leaf(3.0, 4.0)}, {HEAD: leaf(9.0, 9.0)}) == {HEAD: leaf(*expected)}


def test_a_clip_per_layer_takes_each_leaf_by_itself() -> None:
    """A global one takes them together."""
    gradients = {HEAD: leaf(3.0), CONV: leaf(4.0)}
    for variant, expected in (("per-layer", [2.5, 2.5]), ("global", [1.5, 2.0])):
        run = run_of(step("GradientClippingStep", "gradients", variant=variant, threshold=2.5))
        assert run.call(gradients) == dict(zip(gradients, map(leaf, expected), strict=True))


@pytest.mark.parametrize(("order", "norm"), [(1, 7.0), (2, 5.0), (INFINITE, 4.0)])
def test_norms_of_a_leaf(order: Any, norm: float) -> None:
    """Of magnitudes; a norm of a whole leaf meets every element."""
    measure = node("norm", "norm", "gradients", over="leaf", order=order)
    spread = (node("zero", "multiply", "gradients", 0), node("out", "add", "zero", "norm"))
    assert result(measure, *spread, of=leaf(3.0, -4.0)) == leaf(norm, norm)


@pytest.mark.parametrize(("reduction", "options"), [("norm", {"order": INFINITE}), ("mean", {}), ("sum", {})])
def test_of_nothing_every_reduction_is_0(reduction: str, options: Any) -> None:
    """Over a leaf without elements."""
    assert result(node("out", reduction, "gradients", over="leaf", **options), of=leaf()) == Exact((), (0,))


def test_a_reduction_over_units_fills_its_units() -> None:
    """The columns of a matrix, with the output axis last."""
    matrix = Exact((2, 2), tuple(map(number, (1.0, 2.0, 3.0, 4.0))))
    filled = Exact((2, 2), tuple(map(number, (4.0, 6.0, 4.0, 6.0))))
    assert result(node("out", "sum", "gradients", over="unit"), of=matrix) == filled


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [("greater", 2.0), ("greater_equal", 1.0), ("less", 2.0), ("less_equal", 1.0)],
)
def test_comparisons_of_equal_numbers(comparison: str, expected: float) -> None:
    """Each is neither greater nor less."""
    nodes = (node("is", comparison, "gradients", "gradients"), node("out", "where", "is", 1, 2))
    assert result(*nodes, of=leaf(5.0)) == leaf(expected)


def test_signs_and_what_is_finite() -> None:
    """0 has the sign 0, and infinity is not finite."""
    assert result(node("out", "sign", "gradients"), of=leaf(-3.0, 0.0, 2.0)) == leaf(-1.0, 0.0, 1.0)
    nodes = (node("is", "isfinite", "gradients"), node("out", "where", "is", 1, 2))
    assert result(*nodes, of=leaf(float("inf"), 1.0)) == leaf(2.0, 1.0)

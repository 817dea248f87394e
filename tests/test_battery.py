"""What holds for every step: one battery over the whole table, on every library."""

import copy
import pickle
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree
import pytest
from catalogue import NEED_AN_ORDER, SAMPLES
from comparing import assert_same_trees, leaves_of, read_tree
from libraries import COMPLEX, Library, numpy_array

from steps_core import Step
from steps_core.steps import STEPS

SHAPES = [(), (3,), (0,), (1,), (2, 3), (0, 3), (2, 1, 2), (2, 2, 1, 2), (1, 2, 1, 2, 2)]
# Each operation of JAX is compiled for each shape and dtype.
FEW_SHAPES = [(), (2, 3)]
# Finite, and not: what a diverging run brings.
ROUGH = [[np.nan, np.inf, -np.inf], [1e300, -1e-300, -0.0]]


@dataclass(frozen=True)
class Outcome:
    """What went into two calls of a step, and what came out."""

    library: Library
    gradients: Any
    before: Any
    first: Any
    results: list[Any]
    states: list[Any]


def leaves_for(library: Library, name: str, seed: int) -> dict[str, Any]:
    """Return a tree of every container, dtype and shape that the step takes, with None among the leaves."""
    rng = np.random.default_rng(seed)
    dtypes = [dtype for dtype in library.dtypes if name not in NEED_AN_ORDER or dtype not in COMPLEX]
    shapes = FEW_SHAPES if library.name == "jax" else SHAPES
    return {
        "dtypes": {dtype: library.array(rng.normal(size=(2, 3)), dtype) for dtype in dtypes},
        "shapes": [library.array(rng.normal(size=shape)) for shape in shapes],
        "none": (None, [], {}, ()),
    }


def outcome_of(library: Library, name: str) -> Outcome:
    """Return the outcome of two calls with the same gradients."""
    step = SAMPLES[name]
    gradients, weights = leaves_for(library, name, 20), leaves_for(library, name, 21)
    before = read_tree(library, [gradients, weights])
    state = step.init(weights)
    results, states = [], [state]
    for _ in range(2):
        result, state = step(gradients, weights, states[-1])
        results.append(result)
        states.append(state)
    assert_same_trees(read_tree(library, [gradients, weights]), before)
    first = step(gradients, weights, states[0])
    return Outcome(library, gradients, before, first, results, states)


def test_the_table_holds_every_step() -> None:
    """A step that is missing here would be tested by nothing in this file."""
    assert {type(step) for step in SAMPLES.values()} == set(STEPS.values())


@pytest.mark.parametrize("name", SAMPLES)
def test_a_call_keeps_the_contract(library: Library, name: str) -> None:
    """Nothing given is written to; results are like the gradients; the state keeps its form."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = outcome_of(library, name)
    for result in outcome.results:
        assert_like_gradients(outcome, result)
    for state in outcome.states:
        assert_same_form(library, state, outcome.states[0])
    assert_same_trees(read_tree(library, outcome.first[0]), read_tree(library, outcome.results[0]))
    assert_same_trees(read_tree(library, outcome.first[1]), read_tree(library, outcome.states[1]))


def assert_like_gradients(outcome: Outcome, result: Any) -> None:
    """Fail unless a result has the containers, shapes, dtypes, devices and library of the gradients."""
    structure = optree.tree_structure(outcome.gradients, none_is_leaf=True)
    assert optree.tree_structure(result, none_is_leaf=True) == structure
    for given, came in zip(leaves_of(outcome.gradients), leaves_of(result), strict=True):
        if given is None:
            assert came is None
            continue
        assert outcome.library.holds(came)
        assert (came.shape, came.dtype, came.device) == (given.shape, given.dtype, given.device)
        assert not getattr(came, "weak_type", False)


def assert_same_form(library: Library, state: Any, first: Any) -> None:
    """Fail unless a state has the structure, shapes, dtypes, devices and weak types of the first one."""
    assert optree.tree_structure(state, none_is_leaf=True) == optree.tree_structure(first, none_is_leaf=True)
    for one, other in zip(leaves_of(state), leaves_of(first), strict=True):
        if other is None:
            assert one is None
            continue
        assert library.holds(one)
        assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
        assert getattr(one, "weak_type", False) == getattr(other, "weak_type", False)
        assert library.dtype_of(one).name not in ("float16", "bfloat16")


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_not_finite_neither_raises_nor_warns(library: Library, name: str) -> None:
    """In gradients, weights and, by the second call, in moments; warnings are errors here."""
    step = SAMPLES[name]
    dtypes = ["float32"] if library.name == "jax" else library.dtypes
    gradients = {d: library.array(ROUGH, d) for d in dtypes if d not in COMPLEX or name not in NEED_AN_ORDER}
    weights = {d: library.array(ROUGH[::-1], d) for d in gradients}
    _, state = step(gradients, weights)
    results, _ = step(gradients, weights, state)
    for dtype, result in results.items():
        assert library.read(result).dtype == library.read(gradients[dtype]).dtype


@pytest.mark.parametrize("name", SAMPLES)
def test_read_only_arrays_are_taken(name: str) -> None:
    """Gradients, weights and state alike, with the same bits as writable ones."""
    library, step = Library("numpy"), SAMPLES[name]
    gradients, weights = leaves_for(library, name, 20), leaves_for(library, name, 21)
    expected, state = step(gradients, weights)
    expected, expected_state = step(gradients, weights, state)
    for leaf in leaves_of([gradients, weights, state]):
        if leaf is not None:
            leaf.flags.writeable = False
    result, after = step(gradients, weights, state)
    assert_same_trees(result, expected)
    assert_same_trees(after, expected_state)


@pytest.mark.parametrize("name", SAMPLES)
def test_results_share_no_memory_with_the_state(name: str) -> None:
    """Whoever changes updates in place does not change the next step."""
    step, leaf = SAMPLES[name], np.linspace(0.5, 2.0, 6).reshape(2, 3)
    result, state = step([leaf.copy()], [leaf.copy()])
    kept = copy.deepcopy(state)
    result[0][...] = -77.0
    assert_same_trees(state, kept)


@pytest.mark.parametrize("name", SAMPLES)
def test_states_of_two_calls_share_no_memory_that_is_written(name: str) -> None:
    """An old state can be called again: nothing in it has moved."""
    step, leaf = SAMPLES[name], np.linspace(0.5, 2.0, 6).reshape(2, 3)
    state = step.init([leaf])
    kept = copy.deepcopy(state)
    step([leaf], [leaf], state)
    assert_same_trees(state, kept)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(
    ("gradient", "weight"), [("float64", "float32"), ("float32", "float16"), ("float16", "float64")]
)
def test_gradients_and_weights_may_differ_in_dtype(name: str, gradient: str, weight: str) -> None:
    """The result has the gradient's dtype; the state keeps the form that the weights gave it."""
    step = SAMPLES[name]
    if step.constrains and gradient == "float16":
        pytest.skip("a constraint refuses a gradient that is narrower than its weight")
    leaf = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    gradients, weights = [leaf.astype(gradient)], [leaf.astype(weight)]
    first = step.init(weights)
    result, state = step(gradients, weights, first)
    result, state = step(gradients, weights, state)
    assert result[0].dtype == gradient
    assert_same_form(Library("numpy"), state, first)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", *COMPLEX])
def test_leaves_of_every_rank_are_taken(name: str, dtype: str) -> None:
    """Ranks 0 to 5 and empty ones, in every dtype."""
    if name in NEED_AN_ORDER and dtype in COMPLEX:
        pytest.skip("complex numbers have no order")
    rng = np.random.default_rng(22)
    tree = [numpy_array(rng.normal(size=shape), dtype) for shape in SHAPES]
    result, state = SAMPLES[name](tree, tree)
    assert [leaf.shape for leaf in result] == SHAPES
    assert {leaf.dtype for leaf in result} == {tree[0].dtype}
    moments = [leaf for leaf in leaves_of(state) if leaf is not None and leaf.dtype.kind in "fc"]
    assert not any(np.isnan(leaf).any() for leaf in moments)


@pytest.mark.parametrize("tree", [{}, [], (), {"a": (None, [])}], ids=repr)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_tree_without_arrays_is_taken(name: str, tree: Any) -> None:
    """It comes back, and the state keeps its form."""
    step = SAMPLES[name]
    state = step.init(tree)
    result, after = step(tree, tree, state)
    assert result == tree and after == state


@pytest.mark.parametrize("name", SAMPLES)
def test_no_gradient_at_all_leaves_the_moments(library: Library, name: str) -> None:
    """Every leaf None, with weights: counts go on, moments keep their bits."""
    step, weights = SAMPLES[name], {"a": library.array(np.ones((2, 3)))}
    _, state = step(weights, weights)
    result, after = step({"a": None}, weights, state)
    assert result == {"a": None}
    assert_same_form(library, after, state)
    step(weights, weights, after)


@pytest.mark.parametrize(
    "make",
    [copy.copy, copy.deepcopy, lambda step: pickle.loads(pickle.dumps(step))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("step", SAMPLES.values(), ids=SAMPLES)
def test_a_copy_of_a_step_is_equal(step: Step, make: Any) -> None:
    """In hash, repr and metadata, too, and it computes the same bits."""
    again = make(step)
    assert again == step and hash(again) == hash(step) and repr(again) == repr(step)
    assert again.metadata == step.metadata
    leaf = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    assert_same_trees(list(again(leaf, leaf)), list(step(leaf, leaf)))


def test_steps_with_other_options_are_different() -> None:
    """No two samples are equal, and as keys they keep apart."""
    assert len(set(SAMPLES.values())) == len(SAMPLES)
    for step in SAMPLES.values():
        assert step != object() and step != None  # noqa: E711

"""Compiled steps against plain ones: the same results, on one state, on every library that they have."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import optree
import pytest
from catalogue import NEED_AN_ORDER, SAMPLES
from comparing import assert_same_trees, assert_within_ulps, leaves_of
from libraries import Library
from steps_backends import compile as compiled

from steps_core import (
    AdamStep,
    ChainedStep,
    CustomStep,
    GradientClippingStep,
    RMSPropStep,
    SGDStep,
    Step,
    graph,
    graphs,
)

# Small leaves are packed, large ones fused by numba or done by two threads.
SHAPES = {"kernel": (6, 4), "bias": [(3,), ()], "filters": (2, 3, 3, 4), "one": (1, 1), "large": (20_000,)}
# The steps without a norm: of these every bit is equal.
ELEMENTWISE = (
    "adam",
    "adam with all options",
    "rmsprop",
    "rmsprop with all options",
    "sgd",
    "momentum nesterov",
)


def tree(library: Library, dtype: str, seed: int) -> Any:
    """Return a tree of random numbers."""
    random = np.random.default_rng(seed)
    return optree.tree_map(
        lambda shape: library.array(random.normal(size=shape), dtype),
        SHAPES,
        is_leaf=lambda node: isinstance(node, tuple),
    )


def assert_alike(library: Library, actual: Any, expected: Any, ulps: float) -> None:
    """Fail unless two trees agree: floating numbers within ulps of the largest of a leaf, others exactly."""
    for one, other in zip(leaves_of(actual), leaves_of(expected), strict=True):
        assert type(one) is type(other)
        if one is None:
            continue
        left, right = library.read(one), library.read(other)
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        if left.dtype.kind in "fc" and left.size:
            scale = np.abs(right.astype(complex)).max() * ulps * np.finfo(left.dtype).eps
            assert np.all(np.abs(left - right) <= scale)
        else:
            assert np.array_equal(left, right)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize("donate", [(), ("gradients", "state")], ids=["kept", "donated"])
def test_a_compiled_step_does_what_the_plain_one_does(name: str, dtype: str, donate: Any) -> None:
    """Every step, over calls whose states go to and fro between the two."""
    pytest.importorskip(name)
    library = Library(name)
    for title, step in SAMPLES.items():
        if dtype.startswith("complex") and title in NEED_AN_ORDER:
            continue
        weights, fast = tree(library, dtype, 0), compiled(step, donate)
        state, other = step.init(weights), step.init(weights)
        for call in range(3):
            gradients = tree(library, dtype, call)
            expected, state = step(gradients, weights, state)
            given = tree(library, dtype, call) if donate else gradients
            updates, other = (step if call == 1 else fast)(given, weights, other)
            assert_alike(library, [updates, other], [expected, state], 16)


@pytest.mark.parametrize("title", ELEMENTWISE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_element_wise_results_have_the_same_bits(title: str, dtype: str) -> None:
    """Also of NaN, infinity, zeros of both signs and subnormal numbers; in blocks, loops and packs."""
    step, library = SAMPLES[title], Library("numpy")
    hard = np.asarray([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-40, 3e38, -3e38, 1e-30, 1.0])
    weights = {"small": [library.array(hard, dtype), library.array(np.ones(5), dtype)]}
    weights["large"] = library.array(np.resize(hard, 20_000), dtype)
    fast, state, other = compiled(step), step.init(weights), step.init(weights)
    for _ in range(3):
        expected, state = step(weights, weights, state)
        updates, other = fast(weights, weights, other)
        assert_same_trees([updates, other], [expected, state])


def test_the_root_of_minus_zero_is_zero() -> None:
    """As in the plain step, whose root asks for zeros first."""
    step = CustomStep(graph(lambda gradients: -graphs.sqrt(gradients)))
    gradients = [np.asarray([-0.0, 0.0, 4.0, -1.0], "float32"), np.full(20_000, -0.0)]
    assert_same_trees(compiled(step)(gradients).gradients, step(gradients).gradients)


@pytest.mark.parametrize("step", [SGDStep(), GradientClippingStep(variant="global")], ids=["sgd", "clip"])
def test_on_jax_a_step_is_jitted_once(step: Step) -> None:
    """With the plain results."""
    pytest.importorskip("jax")
    library = Library("jax")
    gradients = {"kernel": library.array([[3.0, -1.0], [0.5, 2.0]]), "none": None}
    fast, state = compiled(step), step.init(gradients)
    for _ in range(2):
        updates, state = fast(gradients, None, state)
        assert_alike(library, updates["kernel"], step(gradients).gradients["kernel"], 2)
    assert updates["none"] is None


def test_a_leaf_of_two_threads_has_the_bits_of_one() -> None:
    """Blocks are cut alike, and exact sums do not depend on the order."""
    gradients = np.random.default_rng(0).normal(size=700_001).astype("float32")
    step = ChainedStep(AdamStep(), RMSPropStep(centered=True, momentum=0.5))
    state = step.init(gradients)
    assert_same_trees(tuple(compiled(step)(gradients, None, state)), tuple(step(gradients, None, state)))
    clip = compiled(GradientClippingStep(variant="global", threshold=1.0))
    first, second = (clip(gradients).gradients for _ in range(2))
    assert_same_trees(first, second)
    assert_within_ulps(np.linalg.norm(first.astype("float64")).astype("float32"), 1.0, 1)


def test_one_compiled_step_may_be_called_from_many_threads() -> None:
    """Each call gets the result of its own arguments."""
    step = compiled(ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep()))
    trees = [[np.full(size, number, "float32") for size in (40_000, 5, 7)] for number in range(1, 9)]
    expected = [step(tree).gradients for tree in trees]
    kept = [[leaf.copy() for leaf in result] for result in expected]
    with ThreadPoolExecutor(8) as pool:
        for found, wanted in zip(
            pool.map(lambda tree: step(tree).gradients, trees * 4), kept * 4, strict=True
        ):
            assert_same_trees(found, wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_may_go_on() -> None:
    """It has no second thread until it makes one."""
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, timeout=60, check=False)
    assert done.stdout.split() == [b"-1.0", b"-1.0"], done.stderr


# One write for each line, because two processes write at once.
FORKING = """
import os, numpy
from steps_backends import compile
from steps_core import SGDStep
step, leaf = compile(SGDStep(learning_rate=1.0)), numpy.ones(600_000, "float32")
step(leaf)
child = os.fork()
os.write(1, f"{step(leaf).gradients[-1]}\\n".encode())
if child:
    os.waitpid(child, 0)
"""


def test_a_compiled_step_has_the_contract_of_the_step() -> None:
    """What a chain and a training loop ask of it."""
    step = AdamStep(weight_decay=0.1)
    fast = compiled(step, donate=["state"])
    assert fast.negates and fast.needs_weights and not fast.constrains
    assert fast.describe() == step.describe()
    assert repr(fast) == f"compile({step!r}, donate=('state',))"
    leaf = np.ones(2)
    by_name = fast(gradients=leaf, weights=leaf, state=fast.init(leaf))
    assert_same_trees(tuple(by_name), tuple(step(leaf, leaf)))


def test_what_is_no_step_or_cannot_be_donated_is_refused() -> None:
    """With the words of steps_core."""
    with pytest.raises(TypeError, match=r"step must be a step, got 3 \(int\)"):
        compiled(3)
    with pytest.raises(ValueError, match=r"donate must name gradients or state, got 'weights' \(str\)"):
        compiled(SGDStep(), donate="weights")


def test_a_tree_without_arrays_runs() -> None:
    """There is nothing to compile."""
    assert compiled(AdamStep())({"a": None}).gradients == {"a": None}
    assert compiled(AdamStep())({}).gradients == {}

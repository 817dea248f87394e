"""Generated CUDA against plain steps: the same text, compiled for the CPU and run there, bit by bit."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest
from catalogue import NEED_AN_ORDER, SAMPLES
from comparing import assert_same_trees, leaves_of
from cuda_on_cpu import CpuDevice, has_compiler, runner_on
from libraries import Library, numpy_dtype
from steps_backends.compiling.cuda_source import prelude
from steps_backends.compiling.cupy_runner import OPTIONS

from steps_core import (
    AdamStep,
    ChainedStep,
    CustomStep,
    GradientClippingStep,
    MonitorStep,
    SGDStep,
    WeightDecayStep,
    graph,
    graphs,
)

NO_ORDER = "complex numbers have no order"
pytestmark = pytest.mark.skipif(not has_compiler(), reason="g++ is not here")

NUMPY = Library("numpy")
CHAIN = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep())
SHAPES = {"kernel": (6, 4), "bias": [(3,), ()], "filters": (2, 3, 3, 4), "one": (1, 1), "large": (9_000,)}
HARD = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-40, 3e38, -3e38, 1e-30, 1.0, -2.0, 0.1]
# All samples in the first format, and one of each kind of arithmetic in the others.
OTHERS = {
    "float16": ("clip global", "adam with all options", "sgd"),
    "bfloat16": ("chain", "momentum nesterov"),
    "float64": ("clip relative", "rmsprop with all options", "graph with everything"),
    "complex64": ("clip per layer", "adam", "graph with everything"),
}
KINDS = [("float32", title) for title in SAMPLES]
KINDS += [(dtype, title) for dtype, titles in OTHERS.items() for title in titles]
ELEMENTWISE = ("adam", "rmsprop with all options", "sgd with all options", "clip per weight", "scaling")


def tree(dtype: str, seed: int) -> Any:
    """Return a tree of random numbers."""
    random = np.random.default_rng(seed)
    return optree.tree_map(
        lambda shape: NUMPY.array(random.normal(size=shape), dtype),
        SHAPES,
        is_leaf=lambda node: isinstance(node, tuple),
    )


def hard_tree(dtype: str) -> Any:
    """Return every pair of hard numbers, in one leaf longer than a piece and in short ones."""
    pairs = np.asarray(list(itertools.product(HARD, HARD)))
    return [NUMPY.array(np.resize(pairs[:, 0], 9_000), dtype), NUMPY.array(pairs[:, 1], dtype)]


@pytest.fixture(autouse=True)
def quiet_numpy() -> Iterator[None]:
    """What is not a number is cast too."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: Any) -> dict[Any, Any]:
    """Runners of all kinds on one device, whose kernels one call of g++ has compiled."""
    device = CpuDevice(tmp_path_factory.mktemp("cuda"))
    runners = {}
    for dtype, title in KINDS:
        runners[dtype, title] = run = runner_on(device, SAMPLES[title])
        run(tree(dtype, 0), tree(dtype, 0))
    for dtype, title in itertools.product(("float32", "float16"), ELEMENTWISE):
        runners["hard", dtype, title] = run = runner_on(device, SAMPLES[title])
        run(hard_tree(dtype), hard_tree(dtype))
    device.build()
    return runners


@pytest.mark.parametrize(("dtype", "title"), KINDS)
def test_every_step_gives_what_the_plain_one_does(built: Any, dtype: str, title: str) -> None:
    """Within a few ulps of the largest of a leaf: norms are summed in another order."""
    if dtype.startswith("complex") and title in NEED_AN_ORDER:
        pytest.skip(NO_ORDER)
    step, weights = SAMPLES[title], tree(dtype, 0)
    state = other = step.init(weights)
    for call in range(3):
        gradients = tree(dtype, call)
        expected, state = step(gradients, weights, state)
        updates, other = built[dtype, title](gradients, weights, other)
        for left, right in zip(leaves_of([updates, other]), leaves_of([expected, state]), strict=True):
            assert_near(left, right)


def assert_near(left: Any, right: Any) -> None:
    """Fail unless two arrays agree within 16 ulps of the largest element."""
    if left is None:
        assert right is None
        return
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    ulp = 2.0**-7 if left.dtype == numpy_dtype("bfloat16") else None
    ulp = ulp or (np.finfo(left.dtype).eps if left.dtype.kind in "fc" else 0)
    left, right = left.astype(complex), right.astype(complex)
    assert np.all(np.abs(left - right) <= 16 * ulp * np.abs(right).max(initial=0))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("title", ELEMENTWISE)
def test_element_wise_results_have_the_bits_of_the_plain_step(built: Any, title: str, dtype: str) -> None:
    """Also of NaN, infinity, zeros of both signs and subnormal numbers."""
    step, leaves = SAMPLES[title], hard_tree(dtype)
    state = other = step.init(leaves)
    for _ in range(2):
        expected, state = step(leaves, leaves, state)
        updates, other = built["hard", dtype, title](leaves, leaves, other)
        assert_same_trees([updates, other], [expected, state])


def test_numbers_of_two_bytes_are_read_and_rounded_as_numpy_does(tmp_path: Path) -> None:
    """All of them, halves between two, and float64 that would round twice by way of float32."""
    device = CpuDevice(tmp_path)
    step = SGDStep(learning_rate=-1.0)
    negated = runner_on(device, step)
    # ml_dtypes itself rounds float64 twice.
    kinds = [("float16", "float32"), ("float16", "float64"), ("bfloat16", "float32")]
    cases = [
        ([np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(narrow))], [np.full(1 << 16, factor, wide)])
        for (narrow, wide), factor in itertools.product(kinds, (1.0, 0.7, 1 + 2.0**-12))
    ]
    decayed = WeightDecayStep(weight_decay=2.0**-11 + 2.0**-40)
    run = runner_on(device, decayed)
    for gradients, weights in cases:
        negated(gradients)
        run(gradients, weights)
    device.build()
    for gradients, weights in cases:
        assert_same_trees(negated(gradients).gradients, step(gradients).gradients)
        assert_same_trees(run(gradients, weights).gradients, decayed(gradients, weights).gradients)


@pytest.mark.parametrize("exponent", [0, 35, -35])
def test_threads_that_share_a_sum_give_the_sum_of_one(threaded: Any, exponent: int) -> None:
    """Of all elements and of units, for numbers of any size; equal calls give equal bits."""
    random = np.random.default_rng(0)
    shapes = [(5_000,), (70, 33), (33, 70), (3, 40, 5), ()]
    gradients = [(random.normal(size=shape) * 10.0**exponent).astype("float32") for shape in shapes]
    # Other numbers: of the same ones, a wrong norm would cancel.
    weights = [random.normal(size=shape).astype("float32") for shape in shapes]
    for step, run in threaded:
        expected = leaves_of(step(gradients, weights).gradients)
        first, second = (leaves_of(run(gradients, weights).gradients) for _ in range(2))
        assert_same_trees(first, second)
        for left, right in zip(first, expected, strict=True):
            assert np.all(np.abs(left - right) <= 4 * np.spacing(np.abs(right).max()))


@pytest.fixture(scope="module")
def threaded(tmp_path_factory: Any) -> list[Any]:
    """Steps with norms, and what runs them with four threads to a block."""
    device = CpuDevice(tmp_path_factory.mktemp("cuda"), threads=4)
    variants = [("global", "auto"), ("per-weight-relative", "auto"), ("per-weight-relative", 0)]
    steps = [
        GradientClippingStep(variant=variant, threshold=1e-3, unit_axis=unit_axis)
        for variant, unit_axis in variants
    ]
    steps.append(GradientClippingStep(variant="per-weight-relative", threshold=1e-3, unit_axis=1))
    runners = [(step, runner_on(device, step)) for step in steps]
    leaves = [np.ones(shape, "float32") for shape in [(5_000,), (70, 33), (33, 70), (3, 40, 5), ()]]
    for _, run in runners:
        run(leaves, leaves)
    device.build()
    return runners


def test_launches_and_kernels_do_not_grow_with_the_leaves(tmp_path: Path) -> None:
    """Nor where each leaf has a norm and a factor of its own."""
    for step in (CHAIN, GradientClippingStep(variant="per-layer")):
        found = []
        for leaves in (3, 300):
            device = CpuDevice(tmp_path)
            runner_on(device, step)([np.ones((2, 5), "float32") for _ in range(leaves)])
            found.append((device.launches, device.sources))
        assert found[0] == found[1]


@pytest.fixture(scope="module")
def donating(tmp_path_factory: Any) -> dict[str, Any]:
    """Steps that may write to what they are given."""
    device = CpuDevice(tmp_path_factory.mktemp("cuda"))
    steps = {
        "chain": runner_on(device, CHAIN, ("gradients", "state")),
        "decay": runner_on(device, WeightDecayStep(weight_decay=0.5), ("gradients",)),
        "previous": runner_on(
            device,
            CustomStep(graph(lambda gradients: -graphs.previous_value(gradients))),
            ("gradients", "state"),
        ),
    }
    for run in steps.values():
        run(*donated_leaves())
    device.build()
    return steps


def donated_leaves() -> Any:
    """Return gradients and weights."""
    random = np.random.default_rng(0)
    return [[random.normal(size=size).astype("float32") for size in (5_000, 7)] for _ in range(2)]


def test_what_is_donated_is_written_to(donating: Any) -> None:
    """The gradients become the updates, and the state stays where it is."""
    gradients, weights = donated_leaves()
    state = CHAIN.init(weights)
    expected, _ = CHAIN([leaf.copy() for leaf in gradients], weights, state)
    moments = state["step2"]["first_moment"]
    updates, following = donating["chain"](gradients, weights, state)
    assert all(one is other for one, other in zip(updates, gradients, strict=True))
    assert all(one is other for one, other in zip(following["step2"]["first_moment"], moments, strict=True))
    for left, right in zip(updates, expected, strict=True):
        assert np.all(np.abs(left - right) <= 4 * np.spacing(np.abs(right).max()))


def test_what_something_else_reads_is_not_written_to(donating: Any) -> None:
    """Weights that are the gradients, a leaf that forbids it, and one that is kept for the next call."""
    gradients, _ = donated_leaves()
    kept = [leaf.copy() for leaf in gradients]
    expected = WeightDecayStep(weight_decay=0.5)(kept, kept).gradients
    assert_same_trees([donating["decay"](gradients, gradients).gradients, gradients], [expected, kept])
    gradients, weights = donated_leaves()
    gradients[0].flags.writeable = False
    expected = WeightDecayStep(weight_decay=0.5)(gradients, weights).gradients
    assert_same_trees([donating["decay"](gradients, weights).gradients, gradients[0]], [expected, kept[0]])
    step = CustomStep(graph(lambda gradients: -graphs.previous_value(gradients)))
    gradients, weights = donated_leaves()
    state = other = step.init(gradients)
    for _ in range(2):
        expected, state = step([leaf.copy() for leaf in gradients], weights, state)
        updates, other = donating["previous"]([leaf.copy() for leaf in gradients], weights, other)
        assert_same_trees([updates, other], [expected, state])


def test_empty_leaves_and_constants_have_a_place(tmp_path: Path) -> None:
    """Norms of nothing and of zeros, and a leaf of one element that is made zero."""
    device = CpuDevice(tmp_path)
    step = ChainedStep(GradientClippingStep(variant="global", threshold=0.0), MonitorStep(), AdamStep())
    clip = GradientClippingStep(variant="per-layer")
    gradients = [np.ones((0, 3), "float32"), np.ones((1,), "float32"), np.ones(3, "float32"), None]
    runners = [(each, runner_on(device, each)) for each in (step, clip)]
    for _, run in runners:
        run(gradients)
    device.build()
    for each, run in runners:
        assert_same_trees(tuple(run(gradients)), tuple(each(gradients)))


def test_the_text_is_plain_cuda() -> None:
    """One function, without includes, and with CuPy's option that keeps products and sums apart."""
    device = CpuDevice(Path())
    runner_on(device, CHAIN)([np.ones(3, "float32")])
    assert "--fmad=false" in OPTIONS
    for text in device.sources.values():
        assert text.count('extern "C" __global__ void') == 1
    assert "#include" not in prelude() + "".join(device.sources.values())

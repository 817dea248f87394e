"""What PyTorch compiles: the function's own arithmetic, run as it is written, and once compiled for good."""

import shutil
import warnings
from typing import Any

import numpy as np
import optree
import pytest
from catalogue import SAMPLES
from comparing import leaves_of
from libraries import Library
from steps_backends import compile as compiled
from steps_backends.compiling import torch_runner
from steps_backends.compiling.torch_leaves import TensorSharing
from steps_backends.torch_watching import run_on_fake_tensors

from steps_core import (
    AdamStep,
    ChainedStep,
    CustomStep,
    GradientClippingStep,
    ScalingStep,
    SGDStep,
    WeightDecayStep,
    graph,
    graphs,
)

torch = pytest.importorskip("torch")

TORCH = Library("torch")
CHAIN = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep())
SHAPES = {"kernel": (6, 4), "bias": [(3,), ()], "filters": (2, 3, 3, 4), "empty": (0, 2), "large": (70_000,)}

# One of each kind of arithmetic.
KINDS = {
    "float32": ("clip per weight", "centering", "skip non-finite", "masked", "unit norm", "monitor"),
    "bfloat16": ("chain", "clip relative", "adam with all options"),
    "float64": ("clip global", "rmsprop with all options", "graph with everything"),
    "complex64": ("clip per layer", "adam"),
}


@pytest.fixture
def written(monkeypatch: Any) -> list[Any]:
    """Functions are run as they are written, and listed."""
    functions: list[Any] = []

    def kept(function: Any) -> Any:
        functions.append(function)
        return function

    monkeypatch.setattr(torch_runner, "compiled_by_torch", kept)
    monkeypatch.setattr(torch_runner, "is_for_compiler", lambda leaves: True)
    return functions


def tree(dtype: str, seed: int) -> Any:
    """Return a tree of random numbers."""
    random = np.random.default_rng(seed)
    return optree.tree_map(
        lambda shape: TORCH.array(random.normal(size=shape), dtype),
        SHAPES,
        is_leaf=lambda node: isinstance(node, tuple),
    )


def assert_near(actual: Any, expected: Any, ulps: float = 16) -> None:
    """Fail unless two trees agree within ulps of the largest element of a leaf."""
    for left, right in zip(leaves_of(actual), leaves_of(expected), strict=True):
        if left is None:
            assert right is None
            continue
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        if not (left.is_floating_point() or left.is_complex()):
            assert torch.equal(left, right)
        elif left.numel():
            worst, largest = float((left - right).abs().max()), float(right.abs().max())
            assert worst <= ulps * torch.finfo(left.dtype).eps * largest


@pytest.mark.parametrize("dtype", KINDS)
def test_the_function_does_what_the_plain_step_does(written: list[Any], dtype: str) -> None:
    """Over calls whose states go to and fro between the two."""
    for title in KINDS[dtype]:
        step = SAMPLES[title]
        weights, fast = tree(dtype, 0), compiled(step)
        state = other = step.init(weights)
        for call in range(2):
            gradients = tree(dtype, call)
            expected, state = step(gradients, weights, state)
            updates, other = (step if call == 1 else fast)(gradients, weights, other)
            assert_near([updates, other], [expected, state])
    assert written


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not here")
def test_pytorch_compiles_the_whole_update(monkeypatch: Any) -> None:
    """On the CPU if that is asked for, with large leaves, packed ones and one number."""
    monkeypatch.setenv(torch_runner.EXECUTOR, "compiler")
    fast = compiled(CHAIN, donate=("state",))
    gradients = [torch.randn(70_000), torch.randn(5, 3), torch.randn(7), torch.tensor(0.5), None]
    state = other = CHAIN.init(gradients)
    for scale in (1.0, 1e30, 1e-30):
        scaled = [None if leaf is None else leaf * scale for leaf in gradients]
        expected, state = CHAIN(scaled, None, state)
        updates, other = (CHAIN if scale > 1 else fast)(scaled, None, other)
        assert_near([updates, other], [expected, state])


def copied_on_one_device(self: Any, other: Any) -> Any:
    """Stand for a copy."""
    assert (self.device.type, self.shape, self.dtype) == ("cuda", other.shape, other.dtype)
    assert other.device == self.device
    return self


def test_nothing_is_read_from_a_device(written: list[Any], monkeypatch: Any) -> None:
    """Fake tensors of CUDA have no values to read; a norm, a schedule and a choice do not ask for them."""
    monkeypatch.setattr(TensorSharing, "opened", lambda self, tree, leaves: leaves)
    monkeypatch.setattr(torch_runner, "is_fake", lambda tensor: False)
    # A build without CUDA asks its driver for this one, which never waits on one device.
    monkeypatch.setattr(torch.Tensor, "copy_", copied_on_one_device)
    for title in ("chain", "clip global", "skip non-finite", "scaling by a schedule", "clip relative"):
        step, weights = SAMPLES[title], [torch.ones(4, 3), torch.ones(70_000), torch.ones(2)]
        fast = compiled(step)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run_on_fake_tensors(fast, weights, weights, step.init(weights))
    assert len(written) == 5


def test_one_function_serves_every_call(written: list[Any]) -> None:
    """Also the first one, whose state nobody has packed."""
    for donate in ((), ("state",), ("gradients", "state")):
        fast, state = compiled(CHAIN, donate), None
        before = len(written)
        for _ in range(3):
            _, state = fast([torch.ones(70_000), torch.ones(2, 5), torch.ones(3)], None, state)
        assert len(written) == before + 1


def test_a_function_does_not_grow_with_small_leaves(written: list[Any]) -> None:
    """They are packed, the state for good: what was handed out is what is taken."""
    for leaves in (3, 500):
        fast = compiled(CHAIN, donate=("state",))
        gradients = [torch.ones(2, 5) for _ in range(leaves)]
        _, state = fast(gradients)
        _, following = fast(gradients, None, state)
        moments = zip(state["step2"]["second_moment"], following["step2"]["second_moment"], strict=True)
        assert all(one is other for one, other in moments)
    lengths = {function.source.count("\n") for function in written}
    assert len(lengths) == 1


def test_what_a_choice_leaves_out_is_not_subnormal(written: list[Any]) -> None:
    """A norm that is kept makes factors of 1, where the CPU would take a hundred times as long."""
    compiled(GradientClippingStep(variant="global"))(torch.ones(70_000))
    lines = map(str.strip, written[0].source.splitlines())
    products = [line for line in lines if line.startswith("t") and "*" in line]
    assert len(products) == 2
    assert all("torch.where(" in line and ", 1.0, " in line for line in products)


def test_donated_tensors_become_the_results(written: list[Any]) -> None:
    """Gradients the updates, states the new ones; shared or strided memory is left alone."""
    fast = compiled(CHAIN, donate=("gradients", "state"))
    gradients, copy = torch.randn(70_000), torch.empty(70_000)
    copy.copy_(gradients)
    state = CHAIN.init(copy)
    expected, _ = CHAIN(copy, None, state)
    updates, following = fast(gradients, None, state)
    assert updates is gradients
    assert following["step2"]["first_moment"] is state["step2"]["first_moment"]
    assert_near(updates, expected)
    decay = WeightDecayStep(weight_decay=0.5)
    updates, _ = compiled(decay, donate=("gradients",))(copy, copy)
    assert updates is not copy
    assert_near(updates, decay(copy, copy).gradients)
    strided = torch.randn(140_000)[::2]
    kept = strided.clone()
    updates, _ = compiled(SGDStep(learning_rate=1.0), donate=("gradients",))(strided)
    assert torch.equal(strided, kept)
    assert torch.equal(updates, -kept)


def test_what_is_kept_for_the_next_call_is_not_overwritten(written: list[Any]) -> None:
    """The value of the call before goes where the gradient lies."""
    step = CustomStep(graph(lambda gradients: -graphs.previous_value(gradients)))
    fast = compiled(step, donate=("gradients", "state"))
    state = other = step.init(torch.ones(70_000))
    for seed in range(3):
        gradients = tree("float32", seed)["large"]
        expected, state = step(gradients.clone(), None, state)
        updates, other = fast(gradients, None, other)
        assert torch.equal(updates, expected)


def test_a_result_that_somebody_keeps_is_not_overwritten(written: list[Any]) -> None:
    """Not even one of its views; memory is used again once it is dropped."""
    fast = compiled(SGDStep(learning_rate=1.0))
    kept = [fast(torch.full((70_000,), float(n))).gradients[1:] for n in range(6)]
    assert [float(part[0]) for part in kept] == [-0.0, -1.0, -2.0, -3.0, -4.0, -5.0]
    place = fast(torch.ones(70_000)).gradients.data_ptr()
    assert fast(torch.ones(70_000)).gradients.data_ptr() == place


def test_a_schedule_is_called_with_the_count(written: list[Any]) -> None:
    """Which it may look at, because that part is not compiled."""
    step = compiled(ScalingStep(scale=lambda count: 2.0 if count >= 1 else 1.0))
    state, scales = step.init(torch.ones(2)), []
    for _ in range(2):
        updates, state = step(torch.ones(2), None, state)
        scales.append(float(updates[0]))
    assert scales == [1.0, 2.0]


def test_what_pytorch_cannot_compile_runs_through_numpy(monkeypatch: Any) -> None:
    """With one warning that says why."""

    def failing(graph_module: Any, inputs: Any) -> Any:
        raise RuntimeError("there is no ninja")

    plain = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **options: plain(function, backend=failing))
    monkeypatch.setenv(torch_runner.EXECUTOR, "compiler")
    step, gradients = compiled(SGDStep(learning_rate=1.0)), torch.ones(3)
    says = "runs through NumPy, .* because PyTorch could not compile it"
    with pytest.warns(RuntimeWarning, match=says) as told:
        results = [step(gradients).gradients.tolist() for _ in range(3)]
    assert results == [[-1.0, -1.0, -1.0]] * 3
    assert len(told) == 1
    assert "there is no ninja" in str(told[0].message)


def test_more_parts_than_pytorch_compiles_in_a_minute_run_through_numpy(written: list[Any]) -> None:
    """A norm for each of many leaves makes many parts that differ."""
    step = GradientClippingStep(variant="per-layer", threshold=1.0)
    gradients = [torch.ones(size) for size in range(2, 210)]
    with pytest.warns(RuntimeWarning, match=r"runs through NumPy, .* because it has \d+ parts that differ"):
        updates, _ = compiled(step)(gradients)
    assert_near(updates, step(gradients).gradients)
    assert not written


@pytest.mark.parametrize(
    ("numba", "compiler", "size", "chosen"),
    [
        (True, True, 1 << 18, False),
        (False, True, 1 << 18, True),
        (False, True, 1 << 10, False),
        (False, False, 1 << 18, False),
    ],
    ids=["numba", "compiler", "small", "neither"],
)
def test_the_cpu_is_compiled_for_where_that_is_all_there_is(
    monkeypatch: Any, numba: bool, compiler: bool, size: int, chosen: bool
) -> None:
    """Numba comes first, and few elements are not worth half a minute."""
    monkeypatch.delenv(torch_runner.EXECUTOR, raising=False)
    monkeypatch.setattr(torch_runner, "is_numba_installed", lambda: numba)
    monkeypatch.setattr(torch_runner, "has_compiler", lambda: compiler)
    leaves = [torch.ones(size), None]
    assert torch_runner.is_for_compiler(leaves) is chosen
    assert not torch_runner.is_for_compiler([*leaves, torch.ones(1, dtype=torch.complex64)])
    monkeypatch.setenv(torch_runner.EXECUTOR, "compiler")
    assert torch_runner.is_for_compiler(leaves)
    monkeypatch.setenv(torch_runner.EXECUTOR, "blocks")
    assert not torch_runner.is_for_compiler(leaves)


def test_a_large_state_starts_in_memory_that_numpy_has_asked_large_pages_for() -> None:
    """With the numbers, dtypes and shapes of the step's own; small leaves stay where they are."""
    step = AdamStep()
    weights = {"large": torch.ones(1 << 10, 1 << 10), "small": torch.ones(8)}
    plain, state = step.init(weights), compiled(step).init(weights)
    for moment in ("first_moment", "second_moment"):
        for name, leaf in plain[moment].items():
            assert state[moment][name].dtype == leaf.dtype and torch.equal(state[moment][name], leaf)
        in_numpy = {name: not leaf.untyped_storage().resizable() for name, leaf in state[moment].items()}
        assert in_numpy == {"large": True, "small": False}


def test_a_large_state_may_be_made_inside_a_transformation() -> None:
    """Of torch.func, or of torch.compile, which records no copy: there is no memory to choose then."""
    step = compiled(AdamStep())
    weights = torch.ones(2, 1 << 20)
    recorded: list[str] = []

    def recording(graph: Any, inputs: Any) -> Any:
        recorded.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    def first_moment(given: Any) -> Any:
        return step.init(given)["first_moment"]

    assert torch.equal(torch.func.vmap(first_moment)(weights), torch.zeros_like(weights))
    of_compiler = torch.compile(first_moment, fullgraph=True, backend=recording)(weights)
    assert torch.equal(of_compiler, torch.zeros_like(weights))
    assert recorded and not any("copy" in target for target in recorded)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_state_that_was_given_other_memory_counts(is_compiled: bool, request: Any) -> None:
    """As who loads a file with ``tensor.data = loaded`` expects."""
    if is_compiled:
        request.getfixturevalue("written")
    plain, fast = AdamStep(), compiled(AdamStep(), donate=("state",))
    gradients = [torch.arange(1.0, 4.0), torch.ones(2)]
    state, other = plain.init(gradients), fast.init(gradients)
    for call in range(4):
        expected, state = plain(gradients, None, state)
        updates, other = fast(gradients, None, other)
        assert all(map(torch.allclose, updates, expected)), call
        for of_one in (state, other):
            of_one["first_moment"][0].data = torch.full((3,), float(call))

"""Steps under jax.jit, vmap, grad and scan, torch.compile, fake tensors and autograd."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from catalogue import SAMPLES
from comparing import assert_within_ulps, leaves_of
from libraries import Library

from steps_core import (
    AdamStep,
    ChainedStep,
    CustomStep,
    GradientClippingStep,
    MaskedStep,
    MomentumStep,
    MonitorStep,
    RMSPropStep,
    SGDStep,
    SkipNonFiniteStep,
    Step,
    WeightDecayStep,
    apply_updates,
    extract_streams,
    graph,
    graphs,
    merge_streams,
)

CHAIN = ChainedStep(
    MonitorStep(), GradientClippingStep(variant="global", threshold=1.0), SkipNonFiniteStep(AdamStep())
)
# Tracing takes a second or more, so steps are compiled by the chain; a constraint must stand last.
COMPILED = (
    ("clip per weight", "clip per layer", "clip relative", "weight decay", "centering", "unit norm"),
    ("momentum nesterov", "sgd with all options", "scaling by a schedule", "masked", "norm ball"),
    ("rmsprop with all options", "skip non-finite", "adam with all options", "box"),
    ("chain",),
    ("graph", "graph with everything"),
)

VARIANTS = ("per-weight", "per-layer", "global", "per-weight-relative")


def tree(array: Any) -> dict[str, Any]:
    """Return gradients that are clipped."""
    return {"kernel": array([[3.0, -1.0], [0.5, 2.0]]), "scale": [array(1.0)]}


def assert_close(one: Any, other: Any, ulps: float) -> None:
    """Fail unless two trees agree; masks and counts exactly."""
    for left, right in zip(leaves_of(one), leaves_of(other), strict=True):
        if np.asarray(left).dtype.kind == "f":
            assert_within_ulps(np.asarray(left), np.asarray(right, dtype=float), ulps)
        else:
            assert np.asarray(left) == np.asarray(right)


# ---- JAX


@pytest.fixture
def jax() -> Any:
    """JAX, with x64 off."""
    module = pytest.importorskip("jax")
    assert not module.config.jax_enable_x64
    return module


@pytest.mark.parametrize("step", SAMPLES.values(), ids=SAMPLES)
def test_every_step_runs_under_jit(jax: Any, step: Step) -> None:
    """With the numbers of NumPy's plain calls within 8 ulps, over two calls, and one compilation."""
    gradients, arrays, compiles = tree(Library("jax").array), tree(Library("numpy").array), []

    def traced(*args: Any) -> Any:
        compiles.append(1)
        return step(*args)

    jitted, plain, state = jax.jit(traced), step.init(arrays), step.init(gradients)
    for _ in range(2):
        expected, plain = step(arrays, arrays, plain)
        updates, state = jitted(gradients, gradients, state)
        assert_close(updates, expected, 8)
    assert_close(state, plain, 8)
    assert len(compiles) == 1


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_extreme_norms_survive_jit(jax: Any, variant: str, size: float) -> None:
    """A compiler that reorders products would bring overflow back."""
    step = GradientClippingStep(variant=variant, threshold=size / 10)
    gradients, weights = Library("jax").array([3 * size, 4 * size]), Library("jax").array([0.6, 0.8])
    if variant == "per-weight-relative":
        step = GradientClippingStep(variant=variant, threshold=size / 10, epsilon=None)
    result = np.asarray(jax.jit(step)(gradients, weights).gradients)
    expected = [size / 10] * 2 if variant == "per-weight" else [0.06 * size, 0.08 * size]
    assert_within_ulps(result, expected, 4)


def test_the_compiled_code_of_a_global_clip_grows_with_the_leaves(jax: Any) -> None:
    """Not with their square, as where each leaf's loop computes the norm of all leaves anew."""
    step = GradientClippingStep(variant="global", threshold=1.0)
    leaf = Library("jax").array([3.0, 4.0])
    few, many = (len(jax.jit(step).lower([leaf] * number).compile().as_text()) for number in (4, 32))
    assert many < 32 / 4 * few


def test_a_traced_array_is_not_asked_for_its_device(jax: Any, monkeypatch: Any) -> None:
    """JAX would search the whole trace for each answer, which takes minutes with a thousand leaves."""
    monkeypatch.setattr(jax.core.Tracer, "device", property(lambda _: pytest.fail("asked")))
    jax.jit(CHAIN).trace(tree(Library("jax").array))


def test_the_state_goes_through_scan(jax: Any) -> None:
    """Its form, dtypes and weak types are the same before and after a call."""
    gradients = tree(Library("jax").array)

    def body(state: Any, _: Any) -> Any:
        updates, state = CHAIN(gradients, gradients, state)
        return state, updates["kernel"]

    state, updates = jax.lax.scan(body, CHAIN.init(gradients), None, length=4)
    assert int(state["step3"]["inner"]["count"]) == 4
    assert updates.shape == (4, 2, 2)


def test_a_batch_of_trees_goes_through_vmap(jax: Any) -> None:
    """Each is clipped by its own norm."""
    step = GradientClippingStep(variant="global", threshold=1.0)
    batch = Library("jax").array([[3.0, 4.0], [0.3, 0.4], [3e30, 4e30]])
    result = np.asarray(jax.jit(jax.vmap(lambda leaf: step(leaf).gradients))(batch))
    assert_within_ulps(result, [[0.6, 0.8], [np.float32(0.3), np.float32(0.4)], [0.6, 0.8]], 2)


@pytest.mark.parametrize("variant", VARIANTS)
def test_derivatives_are_finite_in_jax(jax: Any, variant: str) -> None:
    """At 0, inside and outside the threshold; within it, the derivative is 1."""
    step = GradientClippingStep(variant=variant, threshold=0.5)
    derivative = jax.jit(jax.grad(lambda leaf, ones: step(leaf, ones).gradients.sum()))
    ones = Library("jax").array([1.0, 1.0])
    for values in ([0.0, 0.0], [3.0, 0.0], [0.1, 0.1], [0.0, 0.1]):
        result = np.asarray(derivative(Library("jax").array(values), ones))
        assert np.isfinite(result).all()
        assert max(values) > 1 or result.tolist() == [1.0, 1.0]


def test_weights_are_constants_in_jax(jax: Any) -> None:
    """Nothing is differentiated through them; the gradient's own derivative is right."""
    step = WeightDecayStep(weight_decay=0.5)
    one = Library("jax").array([2.0])
    by_gradient, by_weight = jax.grad(lambda g, w: step(g, w).gradients.sum(), (0, 1))(one, one)
    assert by_gradient == 1.0 and by_weight == 0.0


def test_a_breakpoint_in_jit_is_skipped_with_one_warning(jax: Any, monkeypatch: Any) -> None:
    """There are no values to look at."""
    monkeypatch.setattr("sys.breakpointhook", lambda: pytest.fail("stopped"))
    step = jax.jit(SGDStep(set_breakpoint=True))
    with pytest.warns(
        RuntimeWarning, match="set_breakpoint of SGDStep is skipped while the step is traced"
    ) as caught:
        step(tree(Library("jax").array))
    assert len(caught) == 1


# ---- PyTorch


@pytest.fixture
def torch() -> Any:
    """PyTorch, with no compiled code left over."""
    module = pytest.importorskip("torch")
    module.compiler.reset()
    return module


@pytest.mark.parametrize("names", COMPILED, ids="+".join)
def test_steps_compile_as_one_graph(torch: Any, names: tuple[str, ...]) -> None:
    """torch.compile(fullgraph=True) finds no break; the numbers are the plain call's."""
    step = ChainedStep(*[SAMPLES[name] for name in names])
    gradients = {"kernel": torch.asarray([[3.0, -1.0], [0.5, 2.0]])}
    state = step.init(gradients)
    compiled = torch.compile(step, backend="eager", fullgraph=True)
    assert_close(compiled(gradients, gradients, state), step(gradients, gradients, state), 0)


COLD = """
import warnings
warnings.simplefilter("error")
import torch
from steps_core import AdamStep, ChainedStep, GradientClippingStep
step = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep(amsgrad=True))
gradients = {"kernel": torch.ones(2, 2), "bias": [torch.ones(3)]}
compiled = torch.compile(lambda g: step(g), backend="eager", fullgraph=True)
updates, state = compiled(gradients)
print(float(updates["kernel"][0, 0]), int(state["step2"]["count"]))
"""


def test_the_very_first_call_of_a_process_may_be_compiled() -> None:
    """No look-up needs a plain call before; no warning is raised."""
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rate, count = done.stdout.split()
    assert float(rate) == pytest.approx(-0.001, rel=1e-6) and count == "1"


def test_fake_tensors_on_a_device_that_is_not_there(torch: Any) -> None:
    """Shapes, dtypes and devices come out, and nothing asks for a value or the device."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=False):
        leaf = torch.empty(300, 4, device="cuda", dtype=torch.float16)
        weights = {"w": leaf, "b": torch.empty(4, device="cuda")}
        for step in SAMPLES.values():
            updates, state = step(weights, weights, step.init(weights))
            assert (updates["w"].shape, updates["w"].dtype) == (leaf.shape, torch.float16)
            assert {str(entry.device) for entry in leaves_of([updates, state])} <= {"cuda:0"}
        assert apply_updates(weights, updates)["w"].device == leaf.device


def test_a_state_never_requires_grad(torch: Any) -> None:
    """Whatever weights and gradients do."""
    leaf = torch.ones(2, requires_grad=True)
    gradients = leaf * 3
    for step in (AdamStep(amsgrad=True), RMSPropStep(centered=True, momentum=0.5), MomentumStep(), CHAIN):
        state = step.init(leaf)
        for _ in range(2):
            updates, state = step(gradients, leaf, state)
        assert not any(entry.requires_grad for entry in leaves_of(state))
        assert updates.requires_grad


def test_weights_are_constants_in_torch(torch: Any) -> None:
    """The update hangs on the gradient alone."""
    weights, gradients = (torch.asarray([2.0], requires_grad=True) for _ in range(2))
    for step in (WeightDecayStep(weight_decay=0.5), GradientClippingStep(variant="per-weight-relative")):
        step(gradients, weights).gradients.sum().backward()
        assert weights.grad is None and gradients.grad is not None


@pytest.mark.parametrize("variant", VARIANTS)
def test_derivatives_are_finite_in_torch(torch: Any, variant: str) -> None:
    """At 0, inside and outside the threshold; within it, the derivative is 1."""
    step = GradientClippingStep(variant=variant, threshold=0.5)
    for values in ([0.0, 0.0], [3.0, 0.0], [0.1, 0.1], [0.0, 0.1]):
        gradients = torch.asarray(values, requires_grad=True)
        step(gradients, torch.ones(2)).gradients.sum().backward()
        assert torch.isfinite(gradients.grad).all()
        assert max(values) > 1 or gradients.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["adam", "adam with all options", "rmsprop", "rmsprop with all options"])
def test_derivatives_of_optimizers_are_finite_at_zero(torch: Any, name: str) -> None:
    """The root of a second moment of 0 has one."""
    step = SAMPLES[name]
    gradients = torch.zeros(2, requires_grad=True)
    step(gradients, torch.ones(2)).gradients.sum().backward()
    assert torch.isfinite(gradients.grad).all()


PACKET_STEPS = {
    "streams": CustomStep(
        graph(
            lambda g: merge_streams(AdamStep()(extract_streams(g, ["body"])), -extract_streams(g, ["head"]))
        )
    ),
    "mask": MaskedStep(AdamStep(), {"body": True, "head": False}),
    "mask by function": MaskedStep(AdamStep(), lambda path, leaf: path[0] == "body"),
    "sum": CustomStep(graph(lambda g: -graphs.trace(g) / (1 + graphs.norm(g)))),
}


@pytest.mark.parametrize("name", PACKET_STEPS)
def test_parts_of_a_tree_are_compiled_whole(torch: Any, name: str) -> None:
    """Also where one part holds None alone."""
    step = PACKET_STEPS[name]
    packet = {
        "body": {"k": torch.ones((2, 3)), "b": [torch.ones(2), None]},
        "head": {"k": torch.ones(3), "none": {"a": None}},
    }
    compiled = torch.compile(step, backend="eager", fullgraph=True)
    ours, plain = step.init(packet), step.init(packet)
    for _ in range(2):
        updates, ours = compiled(packet, packet, ours)
        expected, plain = step(packet, packet, plain)
        assert_close(updates, expected, 2)
    assert_close(ours, plain, 2)


def test_derivatives_through_a_skipped_call_are_zero(torch: Any) -> None:
    """NaN times 0 would be NaN: it must not enter the inner step."""
    gradients = torch.asarray([float("nan"), 1.0], requires_grad=True)
    updates = SkipNonFiniteStep(AdamStep())(gradients).gradients
    updates.sum().backward()
    assert gradients.grad.tolist() == [0.0, 0.0]


def test_the_derivative_of_a_clip_is_right(torch: Any) -> None:
    """Against differences: only the part across the direction passes a clip of a norm."""
    step = GradientClippingStep(variant="global", threshold=1.0)
    leaf = torch.asarray([3.0, 4.0, 1.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: step(x).gradients, leaf)


def test_a_breakpoint_in_a_compiled_step_is_skipped_with_one_warning(torch: Any, monkeypatch: Any) -> None:
    """As under jax.jit; the graph does not break."""
    monkeypatch.setattr("sys.breakpointhook", lambda: pytest.fail("stopped"))
    compiled = torch.compile(SGDStep(set_breakpoint=True), backend="eager", fullgraph=True)
    with pytest.warns(RuntimeWarning, match="set_breakpoint of SGDStep is skipped while") as caught:
        compiled(torch.ones(1))
    compiled(torch.ones(1))
    assert len(caught) == 1

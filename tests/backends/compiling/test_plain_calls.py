"""What a compiled step leaves to the plain one: bad arguments, and what cannot be traced."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_trees
from steps_backends import compile as compiled

from steps_core import (
    AdamStep,
    ChainedStep,
    ConstraintStep,
    GradientClippingStep,
    MaskedStep,
    ScalingStep,
    SGDStep,
    StepsError,
    Tunable,
)

LEAF = np.asarray([3.0, 4.0], "float32")


class Counting:
    """A step by protocol that remembers its calls: tracing it once would lose them."""

    negates = False

    def __init__(self) -> None:
        self.calls = 0

    def init(self, weights: Any) -> Any:
        return {}

    def __call__(self, gradients: Any, weights: Any = None, state: Any = None) -> Any:
        self.calls += 1
        return gradients * self.calls, state


@dataclass(frozen=True, kw_only=True)
class Looking(SGDStep):
    """A step that decides by a value."""

    def advance(self, call: Any, gradients: Any, state: Any) -> Any:
        if gradients[0][0] > 0:
            return super().advance(call, gradients, state)
        return gradients, {}


def test_a_step_by_protocol_is_called_each_time() -> None:
    """And one warning names it."""
    step = compiled(ChainedStep(Counting(), SGDStep(learning_rate=1.0)))
    with pytest.warns(RuntimeWarning, match="ChainedStep runs as it is, .* because Counting is") as told:
        results = [float(step(leaf).gradients[0]) for leaf in (LEAF, LEAF, LEAF[:1])]
    assert results == [-3.0, -6.0, -9.0]
    assert len(told) == 1
    with pytest.warns(RuntimeWarning, match="Counting runs as it is, .* because it is a step by protocol"):
        assert compiled(Counting())(LEAF)[0].tolist() == [3.0, 4.0]


def test_a_step_that_looks_at_values_runs_plainly() -> None:
    """The warning says so."""
    step = compiled(Looking(learning_rate=1.0))
    with pytest.warns(RuntimeWarning, match="because it asks for the values of an array"):
        assert step(LEAF).gradients.tolist() == [-3.0, -4.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert step(-LEAF).gradients.tolist() == [-3.0, -4.0]


ADAM = ChainedStep(GradientClippingStep(variant="global"), AdamStep())
TREE = {"a": LEAF, "b": [LEAF, None]}
SQUARE = np.ones((2, 2))
STATE = ADAM.init(TREE)["step2"]
BAD_CALLS: dict[str, Any] = {
    "integers": (ADAM, np.asarray([1, 2])),
    "no array": (ADAM, {"a": 3.0}),
    "masked array": (ADAM, np.ma.MaskedArray(LEAF)),
    "structure": (ADAM, TREE, {"a": LEAF}),
    "shape": (ADAM, TREE, {"a": LEAF, "b": [LEAF[:1], None]}),
    "weights": (AdamStep(weight_decay=0.1), LEAF),
    "weight is None": (ADAM, LEAF, None, {"step1": {}}),
    "state entry": (ADAM, TREE, None, {"step1": {}, "step2": {"count": np.asarray(0, "int32")}}),
    "state shape": (
        ADAM,
        TREE,
        None,
        {"step1": {}, "step2": {**STATE, "first_moment": {"a": LEAF, "b": [LEAF]}}},
    ),
    "count": (ADAM, TREE, None, {"step1": {}, "step2": {**STATE, "count": np.asarray(0.0)}}),
    "state is no dict": (ADAM, TREE, None, [1, 2]),
    "axis": (
        GradientClippingStep(variant="per-weight-relative", unit_axis=3),
        np.ones((2, 2)),
        np.ones((2, 2)),
    ),
    "narrow": (ConstraintStep("nonnegative"), LEAF.astype("float16"), LEAF),
    "rate": (SGDStep(learning_rate=1e300), LEAF),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_errors_are_those_of_the_plain_step(name: str) -> None:
    """Class, text, path, slot and notes, also after a good call."""
    step, *arguments = BAD_CALLS[name]
    fast = compiled(step)
    if step is ADAM:
        fast(TREE)
    found = []
    for called in (step, fast):
        with pytest.raises(StepsError, match="must") as caught:
            called(*arguments)
        error = caught.value
        found.append((type(error), str(error), error.path, error.slot, getattr(error, "__notes__", [])))
    assert found[0] == found[1]


def test_a_schedule_is_called_at_each_call() -> None:
    """With the real count, which it may look at; its errors name the slot."""

    def schedule(count: Any) -> Any:
        if count >= 2:
            return "fast"
        return 1.0 if count < 1 else 0.5

    step = compiled(ChainedStep(ScalingStep(scale=schedule)))
    state, scales = step.init(LEAF), []
    for _ in range(2):
        updates, state = step(LEAF, None, state)
        scales.append(float(updates[0]) / 3)
    assert scales == [1.0, 0.5]
    with pytest.raises(TypeError, match="scale must return a number") as caught:
        step(LEAF, None, state)
    assert caught.value.slot == "step1"


def test_a_schedule_gets_an_array_of_the_library() -> None:
    """Its functions take no other."""
    torch = pytest.importorskip("torch")
    step = compiled(ScalingStep(scale=lambda count: torch.cos(count)))
    assert step(torch.ones(2)).gradients.tolist() == [1.0, 1.0]


def test_a_tunable_number_may_be_replaced() -> None:
    """Nothing of it is in the plan."""
    step = compiled(SGDStep(learning_rate=Tunable(1.0)))
    _, state = step(LEAF)
    updates, _ = step(LEAF, None, {**state, "learning_rate": np.asarray(0.5, "float32")})
    assert updates.tolist() == [-1.5, -2.0]


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_mask_sees_the_dtypes_of_the_library(name: str) -> None:
    """As in a plain call."""
    library = pytest.importorskip(name)
    gradients = [library.ones(2, dtype=library.float32), library.ones(2, dtype=library.float64)]
    step = MaskedStep(SGDStep(learning_rate=2.0), lambda path, leaf: leaf.dtype == library.float64)
    updates, _ = compiled(step)(gradients)
    assert [float(leaf[0]) for leaf in updates] == [1.0, -2.0]


def test_a_breakpoint_stops_each_call(monkeypatch: Any) -> None:
    """And changes no bit."""
    stops: list[int] = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(1))
    gradients = np.random.default_rng(0).normal(size=1000).astype("float32")
    options = {"variant": "global", "threshold": 1.0}
    stopping = compiled(GradientClippingStep(**options, set_breakpoint=True))
    results = [stopping(gradients).gradients for _ in range(2)]
    assert len(stops) == 2
    assert_same_trees(results[1], compiled(GradientClippingStep(**options))(gradients).gradients)


def test_a_gradient_that_requires_grad_stays_differentiable() -> None:
    """PyTorch then sees the plain step, as a transformation of JAX does: nothing to warn of."""
    torch = pytest.importorskip("torch")
    leaf = torch.ones(2, requires_grad=True)
    step = compiled(SGDStep(learning_rate=0.5))
    step(leaf).gradients.sum().backward()
    assert leaf.grad.tolist() == [-0.5, -0.5]
    assert torch.func.grad(lambda leaf: step(leaf).gradients.sum())(torch.ones(2)).tolist() == [-0.5, -0.5]
    assert torch.func.vmap(lambda leaf: step(leaf).gradients)(torch.ones(1, 2)).tolist() == [[-0.5, -0.5]]
    assert step(torch.ones(2), leaf).gradients.tolist() == [-0.5, -0.5]


def test_inside_a_compiler_of_the_library_the_step_itself_is_seen() -> None:
    """jax.jit and torch.compile fuse more when they see all of it."""
    jax = pytest.importorskip("jax")
    step = compiled(SGDStep(learning_rate=0.5))
    assert jax.jit(step)(jax.numpy.ones(2)).gradients.tolist() == [-0.5, -0.5]
    torch = pytest.importorskip("torch")
    whole = torch.compile(lambda leaf: step(leaf).gradients, backend="eager", fullgraph=True)
    assert whole(torch.ones(2)).tolist() == [-0.5, -0.5]


def test_a_library_without_a_form_runs_plainly() -> None:
    """And says so."""
    strict = pytest.importorskip("array_api_strict")
    with pytest.warns(RuntimeWarning, match="there is no compiled form for array_api_strict"):
        result = compiled(AdamStep())(strict.ones(2))
    assert result.gradients.shape == (2,)

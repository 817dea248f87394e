"""The custom steps of the examples: each agrees with a formula of its own, and with a peer that has it."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from libraries import Library
from peers import START, STEPS, assert_agree, assert_agrees_with_optax, gradients_at

from steps_core import CustomStep, Graph, Packet, apply_updates, check_end_to_end

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import custom_steps as examples

Tree = dict[str, np.ndarray]


def trained(step: CustomStep, library: Library, dtype: str) -> Tree:
    """Return the weights after all steps."""
    weights = {key: library.array(value, dtype) for key, value in START.items()}
    state = step.init(weights)
    for count in range(STEPS):
        gradients = {key: library.array(value, dtype) for key, value in gradients_at(count).items()}
        updates, state = step(gradients, weights, state)
        weights = apply_updates(weights, updates)
    return {key: library.read(value) for key, value in weights.items()}


def by_formula(rule: Any) -> Tree:
    """Return the weights after all steps of a rule on one leaf: (g, w, memory, t) -> update, in doubles."""
    weights = {key: value.copy() for key, value in START.items()}
    memories: dict[str, dict] = {key: {} for key in START}
    for count in range(STEPS):
        for key, gradient in gradients_at(count).items():
            weights[key] = weights[key] + rule(gradient, weights[key], memories[key], count + 1)
    return weights


def adam(gradient: np.ndarray, memory: dict, t: int) -> np.ndarray:
    """Return m^ / (sqrt(v^) + 1e-8)."""
    memory["m"] = 0.9 * memory.get("m", 0) + 0.1 * gradient
    memory["v"] = 0.999 * memory.get("v", 0) + 0.001 * gradient**2
    return memory["m"] / (1 - 0.9**t) / (np.sqrt(memory["v"] / (1 - 0.999**t)) + 1e-8)


def momentum(gradient: np.ndarray, memory: dict) -> np.ndarray:
    """Return m = 0.9 m + g."""
    memory["m"] = 0.9 * memory.get("m", 0) + gradient
    return memory["m"]


def adamw_on_matrices(g: np.ndarray, w: np.ndarray, memory: dict, t: int) -> np.ndarray:
    """Return -rate * (Adam's direction + decay * w), the last on matrices."""
    return -0.01 * (adam(g, memory, t) + (0.1 * w if w.ndim >= 2 else 0))


def adaptive_clipping(g: np.ndarray, w: np.ndarray, memory: dict, t: int) -> np.ndarray:
    """Return -rate * momentum of g, whose columns are clipped to threshold * max(|w|, 1e-3)."""
    axis = 0 if g.ndim == 2 else None
    size = np.sqrt((g**2).sum(axis=axis, keepdims=True))
    most = 0.05 * np.maximum(np.sqrt((w**2).sum(axis=axis, keepdims=True)), 1e-3)
    return -0.1 * momentum(np.where(size > most, g * most / np.where(size > 0, size, 1), g), memory)


def lars(g: np.ndarray, w: np.ndarray, memory: dict, t: int) -> np.ndarray:
    """Return -rate * momentum of trust * |w| / |d| * d, with d = g + decay * w."""
    d = g + 0.01 * w
    sizes = np.linalg.norm(w), np.linalg.norm(d)
    return -0.1 * momentum((0.02 * sizes[0] / sizes[1] if min(sizes) > 0 else 1.0) * d, memory)


def sign_descent(g: np.ndarray, w: np.ndarray, memory: dict, t: int) -> np.ndarray:
    """Return -rate * sign(momentum)."""
    return -0.01 * np.sign(momentum(g, memory))


def budget_per_layer(g: np.ndarray, w: np.ndarray, memory: dict, t: int) -> np.ndarray:
    """Return -rate * g clipped to budget / sqrt(2)."""
    return -0.1 * g * min(1.0, 0.5 / np.sqrt(2) / np.linalg.norm(g))


def centralised_adam(g: np.ndarray, w: np.ndarray, memory: dict, t: int) -> np.ndarray:
    """Return -rate * Adam of g without its column means."""
    return -0.01 * adam(g - g.mean(axis=0) if g.ndim == 2 else g, memory, t)


FORMULAS = {
    "adamw_on_matrices": ({"learning_rate": 0.01, "weight_decay": 0.1}, adamw_on_matrices),
    "adaptive_clipping_before_head": ({"threshold": 0.05}, adaptive_clipping),
    "lars": ({"trust": 0.02, "weight_decay": 0.01}, lars),
    "sign_descent": ({}, sign_descent),
    "budget_per_layer": ({"budget": 0.5, "layers": 2}, budget_per_layer),
    "centralised_adam": ({"learning_rate": 0.01}, centralised_adam),
}


def step_of(name: str) -> CustomStep:
    """Return an example with the options of its formula."""
    return CustomStep(getattr(examples, name), **FORMULAS[name][0])


@pytest.mark.parametrize("name", FORMULAS)
def test_an_example_agrees_with_its_formula(library: Library, name: str) -> None:
    """After 20 steps, in float64 where the library has it."""
    dtype = "float64" if "float64" in library.dtypes else "float32"
    weights = trained(step_of(name), library, dtype)
    assert_agree(weights, by_formula(FORMULAS[name][1]), 1e-12 if dtype == "float64" else 2e-5)


@pytest.mark.parametrize("graph", examples.GRAPHS, ids=lambda graph: graph.name)
def test_every_example_has_a_test_and_is_end_to_end(graph: Graph) -> None:
    """Those of one tree have a formula; the one of a packet has its own test."""
    assert graph.name in {*FORMULAS, "two_rates"}
    check_end_to_end(CustomStep(graph))


def in_optax(name: str) -> Any:
    """Return the same as one of optax's optimizers."""
    optax = pytest.importorskip("optax")
    matrices, whole = {"w": True, "b": False}, {"w": True, "b": True}
    return {
        "adamw_on_matrices": lambda: optax.adamw(0.01, weight_decay=0.1, mask=matrices),
        "adaptive_clipping_before_head": lambda: optax.chain(
            optax.masked(optax.adaptive_grad_clip(0.05), whole), optax.sgd(0.1, momentum=0.9)
        ),
        "lars": lambda: optax.lars(0.1, weight_decay=0.01, trust_coefficient=0.02, momentum=0.9),
        "sign_descent": lambda: optax.chain(optax.trace(decay=0.9), optax.sign_sgd(0.01)),
        "centralised_adam": lambda: optax.chain(optax.centralize(), optax.adam(0.01)),
    }[name]()


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "budget_per_layer"])
def test_an_example_agrees_with_optax(name: str) -> None:
    """After 20 steps, under jax.jit."""
    step = step_of(name)
    if name == "centralised_adam":
        step = CustomStep(examples.centralised_adam, learning_rate=0.01, unit_axis=0)  # optax's layout
    assert_agrees_with_optax(step, in_optax(name))


def test_the_last_layer_is_not_clipped(library: Library) -> None:
    """The stream called head passes whole; the other is limited."""
    step = CustomStep(examples.adaptive_clipping_before_head, learning_rate=1.0)
    tree = {"body": library.array([3.0, 4.0]), "head": library.array([3.0, 4.0])}
    updates = step(tree, tree).gradients
    assert library.read(updates["head"]).tolist() == [-3.0, -4.0]
    np.testing.assert_allclose(library.read(updates["body"]), [-0.03, -0.04], rtol=1e-6)


def test_the_budget_holds_for_the_whole_tree(library: Library) -> None:
    """Four leaves of norm 5, 0.1, 50 and 0."""
    leaves = [[3.0, 4.0], [0.1], [[50.0]], [0.0, 0.0]]
    updates = CustomStep(examples.budget_per_layer, learning_rate=1.0)([library.array(v) for v in leaves])
    norms = [np.linalg.norm(library.read(update)) for update in updates.gradients]
    np.testing.assert_allclose(norms, [0.5, 0.1, 0.5, 0.0], rtol=1e-6)


@pytest.mark.parametrize("kind", [dict, Packet])
@pytest.mark.parametrize("order", [("body", "head"), ("head", "body")])
def test_two_streams_have_two_rates(library: Library, kind: Any, order: tuple[str, ...]) -> None:
    """The first step of Adam is its rate, in whatever order the streams stand."""
    streams = {"body": [library.array([2.0, -3.0]), None], "head": {"w": library.array([4.0])}}
    packet = kind({name: streams[name] for name in order})
    step = CustomStep(examples.two_rates, body_rate=0.1, head_rate=0.5, weight_decay=0.25)
    updates = step(packet, packet, step.init(packet)).gradients
    assert list(updates) == list(order)
    assert type(updates) is type(packet)
    np.testing.assert_allclose(library.read(updates["body"][0]), [-0.1 - 0.05, 0.1 + 0.075], rtol=1e-6)
    assert updates["body"][1] is None
    assert library.read(updates["head"]["w"]).tolist() == [-2.0]

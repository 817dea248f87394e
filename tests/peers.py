"""Running another library's optimizer beside a step of ours, on the same gradients."""

from typing import Any

import numpy as np

from steps_core import Step, apply_updates

START = {"w": np.linspace(-1.0, 1.0, 6).reshape(2, 3), "b": np.asarray([0.5, -2.0])}
STEPS = 20


def gradients_at(count: int) -> dict[str, np.ndarray]:
    """Return gradients of very different sizes, with zeros among them."""
    rng = np.random.default_rng(100 + count)
    tree = {key: rng.normal(size=value.shape) * 10.0 ** rng.integers(-3, 2) for key, value in START.items()}
    tree["b"][1] = 0.0
    return tree


def ours(step: Step, call: Any, to_array: Any) -> dict[str, np.ndarray]:
    """Return the weights after all steps, as NumPy arrays; `call` is the step, or the compiled step."""
    weights = {key: to_array(value) for key, value in START.items()}
    state = step.init(weights)
    for count in range(STEPS):
        gradients = {key: to_array(value) for key, value in gradients_at(count).items()}
        updates, state = call(gradients, weights, state)
        weights = apply_updates(weights, updates)
    return {key: np.asarray(value) for key, value in weights.items()}


def of_optax(optimizer: Any) -> dict[str, np.ndarray]:
    """Return the weights after all steps of an optax optimizer, in float32."""
    import jax
    import jax.numpy as jnp
    import optax

    update = jax.jit(optimizer.update)
    weights = {key: jnp.asarray(value, "float32") for key, value in START.items()}
    state = optimizer.init(weights)
    for count in range(STEPS):
        gradients = {key: jnp.asarray(value, "float32") for key, value in gradients_at(count).items()}
        updates, state = update(gradients, state, weights)
        weights = optax.apply_updates(weights, updates)
    return {key: np.asarray(value) for key, value in weights.items()}


def of_torch(optimizer: Any, **options: Any) -> dict[str, np.ndarray]:
    """Return the weights after all steps of a torch.optim class, in float64."""
    import torch

    weights = {key: torch.nn.Parameter(torch.asarray(value.copy())) for key, value in START.items()}
    optimizer = optimizer(list(weights.values()), **options)
    for count in range(STEPS):
        for key, value in gradients_at(count).items():
            weights[key].grad = torch.asarray(value)
        optimizer.step()
    return {key: value.detach().numpy() for key, value in weights.items()}


def assert_agree(one: dict[str, np.ndarray], other: dict[str, np.ndarray], relative: float) -> None:
    """Fail unless both sets of weights agree; `relative` is in units of each weight, or of 0.1 near 0."""
    for key in START:
        np.testing.assert_allclose(one[key], other[key], rtol=relative, atol=0.1 * relative)


def assert_agrees_with_optax(step: Step, optimizer: Any, relative: float = 1e-4) -> None:
    """Fail unless a step leads to the weights of an optax optimizer, both in float32 on JAX.

    Its bias correction, 1 - 0.999**t in float32, is off by up to 6e-5 of its value.
    """
    import jax
    import jax.numpy as jnp

    mine = ours(step, jax.jit(step), lambda value: jnp.asarray(value, "float32"))
    assert_agree(mine, of_optax(optimizer), relative)


def assert_agrees_with_torch(step: Step, optimizer: Any, relative: float = 1e-12, **options: Any) -> None:
    """Fail unless a step leads to the weights of a torch.optim class, both in float64 on PyTorch."""
    import torch

    theirs = of_torch(optimizer, **options)
    assert_agree(ours(step, step, lambda value: torch.asarray(value.copy())), theirs, relative)

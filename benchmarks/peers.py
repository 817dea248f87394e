"""Other libraries on the same gradients, each in the form that its users would take."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from measuring import Candidate


def candidates(step: str, gradients: list[Any], libraries: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each candidate and what makes it."""
    if "numpy" in libraries and step == "adam":
        yield "scikit-learn's Adam", partial(_sklearn, gradients)
    if "torch" in libraries and step != "agc":
        yield f"torch, {_TORCH[step]}", partial(_torch, step, gradients)
    if "jax" in libraries:
        for donate in ((), (1,), (0, 1)):
            text = ", all donated" if donate == (0, 1) else ", state donated" if donate else ""
            yield f"optax under jit{text}", partial(_optax, step, gradients, donate)


_TORCH = {
    "chain": "clip_grad_norm_ + fused Adam",
    "adam": "fused Adam",
    "clip": "clip_grad_norm_",
    "rmsprop": "foreach RMSprop",
}


def _sklearn(gradients: list[Any]) -> Candidate:
    import numpy as np
    from sklearn.neural_network._stochastic_optimizers import AdamOptimizer

    weights = [np.zeros_like(leaf) for leaf in gradients]
    optimizer = AdamOptimizer(weights)
    return lambda: optimizer.update_params(weights, gradients)


def _torch(step: str, gradients: list[Any]) -> Candidate:
    import torch

    weights = [torch.nn.Parameter(torch.zeros(leaf.shape)) for leaf in gradients]
    for weight, leaf in zip(weights, gradients, strict=True):
        weight.grad = torch.from_numpy(leaf.copy())
    adam = torch.optim.Adam(weights, lr=1e-3, fused=True)
    rmsprop = torch.optim.RMSprop(weights, lr=1e-3, foreach=True)

    def clip() -> None:
        torch.nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)

    def chain() -> None:
        clip()
        adam.step()

    calls: dict[str, Candidate] = {
        "chain": chain,
        "adam": adam.step,
        "clip": clip,
        "rmsprop": rmsprop.step,
    }
    return calls[step]


def _optax(step: str, gradients: list[Any], donate: tuple[int, ...]) -> Candidate:
    import jax
    import optax

    rule = {
        "chain": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)),
        "adam": lambda: optax.adam(1e-3),
        "clip": lambda: optax.clip_by_global_norm(1.0),
        "rmsprop": lambda: optax.rmsprop(1e-3, decay=0.99),
        "agc": lambda: optax.adaptive_grad_clip(0.01),
    }[step]()
    arrays = [jax.numpy.array(leaf) for leaf in gradients]
    weights = [leaf + 0 for leaf in arrays]
    update = jax.jit(rule.update, donate_argnums=donate)
    held = {"gradients": arrays, "state": rule.init(weights)}

    def call() -> None:
        updates, held["state"] = jax.block_until_ready(update(held["gradients"], held["state"], weights))
        if 0 in donate:
            held["gradients"] = updates

    return call

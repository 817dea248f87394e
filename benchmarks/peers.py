"""Other libraries on the same gradients, each in the form that its users would take."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from libraries import arrays_of, filled
from measuring import Candidate


def candidates(
    step: str, gradients: list[Any], dtype: str, libraries: list[str]
) -> Iterator[tuple[str, Callable[[], Candidate]]]:
    """Yield the name of each candidate and what makes it."""
    if "numpy" in libraries and step == "adam" and dtype == "float32":
        yield "scikit-learn's Adam", partial(_sklearn, gradients)
    if "torch" in libraries:
        for text, make in _TORCH.get(step, {}).items():
            yield f"torch, {text}", partial(make, gradients, dtype)
    if "jax" in libraries and step in _OPTAX:
        for donate in ((), (1,), (0, 1)):
            text = ", all donated" if donate == (0, 1) else ", state donated" if donate else ""
            yield f"optax under jit{text}", partial(_optax, step, gradients, dtype, donate)
    if "jax" in libraries and step == "norm":
        yield "jax, plain sum of squares", partial(_jax_sum, gradients, dtype)
    if "keras" in libraries and step in _KERAS and dtype == "float32":
        yield f"keras on torch, {_KERAS[step][0]}", partial(_keras, step, gradients)


def _sklearn(gradients: list[Any]) -> Candidate:
    import numpy as np
    from sklearn.neural_network._stochastic_optimizers import AdamOptimizer

    weights = [np.zeros_like(leaf) for leaf in gradients]
    optimizer = AdamOptimizer(weights)
    return Candidate(lambda: optimizer.update_params(weights, gradients))


def _parameters(gradients: list[Any], dtype: str) -> list[Any]:
    import torch

    weights = []
    for leaf in arrays_of("torch", gradients, dtype):
        weight = torch.nn.Parameter(torch.zeros_like(leaf))
        weight.grad = leaf
        weights.append(weight)
    return weights


def _torch_clip(gradients: list[Any], dtype: str) -> Candidate:
    import torch

    weights = _parameters(gradients, dtype)
    clip = partial(torch.nn.utils.clip_grad_norm_, weights, 1.0, foreach=True)
    return Candidate(clip, _filling(weights, gradients, dtype))


def _filling(weights: list[Any], gradients: list[Any], dtype: str) -> Callable[[], object]:
    """Return what gives weights the gradients that they had before they were clipped in place."""
    originals = arrays_of("torch", gradients, dtype)
    return lambda: filled("torch", [weight.grad for weight in weights], originals)


def _torch_chain(gradients: list[Any], dtype: str) -> Candidate:
    import torch

    weights = _parameters(gradients, dtype)
    adam = torch.optim.Adam(weights, lr=1e-3, fused=True)

    def chain() -> None:
        torch.nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)
        adam.step()

    return Candidate(chain, _filling(weights, gradients, dtype))


def _torch_optimizer(name: str, options: dict[str, Any], gradients: list[Any], dtype: str) -> Candidate:
    import torch

    optimizer = getattr(torch.optim, name)(_parameters(gradients, dtype), lr=1e-3, **options)
    return Candidate(optimizer.step)


_TORCH: dict[str, dict[str, Callable[[list[Any], str], Candidate]]] = {
    "chain": {"clip_grad_norm_ + fused Adam": _torch_chain},
    "clip": {"clip_grad_norm_": _torch_clip},
    "adam": {
        "fused Adam": partial(_torch_optimizer, "Adam", {"fused": True}),
        "foreach Adam": partial(_torch_optimizer, "Adam", {"foreach": True}),
    },
    "rmsprop": {
        "foreach RMSprop": partial(_torch_optimizer, "RMSprop", {"foreach": True}),
        "RMSprop leaf by leaf": partial(_torch_optimizer, "RMSprop", {"foreach": False}),
    },
}


def _optax_rule(step: str) -> Any:
    import optax

    return {
        "chain": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)),
        "adam": lambda: optax.adam(1e-3),
        "clip": lambda: optax.clip_by_global_norm(1.0),
        "rmsprop": lambda: optax.rmsprop(1e-3, decay=0.99),
        "agc": lambda: optax.adaptive_grad_clip(0.01),
    }[step]()


_OPTAX = ("chain", "adam", "clip", "rmsprop", "agc")


def _optax(step: str, gradients: list[Any], dtype: str, donate: tuple[int, ...]) -> Candidate:
    import jax

    rule = _optax_rule(step)
    arrays = arrays_of("jax", gradients, dtype)
    weights = [leaf + 0 for leaf in arrays]
    update = jax.jit(rule.update, donate_argnums=donate)
    held = {"gradients": arrays, "state": rule.init(weights)}

    def call() -> None:
        updates, held["state"] = jax.block_until_ready(update(held["gradients"], held["state"], weights))
        if 0 in donate:
            held["gradients"] = updates

    originals = [leaf + 0 for leaf in arrays]

    def prepare() -> None:
        held["gradients"] = filled("jax", held["gradients"], originals)

    return Candidate(call, prepare) if 0 in donate else Candidate(call)


def _jax_sum(gradients: list[Any], dtype: str) -> Candidate:
    import jax

    arrays = arrays_of("jax", gradients, dtype)
    total = jax.jit(lambda leaves: sum(jax.numpy.sum(leaf * leaf) for leaf in leaves))
    return Candidate(lambda: jax.block_until_ready(total(arrays)))


_KERAS: dict[str, tuple[str, dict[str, Any]]] = {
    "chain": ("Adam with global_clipnorm", {"global_clipnorm": 1.0}),
    "adam": ("Adam", {}),
}


def _keras(step: str, gradients: list[Any]) -> Candidate:
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    import torch

    tensors = arrays_of("torch", gradients, "float32")
    variables = [keras.Variable(torch.zeros_like(leaf)) for leaf in tensors]
    optimizer = keras.optimizers.Adam(1e-3, **_KERAS[step][1])
    optimizer.build(variables)
    return Candidate(lambda: optimizer.apply_gradients(zip(tensors, variables, strict=True)))

"""A two-layer network in array API code: one forward and one backward pass, written by hand.

hidden = max(images @ weights1 + bias1, 0);  scores = hidden @ weights2 + bias2
loss = mean over images of -log softmax(scores)[right digit]
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace

PIXELS, HIDDEN, DIGITS = 64, 48, 10

Array = Any
Weights = dict[str, dict[str, Array]]


def initial_weights(seed: int) -> Weights:
    """Return seeded random weights as NumPy arrays of float32; the biases are 0."""
    random = np.random.default_rng(seed)
    return {
        "hidden": _layer(random, PIXELS, HIDDEN),
        "scores": _layer(random, HIDDEN, DIGITS),
    }


def _layer(random: Any, inputs: int, outputs: int) -> dict[str, Array]:
    weights = random.standard_normal((inputs, outputs)) * np.sqrt(2.0 / inputs)
    return {"weights": weights.astype(np.float32), "bias": np.zeros(outputs, np.float32)}


def hidden_units(weights: Weights, images: Array) -> Array:
    """Return the outputs of the first layer, one row an image."""
    xp = array_namespace(images)
    sums = images @ weights["hidden"]["weights"] + weights["hidden"]["bias"]
    return xp.where(sums > 0, sums, xp.zeros_like(sums))


def scores(weights: Weights, hidden: Array) -> Array:
    """Return one score a digit; the largest is the network's answer."""
    return hidden @ weights["scores"]["weights"] + weights["scores"]["bias"]


def loss_and_gradients(weights: Weights, images: Array, targets: Array) -> tuple[Array, Weights]:
    """Return the mean loss over the images and its derivative by each weight.

    Args:
        weights: ``{layer: {"weights": (inputs, outputs), "bias": (outputs,)}}``.
        images: float32, (images, 64).
        targets: float32, (images, 10): 1 at the right digit, else 0.
    """
    xp = array_namespace(images)
    hidden = hidden_units(weights, images)
    log_chances = _log_softmax(scores(weights, hidden))
    count = images.shape[0]
    loss = -xp.sum(targets * log_chances) / count

    by_scores = (xp.exp(log_chances) - targets) / count
    by_hidden = by_scores @ xp.matrix_transpose(weights["scores"]["weights"])
    by_sums = xp.where(hidden > 0, by_hidden, xp.zeros_like(by_hidden))
    return loss, {
        "hidden": _layer_gradients(images, by_sums),
        "scores": _layer_gradients(hidden, by_scores),
    }


def _log_softmax(values: Array) -> Array:
    xp = array_namespace(values)
    below = values - xp.max(values, axis=1, keepdims=True)
    return below - xp.log(xp.sum(xp.exp(below), axis=1, keepdims=True))


def _layer_gradients(inputs: Array, by_outputs: Array) -> dict[str, Array]:
    xp = array_namespace(inputs)
    return {"weights": xp.matrix_transpose(inputs) @ by_outputs, "bias": xp.sum(by_outputs, axis=0)}

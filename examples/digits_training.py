"""Training on one backend: clip the global norm, then Adam, and add the updates to the weights."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from digits_network import DIGITS, Array, Weights, hidden_units, initial_weights, loss_and_gradients, scores
from sklearn.datasets import load_digits
from steps_backends import Backend, HostArray

from steps_core import AdamStep, ChainedStep, GradientClippingStep, MonitorStep, apply_updates

SEED, BATCH, EPOCHS, TEST_IMAGES = 2012, 64, 16, 360
THRESHOLD = 1.0

# The monitor keeps the norm of what reaches the clip, and shares its one reduction.
STEP = ChainedStep(
    MonitorStep(),
    GradientClippingStep(variant="global", threshold=THRESHOLD),
    AdamStep(learning_rate=5e-3),
)


@dataclass(frozen=True)
class Training:
    """What one backend reached.

    Attributes:
        accuracy: share of the test images whose digit was found.
        losses: of each batch, before its step.
        norms: the gradients' joint norm at each step, before clipping.
        weights: at the end, as NumPy arrays.
        first_step: seconds of the first step, in which a library may compile.
        steps_per_second: of all other steps.
    """

    accuracy: float
    losses: list[float]
    norms: list[float]
    weights: Weights
    first_step: float
    steps_per_second: float

    @property
    def loss(self) -> float:
        """The mean loss over the last epoch."""
        last = self.losses[-(len(self.losses) // EPOCHS) :]
        return sum(last) / len(last)


@dataclass(frozen=True)
class Digits:
    """The data, as NumPy arrays: 1,797 images of 8 by 8 pixels, split once for all backends."""

    images: Array
    targets: Array
    test_images: Array
    test_digits: Array
    batches: Array


def load(seed: int = SEED) -> Digits:
    """Return scikit-learn's handwritten digits, shuffled, and which images each step sees."""
    random = np.random.default_rng(seed)
    images, digits = load_digits(return_X_y=True)
    order = random.permutation(len(images))
    images, digits = (images[order] / 8.0).astype(np.float32), digits[order]  # brightness 0 to 2
    train = len(images) - TEST_IMAGES
    whole = train // BATCH * BATCH
    batches = [random.permutation(train)[:whole].reshape(-1, BATCH) for _ in range(EPOCHS)]
    return Digits(
        images=images[:train],
        targets=np.eye(DIGITS, dtype=np.float32)[digits[:train]],
        test_images=images[train:],
        test_digits=digits[train:],
        batches=np.concatenate(batches).astype(np.int32),
    )


def train_step(
    weights: Weights, state: Any, images: Array, targets: Array, batch: Array
) -> tuple[Weights, Any, Array]:
    """Return the next weights, the next state and the loss: the whole of training, on any library."""
    xp = array_namespace(images)
    chosen, wanted = xp.take(images, batch, axis=0), xp.take(targets, batch, axis=0)
    loss, gradients = loss_and_gradients(weights, chosen, wanted)
    updates, state = STEP(gradients, weights, state)
    return apply_updates(weights, updates), state, loss


def train(backend: Backend, data: Digits, seed: int = SEED) -> Training:
    """Return what training reaches on this backend."""
    images, targets = _on(backend, data.images), _on(backend, data.targets)
    batches = [_on(backend, batch) for batch in data.batches]
    weights = _mapped(initial_weights(seed), lambda leaf: _on(backend, leaf))
    state = STEP.init(weights)

    losses, norms, started, first_step = [], [], time.perf_counter(), 0.0
    for batch in batches:
        weights, state, loss = backend.call(train_step, weights, state, images, targets, batch)
        losses.append(loss)
        norms.append(state["step1"]["norm"])
        if len(losses) == 1:
            backend.synchronize([loss, norms[-1]])
            first_step = time.perf_counter() - started
    backend.synchronize([*losses, *norms, *(leaf for layer in weights.values() for leaf in layer.values())])
    seconds = time.perf_counter() - started - first_step

    return Training(
        accuracy=_accuracy(backend, weights, data),
        losses=[_number(backend, loss) for loss in losses],
        norms=[_number(backend, norm) for norm in norms],
        weights=_mapped(weights, lambda leaf: _off(backend, leaf)),
        first_step=first_step,
        steps_per_second=(len(batches) - 1) / seconds,
    )


def answers(weights: Weights, images: Array) -> Array:
    """Return the digit that the network sees in each image."""
    return array_namespace(images).argmax(scores(weights, hidden_units(weights, images)), axis=1)


def _accuracy(backend: Backend, weights: Weights, data: Digits) -> float:
    seen = backend.call(answers, weights, _on(backend, data.test_images))
    return float(np.mean(_off(backend, seen) == data.test_digits))


def _on(backend: Backend, array: Array) -> Array:
    """Return a NumPy array as an array of the backend."""
    return backend.array(HostArray(array.dtype.name, array.shape, tuple(array.ravel().tolist())))


def _off(backend: Backend, array: Array) -> Array:
    """Return an array of the backend as a NumPy array."""
    host = backend.read(array)
    return np.asarray(host.values, dtype=host.dtype).reshape(host.shape)


def _number(backend: Backend, array: Array) -> float:
    return float(_off(backend, array))


def _mapped(weights: Weights, change: Any) -> Weights:
    return {name: {part: change(leaf) for part, leaf in layer.items()} for name, layer in weights.items()}

"""What is measured: trees of gradients, and steps on them."""

from typing import Any

import numpy as np

from steps_core import AdamStep, ChainedStep, GradientClippingStep, RMSPropStep, Step

Shape = tuple[int, ...]


def _transformer() -> list[Shape]:
    width, layers = 384, 5
    layer: list[Shape] = [
        *((width, width), (width, width), (width, width), (width, width)),
        *((width, 4 * width), (4 * width, width)),
        *((width,), (4 * width,), (width,), (width,), (width,), (width,)),
    ]
    return [(6000, width), *(layer * layers)][:60]


WORKS: dict[str, list[Shape]] = {
    "16M": [(1 << 24,)],
    "60 leaves": _transformer(),
    "1,000 leaves": [(1024,)] * 1000,
    "3 tiny leaves": [(3, 4), (3,), (4,)],
}

STEPS: dict[str, Step] = {
    "chain": ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep()),
    "adam": AdamStep(),
    "clip": GradientClippingStep(variant="global", threshold=1.0),
    "rmsprop": RMSPropStep(decay=0.99, epsilon_inside=False),
    "agc": GradientClippingStep(variant="per-weight-relative", threshold=0.01),
}


def gradients_of(work: str) -> list[Any]:
    """Return the gradients of a work as NumPy arrays."""
    random = np.random.default_rng(0)
    return [random.standard_normal(shape, dtype=np.float32) * np.float32(0.01) for shape in WORKS[work]]

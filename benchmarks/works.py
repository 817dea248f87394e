"""What is measured: trees of gradients, and steps on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steps_core import (
    AdamStep,
    ChainedStep,
    CustomStep,
    GradientClippingStep,
    MonitorStep,
    RMSPropStep,
    Step,
    graph,
    graphs,
)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """A tree of gradients.

    Attributes:
        shapes: of its leaves.
        dtype: of all of them.
    """

    shapes: tuple[Shape, ...]
    dtype: str = "float32"

    @property
    def size(self) -> int:
        """The number of elements."""
        return sum(int(np.prod(shape)) for shape in self.shapes)


def _transformer() -> tuple[Shape, ...]:
    width, layers = 384, 5
    layer: list[Shape] = [
        *((width, width), (width, width), (width, width), (width, width)),
        *((width, 4 * width), (4 * width, width)),
        *((width,), (4 * width,), (width,), (width,), (width,), (width,)),
    ]
    return ((6000, width), *(layer * layers))[:60]


WORKS = {
    "16M": Work(((1 << 24,),)),
    "60 leaves": Work(_transformer()),
    "1,000 leaves": Work(((1024,),) * 1000),
    "3 tiny leaves": Work(((3, 4), (3,), (4,))),
    "16M bfloat16": Work(((1 << 24,),), "bfloat16"),
    "60 leaves bfloat16": Work(_transformer(), "bfloat16"),
}


@graph
def ten_operations(gradients: Any, *, decay: Any = 0.9, rate: Any = 1e-3) -> Any:
    """Return a mixture of a scaled gradient and its sign: ten operations, one of them with a state."""
    spread = graphs.sqrt(graphs.moving_average(graphs.square(gradients), decay=decay)) + 1e-8
    mixed = gradients / spread + 0.1 * graphs.sign(gradients)
    return -rate * graphs.clip(mixed, -1.0, 1.0)


STEPS: dict[str, Step] = {
    "chain": ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep()),
    "adam": AdamStep(),
    "rmsprop": RMSPropStep(decay=0.99, epsilon_inside=False),
    "clip": GradientClippingStep(variant="global", threshold=1.0),
    "clip per layer": GradientClippingStep(variant="per-layer", threshold=0.01),
    "agc": GradientClippingStep(variant="per-weight-relative", threshold=0.01),
    "custom": CustomStep(ten_operations),
    "norm": MonitorStep(),
}


def gradients_of(work: Work) -> list[Any]:
    """Return the gradients of a work as NumPy arrays of float32, which hold numbers of its dtype."""
    random = np.random.default_rng(0)
    return [random.standard_normal(shape, dtype=np.float32) * np.float32(0.01) for shape in work.shapes]

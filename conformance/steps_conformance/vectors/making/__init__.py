"""Making the vectors: inputs from tables and fixed seeds, results from the oracle; no target takes part."""

from collections.abc import Callable

from ..model import Vector
from . import (
    adam,
    centering,
    chain,
    clipping,
    constraint,
    custom,
    descent,
    masked,
    monitor,
    reports,
    rmsprop,
    scaling,
    skip_non_finite,
    trees,
)

MAKERS: dict[str, Callable[[], list[Vector]]] = {
    "adam": adam.vectors,
    "centering": centering.vectors,
    "chain": chain.vectors,
    "clipping": clipping.vectors,
    "constraint": constraint.vectors,
    "custom": custom.vectors,
    "descent": descent.vectors,
    "masked": masked.vectors,
    "monitor": monitor.vectors,
    "reports": reports.vectors,
    "rmsprop": rmsprop.vectors,
    "scaling": scaling.vectors,
    "skip_non_finite": skip_non_finite.vectors,
    "trees": trees.vectors,
}
"""One function a file of vectors."""

"""All candidates for a step on a work, by name."""

from collections.abc import Callable, Iterable
from itertools import chain

import limit
import ours
import peers
from measuring import Candidate
from works import Work, gradients_of

LIBRARIES = ("numpy", "torch", "jax", "keras")


def candidates(
    work: Work, step: str, libraries: Iterable[str] = LIBRARIES
) -> dict[str, Callable[[], Candidate]]:
    """Return what makes each candidate that exists for a step of works.py."""
    gradients, chosen = gradients_of(work), list(libraries)
    return dict(
        chain(
            limit.candidates(step, gradients, work.dtype),
            ours.candidates(step, gradients, work.dtype, chosen),
            peers.candidates(step, gradients, work.dtype, chosen),
        )
    )

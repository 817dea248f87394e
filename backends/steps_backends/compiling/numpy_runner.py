"""A step on arrays whose memory NumPy can use: NumPy's own, and PyTorch's on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

from .numpy_layout import Result
from .numpy_plan import NumpyPlan
from .numpy_sums import SquareSummer
from .packages import module_of
from .shared_memory import Sharing
from .traced_runner import TracedRunner


def numpy_runner(
    step: Any, package: str, donated: frozenset[str], sharing: Sharing, tell: Callable[[str], None]
) -> TracedRunner:
    """Return what runs a step of a package on NumPy.

    Args:
        step: of the package.
        package: the name of its package of steps.
        donated: the trees whose memory may be written to.
        sharing: turns leaves into NumPy's arrays, and back.
        tell: is told why a step cannot be traced.
    """
    norms = module_of(package, "numerics.norms")

    def plan(results: Sequence[Result], counts: dict[str, int], xp: Any) -> NumpyPlan:
        return NumpyPlan(results, counts, SquareSummer(norms, xp), donated, sharing.calling)

    return TracedRunner(step, package, sharing, plan, tell)

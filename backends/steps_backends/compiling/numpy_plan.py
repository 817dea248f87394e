"""Running a graph on NumPy: stage by stage, pass by pass, into buffers that are used again."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from .buffers import Pool
from .graph import in_order, simplified
from .numpy_call import Call, CallParts, Leaves, call_of
from .numpy_layout import Layout, Planned, Result
from .numpy_pass import Pass
from .numpy_single import Function, SingleWriter
from .numpy_sums import SquareSummer
from .numpy_tasks import Key, tasks_of
from .passes import is_summed_in_passes, stages
from .tracing import INPUT


class NumpyPlan:
    """A traced step, ready to run on leaves of the shapes it was traced with.

    Args:
        results: what the step returns, leaf by leaf; the others are None.
        counts: how many leaves its results have.
        summer: computes sums of squares.
        donated: the trees whose memory may be written to.
        calling: makes a function of the user take and give NumPy's arrays.
    """

    def __init__(
        self,
        results: Sequence[Result],
        counts: dict[str, int],
        summer: SquareSummer,
        donated: frozenset[str],
        calling: Callable[[Function], Function],
    ) -> None:
        nodes = simplified(result.node for result in results)
        every = in_order(nodes)
        slots = {id(node): number for number, node in enumerate(every)}
        planned = [Planned(stage.single, tasks_of(stage.components)) for stage in stages(nodes)]
        layout = Layout(
            [Result(result.place, node) for result, node in zip(results, nodes, strict=True)], planned
        )
        homes: dict[Key, Any] = {}
        self._parts = CallParts(
            [(stage, Pass(stage.tasks, summer)) for stage in planned],
            layout,
            SingleWriter(slots, summer, calling),
            [node for node in every if node.operation == INPUT and id(node) in layout.needed],
            [node for node in every if is_summed_in_passes(node)],
            counts,
            donated,
            Pool(),
            homes,
        )
        # The state of the last call: when it comes back, its packed arrays are known.
        self._returned: list[Any] | None = None

    @cached_property
    def _first(self) -> Call:
        return call_of(self._parts, is_at_home=False)

    @cached_property
    def _again(self) -> Call:
        return call_of(self._parts, is_at_home=True)

    def __call__(self, leaves: Leaves) -> Leaves:
        """Return the leaves of the new gradients and of the new state.

        Args:
            leaves: of "gradients", "weights" and "state": arrays, or None.
        """
        import numpy as np

        is_at_home = self._returned is not None and leaves.get("state") is self._returned
        call = self._again if is_at_home else self._first
        with np.errstate(all="ignore"):
            results = call(leaves)
        self._returned = results["state"]
        return results

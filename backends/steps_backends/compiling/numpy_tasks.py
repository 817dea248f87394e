"""The work of one pass on NumPy: components with equal kernels, many small ones packed into one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

from .kernels import Kernel, kernel_of
from .passes import Component
from .tracing import TracedArray

# A leaf smaller than this is packed with others: calling NumPy for it alone would cost more than the copy.
SMALL = 1 << 16

Key = tuple[int, ...]  # the ids of the arrays that lie one behind the other in a packed one


@dataclass(frozen=True, eq=False)
class Task:
    """A component, or several packed into one.

    Attributes:
        kernel: what is computed.
        shape: of all arrays; packed: one axis.
        arrays, stored: what is read and written; of each the members, one unless it is packed.
        scalars, parts: the numbers and the broadcast arrays.
        sums: the sums of squares that the kernel adds to.
        is_packed: whether there are several members.
    """

    kernel: Kernel
    shape: tuple[int, ...]
    arrays: tuple[tuple[TracedArray, ...], ...]
    stored: tuple[tuple[TracedArray, ...], ...]
    scalars: tuple[TracedArray, ...]
    parts: tuple[TracedArray, ...]
    sums: tuple[TracedArray, ...]
    is_packed: bool

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)


def key_of(members: Sequence[TracedArray]) -> Key:
    """Return what names a packed array."""
    return tuple(map(id, members))


def slices_of(members: Sequence[TracedArray]) -> list[slice]:
    """Return where each member lies in the packed array."""
    ends = list(accumulate(member.size for member in members))
    return [slice(end - member.size, end) for member, end in zip(members, ends, strict=True)]


def tasks_of(components: Sequence[Component]) -> tuple[Task, ...]:
    """Return the tasks of a pass; components without elements have nothing to do but exist."""
    alike: dict[Any, list[tuple[Component, Kernel]]] = {}
    for number, component in enumerate(components):
        kernel = kernel_of(component)
        is_small = kernel.is_flat and component.size < SMALL
        shared = (key_of(component.scalars), key_of([total for _, total in component.summed]))
        alike.setdefault((kernel, shared) if is_small else number, []).append((component, kernel))
    return tuple(task_of([component for component, _ in group], group[0][1]) for group in alike.values())


def task_of(components: Sequence[Component], kernel: Kernel) -> Task:
    """Return one task of components that all have this kernel."""
    first = components[0]
    is_packed = len(components) > 1
    return Task(
        kernel,
        (sum(component.size for component in components),) if is_packed else first.shape,
        tuple(zip(*(component.arrays for component in components), strict=True)),
        tuple(zip(*(component.stored for component in components), strict=True)),
        first.scalars,
        first.parts,
        tuple(total for _, total in first.summed),
        is_packed,
    )

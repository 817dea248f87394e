"""From graph to passes: what is computed while each leaf goes through the cache once, and what between.

A stage is a list of single results, of numbers and whole arrays, and then a pass over the leaves: the
element-wise operations of one leaf merge, and end where its squares are summed. What a later pass needs again
is computed again where that is cheap, and stored where it is not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from .graph import in_order
from .tracing import (
    CONSTANT,
    ELEMENTWISE,
    INPUT,
    JOINT_SQUARE_SUMS,
    SQUARE_SUMS,
    TracedArray,
)

# Reading and writing memory costs as much as about so many operations in the cache.
CHEAP = 4


def is_single(array: TracedArray) -> bool:
    """Return whether an array has one element: it is then computed as a number."""
    return prod(array.shape) == 1


def is_elementwise(array: TracedArray) -> bool:
    """Return whether an array is computed in a pass, element by element."""
    return array.operation in ELEMENTWISE and not is_single(array)


def is_summed_in_passes(array: TracedArray) -> bool:
    """Return whether sums of squares are of all elements, so that passes collect them block by block."""
    return array.operation == JOINT_SQUARE_SUMS or (array.operation == SQUARE_SUMS and is_single(array))


@dataclass(frozen=True, eq=False)
class Component:
    """Element-wise operations of one shape that feed each other.

    Attributes:
        shape: of all that it computes.
        nodes: what it computes, in order.
        arrays: what it reads, of that shape, in order of use.
        scalars: the numbers that it uses.
        parts: the arrays of other shapes that it uses.
        stored: which of the nodes are needed outside.
        summed: the arrays whose squares are summed, and the sums that they belong to.
    """

    shape: tuple[int, ...]
    nodes: tuple[TracedArray, ...]
    arrays: tuple[TracedArray, ...]
    scalars: tuple[TracedArray, ...]
    parts: tuple[TracedArray, ...]
    stored: tuple[TracedArray, ...]
    summed: tuple[tuple[TracedArray, TracedArray], ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)


@dataclass(frozen=True, eq=False)
class Stage:
    """What is computed one by one, and the components of the pass after it."""

    single: tuple[TracedArray, ...]
    components: tuple[Component, ...]


def stages(results: Iterable[TracedArray]) -> list[Stage]:
    """Return the stages that compute these results."""
    results = list(results)
    nodes = in_order(results)
    levels = _levels(nodes)
    last = max(levels.values(), default=0)
    wanted: list[list[TracedArray]] = [[] for _ in range(last + 1)]
    summed: list[list[tuple[TracedArray, TracedArray]]] = [[] for _ in range(last + 1)]
    for node in nodes:
        for given in [] if is_elementwise(node) else node.arrays:
            if is_summed_in_passes(node) and not is_single(given):
                summed[levels[id(node)] - 1].append((given, node))
            elif is_elementwise(given):
                wanted[levels[id(node)] - 1].append(given)
    wanted[last] += [array for array in results if is_elementwise(array)]
    computed, stored = _computed(wanted, summed, {id(array) for array in results})
    found = []
    for level in range(last + 1):
        single = tuple(node for node in nodes if levels[id(node)] == level and _is_computed_alone(node))
        here = [node for node in nodes if id(node) in computed[level]]
        first, *others = _waves(_components(here, stored, summed[level]))
        found += [Stage(single, first), *(Stage((), wave) for wave in others)]
    return found


def _waves(components: list[Component]) -> list[tuple[Component, ...]]:
    """Return the components in as many passes as it takes: what is broadcast comes before what uses it."""
    number: dict[int, int] = {}
    waves: list[list[Component]] = [[]]
    for component in sorted(components, key=lambda component: component.size):
        wave = max((number.get(id(part), -1) + 1 for part in component.parts), default=0)
        number |= {id(node): wave for node in component.stored}
        waves += [[] for _ in range(wave + 1 - len(waves))]
        waves[wave].append(component)
    return [tuple(wave) for wave in waves]


def _is_computed_alone(node: TracedArray) -> bool:
    return node.operation not in (INPUT, CONSTANT) and not is_elementwise(node)


def _levels(nodes: list[TracedArray]) -> dict[int, int]:
    """Return the stage of each array: after the passes whose results it needs as a whole."""
    levels: dict[int, int] = {}
    for node in nodes:
        level = 0
        for given in node.arrays:
            needs_pass = not is_elementwise(node) and is_elementwise(given)
            needs_pass = needs_pass or (is_summed_in_passes(node) and not is_single(given))
            level = max(level, levels[id(given)] + needs_pass)
        levels[id(node)] = level
    return levels


def _computed(
    wanted: list[list[TracedArray]],
    summed: list[list[tuple[TracedArray, TracedArray]]],
    results: set[int],
) -> tuple[list[set[int]], set[int]]:
    """Return what each pass computes, and what of that is stored."""
    passes: list[set[int]] = []
    stored: set[int] = set()
    before: set[int] = set()
    for level, whole in enumerate(wanted):
        here: set[int] = set()
        stored |= {id(array) for array in whole}
        waiting = [*whole, *(given for given, _ in summed[level] if is_elementwise(given))]
        while waiting:
            node = waiting.pop()
            if id(node) in here:
                continue
            if id(node) in before and (id(node) in stored or _cost(node, stored) > CHEAP):
                stored.add(id(node))
                continue
            here.add(id(node))
            if id(node) in results:
                stored.add(id(node))
            for given in node.arrays:
                if is_elementwise(given) and given.operation != CONSTANT:
                    waiting.append(given)
                    if given.shape != node.shape:
                        stored.add(id(given))
        passes.append(here)
        before |= here
    return passes, stored


def _cost(node: TracedArray, stored: set[int]) -> int:
    """Return how many operations it takes to compute an array again, counted until they are too many."""
    seen: set[int] = set()
    waiting = [node]
    while waiting and len(seen) <= CHEAP:
        current = waiting.pop()
        if id(current) not in seen and id(current) not in stored:
            seen.add(id(current))
            waiting += [given for given in current.arrays if is_elementwise(given)]
    return len(seen)


def _components(
    nodes: list[TracedArray], stored: set[int], summed: list[tuple[TracedArray, TracedArray]]
) -> list[Component]:
    groups = Groups()
    here = {id(node) for node in nodes}
    for node in nodes:
        groups.add(node)
        for given in node.arrays:
            if id(given) in here and given.shape == node.shape:
                groups.join(node, given)
    for given, _ in summed:
        groups.add(given)
    members = groups.members()
    sums: dict[int, list[tuple[TracedArray, TracedArray]]] = {}
    for given, total in summed:
        sums.setdefault(groups.of(given), []).append((given, total))
    return [
        _component([node for node in group if id(node) in here], stored, here, sums.get(key, []))
        for key, group in members.items()
    ]


def _component(
    nodes: list[TracedArray],
    stored: set[int],
    here: set[int],
    summed: list[tuple[TracedArray, TracedArray]],
) -> Component:
    shape = nodes[0].shape if nodes else summed[0][0].shape
    own = {id(node) for node in nodes}
    used: dict[int, TracedArray] = {}
    for node in nodes:
        used |= {id(given): given for given in node.arrays}
    used |= {id(given): given for given, _ in summed}
    outside = [given for key, given in used.items() if key not in own and given.operation != CONSTANT]
    large = [given for given in outside if not is_single(given)]
    return Component(
        shape,
        tuple(nodes),
        arrays=tuple(given for given in large if given.shape == shape),
        scalars=tuple(given for given in outside if is_single(given)),
        parts=tuple(given for given in large if given.shape != shape),
        stored=tuple(node for node in nodes if id(node) in stored),
        summed=tuple(summed),
    )


class Groups:
    """Sets of arrays that grow together (union-find)."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}
        self._arrays: dict[int, TracedArray] = {}

    def add(self, array: TracedArray) -> None:
        """Let an array be a set, unless it is in one."""
        self._above.setdefault(id(array), id(array))
        self._arrays.setdefault(id(array), array)

    def of(self, array: TracedArray) -> int:
        """Return what names the set of an array."""
        key = id(array)
        while self._above[key] != key:
            self._above[key] = self._above[self._above[key]]
            key = self._above[key]
        return key

    def join(self, one: TracedArray, other: TracedArray) -> None:
        """Make one set of two."""
        self._above[self.of(one)] = self.of(other)

    def members(self) -> dict[int, list[TracedArray]]:
        """Return the arrays of each set, in the order in which they came."""
        found: dict[int, list[TracedArray]] = {}
        for array in self._arrays.values():
            found.setdefault(self.of(array), []).append(array)
        return found

"""What is computed between passes, in rounds: numbers that feed each other at once, then whole arrays.

Numbers of equal kernels, such as the factors of many leaves, are then computed by one launch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .passes import Component, Groups, is_single
from .tracing import CONSTANT, ELEMENTWISE, TracedArray


@dataclass(frozen=True, eq=False)
class Round:
    """What may be computed without waiting for a function of whole arrays, and such functions after it.

    Attributes:
        numbers: components of the shape (); their arrays have one element each.
        whole: all else.
    """

    numbers: tuple[Component, ...]
    whole: tuple[TracedArray, ...]


def rounds(single: Sequence[TracedArray], users: Mapping[int, set[int]], results: set[int]) -> list[Round]:
    """Return the rounds that compute what a stage computes one by one.

    Args:
        single: in order.
        users: for the id of each array those of the arrays that are computed from it.
        results: the ids of what the step returns.
    """
    number_of = _numbered(single)
    found = []
    for number in range(max(number_of.values(), default=-1) + 1):
        here = [node for node in single if number_of[id(node)] == number]
        numbers = [node for node in here if _is_number(node)]
        whole = tuple(node for node in here if not _is_number(node))
        found.append(Round(tuple(_components(numbers, users, results)), whole))
    return found


def _is_number(node: TracedArray) -> bool:
    return is_single(node) and node.operation in ELEMENTWISE


def _numbered(single: Sequence[TracedArray]) -> dict[int, int]:
    """Return the round of each array: numbers come after the whole functions that they use."""
    found: dict[int, int] = {}
    is_whole = {id(node): not _is_number(node) for node in single}
    for node in single:
        given = [id(array) for array in node.arrays if id(array) in found]
        waits = _is_number(node)
        found[id(node)] = max((found[key] + (waits and is_whole[key]) for key in given), default=0)
    return found


def _components(
    nodes: Sequence[TracedArray], users: Mapping[int, set[int]], results: set[int]
) -> Iterable[Component]:
    here = {id(node) for node in nodes}
    groups = Groups()
    for node in nodes:
        groups.add(node)
        for given in node.arrays:
            if id(given) in here:
                groups.join(node, given)
    for group in groups.members().values():
        own = {id(node) for node in group}
        used = {id(given): given for node in group for given in node.arrays}
        arrays = tuple(given for key, given in used.items() if key not in own and given.operation != CONSTANT)
        stored = tuple(node for node in group if id(node) in results or users.get(id(node), set()) - own)
        yield Component((), tuple(group), arrays, (), (), stored, ())

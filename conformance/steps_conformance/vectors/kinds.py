"""Which kinds of input some vectors have, found in the vectors themselves."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steps_backends import LEAF_DTYPES, HostArray, format_of

from ..containers import leaves
from .model import Vector, VectorCall

REAL_DTYPES = tuple(dtype for dtype in LEAF_DTYPES if not dtype.startswith("complex"))
LONG = 50

Count = Callable[[Sequence[Vector]], int]
"""How many of the vectors of one step have a kind of input; 0 where the kind is not whole."""


@dataclass(frozen=True)
class Kind:
    """One kind of input.

    Attributes:
        name: as it stands in the table.
        count: finds it.
        only: the steps for which it makes sense; empty for all.
    """

    name: str
    count: Count
    only: tuple[str, ...] = ()


def arrays(tree: Any) -> list[HostArray]:
    """Return the arrays of a tree, None left out."""
    return [leaf for _, leaf in leaves(tree) if leaf is not None]


def gradients(vector: Vector) -> list[HostArray]:
    """Return the arrays among the gradients of all calls."""
    return [array for call in vector.calls for array in arrays(call.gradients)]


def in_a_call(holds: Callable[[VectorCall], bool]) -> Count:
    """Return a count of the vectors of which some call is so."""
    return lambda vectors: sum(any(map(holds, vector.calls)) for vector in vectors)


def every_rank(dtype: str) -> Count:
    """Return a count of the vectors of a dtype, which together have all ranks from 0 to 5."""

    def count(vectors: Sequence[Vector]) -> int:
        with_dtype = [[a for a in gradients(vector) if a.dtype == dtype] for vector in vectors]
        ranks = {len(array.shape) for found in with_dtype for array in found}
        return sum(map(bool, with_dtype)) if ranks >= set(range(6)) else 0

    return count


def end_of_the_range(which: str, dtypes: Sequence[str] = REAL_DTYPES) -> Count:
    """Return a count of the vectors with a number at one end of its dtype's range; each dtype has one."""

    def count(vectors: Sequence[Vector]) -> int:
        found = [
            {
                array.dtype
                for array in gradients(vector)
                if any(abs(value) == getattr(format_of(array.dtype), which) for value in array.values)
            }
            for vector in vectors
        ]
        return sum(map(bool, found)) if set().union(*found) >= set(dtypes) else 0

    return count


def at_each_place(is_bad: Callable[[float], bool]) -> Count:
    """Return a count of the vectors with one such number in a call; together they have all five places."""

    def count(vectors: Sequence[Vector]) -> int:
        places = [{place for call in vector.calls for place in _places(call, is_bad)} for vector in vectors]
        wanted = {"first element", "middle element", "last element", "first leaf", "last leaf"}
        return sum(map(bool, places)) if set().union(*places) >= wanted else 0

    return count


def _places(call: VectorCall, is_bad: Callable[[float], bool]) -> Iterator[str]:
    found = arrays(call.gradients)
    bad = [
        (n, i) for n, array in enumerate(found) for i, value in enumerate(array.values) if _is(is_bad, value)
    ]
    if not bad:
        return
    elements = {position for _, position in bad}
    last = len(found[bad[0][0]].values) - 1
    if len(elements) == 1:
        yield {0: "first element", last: "last element"}.get(bad[0][1], "middle element")
    if len(found) > 1:
        if bad[0][0] == 0:
            yield "first leaf"
        if bad[-1][0] == len(found) - 1:
            yield "last leaf"


def _is(is_bad: Callable[[float], bool], value: Any) -> bool:
    return not isinstance(value, complex) and is_bad(value)


def has_both_zeros(call: VectorCall) -> bool:
    """Return whether the gradients hold zeros of both signs."""
    zeros = [v for array in arrays(call.gradients) for v in array.values if v == 0 and isinstance(v, float)]
    return {math.copysign(1.0, zero) for zero in zeros} == {1.0, -1.0}


def mixes_dtypes(call: VectorCall) -> bool:
    """Return whether the leaves are of several dtypes."""
    return len({array.dtype for array in arrays(call.gradients)}) > 1


def is_long(vectors: Sequence[Vector]) -> int:
    """Return how many of the vectors have at least fifty calls."""
    return sum(len(vector.calls) >= LONG for vector in vectors)


def has_a_state(vectors: Sequence[Vector]) -> int:
    """Return how many of the vectors start from a state that is given."""
    return sum(vector.state is not None for vector in vectors)

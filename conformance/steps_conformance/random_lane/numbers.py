"""Strategies for leaves and trees: every dtype, every magnitude, and what stands at the ends of the range."""

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from steps_backends import Declaration, HostArray, format_of, host_array

from ..containers import mapped

_LONGEST = 4
_HALVES = 24
"""Significant bits of a number before it is rounded; shrinks to short ones."""


@dataclass(frozen=True)
class Range:
    """What a backend may be given.

    Attributes:
        dtypes: the leaf dtypes that it declares.
        subnormals: whether subnormal numbers are inputs; a backend that flushes them takes them for zero.
    """

    dtypes: tuple[str, ...]
    subnormals: bool

    @classmethod
    def of(cls, declaration: Declaration) -> "Range":
        """Return what a backend declares."""
        return cls(tuple(declaration.dtypes), "flushes_subnormals" not in declaration.traits)


def shapes() -> SearchStrategy[tuple[int, ...]]:
    """Return shapes of rank 0 to 3, axes of length 0 included."""
    return st.lists(st.integers(0, _LONGEST), max_size=3).map(tuple)


@st.composite
def leaves(draw: DrawFn, dtype: str, within: Range, *, finite: bool) -> HostArray:
    """Draw a leaf whose numbers share a magnitude, anywhere in the range, some with an end of it among them.

    Args:
        draw: of Hypothesis.
        dtype: the dtype.
        within: what the backend may be given.
        finite: leave out NaN and the infinities.
    """
    shape, form = draw(shapes()), format_of(dtype)
    lowest = form.least_exponent + (0 if within.subnormals else form.precision + 3)
    exponent = draw(st.integers(lowest, form.greatest_exponent - 4))
    ends = draw(st.booleans())
    parts = st.integers(-(2**_HALVES), 2**_HALVES).map(lambda n: math.ldexp(n, exponent + 3 - _HALVES))
    if ends:
        parts |= st.sampled_from(_ends(dtype, within, finite=finite))
    pairs = dtype.startswith("complex")
    count = math.prod(shape) * (2 if pairs else 1)
    flat = [_within(part, dtype, within) for part in draw(st.lists(parts, min_size=count, max_size=count))]
    values = [complex(*pair) for pair in zip(flat[::2], flat[1::2], strict=True)] if pairs else flat
    return host_array(values, dtype, shape)


def _ends(dtype: str, within: Range, *, finite: bool) -> list[float]:
    form = format_of(dtype)
    # the modulus of a complex number may not be larger than a double: the oracle's limit, not the rule's
    largest = form.largest / 2 if dtype == "complex128" else form.largest
    sizes = [
        1.0,
        form.smallest_normal,
        largest,
        *([form.smallest_subnormal] if within.subnormals else []),
    ]
    ends = [0.0, -0.0, *(sign * size for size in sizes for sign in (1.0, -1.0))]
    # of complex numbers that are not finite the requirements say less than the rules of real ones
    bad = [] if finite or dtype.startswith("complex") else [math.nan, math.inf, -math.inf]
    return [*ends, *bad]


def _within(value: float, dtype: str, within: Range) -> float:
    form = format_of(dtype)
    rounded = form.round(value)
    if math.isinf(rounded) and not math.isinf(value):
        return math.copysign(form.largest, value)
    if not within.subnormals and abs(rounded) < form.smallest_normal:
        return math.copysign(0.0, value)
    return rounded


@st.composite
def trees(draw: DrawFn, within: Range, *, finite: bool = True, leaf: Any = None) -> Any:
    """Draw a tree of dicts, lists and tuples, with leaves of one dtype or of several, and None among them."""
    several = draw(st.booleans())
    dtype = draw(st.sampled_from(within.dtypes))
    dtypes = st.sampled_from(within.dtypes) if several else st.just(dtype)
    made = leaf or (lambda one: leaves(one, within, finite=finite))
    each = dtypes.flatmap(made)
    return draw(each | containers(each | st.none()))


def containers(leaf: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Return trees of one or two levels."""

    def level(entry: SearchStrategy[Any]) -> SearchStrategy[Any]:
        return (
            st.dictionaries(st.sampled_from(("bias", "weights", "scale")), entry, max_size=3)
            | st.lists(entry, max_size=3)
            | st.tuples(entry, entry)
        )

    return level(leaf) | level(level(leaf))


def like(draw: DrawFn, tree: Any, within: Range) -> Any:
    """Draw finite weights of the shapes and dtypes of a tree."""

    def leaf(host: HostArray, _: str) -> HostArray:
        count = len(host.values)
        small = st.integers(-256, 256).map(lambda n: n / 64)
        values = draw(st.lists(small, min_size=count, max_size=count))
        return host_array([_within(value, host.dtype, within) for value in values], host.dtype, host.shape)

    return mapped(leaf, tree)

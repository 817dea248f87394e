"""What clipping makes of any tree, NaN and infinities included."""

import math
from collections.abc import Sequence
from typing import Any

from steps_backends import HostArray

from ...containers import leaves, mapped
from ...oracle import clipping as oracle
from ...oracle.exact import Exact, exact, mp, number
from ..model import Expected
from .every_kind import Answer, leafwise, same
from .sheet import exacts, expect

_ULPS = 4
_WIDE = ("float64", "complex128")
# One ulp of float32 in ulps of float64: a norm over both has the precision of the coarser.
_COARSE = 2.0**29


def limited_as_one(tree: Any, threshold: float, *, factor: float = 1.0) -> Any:
    """Return what a global clip makes of a tree, times a factor."""
    arrays = [leaf for _, leaf in leaves(tree) if leaf is not None]
    if any(not math.isfinite(abs(value)) for array in arrays for value in array.values):
        broken = _broken(arrays)
        return mapped(lambda host, _: _without_numbers(host, broken), tree)
    clipped = iter(oracle.global_norm(exacts(tree), threshold))
    mixed = len({array.dtype in _WIDE for array in arrays}) == 2

    def leaf(host: HostArray, _: str) -> Expected:
        values = next(clipped)
        if factor == 1.0 and values.values == exact(host).values:
            return same(host)
        ulps = _ULPS * _COARSE if mixed and host.dtype in _WIDE else _ULPS
        return expect(host, values.map(lambda value: value * number(factor)), wide=ulps)

    return mapped(leaf, tree)


def limited_by_leaf(threshold: float) -> Answer:
    """Return the answer of a clip of each leaf."""
    return leafwise(lambda host, _: limited_as_one(host, threshold))


def limited_by_element(threshold: float) -> Answer:
    """Return the answer of a clip of each element."""

    def leaf(host: HostArray, _: HostArray | None) -> Expected:
        limit = number(threshold)
        values = tuple(_limited(value, limit) for value in exact(host).values)
        return same(host) if values == exact(host).values else expect(host, _like(host, values), wide=_ULPS)

    return leafwise(leaf)


def limited_by_weights(threshold: float) -> Answer:
    """Return the answer of a relative clip; where a leaf has NaN or an infinity, it must be one unit."""

    def leaf(host: HostArray, weight: HostArray | None) -> Expected:
        assert weight is not None
        if any(not math.isfinite(abs(value)) for value in host.values):
            assert sum(length > 1 for length in host.shape) <= 1, "a leaf of several units"
            return _without_numbers(host, _broken([host]))
        (clipped,) = oracle.per_weight_relative([exact(host)], [exact(weight)], threshold)
        return same(host) if clipped.values == exact(host).values else expect(host, clipped, wide=_ULPS)

    return leafwise(leaf)


def _limited(value: Any, limit: Any) -> Any:
    if mp.isnan(value):
        return value
    if mp.isinf(value):
        return mp.sign(value) * limit
    return value * oracle.factor(abs(value), limit)


def _like(host: HostArray, values: tuple[Any, ...]) -> Exact:
    return Exact(host.shape, values)


def _broken(arrays: Sequence[HostArray]) -> bool:
    return any(value != value for array in arrays for value in array.values)


def _without_numbers(host: HostArray, broken: bool) -> Expected:
    """Return NaN everywhere if there is a NaN, else NaN at the infinities and zeros beside them."""
    values = tuple(math.nan if broken or math.isinf(abs(value)) else 0.0 for value in host.values)
    return Expected(host.dtype, host.shape, values)

"""What counts as right on a backend that takes subnormal numbers for zero, as its declaration says."""

from collections.abc import Collection, Sequence
from typing import Any

from steps_backends import HostArray, format_of

from .exact import as_fraction, components


def accepting_flushed(traits: Collection[str], got: HostArray, wanted: Sequence[Any]) -> list[Any]:
    """Return the exact values to compare with: 0 where a flushing backend gave 0 for a subnormal part."""
    if "flushes_subnormals" not in traits:
        return list(wanted)
    return [_flushed(g, w, got.dtype) for g, w in zip(got.values, wanted, strict=True)]


def accepting_flushed_bits(traits: Collection[str], got: HostArray, given: HostArray) -> HostArray:
    """Return the bits to compare with, likewise."""
    if "flushes_subnormals" not in traits or len(got.values) != len(given.values):
        return given
    return HostArray(
        given.dtype,
        given.shape,
        tuple(_flushed_bits(g, w, given.dtype) for g, w in zip(got.values, given.values, strict=True)),
    )


def _flushed(got: Any, want: Any, dtype: str) -> Any:
    smallest = format_of(dtype).smallest_normal
    pairs = zip(components(got), components(want, pair=isinstance(got, complex)), strict=True)
    parts = [0.0 if g == 0 and _is_below(w, smallest) else w for g, w in pairs]
    return tuple(parts) if len(parts) == 2 else parts[0]


def _flushed_bits(got: Any, given: Any, dtype: str) -> Any:
    smallest = format_of(dtype).smallest_normal
    parts = [
        g if g == 0 and abs(w) < smallest else w
        for g, w in zip(components(got), components(given), strict=True)
    ]
    return complex(*parts) if len(parts) == 2 else parts[0]


def _is_below(value: Any, smallest: float) -> bool:
    fraction = as_fraction(value)
    return fraction is not None and abs(fraction) < smallest

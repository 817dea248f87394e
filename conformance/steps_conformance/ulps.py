"""How far one number lies from its exact value, in ulps of a dtype."""

import math
from fractions import Fraction
from typing import Any

from steps_backends import format_of
from steps_backends.formats import COMPONENTS

from .exact import Exact, as_fraction, components


def same_value(got: Any, want: Any) -> bool:
    """Return whether two floats or complex numbers have the same bits, with all NaNs equal."""
    pairs = zip(components(got), components(want), strict=True)
    return all(_same_part(g, w) for g, w in pairs)


def _same_part(got: float, want: float) -> bool:
    if math.isnan(got) or math.isnan(want):
        return math.isnan(got) and math.isnan(want)
    return got == want and math.copysign(1.0, got) == math.copysign(1.0, want)


def ulp_problem(got: Any, want: Any, scale: Any, ulps: float, dtype: str) -> str | None:
    """Return what is wrong with one value, or None.

    Args:
        got: the value that came back.
        want: the exact value.
        scale: the magnitude whose ulp counts.
        ulps: the tolerance.
        dtype: the format whose ulp counts; of a complex dtype each part is judged by itself.
    """
    pair = dtype in COMPONENTS
    columns = (components(value, pair=pair) for value in (got, want, scale))
    problems = (_part_problem(float(g), w, s, ulps, dtype) for g, w, s in zip(*columns, strict=True))
    return next((problem for problem in problems if problem), None)


def _part_problem(got: float, want: Exact, scale: Exact, ulps: float, dtype: str) -> str | None:
    exact = as_fraction(want)
    if exact is None:
        # NaN or an infinity: only itself will do
        return None if _same_part(got, float(want)) else f"expected {float(want)}, got {exactly(got)}"
    shown = f"expected {_decimal(exact)}, got {exactly(got)}"
    if math.isnan(got):
        return shown
    if math.isinf(got):
        return None if _rounds_to_infinity(exact, dtype) and (got > 0) == (exact > 0) else shown
    magnitude = as_fraction(scale)
    if magnitude is None:
        raise TypeError(f"of must be finite where the expected value is, got {scale}")
    off = abs(Fraction(got) - exact) / format_of(dtype).ulp(magnitude)
    # a double cannot hold every distance
    distance = f"{float(off):.4g}" if off < 10**300 else "more than 1e300"
    return None if off <= Fraction(ulps) else f"{shown}, off by {distance} ulps, allowed {ulps}"


def _rounds_to_infinity(exact: Fraction, dtype: str) -> bool:
    largest = Fraction(format_of(dtype).largest)
    return abs(exact) >= largest + format_of(dtype).ulp(largest) / 2


def exactly(value: Any) -> str:
    """Return a text that shows a number to the last bit."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r} ({value.hex()})"
    return repr(value)


def _decimal(exact: Fraction) -> str:
    """Return a text of an exact value; beyond the range of doubles it has only a power of two."""
    try:
        nearest = float(exact)
    except OverflowError:
        return f"a number of about 2**{exact.numerator.bit_length() - exact.denominator.bit_length()}"
    return repr(nearest) if nearest or not exact else "a number that is tiny even for a double"

"""Exact numbers of several kinds, seen as fractions."""

import math
from fractions import Fraction
from typing import Any

Exact = Any
"""A float, int, Fraction or mpmath real."""


def components(value: Any, *, pair: bool = False) -> tuple[Exact, ...]:
    """Return (value,) of a real number, (real, imaginary) of a complex one or of a pair of reals.

    Args:
        value: a float, complex number, Fraction, mpmath number, or a tuple of real and imaginary part.
        pair: give two parts for a real number too.
    """
    if isinstance(value, tuple):
        real, imaginary = value
        return real, imaginary
    # mpmath's complex class has no common base with Python's
    if isinstance(value, complex) or type(value).__name__ == "mpc":
        return value.real, value.imag
    return (value, 0.0) if pair else (value,)


def as_fraction(value: Exact) -> Fraction | None:
    """Return a finite real number as an exact fraction; None for NaN and the infinities."""
    if hasattr(value, "man_exp"):
        return _of_mpmath(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return Fraction(value)


def _of_mpmath(value: Any) -> Fraction | None:
    # only the attributes of the class are used, so this module does not need mpmath
    if math.isnan(float(value)) or abs(value) == math.inf:
        return None
    mantissa, exponent = value.man_exp
    magnitude = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -magnitude if value < 0 else magnitude

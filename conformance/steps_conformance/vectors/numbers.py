"""Numbers as texts: hexadecimal, exact, and the same on every machine."""

import math
import re
from fractions import Fraction
from functools import cache
from typing import Any

# Digits kept of a number that has no exact binary form: twice those of float64.
_BITS = 106

_HEX = re.compile(r"(-?)0x([0-9a-f]+)p([+-]\d+)")
_NAMED = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "+0": 0.0, "-0": -0.0}


def text_of(value: Any) -> str:
    """Return a real number as ``nan``, ``inf``, ``-inf``, ``+0``, ``-0`` or ``0x<digits>p<exponent>``.

    Args:
        value: a float, int, Fraction or mpmath number; what is longer than 106 bits is rounded to them.
    """
    if value != value:
        return "nan"
    if abs(value) == math.inf:
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "-0" if isinstance(value, float) and math.copysign(1.0, value) < 0 else "+0"
    numerator, denominator = _ratio(value)
    sign, numerator = ("-", -numerator) if numerator < 0 else ("", numerator)
    exponent = numerator.bit_length() - denominator.bit_length() - _BITS
    digits = _divided(numerator, denominator, exponent)
    while digits % 2 == 0:
        digits //= 2
        exponent += 1
    return f"{sign}{digits:#x}p{exponent:+d}"


@cache
def number_of(text: str) -> float | Fraction:
    """Return the number that a text stands for; finite ones other than 0 as exact fractions."""
    if text in _NAMED:
        return _NAMED[text]
    match = _HEX.fullmatch(text)
    if match is None:
        raise ValueError(f"a number must look like 0x1p-3, +0, -0, nan, inf or -inf, got {text!r}")
    sign, digits, exponent = match.groups()
    whole, power = int(sign + digits, 16), int(exponent)
    return Fraction(whole << power) if power >= 0 else Fraction(whole, 1 << -power)


@cache
def float_of(text: str) -> float:
    """Return the float that a text stands for exactly."""
    return float(number_of(text))


def _ratio(value: Any) -> tuple[int, int]:
    if hasattr(value, "man_exp"):
        mantissa, exponent = value.man_exp
        fraction = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
        fraction = -fraction if value < 0 and fraction > 0 else fraction
    else:
        fraction = Fraction(value)
    return fraction.numerator, fraction.denominator


def _divided(numerator: int, denominator: int, exponent: int) -> int:
    """Return numerator / denominator / 2^exponent, rounded to the nearest whole number, ties to even."""
    if exponent < 0:
        numerator <<= -exponent
    else:
        denominator <<= exponent
    quotient, remainder = divmod(numerator, denominator)
    if 2 * remainder > denominator or (2 * remainder == denominator and quotient % 2):
        quotient += 1
    return quotient

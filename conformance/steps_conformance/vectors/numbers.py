"""Numbers as texts: hexadecimal, exact, and the same on every machine."""

import math
import re
from fractions import Fraction
from functools import cache
from typing import Any

from ..received import received

# Digits kept of a number that has no exact binary form: twice those of float64.
_BITS = 106

# Far beyond what any result needs, and small enough that a text cannot fill the memory.
_LARGEST_EXPONENT = 100_000
_LONGEST_TEXT = 10_000

_HEX = re.compile(r"(-?)0x([0-9a-f]+)p([+-][0-9]+)")
_WITH_A_POINT = re.compile(r"(-?)0x([0-9a-f]*)\.?([0-9a-f]*)p([+-]?[0-9]+)")
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


def number_of(text: Any) -> float | Fraction:
    """Return the number that a text stands for; finite ones other than 0 as exact fractions.

    Raises:
        TypeError, ValueError: it is no such text, or too large to be worth reading; the error says how to
            write it.
    """
    if not isinstance(text, str):
        is_number = isinstance(text, int | float) and not isinstance(text, bool)
        raise TypeError(
            f'a number must be a text such as "0x1p-1", got {received(text)}'
            + (_way_out(text) if is_number else "")
        )
    return _number_of(text)


def float_of(text: Any) -> float:
    """Return the float that a text stands for exactly.

    Raises:
        TypeError, ValueError: as of ``number_of``, or no float is that number.
    """
    number = number_of(text)
    if isinstance(number, float):
        return number
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.inf
    if nearest != number:
        raise ValueError(f"{received(text)} is no number of float64; round before you write it")
    return nearest


@cache
def _number_of(text: str) -> float | Fraction:
    if text in _NAMED:
        return _NAMED[text]
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a number must have at most {_LONGEST_TEXT:,} characters, got {len(text):,}")
    match = _HEX.fullmatch(text)
    if match is None:
        raise ValueError(
            f"a number must look like 0x1p-3, +0, -0, nan, inf or -inf, got {received(text)}{_way_out(text)}"
        )
    sign, digits, exponent = match.groups()
    whole, power = int(sign + digits, 16), int(exponent)
    if abs(power) > _LARGEST_EXPONENT:
        raise ValueError(
            f"the exponent of a number must lie between -{_LARGEST_EXPONENT:,} and {_LARGEST_EXPONENT:,}, "
            f"got {received(text)}; write inf or +0 where a result is beyond its dtype"
        )
    if whole == 0:
        return -0.0 if sign else 0.0
    return Fraction(whole << power) if power >= 0 else Fraction(whole, 1 << -power)


def _way_out(given: str | float) -> str:
    """Return how a number is to be written that is given in another notation, or nothing."""
    try:
        number = _read(given.strip().lower()) if isinstance(given, str) else given
    except ValueError:
        return ""
    return "" if number is None else f"; write {text_of(number)}"


def _read(text: str) -> float | Fraction | None:
    match = _WITH_A_POINT.fullmatch(text)
    if match is None:
        number = float(text)
        # decimal digits without end are more than a float holds
        return number if math.isfinite(number) or text.strip("+-").isalpha() else None
    sign, whole, fraction, exponent = match.groups()
    if not whole + fraction:
        return None
    return number_of(f"{sign}0x{whole}{fraction}p{int(exponent) - 4 * len(fraction):+d}")


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

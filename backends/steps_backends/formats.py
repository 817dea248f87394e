"""The binary floating-point formats of the leaf dtypes, as exact numbers."""

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """One IEEE-like binary format.

    Attributes:
        name: the dtype's name.
        precision: number of significant bits, the hidden one included.
        least_exponent: exponent of the smallest subnormal number, 2**least_exponent.
        greatest_exponent: the largest finite number lies below 2**greatest_exponent.
    """

    name: str
    precision: int
    least_exponent: int
    greatest_exponent: int

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return math.ldexp(1.0 - 2.0**-self.precision, self.greatest_exponent)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number of full precision."""
        return math.ldexp(1.0, self.least_exponent + self.precision - 1)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number."""
        return math.ldexp(1.0, self.least_exponent)

    def round(self, value: float) -> float:
        """Return the number of this format nearest to value, ties to even, as a Python float."""
        if value == 0 or not math.isfinite(value):
            return value
        exponent = max(math.frexp(value)[1] - self.precision, self.least_exponent)
        nearest = math.ldexp(round(math.ldexp(value, -exponent)), exponent) if self.precision < 53 else value
        nearest = math.copysign(nearest, value)
        return nearest if abs(nearest) <= self.largest else math.copysign(math.inf, value)

    def ulp(self, value: Fraction) -> Fraction:
        """Return the distance of neighbouring numbers around value, subnormals included."""
        least = Fraction(2) ** self.least_exponent
        if value == 0:
            return least
        magnitude = min(abs(value), Fraction(self.largest))
        # bit lengths give floor(log2) up to one; the comparison settles it
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if Fraction(2) ** exponent > magnitude:
            exponent -= 1
        return max(Fraction(2) ** (exponent - self.precision + 1), least)


FORMATS = {
    "float16": Format("float16", 11, -24, 16),
    "bfloat16": Format("bfloat16", 8, -133, 128),
    "float32": Format("float32", 24, -149, 128),
    "float64": Format("float64", 53, -1074, 1024),
}

COMPONENTS = {"complex64": "float32", "complex128": "float64"}
"""The format of the real and imaginary part of each complex dtype."""

LEAF_DTYPES = (*FORMATS, *COMPONENTS)
"""Every dtype that a leaf of a gradient tree may have."""


def format_of(dtype: str) -> Format:
    """Return the format of a floating dtype, or of the parts of a complex one."""
    name = COMPONENTS.get(dtype, dtype)
    if name not in FORMATS:
        raise KeyError(f"no floating-point format for dtype {dtype!r}; known are {', '.join(LEAF_DTYPES)}")
    return FORMATS[name]

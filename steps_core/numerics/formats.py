"""What the arithmetic needs to know of each floating format, and which format it computes in."""

from dataclasses import dataclass

from ..namespaces import Array, dtype_name


@dataclass(frozen=True)
class FloatFormat:
    """A format that sums and moments are held in.

    The last four fields cut the magnitudes into three ranges whose squares neither overflow nor
    underflow: big ones are scaled by ``2**-big_exponent``, small ones by ``2**-small_exponent``.
    The middle range is so wide that what flushing loses of the small sum beside it is below half an ulp.
    """

    name: str
    largest: float
    smallest_normal_exponent: int
    big_above: float
    big_exponent: int
    small_below: float
    small_exponent: int


FLOAT32 = FloatFormat("float32", (2 - 2.0**-23) * 2.0**127, -126, 2.0**40, 80, 2.0**-50, -90)
FLOAT64 = FloatFormat("float64", (2 - 2.0**-52) * 2.0**1023, -1022, 2.0**480, 600, 2.0**-470, -650)

_FORMATS = {"float32": FLOAT32, "complex64": FLOAT32, "float64": FLOAT64, "complex128": FLOAT64}

COMPLEX = ("complex64", "complex128")
LEAF_DTYPES = ("float16", "bfloat16", "float32", "float64", *COMPLEX)

_WIDE = {"float16": "float32", "bfloat16": "float32"}

# Which dtypes hold every value of another.
_HOLDS = {
    "float16": ("float16",),
    "bfloat16": ("bfloat16",),
    "float32": ("float16", "bfloat16", "float32"),
    "float64": ("float16", "bfloat16", "float32", "float64"),
    "complex64": ("complex64",),
    "complex128": COMPLEX,
}


def format_of(array: Array) -> FloatFormat:
    """Return the format of a widened array, or of the parts of a complex one."""
    return _FORMATS[dtype_name(array.dtype)]


def is_complex_name(name: str) -> bool:
    """Return whether a dtype of this name is complex."""
    return name in COMPLEX


def real_name(name: str) -> str:
    """Return the name of the dtype of a magnitude."""
    return _FORMATS[name].name


def holds(name: str, other: str) -> bool:
    """Return whether the dtype called name represents every value of the dtype called other."""
    return other in _HOLDS[name]


def wide_name(name: str, other: str | None = None) -> str:
    """Return the dtype that leaves of these dtypes are computed in: at least float32."""
    wide = _WIDE.get(name, name)
    if other is None:
        return wide
    other_wide = _WIDE.get(other, other)
    return wide if holds(wide, other_wide) else other_wide


def constant(value: float, form: FloatFormat) -> float:
    """Return a finite number moved into the range of the format, so that casting it cannot overflow."""
    return max(-form.largest, min(form.largest, value))

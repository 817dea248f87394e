"""Inputs at the ends of the range: per row a dtype, elements of one leaf, and a threshold for their norm."""

from typing import Any

from steps_backends import format_of

Extreme = tuple[str, list[Any], float]

LARGE: dict[str, Extreme] = {
    "1e30": ("float32", [1e30, 1e30], 1.0),
    "unequal": ("float32", [-1e30, 2e25, 1e28], 0.3),
    "norm-overflows": ("float32", [3e38, -3e38, 3e38], 1.0),
    "largest": ("float32", [format_of("float32").largest] * 4, 1e-3),
    "float16-60000": ("float16", [60000.0] * 3, 1e-4),
    "float16-to-one": ("float16", [60000.0, -60000.0], 1.0),
    "float16-300": ("float16", [300.0] * 100, 1.0),
    "bfloat16": ("bfloat16", [1e30, -3e38], 2.0),
    "float64": ("float64", [1e200, -1e200], 1.0),
    "float64-norm-overflows": ("float64", [1.7e308, 1.7e308, -1.7e308], 1.0),
    "complex64": ("complex64", [1e30 + 1e30j, -2e30j], 1.0),
    "mixed": ("float32", [1e30, 1.0, 1e-30, 1e20], 1e25),
}
SMALL: dict[str, Extreme] = {
    "1e-30": ("float32", [1e-30, 1e-30], 1e-31),
    "unequal": ("float32", [-1e-30, 3e-29, 2e-33], 1e-29),
    "normal-to-subnormal": ("float32", [3e-38, -3e-38], 1e-39),
    "float16": ("float16", [1e-4] * 4, 1e-5),
    "float16-subnormal": ("float16", [6e-8, -6e-7, 3e-6], 1e-6),
    "bfloat16": ("bfloat16", [1e-30, -2e-30], 3e-31),
    "float64": ("float64", [1e-200, -1e-200], 1e-201),
    "complex64": ("complex64", [1e-30 + 1e-30j, -2e-30j], 1e-31),
}
THRESHOLDS: dict[str, Extreme] = {
    "subnormal": ("float32", [3.0, -4.0], 1e-40),
    "below-everything": ("float32", [3.0, -4.0], 1e-60),
    "smallest-normal": ("float32", [1e30, -1e30], 2.0**-126),
    "quotient-subnormal": ("float32", [1e20, -2e20], 1e-19),
    "huge": ("float32", [3e38, -3e38], 3e38),
    "beyond-the-range": ("float32", [3e38, -3e38], 4e38),
    "float16-beyond": ("float16", [60000.0, -60000.0], 7e4),
    "float16-tiny": ("float16", [1.0, -2.0], 1e-6),
    "bfloat16-beyond": ("bfloat16", [3e38, 3e38], 4e38),
    "float64-tiny": ("float64", [3.0, -4.0], 1e-300),
    "float64-huge": ("float64", [1.5e308, 1.5e308], 1.75e308),
}

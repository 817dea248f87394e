"""Inputs that are the same everywhere: seeded numbers, rounded to a dtype."""

import math
from collections.abc import Sequence
from random import Random

from steps_backends import HostArray, host_array


def sample(shape: Sequence[int], dtype: str = "float32", *, seed: int = 0, scale: float = 1.0) -> HostArray:
    """Return numbers of both signs with moduli between scale / 4 and scale.

    Nothing is near 0, so that a relative error means something for each element.
    """
    random = Random(seed)
    values = [_one(random, dtype.startswith("complex")) for _ in range(math.prod(shape))]
    return host_array([scale * value for value in values], dtype, shape)


def steady(shape: Sequence[int], calls: int, dtype: str = "float32", *, seed: int = 0) -> list[HostArray]:
    """Return gradients for several calls, each element with one sign or phase throughout.

    So no moving average cancels, and its relative error stays small.
    """
    base = sample(shape, dtype, seed=seed)
    random = Random(seed + 1)
    return [
        host_array([value * (0.5 + random.random()) for value in base.values], dtype, shape)
        for _ in range(calls)
    ]


def whole_numbers(shape: Sequence[int], dtype: str = "float32", *, seed: int = 0) -> HostArray:
    """Return whole numbers from -8 to 8 without 0: exact in every dtype, as are their sums."""
    random = Random(seed)
    choices = [n for n in range(-8, 9) if n]
    return host_array([random.choice(choices) for _ in range(math.prod(shape))], dtype, shape)


def graded(shape: Sequence[int], dtype: str = "float32", *, seed: int = 0) -> HostArray:
    """Return numbers that double with each step along axis 0, grow fourfold along axis 1, and so on.

    So a norm over one axis is far from a norm over any other.
    """
    plain = sample(shape, "complex128" if dtype.startswith("complex") else "float64", seed=seed)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    values = [
        value
        * 2.0
        ** sum((p // s % n) * (axis + 1) for axis, (s, n) in enumerate(zip(strides, shape, strict=True)))
        for p, value in enumerate(plain.values)
    ]
    return host_array(values, dtype, shape)


def five_binades(exponent: int, dtype: str = "float32") -> HostArray:
    """Return 4^k numbers 2^(exponent - k) for k from 0 to 4, whose norm is sqrt(5) * 2^exponent.

    Each power of two has the same share, so that none may be lost wherever sums are told apart by size.
    """
    return host_array([2.0 ** (exponent - k) for k in range(5) for _ in range(4**k)], dtype)


def _one(random: Random, is_complex: bool) -> float | complex:
    modulus = 0.25 + 0.75 * random.random()
    if not is_complex:
        return modulus if random.random() < 0.5 else -modulus
    # away from the axes, so that both parts are of the size of the modulus
    angle = math.pi * (random.randrange(4) / 2 + 0.125 + 0.25 * random.random())
    return complex(modulus * math.cos(angle), modulus * math.sin(angle))

"""Numbers of 50 digits, and arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mpmath import MPContext

# A context of our own: the precision of mpmath's shared one may be changed by anybody.
mp: Any = MPContext()
mp.dps = 50

Real = Any
"""An ``mpf`` of this module's context."""

Scalar = Any
"""An ``mpf`` or an ``mpc`` of this module's context."""


class Values(Protocol):
    """Anything with a shape and flat values in C order, such as a HostArray."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        ...

    @property
    def values(self) -> Sequence[Any]:
        """The elements in C order."""
        ...


@dataclass(frozen=True)
class Exact:
    """An array of exact numbers: the values of a real or complex leaf, in C order."""

    shape: tuple[int, ...]
    values: tuple[Scalar, ...]

    def map(self, rule: Callable[..., Scalar], *others: Exact) -> Exact:
        """Return rule applied to each element, together with the elements of others at the same place."""
        columns = (self.values, *(other.values for other in others))
        return Exact(self.shape, tuple(rule(*row) for row in zip(*columns, strict=True)))


def number(value: Any) -> Scalar:
    """Return a number of Python or of mpmath as a number of this context; only a Fraction is rounded."""
    return mp.convert(value)


def exact(array: Values) -> Exact:
    """Return the values of array as exact numbers."""
    return Exact(array.shape, tuple(number(value) for value in array.values))


def constant(value: Any, like: Exact) -> Exact:
    """Return an array shaped like another, with one value everywhere."""
    return Exact(like.shape, (number(value),) * len(like.values))


def modulus_squared(value: Scalar) -> Real:
    """Return |value|^2 without taking a root."""
    return mp.re(value) ** 2 + mp.im(value) ** 2


def norm(values: Sequence[Scalar]) -> Real:
    """Return the L2 norm of some numbers, the modulus counting for complex ones; 0 for none."""
    return mp.sqrt(mp.fsum(modulus_squared(value) for value in values))

"""Collecting the vectors of one file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from steps_backends import HostArray

from ...containers import leaves
from ...oracle.exact import Exact, constant, exact, mp, number
from ...targets.protocol import Description
from ..model import Expected, Vector, VectorCall

NARROW = ("float16", "bfloat16")
ALL_DTYPES = (*NARROW, "float32", "float64", "complex64", "complex128")
REAL_DTYPES = ALL_DTYPES[:4]
ROUNDED_ONCE = 0.502
"""Ulps of float16 or bfloat16 that a result of float32 costs which is rounded once: PREC-001."""


@dataclass
class Sheet:
    """The vectors of one file, in order, each under its own name."""

    vectors: dict[str, Vector] = field(default_factory=dict)

    def add(
        self,
        requirement: str,
        name: str,
        shows: str,
        step: Description,
        calls: Sequence[VectorCall],
        *,
        source: str = "",
        init: Any = None,
        state: Any = None,
    ) -> None:
        """Add a vector; its id is the requirement, ``/v-`` and the name."""
        identity = f"{requirement}/v-{name}"
        if identity in self.vectors:
            raise ValueError(f"two vectors are called {identity}; rename one")
        self.vectors[identity] = Vector(identity, requirement, shows, source, step, init, state, tuple(calls))

    def listed(self) -> list[Vector]:
        """Return the vectors in the order in which they were added."""
        return list(self.vectors.values())


def expect(
    like: HostArray, values: Exact, *, wide: float, narrow: float | None = None, of: Exact | None = None
) -> Expected:
    """Return the expectation of exact values for a leaf, with the tolerance for its dtype.

    Args:
        like: the leaf.
        values: what it must become.
        wide: the tolerance in working precision.
        narrow: that of float16 and bfloat16; None: what one rounding costs, or 1 where magnitudes are given,
            which may lie a binade below the result.
        of: magnitudes whose ulps count.
    """
    once = ROUNDED_ONCE if of is None else 1
    ulps = wide if like.dtype not in NARROW else once if narrow is None else narrow
    return Expected(like.dtype, values.shape, values.values, ulps, None if of is None else of.values)


def exacts(tree: Any) -> list[Exact]:
    """Return the leaves of a tree of HostArrays as exact numbers, None left out."""
    return [exact(leaf) for _, leaf in leaves(tree) if leaf is not None]


def sized(like: HostArray, size: Any) -> Exact:
    """Return one magnitude for every element of a leaf, and for both parts of a complex one."""
    value = number(size)
    return constant(mp.mpc(value, value) if like.dtype.startswith("complex") else value, exact(like))


def whole(value: int) -> Expected:
    """Return the expectation of a counter."""
    return Expected("int32", (), (value,))

"""Collecting the vectors of one file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from steps_backends import HostArray

from ...containers import leaves, mapped
from ...oracle.exact import Exact, constant, exact, mp, number
from ...targets.protocol import Description
from ..model import Expected, Vector, VectorCall

NARROW = ("float16", "bfloat16")
ALL_DTYPES = (*NARROW, "float32", "float64", "complex64", "complex128")
REAL_DTYPES = ALL_DTYPES[:4]


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
    like: HostArray, values: Exact, *, wide: float, narrow: float = 1, of: Exact | None = None
) -> Expected:
    """Return the expectation of exact values for a leaf, with the tolerance for its dtype."""
    ulps = narrow if like.dtype in NARROW else wide
    return Expected(like.dtype, values.shape, values.values, ulps, None if of is None else of.values)


def expect_tree(tree: Any, values: Sequence[Exact], *, wide: float, narrow: float = 1) -> Any:
    """Return the expectations for the leaves of a tree of HostArrays, None staying None."""
    remaining = iter(values)
    return mapped(lambda host, _: expect(host, next(remaining), wide=wide, narrow=narrow), tree)


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

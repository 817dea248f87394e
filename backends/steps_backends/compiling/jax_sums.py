"""The named safe norm on JAX: one plain sum of squares, and the exact form only where that would not do."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NoReturn

from .packages import module_of
from .packing import parts_of
from .tracing import TracingError

Sums = tuple[Any, Any, Any]

# Below so many elements a conditional takes longer than all three sums.
_FEW = 1024


@dataclass(frozen=True)
class _Asked:
    """Sums that a step asks for.

    Attributes:
        size: how many elements are added up, or more.
        plain: returns the plain sums of squares.
        by_range: returns the sums by range.
        largest: returns the largest magnitudes.
    """

    size: int
    plain: Callable[[], Any]
    by_range: Callable[[], Sums]
    largest: Callable[[], Any]


class JaxReductions:
    """What a step asks while JAX traces it, in place of computing the named reductions itself.

    The plain sum takes the place of the middle one. It is exact to the stated ulps where it lies between the
    bounds of that range: then no square overflowed, and what small elements lost of theirs does not count.
    So is a sum of nothing but zeros.

    Args:
        package: the name of the step's package.
        are_sharded: whether the arrays lie on several devices. Then all sums are the exact ones: plain sums
            merge axes, for which JAX would gather an array.
    """

    def __init__(self, package: str, *, are_sharded: bool) -> None:
        self._are_sharded = are_sharded
        self._norms, self._sums = module_of(package, "numerics.norms"), module_of(package, "numerics.sums")
        self._formats = module_of(package, "numerics.formats")
        self._namespaces = module_of(package, "namespaces")

    def in_use(self) -> AbstractContextManager[None]:
        """Return the context in which steps ask this."""
        return self._namespaces.answering_on_jax(self)  # type: ignore[no-any-return]

    def square_sums(self, arrays: Sequence[Any], axes: Sequence[tuple[int, ...]]) -> list[Sums]:
        """Return the sums of squares by range of each array, over its own axes."""
        asked = [self._asked(x, own) for x, own in zip(arrays, axes, strict=True)]
        # Without axes there is nothing to add, and a conditional would part what is element by element.
        added = [number for number, own in enumerate(axes) if own and asked[number].size]
        found = dict(zip(added, self._chosen([asked[number] for number in added]), strict=True))
        return [found[n] if n in found else self._exact(one) for n, one in enumerate(asked)]

    def _asked(self, x: Any, axes: tuple[int, ...]) -> _Asked:
        import jax

        xp = jax.numpy
        return _Asked(
            x.size,
            plain=lambda: self._sums.sum_over(xp, self._norms.squared_magnitude(xp, x), axes),
            by_range=lambda: tuple(self._norms.square_sums(xp, x, axes)),
            largest=lambda: xp.max(xp.abs(x), axis=axes, keepdims=True),
        )

    def joint_square_sums(self, arrays: Iterable[Any]) -> Sums:
        """Return the sums of squares by range of all elements of all arrays."""
        import jax

        xp = jax.numpy
        leaves = list(arrays)
        size = sum(leaf.size for leaf in leaves)
        if not self._goes_by_range(size):
            # A sum for each of many small leaves takes long, and minutes to compile.
            leaves = [part.joined(leaves) for part in parts_of(leaves)]

        def by_range() -> Sums:
            return tuple(self._norms.joint_square_sums(xp, leaves))

        def plain() -> Any:
            sums = [self._sums.sum_of_all(xp, self._norms.squared_magnitude(xp, leaf)) for leaf in leaves]
            return sums[0] if len(sums) == 1 else self._sums.sum_of_all(xp, xp.stack(sums))

        def largest() -> Any:
            return xp.max(xp.stack([xp.max(xp.abs(leaf)) for leaf in leaves if leaf.size]))

        return self._chosen([_Asked(size, plain, by_range, largest)])[0]

    def _goes_by_range(self, size: int) -> bool:
        return self._are_sharded or size < _FEW

    def _chosen(self, asked: Sequence[_Asked]) -> list[Sums]:
        """Return plain sums of squares as middle ones where all of them are exact, else all sums by range."""
        import jax

        xp = jax.numpy
        if self._goes_by_range(sum(one.size for one in asked)):
            return [self._exact(one) for one in asked]
        sums = [one.plain() for one in asked]
        are_middle = [self._are_middle(one, of_one) for one, of_one in zip(asked, sums, strict=True)]

        def as_middle() -> list[Sums]:
            return [(xp.zeros_like(of_one), of_one, xp.zeros_like(of_one)) for of_one in sums]

        def exact() -> list[Sums]:
            return [self._exact(one) for one in asked]

        def looking_for_zeros() -> list[Sums]:
            are_right = [
                is_middle | (one.largest() == 0) for one, is_middle in zip(asked, are_middle, strict=True)
            ]
            return jax.lax.cond(_all(xp, are_right), as_middle, exact)  # type: ignore[no-any-return]

        return jax.lax.cond(_all(xp, are_middle), as_middle, looking_for_zeros)  # type: ignore[no-any-return]

    def _are_middle(self, asked: _Asked, sums: Any) -> Any:
        form = self._formats.format_of(sums)
        return (sums >= asked.size * form.small_below**2) & (sums <= form.big_above**2)

    def _exact(self, asked: _Asked) -> Sums:
        with self._namespaces.answering_on_jax(None):
            return asked.by_range()

    def evaluated(self, function: Callable[[Any], Any], count: Any) -> Any:
        """Return the result of a function of the count, which JAX traces."""
        with self._namespaces.answering_on_jax(None):
            return function(count)

    def seen_by_users(self, leaf: Any) -> Any:
        """Return the leaf: JAX's own traced arrays are what users expect."""
        return leaf

    def stop(self) -> None:
        """Do nothing: the plain call has stopped."""

    def refuse(self, reason: str) -> NoReturn:
        """Say that what comes next cannot be traced once for all calls."""
        raise TracingError(reason, is_refusal=True)


def _all(xp: Any, conditions: Sequence[Any]) -> Any:
    """Return whether all elements of all arrays are true."""
    flat = [condition.reshape(-1) for condition in conditions]
    return (flat[0] if len(flat) == 1 else xp.concatenate(flat)).all()

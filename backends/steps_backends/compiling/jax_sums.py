"""The named safe norm on JAX: one plain sum of squares, and the exact form only where that would not do."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from .packages import module_of
from .packing import parts_of
from .tracing import TracingError

Sums = tuple[Any, Any, Any]

# Below so many elements a conditional takes longer than all three sums.
_FEW = 1024


class JaxReductions:
    """What a step asks while JAX traces it, in place of computing the named reductions itself.

    The plain sum takes the place of the middle one. It is exact to the stated ulps where it lies between the
    bounds of that range: then no square overflowed, and what small elements lost of theirs does not count.

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

    def square_sums(self, x: Any, axes: tuple[int, ...]) -> Sums:
        """Return the sums of squares by range over these axes."""
        import jax

        xp = jax.numpy

        def by_range() -> Sums:
            return tuple(self._norms.square_sums(xp, x, axes))

        def plain() -> Any:
            return self._sums.sum_over(xp, self._norms.squared_magnitude(xp, x), axes)

        # Without axes there is nothing to add, and a conditional would part what is element by element.
        return self._chosen(plain, by_range, x, x.size if axes else 0)

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

        return self._chosen(plain, by_range, leaves[0], size)

    def _goes_by_range(self, size: int) -> bool:
        return self._are_sharded or size < _FEW

    def _chosen(self, plain: Callable[[], Any], by_range: Callable[[], Sums], leaf: Any, size: int) -> Sums:
        """Return plain sums of so many squares as middle ones where that is exact, else the sums by range."""
        import jax

        def exact() -> Sums:
            with self._namespaces.answering_on_jax(None):
                return by_range()

        if self._goes_by_range(size):
            return exact()
        form = self._formats.format_of(leaf)
        sums = plain()
        is_middle = (sums >= size * form.small_below**2) & (sums <= form.big_above**2)
        zeros = jax.numpy.zeros_like(sums)
        return jax.lax.cond(is_middle.all(), lambda: (zeros, sums, zeros), exact)  # type: ignore[no-any-return]

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

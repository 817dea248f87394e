"""The named safe norm on JAX: one plain sum of squares, and the exact form only where that would not do."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from .packages import module_of
from .packing import parts_of
from .tracing import TracingError

Axes = tuple[int, ...]
Sums = tuple[Any, ...]  # big, middle and small

# Below so many elements a conditional takes longer than all three sums.
_FEW = 1024


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

    def square_sums(self, arrays: Sequence[Any], axes: Sequence[Axes]) -> list[Sums]:
        """Return the sums of squares by range of each array, over its own axes."""
        import jax

        xp = jax.numpy
        asked = list(zip(arrays, axes, strict=True))
        # Without axes there is nothing to add, and a conditional would part what is element by element.
        added = [number for number, (x, own) in enumerate(asked) if own and x.size]
        if self._goes_by_range(arrays):
            added = []
        of_added = [asked[number] for number in added]

        def plain() -> list[Any]:
            return [self._sums.sum_over(xp, self._norms.squared_magnitude(xp, x), own) for x, own in of_added]

        def largest() -> list[Any]:
            return _by_form(lambda x, own: xp.max(xp.abs(x), axis=own, keepdims=True), of_added)

        def by_range() -> list[Sums]:
            return _by_form(lambda x, own: tuple(self._norms.square_sums(xp, x, own)), of_added)

        found = dict(zip(added, self._chosen(arrays, plain, largest, by_range) if added else (), strict=True))
        with self._namespaces.answering_on_jax(None):
            return [
                found[number] if number in found else tuple(self._norms.square_sums(xp, x, own))
                for number, (x, own) in enumerate(asked)
            ]

    def joint_square_sums(self, arrays: Iterable[Any]) -> Sums:
        """Return the sums of squares by range of all elements of all arrays."""
        import jax

        xp = jax.numpy
        leaves = list(arrays)
        if not self._goes_by_range(leaves):
            # A sum for each of many small leaves takes long, and minutes to compile.
            leaves = [part.joined(leaves) for part in parts_of(leaves)]

        def plain() -> list[Any]:
            sums = [self._sums.sum_of_all(xp, self._norms.squared_magnitude(xp, leaf)) for leaf in leaves]
            return [sums[0] if len(sums) == 1 else self._sums.sum_of_all(xp, xp.stack(sums))]

        def largest() -> list[Any]:
            return [xp.max(xp.stack([xp.max(xp.abs(leaf)) for leaf in leaves if leaf.size]))]

        def by_range() -> list[Sums]:
            return [tuple(self._norms.joint_square_sums(xp, leaves))]

        return self._chosen(leaves, plain, largest, by_range)[0]

    def _goes_by_range(self, arrays: Sequence[Any]) -> bool:
        return self._are_sharded or sum(x.size for x in arrays) < _FEW

    def _chosen(
        self,
        arrays: Sequence[Any],
        plain: Callable[[], list[Any]],
        largest: Callable[[], list[Any]],
        by_range: Callable[[], list[Sums]],
    ) -> list[Sums]:
        """Return plain sums of squares as middle ones where all of them are exact, else all sums by range.

        Args:
            arrays: what is added up.
            plain: returns the plain sums.
            largest: returns the largest magnitude of what goes into each of them.
            by_range: returns the sums by range.
        """
        import jax

        xp = jax.numpy

        def exact() -> list[Sums]:
            with self._namespaces.answering_on_jax(None):
                return by_range()

        if self._goes_by_range(arrays):
            return exact()
        sums = plain()
        most = sum(x.size for x in arrays)
        are_middle = [self._are_middle(of_one, most) for of_one in sums]

        def as_middle() -> list[Sums]:
            return [(xp.zeros_like(of_one), of_one, xp.zeros_like(of_one)) for of_one in sums]

        def looking_for_zeros() -> list[Sums]:
            right = [is_middle | (top == 0) for is_middle, top in zip(are_middle, largest(), strict=True)]
            return jax.lax.cond(_all(xp, right), as_middle, exact)  # type: ignore[no-any-return]

        return jax.lax.cond(_all(xp, are_middle), as_middle, looking_for_zeros)  # type: ignore[no-any-return]

    def _are_middle(self, sums: Any, most: int) -> Any:
        """Return which sums of so many squares at most lie in the middle range."""
        form = self._formats.format_of(sums)
        return (sums >= most * form.small_below**2) & (sums <= form.big_above**2)

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


def _by_form(function: Callable[[Any, Axes], Any], asked: Sequence[tuple[Any, Axes]]) -> list[Any]:
    """Return a function of each array and its axes, computed once for all arrays of one form.

    That copies them. It is for branches that are seldom run, and else would take long to compile.
    """
    import jax

    forms: dict[Any, list[int]] = {}
    for number, (x, axes) in enumerate(asked):
        forms.setdefault((x.shape, str(x.dtype), axes), []).append(number)
    found: dict[int, Any] = {}
    for (_, _, axes), numbers in forms.items():
        stacked = jax.numpy.stack([asked[number][0] for number in numbers])
        made = function(stacked, tuple(axis + 1 for axis in axes))
        for place, number in enumerate(numbers):
            found[number] = jax.tree.map(lambda part, place=place: part[place], made)
    return [found[number] for number in range(len(asked))]

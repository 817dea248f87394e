"""The named safe norm on JAX: one plain sum of squares, and the exact form only where that would not do."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from .packages import module_of
from .packing import LARGE, parts_of
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

    def of_square_sums(
        self, arrays: Sequence[Any], axes: Sequence[Axes], function: Callable[[list[Sums]], Any]
    ) -> Any:
        """Return a function of the sums of squares by range of each array, over its own axes."""
        import jax

        xp = jax.numpy
        asked = list(zip(arrays, axes, strict=True))

        def plain_of(x: Any, own: Axes) -> Any:
            return self._sums.sum_over(xp, self._norms.squared_magnitude(xp, x), own)

        def by_range_of(x: Any, own: Axes) -> Sums:
            return tuple(self._norms.square_sums(xp, x, own))

        # Without axes there is nothing to add, and a conditional would part what is element by element.
        if self._goes_by_range(arrays) or not any(axes):
            with self._namespaces.answering_on_jax(None):
                return function([by_range_of(*one) for one in asked])
        return self._chosen(
            arrays,
            plain=lambda: _small_by_form(plain_of, asked),
            largest=lambda: _by_form(lambda x, own: xp.max(xp.abs(x), own, keepdims=True, initial=0), asked),
            by_range=lambda: _by_form(by_range_of, asked),
            function=function,
        )

    def joint_square_sums(self, arrays: Iterable[Any]) -> Sums:
        """Return the sums of squares by range of all elements of all arrays."""
        import jax

        xp = jax.numpy
        leaves = list(arrays)
        if self._goes_by_range(leaves):
            with self._namespaces.answering_on_jax(None):
                return tuple(self._norms.joint_square_sums(xp, leaves))
        # A sum for each of many small leaves takes long, and minutes to compile.
        leaves = [part.joined(leaves) for part in parts_of(leaves)]

        def plain() -> list[Any]:
            sums = [self._sums.sum_of_all(xp, self._norms.squared_magnitude(xp, leaf)) for leaf in leaves]
            return [sums[0] if len(sums) == 1 else self._sums.sum_of_all(xp, xp.stack(sums))]

        return self._chosen(  # type: ignore[no-any-return]
            leaves,
            plain,
            largest=lambda: [xp.max(xp.stack([xp.max(xp.abs(leaf)) for leaf in leaves if leaf.size]))],
            by_range=lambda: [tuple(self._norms.joint_square_sums(xp, leaves))],
            function=lambda sums: sums[0],
        )

    def _goes_by_range(self, arrays: Sequence[Any]) -> bool:
        return self._are_sharded or sum(x.size for x in arrays) < _FEW

    def _chosen(
        self,
        arrays: Sequence[Any],
        plain: Callable[[], list[Any]],
        largest: Callable[[], list[Any]],
        by_range: Callable[[], list[Sums]],
        function: Callable[[list[Sums]], Any],
    ) -> Any:
        """Return a function of plain sums as middle ones where all of them are exact, else of sums by range.

        Args:
            arrays: what is added up.
            plain: returns the plain sums of squares.
            largest: returns the largest magnitude of what goes into each of them.
            by_range: returns the sums by range.
            function: of the sums; in a branch, as XLA would else copy it into the loop of each leaf.
        """
        import jax

        xp = jax.numpy
        sums = plain()
        most = sum(x.size for x in arrays)
        are_middle = self._are_middle(sums, most)

        def are_middle_or_zeros() -> Any:
            return (are_middle | (_flat(xp, largest()) == 0)).all()

        def of_plain() -> Any:
            return function([(xp.zeros_like(of_one), of_one, xp.zeros_like(of_one)) for of_one in sums])

        def of_exact() -> Any:
            with self._namespaces.answering_on_jax(None):
                return function(by_range())

        are_all_middle = are_middle.all()
        are_exact = jax.lax.cond(are_all_middle, lambda: are_all_middle, are_middle_or_zeros)
        return jax.lax.cond(are_exact, of_plain, of_exact)

    def _are_middle(self, sums: list[Any], most: int) -> Any:
        """Return which of all these sums, of so many squares at most, lie in the middle range."""
        import jax

        forms = {self._formats.format_of(of_one) for of_one in sums}
        lowest = max(most * form.small_below**2 for form in forms)
        highest = min(form.big_above**2 for form in forms)
        flat = _flat(jax.numpy, sums)
        return (flat >= lowest) & (flat <= highest)

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


def _flat(xp: Any, arrays: Sequence[Any]) -> Any:
    """Return all elements of small arrays in one."""
    flat = [x.reshape(-1) for x in arrays]
    return flat[0] if len(flat) == 1 else xp.concatenate(flat)


def _small_by_form(function: Callable[[Any, Axes], Any], asked: Sequence[tuple[Any, Axes]]) -> list[Any]:
    """Return a function of each array and its axes, of small arrays of one form together."""
    small = [number for number, (x, _) in enumerate(asked) if x.size < LARGE]
    found = dict(zip(small, _by_form(function, [asked[number] for number in small]), strict=True))
    return [found[number] if number in found else function(*one) for number, one in enumerate(asked)]


def _by_form(function: Callable[[Any, Axes], Any], asked: Sequence[tuple[Any, Axes]]) -> list[Any]:
    """Return a function of each array and its axes, computed once for all arrays of one form.

    That copies them: it is for small arrays, and for branches that are seldom run and else compile for long.
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

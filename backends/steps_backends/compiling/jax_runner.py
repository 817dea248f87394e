"""A step on JAX: compiled by XLA once for each form of its arguments, with donation."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from .checking import checked_to_stop
from .jax_sums import JaxReductions
from .packages import module_of
from .tracing import TracingError

Opened = tuple[list[Any], Any]  # the leaves and the structure of a tree

_sharding_of = attrgetter("sharding")


class JaxRunner:
    """Runs one step under ``jax.jit``.

    Args:
        step: of the package.
        package: the name of its package of steps.
        donated: the trees whose memory may be written to.
        tell: is told why a step cannot be traced.
    """

    def __init__(self, step: Any, package: str, donated: frozenset[str], tell: Callable[[str], None]) -> None:
        import jax

        self._step, self._donated, self._tell = step, donated, tell
        self._trees = module_of(package, "trees")
        self._result = module_of(package, "contract").StepResult
        self._is_traced = module_of(package, "namespaces").is_traced_by_jax
        self._package = package
        self._compiled: dict[Any, _Jitted | None] = {}
        self._flatten_in_jax = jax.tree_util.tree_flatten
        self._known: dict[Any, _Jitted] = {}  # by the structure that JAX itself sees
        self._array = type(jax.numpy.zeros(()))
        self._one_device = jax.sharding.SingleDeviceSharding

    def again(self, gradients: Any, weights: Any, state: Any) -> Any:
        """Return what the step returns for trees of whole arrays of a form met before; None for others."""
        try:
            leaves, structure = self._flatten_in_jax((gradients, weights, state))
            known = self._known.get(structure)
            if known is None or {*map(type, leaves)} != {self._array} or self._are_sharded(leaves):
                return None
            return self._closed(known, known(known.split(leaves)))
        except Exception:  # noqa: BLE001  # Whatever it is, the longer way meets it again and tells.
            return None

    def _are_sharded(self, leaves: Iterable[Any]) -> bool:
        shardings = [*map(_sharding_of, leaves)]
        if {*map(type, shardings)} <= {self._one_device}:
            return False
        return any(len(sharding.device_set) > 1 for sharding in shardings)

    def __call__(self, gradients: Any, opened_gradients: Opened, weights: Any, state: Any) -> Any:
        """Return what the step returns."""
        try:
            first = self._step.init(gradients if weights is None else weights) if state is None else state
            flatten = self._trees.flatten
            given = [opened_gradients, None if weights is None else flatten(weights), flatten(first)]
            leaves = [[] if tree is None else tree[0] for tree in given]
            arrays = [leaf for of_tree in leaves for leaf in of_tree if leaf is not None]
            if any(map(self._is_traced, arrays)):
                # Inside a transformation of the user, whose compiler sees the step itself.
                return self._step(gradients, weights, state)
            structures = tuple(None if tree is None else tree[1] for tree in given)
            compiled = self._jitted(structures, leaves, are_sharded=self._are_sharded(arrays))
            if compiled is not None:
                if compiled.stops:
                    # For the debugger alone: the numbers are those of the calls that do not stop.
                    self._step(gradients, weights, state)
                made = compiled(leaves)
        except Exception as error:  # noqa: BLE001  # Of bad arguments the plain call tells what is wrong.
            result = self._step(gradients, weights, state)
            was_refused = isinstance(error, TracingError)
            self._tell(str(error) if was_refused else f"it raised {error!r} while JAX compiled it")
            return result
        if compiled is None:
            return self._step(gradients, weights, state)
        if not self._are_sharded(arrays):
            self._remember(compiled, (gradients, weights, first), arrays)
        return self._closed(compiled, made)

    def _closed(self, compiled: "_Jitted", made: list[list[Any]]) -> Any:
        return self._result(*map(self._trees.unflatten, compiled.outputs, made))

    def _remember(self, compiled: "_Jitted", trees: Any, arrays: list[Any]) -> None:
        """Know trees like these by what JAX sees of them, where that is the same arrays in the same order."""
        if compiled.stops:
            return
        try:
            leaves, structure = self._flatten_in_jax(trees)
        except Exception:  # noqa: BLE001  # Such as a container that JAX does not open.
            return
        if len(leaves) == len(arrays) == compiled.size and all(map(_is, leaves, arrays)):
            self._known[structure] = compiled

    def _jitted(
        self, structures: tuple[Any, ...], leaves: list[list[Any]], *, are_sharded: bool
    ) -> "_Jitted | None":
        key = (structures, are_sharded)
        if key not in self._compiled:
            try:
                stops = checked_to_stop(self._step, self._trees, structures, leaves)
            except TracingError:
                self._compiled[key] = None
                raise
            reductions = JaxReductions(self._package, are_sharded=are_sharded)
            sizes = [len(of_tree) for of_tree in leaves]
            self._compiled[key] = _Jitted(
                self._step, self._trees, structures, self._donated, reductions, sizes, stops=stops
            )
        return self._compiled[key]


def _is(one: Any, other: Any) -> bool:
    return one is other


class _Jitted:
    """The step for trees of some structures; ``jax.jit`` itself tells shapes and dtypes apart.

    Attributes:
        outputs: the structure of the new gradients and of the new state, once it has been traced.
        stops: whether the step stops in the debugger at each call.
        size: the number of all leaves.
    """

    def __init__(
        self,
        step: Any,
        trees: Any,
        structures: tuple[Any, ...],
        donated: frozenset[str],
        reductions: JaxReductions,
        sizes: list[int],
        *,
        stops: bool,
    ) -> None:
        import jax

        self.outputs: list[Any] = []
        self.stops = stops
        self._first, self._second = sizes[0], sizes[0] + sizes[1]
        self.size = sum(sizes)

        def on_leaves(*leaves: list[Any]) -> list[list[Any]]:
            given = (
                None if structure is None else trees.unflatten(structure, of_tree)
                for structure, of_tree in zip(structures, leaves, strict=True)
            )
            with reductions.in_use():
                made = [trees.flatten(tree) for tree in step(*given)]
            self.outputs = [structure for _, structure in made]
            return [of_tree for of_tree, _ in made]

        numbers = [number for number, name in enumerate(("gradients", "weights", "state")) if name in donated]
        self._function: Callable[..., Any] = jax.jit(on_leaves, donate_argnums=numbers)

    def split(self, leaves: list[Any]) -> list[list[Any]]:
        """Return the leaves of gradients, weights and state."""
        return [leaves[: self._first], leaves[self._first : self._second], leaves[self._second :]]

    def __call__(self, leaves: list[list[Any]]) -> list[list[Any]]:
        """Return the leaves of the new gradients and of the new state."""
        return self._function(*leaves)  # type: ignore[no-any-return]

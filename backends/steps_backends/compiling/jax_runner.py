"""A step on JAX: compiled by XLA once for each form of its arguments, with donation."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from operator import attrgetter
from typing import Any

from .checking import checked_to_stop
from .jax_forms import PackedForm, TreeForm
from .jax_sums import JaxReductions
from .leaf_by_leaf import parts_for
from .packages import module_of
from .packing import Layout, PackedState, frame_of
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
        self._layouts: dict[Layout, Layout] = {}  # each once, so that they are quickly compared
        _register(jax)

    @cached_property
    def _frame(self) -> tuple[Any, list[bool]]:
        return frame_of(self._step, self._trees)

    @property
    def frame(self) -> Any:
        """The structure of the step's state down to its entries."""
        return self._frame[0]

    def pack(self, state: Any) -> PackedState:
        """Return a state in packed form."""
        layout = Layout(self._trees, *self._frame, state)
        if layout not in self._layouts:
            self._layouts[layout] = layout
        layout = self._layouts[layout]
        return PackedState(layout.packed(state), layout)

    def again(self, gradients: Any, weights: Any, state: Any) -> Any:
        """Return what the step returns for trees of whole arrays of a form met before; None for others."""
        try:
            leaves, structure = self._flatten_in_jax((gradients, weights, state))
            known = self._known.get(structure)
            if known is None or {*map(type, leaves)} != {self._array} or self._are_sharded(leaves):
                return None
            return self._result(*known.closed(known(known.split(leaves))))
        except Exception:  # noqa: BLE001  # Whatever it is, the longer way meets it again and tells.
            return None

    def _are_sharded(self, leaves: Iterable[Any]) -> bool:
        shardings = [*map(_sharding_of, leaves)]
        if {*map(type, shardings)} <= {self._one_device}:
            return False
        return any(len(sharding.device_set) > 1 for sharding in shardings)

    def __call__(self, gradients: Any, opened_gradients: Opened, weights: Any, state: Any) -> Any:
        """Return what the step returns; of a packed state a packed one."""
        try:
            first = self._step.init(gradients if weights is None else weights) if state is None else state
            flatten = self._trees.flatten
            opened = ([], None) if weights is None else flatten(weights)
            of_state = (
                (list(first.arrays), first.layout) if isinstance(first, PackedState) else flatten(first)
            )
            leaves, structures = map(list, zip(opened_gradients, opened, of_state, strict=True))
            arrays = [leaf for of_tree in leaves for leaf in of_tree if leaf is not None]
            if any(map(self._is_traced, arrays)):
                # Inside a transformation of the user, whose compiler sees the step itself.
                return self._plain(gradients, weights, state)
            are_sharded = self._are_sharded(arrays)
            compiled = self._jitted(tuple(structures), leaves, are_sharded=are_sharded)
            if compiled is not None:
                if compiled.stops:
                    # For the debugger alone: the numbers are those of the calls that do not stop.
                    self._plain(gradients, weights, state)
                made = compiled(leaves)
        except Exception as error:  # noqa: BLE001  # Of bad arguments the plain call tells what is wrong.
            result = self._plain(gradients, weights, state)
            was_refused = isinstance(error, TracingError)
            self._tell(str(error) if was_refused else f"it raised {error!r} while JAX compiled it")
            return result
        if compiled is None:
            return self._plain(gradients, weights, state)
        if not are_sharded:
            self._remember(compiled, (gradients, weights, first), arrays)
        return self._result(*compiled.closed(made))

    def _plain(self, gradients: Any, weights: Any, state: Any) -> Any:
        """Return what the step itself returns, packed where it was given so."""
        if not isinstance(state, PackedState):
            return self._step(gradients, weights, state)
        made, new_state = self._step(gradients, weights, state.layout.unpacked(state.arrays))
        return self._result(made, PackedState(state.layout.packed(new_state), state.layout))

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
            # A refusal is remembered too.
            self._compiled[key] = None
            self._compiled[key] = self._made(structures, leaves, are_sharded=are_sharded)
        return self._compiled[key]

    def _made(self, structures: tuple[Any, ...], leaves: list[list[Any]], *, are_sharded: bool) -> "_Jitted":
        step, trees = self._step, self._trees
        layout = structures[2] if isinstance(structures[2], Layout) else None
        checked_structures, checked_leaves = structures, leaves
        if layout is not None:
            import jax

            seen, structure = trees.flatten(jax.eval_shape(layout.unpacked, leaves[2]))
            checked_structures, checked_leaves = (*structures[:2], structure), [*leaves[:2], seen]
        stops = checked_to_stop(step, trees, checked_structures, checked_leaves)
        reductions = JaxReductions(self._package, are_sharded=are_sharded)
        form: TreeForm | PackedForm = TreeForm(step, trees, structures, reductions)
        if layout is not None:
            # Sharded leaves are not put together.
            parts = None if are_sharded else parts_for(step, trees, structures[:2], leaves, layout)
            form = PackedForm(step, trees, structures[:2], reductions, layout, parts)
        return _Jitted(form, self._donated, [len(of_tree) for of_tree in leaves], stops=stops)


def _register(jax: Any) -> None:
    """Let JAX open packed states."""
    with suppress(ValueError):  # It does so already.
        jax.tree_util.register_pytree_node(
            PackedState,
            lambda packed: (packed.arrays, packed.layout),
            lambda layout, arrays: PackedState(arrays, layout),
        )


def _is(one: Any, other: Any) -> bool:
    return one is other


class _Jitted:
    """A form of a step under ``jax.jit``, which itself tells shapes and dtypes apart.

    Attributes:
        closed: makes the result of leaves.
        stops: whether the step stops in the debugger at each call.
        size: the number of all leaves.
    """

    def __init__(
        self, form: TreeForm | PackedForm, donated: frozenset[str], sizes: list[int], *, stops: bool
    ) -> None:
        import jax

        self.closed, self.stops, self.size = form.closed, stops, sum(sizes)
        self._first, self._second = sizes[0], sizes[0] + sizes[1]
        numbers = [number for number, name in enumerate(("gradients", "weights", "state")) if name in donated]
        self._function: Callable[..., Any] = jax.jit(form.run, donate_argnums=numbers)

    def split(self, leaves: list[Any]) -> list[list[Any]]:
        """Return the leaves of gradients, weights and state."""
        return [leaves[: self._first], leaves[self._first : self._second], leaves[self._second :]]

    def __call__(self, leaves: list[list[Any]]) -> list[list[Any]]:
        """Return the leaves of the new gradients and of the new state."""
        return self._function(*leaves)  # type: ignore[no-any-return]

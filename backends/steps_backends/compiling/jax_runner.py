"""A step on JAX: compiled by XLA once for each form of its arguments, with donation."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from operator import attrgetter, is_
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
            return known.of_trees(gradients, weights, state)
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
            seen = self._as_jax_sees((gradients, weights, first), arrays)
            compiled = self._jitted(
                tuple(structures), leaves, are_sharded=are_sharded, takes_trees=seen is not None
            )
            if compiled is not None:
                if compiled.stops:
                    # For the debugger alone: the numbers are those of the calls that do not stop.
                    self._plain(gradients, weights, state)
                if seen is None:
                    result = self._result(*compiled.of_leaves(leaves))
                else:
                    result = compiled.of_trees(gradients, weights, first)
        except Exception as error:  # noqa: BLE001  # Of bad arguments the plain call tells what is wrong.
            result = self._plain(gradients, weights, state)
            was_refused = isinstance(error, TracingError)
            self._tell(str(error) if was_refused else f"it raised {error!r} while JAX compiled it")
            return result
        if compiled is None:
            return self._plain(gradients, weights, state)
        if seen is not None and not are_sharded and not compiled.stops:
            self._known[seen] = compiled
        return result

    def _plain(self, gradients: Any, weights: Any, state: Any) -> Any:
        """Return what the step itself returns, packed where it was given so."""
        if not isinstance(state, PackedState):
            return self._step(gradients, weights, state)
        made, new_state = self._step(gradients, weights, state.layout.unpacked(state.arrays))
        return self._result(made, PackedState(state.layout.packed(new_state), state.layout))

    def _as_jax_sees(self, trees: Any, arrays: list[Any]) -> Any:
        """Return the structure that JAX sees, if it finds the same arrays in the same order; else None."""
        try:
            leaves, structure = self._flatten_in_jax(trees)
        except Exception:  # noqa: BLE001  # Such as a container that JAX does not open.
            return None
        return structure if len(leaves) == len(arrays) and all(map(is_, leaves, arrays)) else None

    def _jitted(
        self,
        structures: tuple[Any, ...],
        leaves: list[list[Any]],
        *,
        are_sharded: bool,
        takes_trees: bool,
    ) -> "_Jitted | None":
        key = (structures, are_sharded, takes_trees)
        if key not in self._compiled:
            # A refusal is remembered too.
            self._compiled[key] = None
            form, stops = self._form(structures, leaves, are_sharded=are_sharded)
            self._compiled[key] = _Jitted(form, self._donated, self._trees.flatten, self._result, stops=stops)
        return self._compiled[key]

    def _form(
        self, structures: tuple[Any, ...], leaves: list[list[Any]], *, are_sharded: bool
    ) -> tuple[TreeForm | PackedForm, bool]:
        """Return the step as a function of leaves, and whether it stops in the debugger at each call."""
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
        return form, stops


def _register(jax: Any) -> None:
    """Let JAX open packed states."""
    with suppress(ValueError):  # It does so already.
        jax.tree_util.register_pytree_node(
            PackedState,
            lambda packed: (packed.arrays, packed.layout),
            lambda layout, arrays: PackedState(arrays, layout),
        )


class _Jitted:
    """A form of a step under ``jax.jit``, which itself tells shapes and dtypes apart.

    Trees that JAX opens are given to it as they are: it opens them faster than anybody else.

    Attributes:
        stops: whether the step stops in the debugger at each call.
        of_trees: the step as a function of gradients, weights and state.
    """

    def __init__(
        self,
        form: TreeForm | PackedForm,
        donated: frozenset[str],
        flatten: Callable[[Any], Opened],
        result: Callable[[Any, Any], Any],
        *,
        stops: bool,
    ) -> None:
        import jax

        def leaves_of(tree: Any) -> list[Any]:
            if tree is None:
                return []
            return list(tree.arrays) if isinstance(tree, PackedState) else flatten(tree)[0]

        def of_trees(gradients: Any, weights: Any, state: Any) -> Any:
            return result(*form.closed(form.run(*map(leaves_of, (gradients, weights, state)))))

        numbers = [number for number, name in enumerate(("gradients", "weights", "state")) if name in donated]
        self.stops, self._closed = stops, form.closed
        self.of_trees: Callable[..., Any] = jax.jit(of_trees, donate_argnums=numbers)
        self._of_leaves: Callable[..., Any] = jax.jit(form.run, donate_argnums=numbers)

    def of_leaves(self, leaves: list[list[Any]]) -> Any:
        """Return the new gradients and the new state."""
        return self._closed(self._of_leaves(*leaves))

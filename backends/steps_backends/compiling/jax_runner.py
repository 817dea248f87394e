"""A step on JAX: compiled by XLA once for each form of its arguments, with donation."""

from collections.abc import Callable
from typing import Any

from .checking import require_traceable
from .namespace import BreakpointError
from .packages import module_of
from .tracing import TracingError

Opened = tuple[list[Any], Any]  # the leaves and the structure of a tree


class JaxRunner:
    """Runs one step under ``jax.jit``.

    Args:
        step: of the package.
        package: the name of its package of steps.
        donated: the trees whose memory may be written to.
        tell: is told why a step cannot be traced.
    """

    def __init__(self, step: Any, package: str, donated: frozenset[str], tell: Callable[[str], None]) -> None:
        self._step, self._package, self._donated, self._tell = step, package, donated, tell
        self._trees = module_of(package, "trees")
        self._result = module_of(package, "contract").StepResult
        self._is_traced = module_of(package, "namespaces").is_traced_by_jax
        self._compiled: dict[Any, _Jitted | None] = {}

    def __call__(self, gradients: Any, opened_gradients: Opened, weights: Any, state: Any) -> Any:
        """Return what the step returns."""
        try:
            first = self._step.init(gradients if weights is None else weights) if state is None else state
            given = [
                None if tree is None else self._trees.flatten(tree) for tree in (gradients, weights, first)
            ]
            leaves = [[] if tree is None else tree[0] for tree in given]
            if any(self._is_traced(leaf) for of_tree in leaves for leaf in of_tree):
                # Inside a transformation of the user, whose compiler sees the step itself.
                return self._step(gradients, weights, state)
            compiled = self._jitted(tuple(None if tree is None else tree[1] for tree in given), leaves)
            if compiled is not None:
                new_gradients, new_state = compiled.function(*leaves)
        except Exception as error:  # noqa: BLE001  # Of bad arguments the plain call tells what is wrong.
            result = self._step(gradients, weights, state)
            if isinstance(error, TracingError):
                self._tell(str(error))
            elif not isinstance(error, BreakpointError):
                self._tell(f"it raised {error!r} while JAX compiled it")
            return result
        if compiled is None:
            return self._step(gradients, weights, state)
        structure, structure_of_state = compiled.outputs
        return self._result(
            self._trees.unflatten(structure, new_gradients),
            self._trees.unflatten(structure_of_state, new_state),
        )

    def _jitted(self, structures: tuple[Any, ...], leaves: list[list[Any]]) -> "_Jitted | None":
        if structures not in self._compiled:
            try:
                require_traceable(self._step, self._trees, structures, leaves)
            except (TracingError, BreakpointError):
                self._compiled[structures] = None
                raise
            self._compiled[structures] = _Jitted(self._step, self._trees, structures, self._donated)
        return self._compiled[structures]


class _Jitted:
    """The step for trees of some structures; ``jax.jit`` itself tells shapes and dtypes apart.

    Attributes:
        function: takes and returns lists of leaves.
        outputs: the structure of the new gradients and of the new state, once it has been traced.
    """

    def __init__(self, step: Any, trees: Any, structures: tuple[Any, ...], donated: frozenset[str]) -> None:
        import jax

        self.outputs: list[Any] = []

        def on_leaves(*leaves: list[Any]) -> list[list[Any]]:
            given = (
                None if structure is None else trees.unflatten(structure, of_tree)
                for structure, of_tree in zip(structures, leaves, strict=True)
            )
            made = [trees.flatten(tree) for tree in step(*given)]
            self.outputs = [structure for _, structure in made]
            return [of_tree for of_tree, _ in made]

        numbers = [number for number, name in enumerate(("gradients", "weights", "state")) if name in donated]
        self.function: Callable[..., Any] = jax.jit(on_leaves, donate_argnums=numbers)

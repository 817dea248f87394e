"""A step on JAX: compiled by XLA once for each form of its arguments, with donation."""

import warnings
from collections.abc import Callable
from typing import Any

from .checking import checked_to_stop
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
            flatten = self._trees.flatten
            given = [opened_gradients, None if weights is None else flatten(weights), flatten(first)]
            leaves = [[] if tree is None else tree[0] for tree in given]
            if any(self._is_traced(leaf) for of_tree in leaves for leaf in of_tree):
                # Inside a transformation of the user, whose compiler sees the step itself.
                return self._step(gradients, weights, state)
            compiled = self._jitted(tuple(None if tree is None else tree[1] for tree in given), leaves)
            if compiled is not None:
                if compiled.stops:
                    # For the debugger alone: the numbers are those of the calls that do not stop.
                    self._step(gradients, weights, state)
                new_gradients, new_state = compiled(leaves)
        except Exception as error:  # noqa: BLE001  # Of bad arguments the plain call tells what is wrong.
            result = self._step(gradients, weights, state)
            was_refused = isinstance(error, TracingError)
            self._tell(str(error) if was_refused else f"it raised {error!r} while JAX compiled it")
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
                stops = checked_to_stop(self._step, self._trees, structures, leaves)
            except TracingError:
                self._compiled[structures] = None
                raise
            made = _Jitted(self._step, self._trees, structures, self._donated, stops=stops)
            self._compiled[structures] = made
        return self._compiled[structures]


class _Jitted:
    """The step for trees of some structures; ``jax.jit`` itself tells shapes and dtypes apart.

    Attributes:
        outputs: the structure of the new gradients and of the new state, once it has been traced.
        stops: whether the step stops in the debugger at each call.
    """

    def __init__(
        self, step: Any, trees: Any, structures: tuple[Any, ...], donated: frozenset[str], *, stops: bool
    ) -> None:
        import jax

        self.outputs: list[Any] = []
        self.stops = stops

        def on_leaves(*leaves: list[Any]) -> list[list[Any]]:
            given = (
                None if structure is None else trees.unflatten(structure, of_tree)
                for structure, of_tree in zip(structures, leaves, strict=True)
            )
            made = [trees.flatten(tree) for tree in step(*given)]
            self.outputs = [structure for _, structure in made]
            return [of_tree for of_tree, _ in made]

        numbers = [number for number, name in enumerate(("gradients", "weights", "state")) if name in donated]
        self._function: Callable[..., Any] = jax.jit(on_leaves, donate_argnums=numbers)

    def __call__(self, leaves: list[list[Any]]) -> list[list[Any]]:
        """Return the leaves of the new gradients and of the new state."""
        if not self.stops:
            return self._function(*leaves)  # type: ignore[no-any-return]
        with warnings.catch_warnings():
            # That a traced step cannot stop: the plain call has stopped.
            warnings.filterwarnings("ignore", "set_breakpoint of", RuntimeWarning)
            return self._function(*leaves)  # type: ignore[no-any-return]

"""A step on NumPy: traced once for each form of its arguments, then run from the plan."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .numpy_layout import Result
from .numpy_plan import NumpyPlan
from .numpy_sums import SquareSummer
from .packages import module_of
from .tracing import INPUT, TracedArray, TracingError

# A loop meets one form, or a few; who meets more traces some of them again.
_MOST_PLANS = 64
TREES = ("gradients", "weights", "state")

Opened = tuple[list[Any], Any] | None  # the leaves and the structure of a tree; None: not given


class NumpyRunner:
    """Runs one step.

    Args:
        step: of the package.
        package: the name of its package of steps.
        donated: the trees whose memory may be written to.
        tell: is told why a step cannot be traced.
    """

    def __init__(self, step: Any, package: str, donated: frozenset[str], tell: Callable[[str], None]) -> None:
        self._step, self._donated, self._tell = step, donated, tell
        self._trees = module_of(package, "trees")
        self._namespaces = module_of(package, "namespaces")
        self._result = module_of(package, "contract").StepResult
        self._norms = module_of(package, "numerics.norms")
        self._plans: OrderedDict[Any, _Plan | None] = OrderedDict()
        self._last: _Plan | None = None

    def __call__(self, gradients: Any, weights: Any, state: Any) -> Any:
        """Return what the step returns."""
        try:
            first = self._step.init(gradients if weights is None else weights) if state is None else state
            opened = [None if tree is None else self._opened(tree) for tree in (gradients, weights, first)]
            plan = self._last
            if plan is None or not plan.fits(opened):
                plan = self._plan(opened)
        except Exception as error:  # noqa: BLE001  # Of bad arguments the plain call tells what is wrong.
            result = self._step(gradients, weights, state)
            self._tell(str(error) if isinstance(error, TracingError) else f"it raised {error!r}")
            return result
        if plan is None:
            return self._step(gradients, weights, state)
        try:
            with self._namespaces.quiet(plan.xp):
                return self._result(*plan.run(opened))
        except Exception:
            # Such as that of a schedule, which the plain call tells with its place.
            self._step(gradients, weights, state)
            raise

    def _opened(self, tree: Any) -> tuple[list[Any], Any]:
        import numpy as np

        leaves, structure = self._trees.flatten(tree)
        if not {*map(type, leaves)} <= {np.ndarray, type(None)}:
            leaves = [self._as_array(leaf) for leaf in leaves]
        return leaves, structure

    def _as_array(self, leaf: Any) -> Any:
        import numpy as np

        if leaf is not None and not isinstance(leaf, (np.ndarray, np.generic)):
            raise TracingError(f"a leaf is a {type(leaf).__name__}")
        if leaf is not None and self._namespaces.namespace_of(leaf) is None:
            raise TracingError(f"a leaf is a {type(leaf).__name__}")
        return None if leaf is None else np.asarray(leaf)

    def _plan(self, opened: list[Opened]) -> "_Plan | None":
        forms = tuple(_form(tree) for tree in opened)
        if forms in self._plans:
            self._plans.move_to_end(forms)
            plan = self._plans[forms]
        else:
            plan = self._plans[forms] = self._traced(opened, forms)
            if len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        self._last = plan
        return plan

    def _traced(self, opened: list[Opened], forms: tuple[Any, ...]) -> "_Plan":
        arrays = [array for tree in opened if tree is not None for array in tree[0] if array is not None]
        result = self._step(
            *(_symbols(self._trees, name, tree) for name, tree in zip(TREES, opened, strict=True))
        )
        outputs = [self._trees.flatten(tree) for tree in result]
        results = [
            Result((name, number), leaf)
            for name, (leaves, _) in zip(("gradients", "state"), outputs, strict=True)
            for number, leaf in enumerate(leaves)
            if leaf is not None
        ]
        counts = {
            name: len(leaves) for name, (leaves, _) in zip(("gradients", "state"), outputs, strict=True)
        }
        summer = SquareSummer(self._norms, self._namespaces.namespace_of(arrays[0]))
        return _Plan(
            forms,
            NumpyPlan(results, counts, summer, self._donated),
            [structure for _, structure in outputs],
            self._trees.unflatten,
            self._namespaces.namespace_of(arrays[0]),
        )


def _form(tree: Opened) -> Any:
    if tree is None:
        return None
    leaves, structure = tree
    return structure, *_shapes_and_dtypes(leaves)


def _shapes_and_dtypes(leaves: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    shapes = tuple([None if leaf is None else leaf.shape for leaf in leaves])
    return shapes, tuple([None if leaf is None else leaf.dtype for leaf in leaves])


def _symbols(trees: Any, name: str, tree: Opened) -> Any:
    """Return the tree with arrays that record in place of its own."""
    if tree is None:
        return None
    leaves, structure = tree
    return trees.unflatten(
        structure,
        [
            None if leaf is None else TracedArray(INPUT, (), (name, number), leaf.shape, leaf.dtype)
            for number, leaf in enumerate(leaves)
        ],
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """A plan for arguments of one form.

    Attributes:
        forms: of gradients, weights and state: structure, shapes and dtypes.
        execute: computes the results from the leaves.
        outputs: the structure of the new gradients and of the new state.
        unflatten: builds a tree.
        xp: the namespace of the arrays.
    """

    forms: tuple[Any, ...]
    execute: NumpyPlan
    outputs: list[Any]
    unflatten: Callable[..., Any]
    xp: Any

    def fits(self, opened: list[Opened]) -> bool:
        """Return whether the plan was made for arguments like these."""
        for tree, form in zip(opened, self.forms, strict=True):
            if tree is None or form is None:
                if tree is not form:
                    return False
            elif tree[1] != form[0] or _shapes_and_dtypes(tree[0]) != form[1:]:
                return False
        return True

    def run(self, opened: list[Opened]) -> tuple[Any, Any]:
        """Return the new gradients and the new state."""
        leaves = {name: tree[0] for name, tree in zip(TREES, opened, strict=True) if tree is not None}
        results = self.execute(leaves)
        gradients, state = self.outputs
        return self.unflatten(gradients, results["gradients"]), self.unflatten(state, results["state"])

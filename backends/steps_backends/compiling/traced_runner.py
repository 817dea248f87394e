"""A step that is traced once for each form of its arguments, then run from a plan of its library."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from threading import RLock
from typing import Any

from .namespace import BreakpointError, passing_breakpoints
from .numpy_layout import Result
from .packages import module_of
from .shared_memory import Sharing
from .tracing import INPUT, TracedArray, TracingError, TransformedError

# A loop meets one form, or a few; who meets more traces some of them again.
_MOST_PLANS = 64
TREES = ("gradients", "weights", "state")

Opened = tuple[list[Any], Any] | None  # the leaves and the structure of a tree; None: not given
Leaves = dict[str, list[Any]]
# Computes the leaves of "gradients" and "state" from those of all trees.
Execute = Callable[[Leaves], Leaves]
# Of what a step returns, how many leaves each of its trees has, and the namespace of its arrays.
Planner = Callable[[Sequence[Result], dict[str, int], Any], Execute]


class TracedRunner:
    """Runs one step from plans.

    Args:
        step: of the package.
        package: the name of its package of steps.
        sharing: turns leaves into the arrays that plans take, and back.
        plan: makes a plan of what was traced.
        tell: is told why a step cannot be traced.
        otherwise: runs what has no plan, called as this is; None: the step itself does.
    """

    def __init__(
        self,
        step: Any,
        package: str,
        sharing: Sharing,
        plan: Planner,
        tell: Callable[[str], None],
        otherwise: Callable[[Any, Any, Any, Any], Any] | None = None,
    ) -> None:
        self._otherwise = otherwise or self._plain
        self._step, self._sharing, self._planner, self._tell = step, sharing, plan, tell
        self._trees = module_of(package, "trees")
        self._namespaces = module_of(package, "namespaces")
        self._result = module_of(package, "contract").StepResult
        self._plans: OrderedDict[Any, _Plan | None] = OrderedDict()
        self._last: _Plan | None = None
        self._known: _Known | None = None
        # A plan has one set of registers. A schedule may call the step again.
        self._lock = RLock()

    def __call__(self, gradients: Any, opened_gradients: Opened, weights: Any, state: Any) -> Any:
        """Return what the step returns."""
        try:
            first = self._step.init(gradients if weights is None else weights) if state is None else state
            flatten = self._trees.flatten
            given = [opened_gradients, None if weights is None else flatten(weights), flatten(first)]
            opened = [self._opened("gradients", given[0]), self._opened("weights", given[1])]
            known, plan = self._known, self._last
            if known is not None and known.is_returned(given[2], self._sharing):
                plan = known.plan if known.plan.fits(opened) else None
                opened.append((known.arrays, given[2][1]))
            else:
                opened.append(self._opened("state", given[2]))
                plan = plan if plan is not None and plan.fits(opened) else None
            if plan is None:
                plan = self._plan(opened, given)
        except TransformedError:
            return self._plain(gradients, opened_gradients, weights, state)
        except Exception as error:  # noqa: BLE001  # Of bad arguments the plain call tells what is wrong.
            result = self._otherwise(gradients, opened_gradients, weights, state)
            self._tell(
                str(error) if isinstance(error, TracingError) else f"it raised {error!r} while it was traced"
            )
            return result
        if plan is None:
            return self._otherwise(gradients, opened_gradients, weights, state)
        try:
            if plan.stops:
                # For the debugger alone: the numbers are those of the calls that do not stop.
                self._step(gradients, weights, state)
            with self._lock:
                new_gradients, new_state = plan.run(opened)
        except TracingError as error:
            # The library's own compiler gave up, before anything ran.
            self._plans[plan.forms] = self._last = self._known = None
            result = self._otherwise(gradients, opened_gradients, weights, state)
            self._tell(str(error))
            return result
        except Exception:
            # Such as that of a schedule, which the plain call tells with its place.
            self._step(gradients, weights, state)
            raise
        return self._closed(plan, given, opened, new_gradients, new_state)

    def _plain(self, gradients: Any, opened_gradients: Opened, weights: Any, state: Any) -> Any:
        return self._step(gradients, weights, state)

    def _closed(
        self, plan: "_Plan", given: list[Opened], opened: list[Opened], gradients: list[Any], state: list[Any]
    ) -> Any:
        """Return the result, as arrays of the library that the arguments are of."""
        owners: dict[int, Any] = {}
        if self._sharing.wraps:
            for tree, arrays in zip(given, opened, strict=True):
                if tree is not None and arrays is not None and tree[0] is not arrays[0]:
                    owners.update(zip(map(id, arrays[0]), tree[0], strict=True))
        structure, structure_of_state = plan.outputs
        new_state = self._sharing.closed(state, owners)
        new_gradients = self._sharing.closed(gradients, owners)
        self._known = _Known(plan, new_state, state, self._sharing.addresses(new_state))
        return self._result(structure.unflatten(new_gradients), structure_of_state.unflatten(new_state))

    def _opened(self, name: str, tree: Opened) -> Opened:
        return None if tree is None else (self._sharing.opened(name, tree[0]), tree[1])

    def _plan(self, opened: list[Opened], given: list[Opened]) -> "_Plan | None":
        forms = tuple(_form(tree) for tree in opened)
        if forms in self._plans:
            self._plans.move_to_end(forms)
        else:
            try:
                self._plans[forms] = self._traced(opened, given, forms)
            except TracingError:
                self._plans[forms] = None
                raise
            if len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        self._last = self._plans[forms]
        return self._last

    def _traced(self, opened: list[Opened], given: list[Opened], forms: tuple[Any, ...]) -> "_Plan":
        arrays = [array for tree in opened if tree is not None for array in tree[0] if array is not None]
        symbols = [self._symbols(*named) for named in zip(TREES, opened, given, strict=True)]
        stops = False
        try:
            result = self._step(*symbols)
        except BreakpointError:
            stops = True
            with passing_breakpoints():
                result = self._step(*symbols)
        outputs = [self._trees.flatten(tree) for tree in result]
        named = dict(zip(("gradients", "state"), outputs, strict=True))
        results = [
            Result((name, number), leaf)
            for name, (leaves, _) in named.items()
            for number, leaf in enumerate(leaves)
            if leaf is not None
        ]
        xp = self._namespaces.namespace_of(arrays[0])
        counts = {name: len(leaves) for name, (leaves, _) in named.items()}
        execute = self._planner(results, counts, xp)
        return _Plan(forms, execute, [structure for _, structure in outputs], stops)

    def _symbols(self, name: str, opened: Opened, given: Opened) -> Any:
        """Return a tree with arrays that record in place of its own."""
        if opened is None or given is None:
            return None
        seen, dtype_of = self._sharing.seen, self._sharing.dtype_of
        return self._trees.unflatten(
            opened[1],
            [
                None
                if array is None
                else TracedArray(INPUT, (), ((name, number), seen(leaf)), tuple(array.shape), dtype_of(array))
                for number, (array, leaf) in enumerate(zip(opened[0], given[0], strict=True))
            ],
        )


def _form(tree: Opened) -> Any:
    if tree is None:
        return None
    leaves, structure = tree
    return structure, *_shapes_and_dtypes(leaves)


def _shapes_and_dtypes(leaves: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    shapes = tuple([None if leaf is None else leaf.shape for leaf in leaves])
    return shapes, tuple([None if leaf is None else leaf.dtype for leaf in leaves])


@dataclass(eq=False)
class _Plan:
    """A plan for arguments of one form.

    Attributes:
        forms: of gradients, weights and state: structure, shapes and dtypes.
        execute: computes the results from the leaves.
        outputs: the structure of the new gradients and of the new state.
        stops: whether the step stops in the debugger at each call.
    """

    forms: tuple[Any, ...]
    execute: Execute
    outputs: list[Any]
    stops: bool
    _returns_its_form: bool | None = None

    def returns_its_form(self, state: list[Any]) -> bool:
        """Return whether the state that it returns, with these arrays, is one that it takes."""
        if self._returns_its_form is None:
            self._returns_its_form = self.forms[2] == _form((state, self.outputs[1]))
        return self._returns_its_form

    def fits(self, opened: list[Opened]) -> bool:
        """Return whether the plan was made for arguments like these: all of them, or the first ones."""
        for tree, form in zip(opened, self.forms, strict=False):
            if tree is None or form is None:
                if tree is not form:
                    return False
            elif tree[1] != form[0] or _shapes_and_dtypes(tree[0]) != form[1:]:
                return False
        return True

    def run(self, opened: list[Opened]) -> tuple[list[Any], list[Any]]:
        """Return the leaves of the new gradients and of the new state."""
        leaves = {name: tree[0] for name, tree in zip(TREES, opened, strict=True) if tree is not None}
        results = self.execute(leaves)
        return results["gradients"], results["state"]


@dataclass(eq=False, slots=True)
class _Known:
    """The state that a call has returned, so that the next one need not look at its leaves one by one.

    Attributes:
        plan: of the call.
        leaves, arrays: the leaves as they were handed out, and as the plan has made them.
        addresses: where the leaves lay.
    """

    plan: _Plan
    leaves: list[Any]
    arrays: list[Any]
    addresses: Any

    def is_returned(self, state: Opened, sharing: Sharing) -> bool:
        """Return whether this is that state, which then has the form that the plan takes."""
        assert state is not None
        leaves, structure = state
        return (
            structure == self.plan.outputs[1]
            and len(leaves) == len(self.leaves)
            and all(map(is_, leaves, self.leaves))
            and sharing.addresses(leaves) == self.addresses
            and self.plan.returns_its_form(self.arrays)
        )

"""Running a graph on NumPy: stage by stage, pass by pass, into buffers that are used again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from .buffers import Pool, crossing
from .graph import in_order, simplified
from .numpy_layout import Layout, Planned, Result, Source
from .numpy_pass import Pass, Work
from .numpy_single import Function, single_function
from .numpy_sums import SquareSummer
from .numpy_tasks import Key, Task, key_of, slices_of, tasks_of
from .passes import is_single, is_summed_in_passes, stages
from .tracing import INPUT, TracedArray

Leaves = dict[str, list[Any]]
Results = dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class _Members:
    """An array of a task: one node, or several packed.

    Attributes:
        key: names the packed array; of one node it is its slot.
        size, dtype, shape: of the whole.
        gathered: where each member comes from: its leaf, or its slot.
        laid_out: the members that are needed by themselves: slot, place in the packed array, shape.
    """

    key: Any
    size: int
    dtype: Any
    shape: tuple[int, ...]
    gathered: tuple[Source, ...]
    laid_out: tuple[tuple[int, slice, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A task with all that a call would else look up."""

    is_packed: bool
    arrays: tuple[_Members, ...]
    stored: tuple[_Members, ...]
    parts: tuple[int, ...]
    scalars: tuple[int, ...]
    sums: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Stage:
    single: Callable[[list[Any]], None] | None
    tasks: tuple[_Prepared, ...]
    run: Pass


@dataclass(frozen=True, eq=False)
class _Call:
    """What one call holds.

    Attributes:
        leaves: as given.
        values: of the nodes, by slot.
        packed: packed arrays, by key.
        views: of packed results that lie where they lay before.
        targets: donated arrays that results are written to, by slot.
    """

    leaves: Leaves
    values: list[Any]
    packed: dict[Key, Any]
    views: dict[Key, list[Any]]
    targets: dict[int, Any]


class NumpyPlan:
    """A traced step, ready to run on leaves of the shapes it was traced with.

    Args:
        results: what the step returns, leaf by leaf; the others are None.
        counts: how many leaves its results have.
        summer: computes sums of squares.
        donated: the trees whose memory may be written to.
        calling: makes a function of the user take and give NumPy's arrays.
    """

    def __init__(
        self,
        results: Sequence[Result],
        counts: dict[str, int],
        summer: SquareSummer,
        donated: frozenset[str],
        calling: Callable[[Function], Function],
    ) -> None:
        nodes = simplified(result.node for result in results)
        every = in_order(nodes)
        self._counts = counts
        self._slots = {id(node): number for number, node in enumerate(every)}
        self._sums = [self._slots[id(node)] for node in every if is_summed_in_passes(node)]
        planned = [Planned(stage.single, tasks_of(stage.components)) for stage in stages(nodes)]
        layout = Layout(
            [Result(result.place, node) for result, node in zip(results, nodes, strict=True)], planned
        )
        self._needed = layout.needed
        self._loads = [
            (self._slots[id(node)], *node.options[0], is_single(node))
            for node in every
            if node.operation == INPUT and id(node) in layout.needed
        ]
        self._stages = [
            _Stage(
                single_function(stage.single, self._slots, summer, calling),
                tuple(map(self._prepared, stage.tasks)),
                Pass(stage.tasks, summer),
            )
            for stage in planned
        ]
        self._packed_results = layout.packed
        self._homes_of = layout.homes()
        self._targets = {self._slots[key]: source for key, source in layout.targets(donated).items()}
        self._may_overwrite_state = "state" in donated
        self._alone = [self._handed_out(result, layout) for result in layout.alone]
        self._pool = Pool()
        # The packed results of the last call, with the views that were handed out.
        self._homes: dict[Key, tuple[Any, list[Any]]] = {}

    # ---- Once

    def _prepared(self, task: Task) -> _Prepared:
        def members(nodes: tuple[TracedArray, ...]) -> _Members:
            return self._members(nodes, is_packed=task.is_packed)

        def slots(nodes: Iterable[TracedArray]) -> tuple[int, ...]:
            return tuple(self._slots[id(node)] for node in nodes)

        return _Prepared(
            task.is_packed,
            tuple(map(members, task.arrays)),
            tuple(map(members, task.stored)),
            slots(task.parts),
            slots(task.scalars),
            slots(task.sums),
        )

    def _members(self, nodes: tuple[TracedArray, ...], *, is_packed: bool) -> _Members:
        first = nodes[0]
        if not is_packed:
            return _Members(self._slots[id(first)], first.size, first.dtype, first.shape, (), ())
        size = sum(node.size for node in nodes)
        return _Members(
            key_of(nodes),
            size,
            first.dtype,
            (size,),
            tuple(
                node.options[0] if node.operation == INPUT else ("values", self._slots[id(node)])
                for node in nodes
            ),
            tuple(
                (self._slots[id(node)], part, node.shape)
                for node, part in zip(nodes, slices_of(nodes), strict=True)
                if id(node) in self._needed and node.operation != INPUT
            ),
        )

    def _handed_out(self, result: Result, layout: Layout) -> tuple[Source, Callable[[_Call], Any]]:
        """Return where a result goes, and what takes it from a call."""
        node, slot = result.node, self._slots[id(result.node)]
        if node.operation == INPUT:
            kind, number = node.options[0]
            return result.place, lambda call: call.leaves[kind][number]
        import numpy as np

        dtype, shape = node.dtype, node.shape
        if is_single(node):
            return result.place, lambda call: np.array(call.values[slot], dtype).reshape(shape)
        if layout.is_own(node) and layout.is_first(result):
            return result.place, lambda call: call.values[slot]
        return result.place, lambda call: np.array(call.values[slot])

    # ---- At each call

    def __call__(self, leaves: Leaves) -> Results:
        """Return the leaves of the new gradients and of the new state.

        Args:
            leaves: of "gradients", "weights" and "state": arrays, or None.
        """
        values: list[Any] = [None] * len(self._slots)
        for slot in self._sums:
            values[slot] = []
        for slot, kind, number, is_number in self._loads:
            array = leaves[kind][number]
            values[slot] = array.reshape(())[()] if is_number else contiguous(array)
        call = _Call(leaves, values, {}, {}, self._usable_targets(leaves) if self._targets else {})
        for stage in self._stages:
            if stage.single is not None:
                stage.single(values)
            if stage.tasks:
                stage.run([self._work(task, call) for task in stage.tasks])
                for task in stage.tasks:
                    if task.is_packed:
                        _lay_out(task, call)
        return self._results(call)

    def _work(self, task: _Prepared, call: _Call) -> Work:
        values = call.values
        if task.is_packed:
            arrays = [self._gathered(members, call) for members in task.arrays]
        else:
            arrays = [values[members.key] for members in task.arrays]
        outputs: list[Any] = []
        aliases: list[int | None] = []
        for members in task.stored:
            if task.is_packed:
                output = self._packed_output(members, arrays, call)
            else:
                output = call.targets.get(members.key)
                if output is None:
                    flat = self._pool.take(members.key, members.size, members.dtype)
                    output = flat.reshape(members.shape)
                values[members.key] = output
            outputs.append(output)
            aliases.append(next((i for i, array in enumerate(arrays) if array is output), None))
        return Work(
            arrays,
            outputs,
            tuple(aliases),
            [values[slot] for slot in task.parts],
            [values[slot] for slot in task.scalars],
            [values[slot] for slot in task.sums],
        )

    def _gathered(self, members: _Members, call: _Call) -> Any:
        """Return members one behind the other: where they lie so already, or gathered."""
        found = call.packed.get(members.key)
        if found is not None:
            return found
        home = self._home(members.key, call)
        if home is None:
            import numpy as np

            arrays = [
                call.values[number] if kind == "values" else call.leaves[kind][number]
                for kind, number in members.gathered
            ]
            home = self._pool.take(members.key, members.size, members.dtype)
            np.concatenate([array if array.ndim == 1 else array.ravel() for array in arrays], out=home)
        call.packed[members.key] = home
        return home

    def _home(self, key: Key, call: _Call) -> Any:
        """Return the packed result of the last call if these members of the state are its views."""
        if key not in self._homes_of:
            return None
        result, members_of = self._homes_of[key]
        if result not in self._homes:
            return None
        flat, views = self._homes[result]
        return flat if all(map(is_, members_of(call.leaves["state"]), views)) else None

    def _packed_output(self, members: _Members, arrays: list[Any], call: _Call) -> Any:
        """Return where a packed result is written: over the state before it, if that may be."""
        key = members.key
        if self._may_overwrite_state and key in self._homes:
            flat, views = self._homes[key]
            if any(array is flat for array in arrays):
                call.packed[key], call.views[key] = flat, views
                return flat
        call.packed[key] = self._pool.take(key, members.size, members.dtype)
        return call.packed[key]

    def _usable_targets(self, leaves: Leaves) -> dict[int, Any]:
        """Return the donated arrays that may really be written to, by slot."""
        found = {}
        for slot, (kind, number) in self._targets.items():
            array = leaves[kind][number]
            if array.flags.c_contiguous and array.flags.writeable:
                found[slot] = array
        shared = overlapping(array for of_kind in leaves.values() for array in of_kind if array is not None)
        return {slot: array for slot, array in found.items() if id(array) not in shared}

    def _results(self, call: _Call) -> Results:
        results: Results = {kind: [None] * count for kind, count in self._counts.items()}
        for (kind, number), value_of in self._alone:
            results[kind][number] = value_of(call)
        self._homes = {}
        for packed in self._packed_results:
            flat = call.packed[packed.key]
            views = call.views.get(packed.key)
            if views is None:
                views = packed.views(flat)
            for (kind, number), view in zip(packed.places, views, strict=True):
                results[kind][number] = view
            if packed.places[0][0] == "state":
                self._homes[packed.key] = flat, views
        return results


def _lay_out(task: _Prepared, call: _Call) -> None:
    """Give the members of packed results that are needed by themselves."""
    for members in task.stored:
        for slot, part, shape in members.laid_out:
            call.values[slot] = call.packed[members.key][part].reshape(shape)


def contiguous(array: Any) -> Any:
    """Return the array with its elements in C order: itself where they are."""
    import numpy as np

    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def overlapping(arrays: Iterable[Any]) -> set[int]:
    """Return the ids of the arrays that share memory with another entry."""
    from numpy.lib.array_utils import byte_bounds

    return crossing((*byte_bounds(array), id(array)) for array in arrays if array.size)

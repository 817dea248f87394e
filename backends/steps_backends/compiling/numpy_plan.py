"""Running a graph on NumPy: stage by stage, pass by pass, into buffers that are used again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from .buffers import Pool
from .graph import in_order, simplified
from .numpy_layout import Layout, Planned, Result, Source
from .numpy_pass import Pass, Work
from .numpy_single import single_function
from .numpy_sums import SquareSummer
from .numpy_tasks import Key, Task, key_of, slices_of, tasks_of
from .passes import is_single, is_summed_in_passes, stages
from .tracing import INPUT, TracedArray

Leaves = dict[str, list[Any]]


class NumpyPlan:
    """A traced step, ready to run on leaves of the shapes it was traced with.

    Args:
        results: what the step returns, leaf by leaf.
        summer: computes sums of squares.
        donated: the trees whose memory may be written to.
    """

    def __init__(self, results: Sequence[Result], summer: SquareSummer, donated: frozenset[str]) -> None:
        nodes = simplified(result.node for result in results)
        every = in_order(nodes)
        self._slots = {id(node): number for number, node in enumerate(every)}
        self._sums = [self._slots[id(node)] for node in every if is_summed_in_passes(node)]
        planned = [Planned(stage.single, tasks_of(stage.components)) for stage in stages(nodes)]
        self._layout = Layout(
            [Result(result.place, node) for result, node in zip(results, nodes, strict=True)], planned
        )
        self._loads = [
            (self._slots[id(node)], *node.options, is_single(node))
            for node in every
            if node.operation == INPUT and id(node) in self._layout.needed
        ]
        self._homes_of = self._layout.homes()
        self._targets = self._layout.targets(donated)
        self._may_overwrite_state = "state" in donated
        self._stages = [
            (
                single_function(stage.single, self._slots, summer),
                stage.tasks,
                Pass(stage.tasks, summer) if stage.tasks else None,
            )
            for stage in planned
        ]
        self._pool = Pool()
        # The packed results of the last call, with the views that were handed out.
        self._homes: dict[Key, tuple[Any, list[Any]]] = {}

    def __call__(self, leaves: Leaves) -> dict[Source, Any]:
        """Return the results by their places.

        Args:
            leaves: of "gradients", "weights" and "state": arrays, or None.
        """
        call = _Run(leaves, [None] * len(self._slots), {}, {}, {})
        for slot in self._sums:
            call.values[slot] = []
        for slot, kind, number, is_number in self._loads:
            array = leaves[kind][number]
            call.values[slot] = array.reshape(())[()] if is_number else contiguous(array)
        call.targets.update(self._usable_targets(leaves))
        for single, tasks, run in self._stages:
            if single is not None:
                single(call.values)
            if run is not None:
                run([self._work(task, call) for task in tasks])
                self._lay_out(tasks, call)
        return self._results(call)

    # ---- Before a pass

    def _work(self, task: Task, call: "_Run") -> Work:
        slots, values = self._slots, call.values
        if task.is_packed:
            arrays = [self._packed(members, call) for members in task.arrays]
        else:
            arrays = [values[slots[id(member)]] for (member,) in task.arrays]
        outputs, aliases = [], []
        for members in task.stored:
            output = self._packed_output(task, members, arrays, call) if task.is_packed else None
            if output is None:
                output = self._output(task, members, call)
            outputs.append(output)
            aliases.append(next((i for i, array in enumerate(arrays) if array is output), None))
        return Work(
            arrays,
            outputs,
            tuple(aliases),
            [values[slots[id(part)]] for part in task.parts],
            [values[slots[id(scalar)]] for scalar in task.scalars],
            [values[slots[id(total)]] for total in task.sums],
        )

    def _packed(self, members: tuple[TracedArray, ...], call: "_Run") -> Any:
        """Return members one behind the other: where they lie so already, or gathered."""
        import numpy as np

        key = key_of(members)
        if key not in call.packed:
            home = self._home(key, call)
            if home is None:
                arrays = [self._member(member, call) for member in members]
                home = self._pool.take(key, sum(member.size for member in members), members[0].dtype)
                np.concatenate(arrays, out=home)
            call.packed[key] = home
        return call.packed[key]

    def _home(self, key: Key, call: "_Run") -> Any:
        """Return the packed result of the last call if these members of the state are its views."""
        if key not in self._homes_of:
            return None
        result, members_of = self._homes_of[key]
        if result not in self._homes:
            return None
        flat, views = self._homes[result]
        return flat if all(map(is_, members_of(call.leaves["state"]), views)) else None

    def _member(self, member: TracedArray, call: "_Run") -> Any:
        if member.operation == INPUT:
            kind, number = member.options
            array = call.leaves[kind][number]
        else:
            array = call.values[self._slots[id(member)]]
        return array if array.ndim == 1 else array.ravel()

    def _packed_output(
        self, task: Task, members: tuple[TracedArray, ...], arrays: list[Any], call: "_Run"
    ) -> Any:
        """Return the packed state of the last call where it may be overwritten by its successor."""
        key = key_of(members)
        if not self._may_overwrite_state or key not in self._homes:
            return None
        flat, views = self._homes[key]
        if not any(array is flat for array in arrays):
            return None
        call.packed[key], call.views[key] = flat, views
        return flat

    def _output(self, task: Task, members: tuple[TracedArray, ...], call: "_Run") -> Any:
        node = members[0]
        if task.is_packed:
            key = key_of(members)
            call.packed[key] = self._pool.take(key, task.size, node.dtype)
            return call.packed[key]
        output = call.targets.get(id(node))
        if output is None:
            output = self._pool.take(id(node), node.size, node.dtype).reshape(node.shape)
        call.values[self._slots[id(node)]] = output
        return output

    def _usable_targets(self, leaves: Leaves) -> dict[int, Any]:
        """Return the donated arrays that may really be written to, by the id of the result."""
        found = {}
        for key, (kind, number) in self._targets.items():
            array = leaves[kind][number]
            if array.flags.c_contiguous and array.flags.writeable:
                found[key] = array
        if not found:
            return found
        shared = overlapping(array for of_kind in leaves.values() for array in of_kind if array is not None)
        return {key: array for key, array in found.items() if id(array) not in shared}

    # ---- After a pass

    def _lay_out(self, tasks: Sequence[Task], call: "_Run") -> None:
        """Give the members of packed results that are needed by themselves."""
        for task in tasks:
            for members in task.stored if task.is_packed else ():
                for member, part in zip(members, slices_of(members), strict=True):
                    if id(member) in self._layout.needed:
                        flat = call.packed[key_of(members)]
                        call.values[self._slots[id(member)]] = flat[part].reshape(member.shape)

    def _results(self, call: "_Run") -> dict[Source, Any]:
        import numpy as np

        results: dict[Source, Any] = {}
        given: set[int] = set()
        for result in self._layout.alone:
            node, value = result.node, call.values[self._slots[id(result.node)]]
            if node.operation == INPUT:
                kind, number = node.options
                value = call.leaves[kind][number]
            elif is_single(node):
                value = np.array(value, node.dtype).reshape(node.shape)
            elif not self._layout.is_own(node) or id(node) in given:
                value = np.array(value)
            given.add(id(node))
            results[result.place] = value
        self._homes = {}
        for packed in self._layout.packed:
            flat = call.packed[packed.key]
            views = call.views.get(packed.key)
            views = packed.views(flat) if views is None else views
            results.update(zip(packed.places, views, strict=True))
            if packed.places[0][0] == "state":
                self._homes[packed.key] = flat, views
        return results


@dataclass(frozen=True, eq=False)
class _Run:
    """What one call holds.

    Attributes:
        leaves: as given.
        values: of the nodes, by slot.
        packed: packed arrays, by key.
        views: of packed results that lie where they lay before.
        targets: donated arrays that results are written to.
    """

    leaves: Leaves
    values: list[Any]
    packed: dict[Key, Any]
    views: dict[Key, list[Any]]
    targets: dict[int, Any]


def contiguous(array: Any) -> Any:
    """Return the array with its elements in C order: itself where they are."""
    import numpy as np

    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def overlapping(arrays: Iterable[Any]) -> set[int]:
    """Return the ids of the arrays that share memory with another entry."""
    from numpy.lib.array_utils import byte_bounds

    spans = sorted((*byte_bounds(array), id(array)) for array in arrays if array.size)
    shared: set[int] = set()
    reached, owner = 0, 0
    for start, stop, key in spans:
        if start < reached:
            shared |= {key, owner}
        if stop > reached:
            reached, owner = stop, key
    return shared

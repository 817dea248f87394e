"""Running a graph on PyTorch: one function for the whole update, compiled by PyTorch, on flat tensors.

Small leaves lie one behind the other in a packed tensor, so that the function does not grow with their
number; a state that comes back as it was handed out is packed already.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any

from .graph import in_order, simplified
from .numpy_layout import Layout, Packed, Planned, Result, Source
from .numpy_tasks import Key, Task, key_of, tasks_of
from .passes import is_single, is_summed_in_passes, stages
from .torch_buffers import Buffers, overlapping
from .torch_source import Writer, function_of
from .tracing import EVALUATED, INPUT, TracedArray, TracingError

Leaves = dict[str, list[Any]]
Function = Callable[..., list[Any]]

# PyTorch takes about a tenth of a second for each.
MOST_TASKS = 400


@dataclass(frozen=True, eq=False)
class _Output:
    """Where something that a task stores is written to.

    Attributes:
        key: what names its memory.
        size, dtype: of it.
        target: the donated leaf that it may be written to.
        shape: of the result; packed: None.
    """

    key: Any
    size: int
    dtype: Any
    target: Source | None
    shape: tuple[int, ...] | None


class TorchPlan:
    """A traced step, ready to run on tensors of the shapes it was traced with.

    Args:
        results: what the step returns, leaf by leaf; the others are None.
        counts: how many leaves its results have.
        norms: the module of norms of the step's package.
        xp: the namespace of PyTorch.
        donated: the trees whose memory may be written to.
        compiler: makes a fast function of a function of tensors.

    Raises:
        TracingError: it would take PyTorch too long to compile.
    """

    def __init__(
        self,
        results: Sequence[Result],
        counts: dict[str, int],
        norms: Any,
        xp: Any,
        donated: frozenset[str],
        compiler: Callable[[Function], Function],
    ) -> None:
        nodes = simplified(result.node for result in results)
        every = in_order(nodes)
        self._counts, self._compiler = counts, compiler
        self._writer_of: Callable[[], Writer] = partial(Writer, norms, xp)
        self._planned = [Planned(stage.single, tasks_of(stage.components)) for stage in stages(nodes)]
        tasks = sum(len(stage.tasks) for stage in self._planned)
        if tasks > MOST_TASKS:
            raise TracingError(
                f"it has {tasks} parts that differ, and PyTorch takes minutes for more than {MOST_TASKS}"
            )
        placed = [Result(result.place, node) for result, node in zip(results, nodes, strict=True)]
        layout = Layout(placed, self._planned)
        self._homes_of = layout.homes()
        self._given_of = {result: key for key, result in layout.overwritten().items()}
        self._may_overwrite_state = "state" in donated
        self._targets = layout.targets(donated)
        self._packed_results = layout.packed
        self._evaluated = [node for node in every if node.operation == EVALUATED]
        self._loads = [node for node in every if node.operation == INPUT and id(node) in layout.needed]
        self._sources: list[Source] = [node.options[0] for node in self._loads]
        self._gathered = self._first_gathered()
        self._outputs: list[_Output] = []
        self._same: list[tuple[Source, Source]] = []
        self._fresh: list[tuple[Source, TracedArray]] = []
        self._output_of: dict[Key, int] = {}
        self._list_outputs(layout)
        self._prologue = self._evaluating() if self._evaluated else None
        self._functions: dict[tuple[int, ...], Function] = {}
        self._buffers = Buffers()
        # The packed results of the last call, with the views that were handed out, and where these lay.
        self._homes: dict[Key, tuple[Any, list[Any], list[int]]] = {}

    # ---- Once

    def _first_gathered(self) -> dict[Key, tuple[TracedArray, ...]]:
        """Return the packed arrays that are gathered before the function: of leaves alone."""
        found: dict[Key, tuple[TracedArray, ...]] = {}
        for task in self._tasks():
            for members in task.arrays if task.is_packed else ():
                if all(member.operation == INPUT for member in members):
                    found[key_of(members)] = members
        return found

    def _tasks(self) -> list[Task]:
        return [task for stage in self._planned for task in stage.tasks]

    def _list_outputs(self, layout: Layout) -> None:
        kept = {packed.key for packed in layout.packed}
        alone = {}
        for result in layout.alone:
            if result.node.operation == INPUT:
                self._same.append((result.place, result.node.options[0]))
            elif layout.is_own(result.node) and layout.is_first(result):
                alone[id(result.node)] = result
            else:
                self._fresh.append((result.place, result.node))
        self._alone = list(alone.values())
        for task in self._tasks():
            for members in task.stored:
                key, first = key_of(members), members[0]
                if task.is_packed and key in kept:
                    size = sum(member.size for member in members)
                    self._add_output(key, _Output(key, size, first.dtype, None, None))
                elif not task.is_packed and id(first) in alone:
                    target = self._targets.get(id(first))
                    self._add_output(key, _Output(key, first.size, first.dtype, target, first.shape))

    def _add_output(self, key: Key, output: _Output) -> None:
        self._output_of[key] = len(self._outputs)
        self._outputs.append(output)

    def _evaluating(self) -> Function:
        """Return what calls the functions of the user, on values: it is not compiled."""
        needed = in_order(self._evaluated)
        if any(not is_single(node) or is_summed_in_passes(node) for node in needed):
            raise TracingError("a function of the user takes what only a pass gives")
        writer = self._writer_of()
        for node in needed:
            if node.operation == INPUT:
                kind, number = node.options[0]
                writer.name(node, f"leaves[{kind!r}][{number}].reshape(())")
            else:
                writer.single(node)
        found = ", ".join(writer.text(node) for node in self._evaluated)
        return function_of([*writer.lines, f"return [{found}]"], writer.names, "leaves, device")

    def _function(self, places: tuple[int, ...]) -> Function:
        """Return the function for outputs that lie at these places of its list of tensors."""
        if places not in self._functions:
            self._functions[places] = self._compiler(self._written(places))
        return self._functions[places]

    def _written(self, places: tuple[int, ...]) -> Function:
        writer = self._writer_of()
        first = [*self._loads, *self._evaluated]
        for place, node in enumerate(first):
            writer.name(node, f"x[{place}]" + (".reshape(())" if is_single(node) else ""))
        packed = {key: f"x[{place}]" for place, key in enumerate(self._gathered, len(first))}
        writer.lines += ["device = x[0].device"]
        evaluated = {id(node) for node in self._evaluated}
        copies = []
        number = 0
        for stage in self._planned:
            for node in stage.single:
                if id(node) not in evaluated:
                    writer.single(node)
            for task in stage.tasks:
                if not task.size:
                    writer.empty(task)
                    continue
                arrays = [self._array(task, members, packed, writer) for members in task.arrays]
                for members, text in zip(
                    task.stored, writer.stored(task, writer.task(task, number, arrays)), strict=True
                ):
                    packed[key_of(members)] = text
                    output = self._output_of.get(key_of(members))
                    if output is not None:
                        copies.append(f"x[{places[output]}].copy_({text}.reshape(-1))")
                number += 1
        fresh = ", ".join(f"{writer.shaped(node)}.clone()" for _, node in self._fresh)
        return function_of([*writer.lines, *copies, f"return [{fresh}]"], writer.names, "x")

    def _array(self, task: Task, members: tuple[TracedArray, ...], packed: dict[Key, str], w: Writer) -> str:
        if not task.is_packed:
            return w.flat(members[0]) if task.kernel.is_flat else w.shaped(members[0])
        key = key_of(members)
        if key not in packed:
            packed[key] = f"torch.cat([{', '.join(map(w.flat, members))}])"
        return packed[key]

    # ---- At each call

    def __call__(self, leaves: Leaves) -> Leaves:
        """Return the leaves of the new gradients and of the new state.

        Args:
            leaves: of "gradients", "weights" and "state": tensors, or None.

        Raises:
            TracingError: the leaves lie on several devices, or PyTorch cannot compile it.
        """
        device = self._device(leaves)
        flats = {source: flat(leaves[source[0]][source[1]]) for source in self._sources}
        given = list(flats.values())
        if self._prologue is not None:
            given += self._prologue(leaves, device)
        packed = {key: self._packed(key, members, leaves) for key, members in self._gathered.items()}
        given += packed.values()
        places: list[int] = []
        views: dict[Any, Any] = {}
        targets = self._usable_targets(leaves, flats)
        made = []
        known = {id(tensor): number for number, tensor in enumerate(given)}
        for output in self._outputs:
            home, of_home = self._overwritten(output, packed)
            if home is not None:
                if of_home is not None:
                    views[output.key] = of_home
            elif output.target in targets:
                home = targets[output.target]
            else:
                home = self._buffers.take(output.key, output.size, output.dtype, device)
            if id(home) not in known:
                known[id(home)] = len(given)
                given.append(home)
            places.append(known[id(home)])
            made.append(home)
        fresh = self._function(tuple(places))(given)
        return self._results(leaves, made, views, fresh)

    def _device(self, leaves: Leaves) -> Any:
        device = None
        for of_kind in leaves.values():
            for leaf in of_kind:
                if leaf is not None:
                    if device is None:
                        device = leaf.device
                    elif leaf.device != device:
                        raise TracingError("its leaves lie on several devices")
        return device

    def _packed(self, key: Key, members: tuple[TracedArray, ...], leaves: Leaves) -> Any:
        """Return members one behind the other: where they lie so already, or gathered."""
        if key in self._homes_of:
            result, members_of = self._homes_of[key]
            if result in self._homes:
                home, views, addresses = self._homes[result]
                # Who sets ``data`` gives a tensor other memory.
                if all(map(is_, members_of(leaves["state"]), views)) and _addresses(views) == addresses:
                    return home
        import torch

        return torch.cat([leaves[kind][number].reshape(-1) for kind, number in map(_source, members)])

    def _overwritten(self, output: _Output, packed: dict[Key, Any]) -> tuple[Any, Any]:
        """Return the packed state that a result may be written over, and its views if there are some."""
        given = self._given_of.get(output.key) if self._may_overwrite_state else None
        if given is None:
            return None, None
        known, views, _ = self._homes.get(output.key, (None, None, None))
        return packed[given], views if packed[given] is known else None

    def _usable_targets(self, leaves: Leaves, flats: dict[Source, Any]) -> dict[Source | None, Any]:
        """Return the donated leaves that may really be written to, in one axis."""
        if not self._targets:
            return {}
        shared = overlapping(leaf for of_kind in leaves.values() for leaf in of_kind if leaf is not None)
        found: dict[Source | None, Any] = {}
        for kind, number in self._targets.values():
            leaf = leaves[kind][number]
            if leaf.is_contiguous() and id(leaf) not in shared:
                found[kind, number] = flats.get((kind, number), flat(leaf))
        return found

    def _results(self, leaves: Leaves, made: list[Any], views: dict[Any, Any], fresh: list[Any]) -> Leaves:
        results: Leaves = {kind: [None] * count for kind, count in self._counts.items()}
        for (kind, number), (given, index) in self._same:
            results[kind][number] = leaves[given][index]
        for ((kind, number), _), tensor in zip(self._fresh, fresh, strict=True):
            results[kind][number] = tensor
        for result in self._alone:
            kind, number = result.place
            output = self._outputs[self._output_of[key_of((result.node,))]]
            tensor = made[self._output_of[output.key]]
            target = None if output.target is None else leaves[output.target[0]][output.target[1]]
            is_over = target is not None and target.data_ptr() == tensor.data_ptr()
            results[kind][number] = target if is_over else tensor.view(result.node.shape)
        self._homes = {}
        for packed in self._packed_results:
            home = made[self._output_of[packed.key]]
            of_home = views.get(packed.key) or _views(packed, home)
            for (kind, number), view in zip(packed.places, of_home, strict=True):
                results[kind][number] = view
            if packed.places[0][0] == "state":
                self._homes[packed.key] = home, of_home, _addresses(of_home)
        return results


def _addresses(tensors: list[Any]) -> list[int]:
    """Return where tensors lie; fake ones lie nowhere."""
    import torch

    return [tensor.data_ptr() if type(tensor) is torch.Tensor else 0 for tensor in tensors]


def _views(packed: Packed, home: Any) -> list[Any]:
    """Return the results that lie in a packed tensor."""
    found = []
    for part, shape in zip(packed.slices, packed.shapes, strict=True):
        view = home.narrow(0, part.start, part.stop - part.start)
        found.append(view if shape is None else view.view(shape))
    return found


def flat(tensor: Any) -> Any:
    """Return a tensor in one axis; itself where it is so, a copy only where its elements are not in order."""
    return tensor if tensor.ndim == 1 and tensor.is_contiguous() else tensor.reshape(-1)


def _source(member: TracedArray) -> Source:
    source: Source = member.options[0]
    return source

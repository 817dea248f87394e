"""One call of a plan on NumPy as a function: straight code that looks up nothing that is known before.

There are two for each plan. After a call its packed state is at home: it lies in the packed arrays that the
call has filled. A state that comes from elsewhere is gathered first.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from operator import itemgetter, methodcaller
from typing import Any

from .buffers import Pool, crossing
from .numpy_layout import Layout, Packed, Planned, Result, Source
from .numpy_pass import Pass, Work
from .numpy_single import SingleWriter
from .numpy_tasks import Key, Task, key_of, slices_of
from .passes import is_single
from .tracing import INPUT, TracedArray

Leaves = dict[str, list[Any]]
Call = Callable[[Leaves], Leaves]

# So many members are written out one by one; more of them in one expression, whose text does not grow.
_FEW = 8


@dataclass(frozen=True, eq=False)
class CallParts:
    """What both calls of a plan are made of.

    Attributes:
        planned: the stages, each with what runs its pass.
        layout: where their arrays lie.
        singles: writes what is computed between passes.
        loads: the leaves that something needs by themselves.
        sums: the sums of squares that passes collect.
        counts: how many leaves each tree of the results has.
        donated: the trees whose memory may be written to.
        pool: the memory of results.
        homes: the packed arrays of the state as the last call has left them.
    """

    planned: Sequence[tuple[Planned, Pass]]
    layout: Layout
    singles: SingleWriter
    loads: Sequence[TracedArray]
    sums: Sequence[TracedArray]
    counts: dict[str, int]
    donated: frozenset[str]
    pool: Pool
    homes: dict[Key, Any]


def call_of(parts: CallParts, *, is_at_home: bool) -> Call:
    """Return the function of a call on a state that the last call returned, or on any."""
    writer = _Writer(parts, is_at_home=is_at_home)
    source = writer.source()
    names = {**writer.names, **parts.singles.names}
    exec(source, names)  # noqa: S102  # Only words of this package.
    return names["call"]  # type: ignore[no-any-return]


class _Writer:
    """Writes one call; in its text ``v`` holds the values of nodes, by slot."""

    def __init__(self, parts: CallParts, *, is_at_home: bool) -> None:
        import numpy as np

        layout = parts.layout
        self._parts, self._is_at_home, self._slots = parts, is_at_home, parts.singles.slots
        self._home_of = {given: result for given, (result, _) in layout.homes().items()}
        self._over = layout.overwritten()
        self._replaced = {result: given for given, result in self._over.items()}
        self._targets = {self._slots[key]: source for key, source in layout.targets(parts.donated).items()}
        self._lines: list[str] = []
        self._arrays: dict[Key, str] = {}  # the names of packed arrays
        self._stays: set[Key] = set()  # the packed results that lie where the given state lies
        self._numbers = count()
        self.names: dict[str, Any] = {
            "aliases_of": aliases_of,
            "array": np.array,
            "concatenate": np.concatenate,
            "contiguous": contiguous,
            "flattened": methodcaller("reshape", -1),
            "homes": parts.homes,
            "take": parts.pool.take,
            "Work": Work,
        }

    def source(self) -> str:
        """Return the text."""
        self._write(
            'gradients, weights, state = leaves["gradients"], leaves.get("weights"), leaves.get("state")'
        )
        self._write(f"v = [None] * {len(self._slots)}")
        if self._is_at_home:
            self._write_homes()
        for node in self._parts.sums:
            self._write(f"{self._value(node)} = []")
        for node in self._parts.loads:
            leaf = _leaf(node.options[0])
            self._write(
                f"{self._value(node)} = {_number(leaf, node) if is_single(node) else f'contiguous({leaf})'}"
            )
        if self._targets:
            self._write(f"targets = {self._named(self._usable_targets)}(leaves)")
        for stage, run in self._parts.planned:
            for node in stage.single:
                self._lines += self._parts.singles.lines(node)
            self._write_pass(stage.tasks, run)
        self._write_results()
        return "\n".join(["def call(leaves):", *(f"    {line}" for line in self._lines)])

    def _write(self, line: str) -> None:
        self._lines.append(line)

    def _write_homes(self) -> None:
        """Take what lies at home before anything of the user is called, which may call the step again."""
        for stage, _ in self._parts.planned:
            for task in stage.tasks:
                for key in map(key_of, task.arrays):
                    if key in self._home_of and key not in self._arrays:
                        self._arrays[key] = f"p{next(self._numbers)}"
                        self._write(f"{self._arrays[key]} = homes[{self._named(self._home_of[key])}]")

    def _named(self, value: Any) -> str:
        name = f"c{next(self._numbers)}"
        self.names[name] = value
        return name

    def _value(self, node: TracedArray) -> str:
        return f"v[{self._slots[id(node)]}]"

    # ---- Passes

    def _write_pass(self, tasks: Sequence[Task], run: Pass) -> None:
        works = [self._work(task) for task in tasks]
        if run.is_threaded:
            self._write(f"{self._named(run)}([{', '.join(f'Work({work})' for work in works)}])")
        else:
            for work, runner in zip(works, run.runners, strict=True):
                if runner.size:
                    self._write(f"{self._named(runner)}({work})")
        for task in tasks:
            for members in task.stored if task.is_packed else ():
                for node, part in zip(members, slices_of(members), strict=True):
                    if id(node) in self._parts.layout.needed:
                        place = self._arrays[key_of(members)]
                        self._write(f"{self._value(node)} = {self._view(place, part, node.shape)}")

    def _work(self, task: Task) -> str:
        """Write what lays a task out, and return the arguments that run it."""
        arrays = [self._given(members, is_packed=task.is_packed) for members in task.arrays]
        outputs = [self._output(members, is_packed=task.is_packed) for members in task.stored]
        if not task.is_packed and any(self._slots[id(node)] in self._targets for (node,) in task.stored):
            aliases = f"aliases_of([{', '.join(arrays)}], [{', '.join(outputs)}])"
        else:
            aliases = repr(tuple(arrays.index(text) if text in arrays else None for text in outputs))
        listed = (
            arrays,
            outputs,
            *([self._value(node) for node in nodes] for nodes in (task.parts, task.scalars, task.sums)),
        )
        given = [f"[{', '.join(texts)}]" for texts in listed]
        return ", ".join([*given[:2], aliases, *given[2:]])

    def _given(self, members: Sequence[TracedArray], *, is_packed: bool) -> str:
        if not is_packed:
            return self._value(members[0])
        key = key_of(members)
        if key not in self._arrays:
            name = self._arrays[key] = f"p{next(self._numbers)}"
            # A state over which the new one may be written is gathered where that will lie.
            self._take(name, self._over.get(key, key), members)
            self._write(f"concatenate({self._gathered(members)}, out={name})")
        return self._arrays[key]

    def _take(self, name: str, purpose: Any, members: Sequence[TracedArray]) -> None:
        size, dtype = sum(node.size for node in members), self._named(members[0].dtype)
        self._write(f"{name} = take({self._named(purpose)}, {size}, {dtype})")

    def _gathered(self, members: Sequence[TracedArray]) -> str:
        sources = [
            node.options[0] if node.operation == INPUT else ("v", self._slots[id(node)]) for node in members
        ]
        trees = {tree for tree, _ in sources}
        if len(sources) > _FEW and len(trees) == 1:
            chosen = self._named(itemgetter(*(number for _, number in sources)))
            return f"[*map(flattened, {chosen}({trees.pop()}))]"
        texts = [
            _leaf(source) if node.ndim == 1 else f"{_leaf(source)}.reshape(-1)"
            for node, source in zip(members, sources, strict=True)
        ]
        return f"[{', '.join(texts)}]"

    def _output(self, members: Sequence[TracedArray], *, is_packed: bool) -> str:
        if not is_packed:
            return self._output_alone(members[0])
        key = key_of(members)
        given = self._replaced.get(key)
        if given is not None and ("state" in self._parts.donated or not self._is_at_home):
            self._arrays[key] = self._arrays[given]
            if self._is_at_home:
                self._stays.add(key)
        else:
            self._arrays[key] = f"p{next(self._numbers)}"
            self._take(self._arrays[key], key, members)
        return self._arrays[key]

    def _output_alone(self, node: TracedArray) -> str:
        slot, place = self._slots[id(node)], self._value(node)
        taken = f"take({slot}, {node.size}, {self._named(node.dtype)})"
        taken = taken if node.ndim == 1 else f"{taken}.reshape({node.shape!r})"
        if slot in self._targets:
            self._write(f"{place} = targets.get({slot})")
            self._write(f"if {place} is None: {place} = {taken}")
        else:
            self._write(f"{place} = {taken}")
        return place

    def _usable_targets(self, leaves: Leaves) -> dict[int, Any]:
        """Return the donated arrays that may really be written to, by slot."""
        found = {}
        for slot, (tree, number) in self._targets.items():
            array = leaves[tree][number]
            if array.flags.c_contiguous and array.flags.writeable:
                found[slot] = array
        shared = overlapping(array for tree in leaves.values() for array in tree if array is not None)
        return {slot: array for slot, array in found.items() if id(array) not in shared}

    # ---- Results

    def _write_results(self) -> None:
        for tree, size in self._parts.counts.items():
            self._write(f"new_{tree} = [None] * {size}")
        for result in self._parts.layout.alone:
            self._write(f"{_new_leaf(result.place)} = {self._handed_out(result)}")
        for packed in self._parts.layout.packed:
            self._write_packed(packed)
        results = ", ".join(f'"{tree}": new_{tree}' for tree in self._parts.counts)
        self._write(f"return {{{results}}}")

    def _handed_out(self, result: Result) -> str:
        node, layout = result.node, self._parts.layout
        if node.operation == INPUT:
            return _leaf(node.options[0])
        value = self._value(node)
        if is_single(node):
            made = f"array({value}, {self._named(node.dtype)})"
            return f"{made}.reshape({node.shape!r})" if node.ndim else made
        is_its_own = layout.is_own(node) and layout.is_first(result)
        return value if is_its_own else f"array({value})"

    def _write_packed(self, packed: Packed) -> None:
        name, places = self._arrays[packed.key], packed.places
        if places[0][0] == "state":
            self._write(f"homes[{self._named(packed.key)}] = {name}")
        run = _run_of(places)
        if run is not None and (packed.key in self._stays or len(places) > _FEW):
            tree, index = run
            views = f"state{index}" if packed.key in self._stays else f"{self._named(packed.views)}({name})"
            self._write(f"new_{tree}{index} = {views}")
            return
        for place, part, shape in zip(places, packed.slices, packed.shapes, strict=True):
            view = _leaf(place) if packed.key in self._stays else self._view(name, part, shape)
            self._write(f"{_new_leaf(place)} = {view}")

    def _view(self, array: str, part: slice, shape: tuple[int, ...] | None) -> str:
        view = f"{array}[{part.start}:{part.stop}]"
        return view if shape is None or len(shape) == 1 else f"{view}.reshape({shape!r})"


def _leaf(source: Source) -> str:
    tree, number = source
    return f"{tree}[{number}]"


def _new_leaf(place: Source) -> str:
    return f"new_{_leaf(place)}"


def _number(array: str, node: TracedArray) -> str:
    return f"{array}.reshape(())[()]" if node.ndim else f"{array}[()]"


def _run_of(places: Sequence[Source]) -> tuple[str, str] | None:
    """Return the tree that these places are a part of, one after the other, and its index; None of others."""
    (tree, start), stop = places[0], places[0][1] + len(places)
    is_run = all(place == (tree, number) for place, number in zip(places, range(start, stop), strict=True))
    return (tree, f"[{start}:{stop}]") if is_run else None


def aliases_of(arrays: Sequence[Any], outputs: Sequence[Any]) -> tuple[int | None, ...]:
    """Return, for each output, the number of the array that lies there, or None."""
    return tuple([next((i for i, array in enumerate(arrays) if array is output), None) for output in outputs])


def contiguous(array: Any) -> Any:
    """Return the array with its elements in C order: itself where they are."""
    import numpy as np

    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def overlapping(arrays: Iterable[Any]) -> set[int]:
    """Return the ids of the arrays that share memory with another entry."""
    from numpy.lib.array_utils import byte_bounds

    return crossing((*byte_bounds(array), id(array)) for array in arrays if array.size)

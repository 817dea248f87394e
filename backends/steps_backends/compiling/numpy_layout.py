"""Where the arrays of a plan lie: by themselves, or one behind the other in a packed one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from .numpy_tasks import Key, Task, key_of, slices_of
from .passes import is_single, is_summed_in_passes
from .tracing import INPUT, TracedArray

MembersOf = Callable[[list[Any]], tuple[Any, ...]]
Source = tuple[str, int]  # "gradients", "weights" or "state", and the number of the leaf


@dataclass(frozen=True, eq=False)
class Result:
    """What a step returns at one leaf of the gradients or of the state."""

    place: Source
    node: TracedArray


@dataclass(frozen=True, eq=False)
class Packed:
    """Results that are views of one packed array."""

    key: Key
    places: tuple[Source, ...]
    slices: tuple[slice, ...]
    shapes: tuple[tuple[int, ...] | None, ...]  # None: one axis, as the packed array has

    def views(self, flat: Any) -> list[Any]:
        """Return the results."""
        return [
            flat[part] if shape is None else flat[part].reshape(shape)
            for part, shape in zip(self.slices, self.shapes, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Planned:
    """One stage: what is computed singly, and the tasks of the pass after it."""

    single: tuple[TracedArray, ...]
    tasks: tuple[Task, ...]


class Layout:
    """What the stages of a plan say about where its arrays lie.

    Attributes:
        needed: the ids of arrays that something needs by themselves.
        packed: the packed results.
        alone: all other results.
    """

    def __init__(self, results: Sequence[Result], planned: Sequence[Planned]) -> None:
        self._planned = planned
        self._writers = {
            id(node): (task, members) for task in self._tasks() for members in task.stored for node in members
        }
        first: dict[int, Source] = {}
        for result in results:
            first.setdefault(id(result.node), result.place)
        self._first = first
        self.packed: list[Packed] = []
        self.alone: list[Result] = []
        members_of: dict[Key, tuple[TracedArray, ...]] = {}
        for result in results:
            task, members = self._writers.get(id(result.node), (None, ()))
            if task is not None and task.is_packed and self.is_first(result):
                members_of[key_of(members)] = members
            else:
                self.alone.append(result)
        for members in members_of.values():
            self.packed.append(_packed(members, first))
        self.needed = self._needed()
        self._readers = self._readers_of_leaves()
        self._returned = {result.node.options[0] for result in self.alone if result.node.operation == INPUT}

    def _tasks(self) -> Iterator[Task]:
        for stage in self._planned:
            yield from stage.tasks

    def _needed(self) -> set[int]:
        needed = {id(result.node) for result in self.alone}
        for node in (node for stage in self._planned for node in stage.single):
            # Of sums that passes collect, only numbers are added by themselves.
            in_passes = is_summed_in_passes(node)
            needed |= {id(given) for given in node.arrays if not in_passes or is_single(given)}
        for task in self._tasks():
            needed |= {id(node) for node in (*task.scalars, *task.parts)}
            for members in task.arrays:
                if not task.is_packed or any(self._is_gathered(member) for member in members):
                    needed |= {id(member) for member in members}
        return needed

    def _is_gathered(self, member: TracedArray) -> bool:
        return member.operation != INPUT

    def is_own(self, node: TracedArray) -> bool:
        """Return whether a result lies in memory of its own, which may be handed out."""
        task, _ = self._writers.get(id(node), (None, ()))
        return task is not None and not task.is_packed

    def is_first(self, result: Result) -> bool:
        """Return whether no earlier result is the same node."""
        return self._first[id(result.node)] == result.place

    def homes(self) -> dict[Key, tuple[Key, MembersOf]]:
        """Return, for each packed array of the state, the packed result that it was in the call before."""
        by_places = {packed.places: packed for packed in self.packed}
        found: dict[Key, tuple[Key, MembersOf]] = {}
        for task in self._tasks():
            for members in task.arrays if task.is_packed else ():
                places = tuple(member.options[0] for member in members if member.operation == INPUT)
                packed = by_places.get(places)
                if packed is None or not len(places) == len(members) == len(packed.key):
                    continue
                if places[0][0] == "state":
                    found[key_of(members)] = packed.key, itemgetter(*(number for _, number in places))
        return found

    def overwritten(self) -> dict[Key, Key]:
        """Return, for each packed array of the state, the packed result that may be written over it."""
        found = {}
        for given, (result, _) in self.homes().items():
            writer, _ = self._writers[result[0]]
            reads_it = any(key_of(members) == given for members in writer.arrays)
            (places,) = (packed.places for packed in self.packed if packed.key == result)
            if reads_it and all(self._may_be_overwritten(writer, place) for place in places):
                found[given] = result
        return found

    def targets(self, donated: frozenset[str]) -> dict[int, Source]:
        """Return, by the id of a result, the donated leaf that it may be written to."""
        found = {}
        for result in self.alone:
            kind, _ = result.place
            if kind in donated and self.is_own(result.node) and self.is_first(result):
                task, _ = self._writers[id(result.node)]
                if self._may_be_overwritten(task, result.place):
                    found[id(result.node)] = result.place
        return found

    def _may_be_overwritten(self, writer: Task, place: Source) -> bool:
        """Return whether nothing needs a leaf once a task has begun to write there, but that task itself."""
        if place in self._returned:
            return False
        begins = next(number for number, stage in enumerate(self._planned) if writer in stage.tasks)
        # What is computed singly comes before the tasks of its stage.
        return all(
            reader is writer or number < begins or (number == begins and reader is None)
            for number, reader in self._readers.get(place, ())
        )

    def _readers_of_leaves(self) -> dict[Source, list[tuple[int, Task | None]]]:
        """Return what reads each leaf: the number of a stage, and a task of it, or None: its single part."""
        found: dict[Source, list[tuple[int, Task | None]]] = {}
        for number, stage in enumerate(self._planned):
            readers: list[tuple[Task | None, Sequence[TracedArray]]] = [
                *((None, node.arrays) for node in stage.single),
                *((task, _given(task)) for task in stage.tasks),
            ]
            for reader, arrays in readers:
                for place in {given.options[0] for given in arrays if given.operation == INPUT}:
                    found.setdefault(place, []).append((number, reader))
        return found


def _given(task: Task) -> list[TracedArray]:
    return [*(member for members in task.arrays for member in members), *task.scalars, *task.parts]


def _packed(members: Sequence[TracedArray], first: dict[int, Source]) -> Packed:
    kept = [
        (first[id(member)], part, None if member.ndim == 1 else member.shape)
        for member, part in zip(members, slices_of(members), strict=True)
        if id(member) in first
    ]
    places, slices, shapes = zip(*kept, strict=True)
    return Packed(key_of(members), places, slices, shapes)

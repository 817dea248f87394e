"""Running a graph on a device by generated kernels: a few launches a pass, however many leaves there are.

No value is read back: nothing here depends on one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from .buffers import crossing
from .cuda_source import PIECE, Limits, number_source, pass_source
from .cuda_sums import TOTAL_SOURCE, UNITS_TOTAL_SOURCE, UnitShape, unit_shape, unit_source
from .device_launches import Launches, Planned, Rows
from .device_layout import Places, Slots
from .device_memory import Device
from .graph import in_order, simplified
from .kernels import Kernel, Literal, Operation, Ref, kernel_of, specialised
from .numbers import Round, rounds
from .numpy_layout import Layout, Result
from .numpy_layout import Planned as PlannedStage
from .numpy_tasks import task_of
from .passes import Component, is_single, is_summed_in_passes, stages
from .tracing import CONSTANT, COPY, INPUT, MEMBER, SQUARE_SUMS, TracedArray, whole_function

Leaves = dict[str, list[Any]]
SquareSums = Callable[[Any, tuple[int, ...]], Iterable[Any]]

_TOTALS, _UNIT_TOTALS = "add_pieces", "add_unit_pieces"
_UNITS_A_BLOCK = 256


@dataclass(eq=False)
class _Call:
    """What one call holds: the leaves, the arrays by place, their pointers, and who keeps them alive."""

    leaves: Leaves
    pointers: Any
    buffers: dict[Any, Any]
    over: dict[int, Any]
    values: dict[int, Any]
    kept: list[Any]


class DevicePlan:
    """A traced step, ready to run on arrays of the shapes it was traced with.

    Args:
        results: what the step returns, leaf by leaf; the others are None.
        counts: how many leaves its results have.
        donated: the trees whose memory may be written to.
        device: runs it.
        limits: what tells big, middle and small numbers apart.
        square_sums: returns the three sums of squares of an array over axes, where no kernel does.

    Raises:
        TracingError: something has no form in CUDA.
    """

    def __init__(
        self,
        results: Sequence[Result],
        counts: dict[str, int],
        donated: frozenset[str],
        device: Device,
        limits: Limits,
        square_sums: SquareSums,
    ) -> None:
        nodes = simplified(result.node for result in results)
        self._results = [Result(result.place, node) for result, node in zip(results, nodes, strict=True)]
        self._counts, self._device, self._limits, self._square_sums = counts, device, limits, square_sums
        every = in_order(nodes)
        found = stages(nodes)
        self._layout = Layout(
            self._results,
            [
                PlannedStage(stage.single, tuple(task_of([one], kernel_of(one)) for one in stage.components))
                for stage in found
            ],
        )
        self._targets = self._layout.targets(donated)
        self._owner: dict[int, str] = {}
        for result in self._results:
            self._owner.setdefault(id(result.node), result.place[0])
        self._places = Places()
        self._sources: dict[str, str] = {}
        self._slots = Slots()
        for stage in found:
            for one in stage.components:
                for _, total in one.summed:
                    self._slots.reserve(total, _pieces(one.size))
        for node in filter(is_summed_in_passes, every):
            self._slots.reserve(node, sum(map(is_single, node.arrays)))
        for node in every:
            if node.operation == INPUT:
                self._places.leaves[self._places.of(id(node))] = node.options[0]
        users: dict[int, set[int]] = {}
        for node in every:
            for given in node.arrays:
                users.setdefault(id(given), set()).add(id(node))
        in_passes = {
            id(given) for stage in found for one in stage.components for given in (*one.scalars, *one.parts)
        }
        returned = {id(node) for node in nodes} | in_passes
        moves: list[Planned | TracedArray] = []
        for stage in found:
            for each in rounds(stage.single, users, returned):
                moves += self._round(each)
            moves += self._pass(stage.components)
        functions = device.functions(self._sources)
        self._moves = self._batched(moves, functions)

    # ---- Once

    def _batched(self, moves: list[Planned | TracedArray], functions: Any) -> list[Any]:
        """Return the moves with neighbouring launches as one."""
        found: list[Any] = []
        waiting: list[Planned] = []
        for move in [*moves, None]:
            if isinstance(move, Planned):
                waiting.append(move)
                continue
            if waiting:
                found.append(Launches(self._device, functions, waiting))
                waiting = []
            if move is not None:
                found.append(move)
        return found

    def _named(self, source: tuple[str, str]) -> str:
        name, text = source
        self._sources[name] = text
        return name

    def _place(self, node: TracedArray) -> int:
        return self._places.of(id(node))

    def _lay_out(self, node: TracedArray) -> None:
        """Give a computed array its memory."""
        given = node.dtype, node.shape, node.size
        if id(node) in self._targets:
            self._places.lay_over(id(node), self._targets[id(node)], *given)
        else:
            self._places.lay_out(id(node), self._owner.get(id(node), "scratch"), *given)

    def _round(self, each: Round) -> list[Planned | TracedArray]:
        moves: list[Planned | TracedArray] = list(self._number_launches(each.numbers))
        joint = [node for node in each.whole if is_summed_in_passes(node)]
        units = [
            node for node in each.whole if node.operation == SQUARE_SUMS and not is_summed_in_passes(node)
        ]
        units = [node for node in units if node.arrays[0].operation != CONSTANT]
        seen = [(node, unit_shape(node.arrays[0].shape, node.options[0])) for node in units]
        own = [(node, shape) for node, shape in seen if shape is not None]
        # Each is of arrays that are there before the round, or comes of another whole array.
        early = {id(node) for node in (*joint, *(node for node, _ in own)) if self._is_ready(node, each)}
        moves += self._totals([node for node in joint if id(node) in early])
        moves += self._units([entry for entry in own if id(entry[0]) in early])
        shapes = {id(node): shape for node, shape in own}
        for node in each.whole:
            if id(node) in early:
                continue
            if node.operation == MEMBER:
                self._places.same(id(node), (id(node.arrays[0]), node.options[0]))
            elif is_summed_in_passes(node):
                moves += self._totals([node])
            elif id(node) in shapes:
                moves += self._units([(node, shapes[id(node)])])
            else:
                if node.operation == SQUARE_SUMS:
                    for index in range(3):
                        self._places.of((id(node), index))
                moves.append(node)
        return moves

    def _is_ready(self, node: TracedArray, each: Round) -> bool:
        whole = {id(other) for other in each.whole}
        return not any(id(given) in whole for given in node.arrays)

    def _number_launches(self, numbers: Sequence[Component]) -> list[Planned]:
        alike: dict[Kernel, Rows] = {}
        for component in numbers:
            for node in component.stored:
                self._lay_out(node)
            rows = alike.setdefault(kernel_of(component), Rows())
            rows.add([1], [self._place(node) for node in (*component.arrays, *component.stored)])
        return [
            Planned(self._named(number_source(kernel)), rows, None, needs_slots=False)
            for kernel, rows in alike.items()
        ]

    def _pass(self, components: Sequence[Component]) -> list[Planned]:
        alike: dict[Kernel, list[Component]] = {}
        for component in components:
            for node in component.stored:
                self._lay_out(node)
            if component.size:
                kernel = kernel_of(component)
                kernel = specialised(kernel, (None,) * len(kernel.scalars))
                alike.setdefault(kernel, []).append(component)
        return [self._pass_launch(kernel, group) for kernel, group in alike.items()]

    def _pass_launch(self, kernel: Kernel, components: Sequence[Component]) -> Planned:
        rows, blocks = Rows(), []
        for one in components:
            lengths = one.shape if kernel.parts else ()
            given = (*one.arrays, *one.parts, *one.scalars, *one.stored)
            row = rows.add([one.size, *lengths], [self._place(node) for node in given])
            firsts = [self._slots.take(total, _pieces(one.size)) for _, total in one.summed]
            blocks += [
                [row, piece * PIECE, *(first + piece for first in firsts)]
                for piece in range(_pieces(one.size))
            ]
        return Planned(self._named(pass_source(kernel, self._limits)), rows, blocks, needs_slots=True)

    def _totals(self, nodes: Sequence[TracedArray]) -> list[Planned]:
        """Return what adds up the pieces of sums over all elements."""
        if not nodes:
            return []
        found: list[Planned] = []
        alone: dict[Kernel, tuple[Rows, list[list[int]]]] = {}
        for node in nodes:
            for given in node.arrays:
                if is_single(given):
                    rows, blocks = alone.setdefault(_number_kernel(given), (Rows(), []))
                    row = rows.add([1], [] if given.operation == CONSTANT else [self._place(given)])
                    blocks.append([row, 0, self._slots.take(node, 1)])
        for kernel, (rows, blocks) in alone.items():
            name = self._named(pass_source(kernel, self._limits))
            found.append(Planned(name, rows, blocks, needs_slots=True))
        self._sources[_TOTALS] = TOTAL_SOURCE
        totals = Rows()
        for node in nodes:
            first, count = self._slots.of(node)
            key = (id(node), 0)
            self._places.lay_out(key, "sums", node.dtype, (3,), 3)
            piece = self._places.pieces[self._places.of(key)]
            for index in (1, 2):
                place = self._places.of((id(node), index))
                self._places.pieces[place] = type(piece)(piece.buffer, piece.start + index, 1, ())
            self._places.pieces[self._places.of(key)] = type(piece)(piece.buffer, piece.start, 1, ())
            totals.add([first, count], [self._places.of(key)], [int(node.dtype.itemsize == 8)])
        found.append(Planned(_TOTALS, totals, [[row] for row in range(len(nodes))], needs_slots=True))
        return found

    def _units(self, entries: Sequence[tuple[TracedArray, UnitShape]]) -> list[Planned]:
        """Return what sums the units of arrays."""
        by_dtype: dict[str, list[tuple[TracedArray, UnitShape]]] = {}
        for node, shape in entries:
            by_dtype.setdefault(node.arrays[0].dtype.str, []).append((node, shape))
        found = []
        totals, total_blocks = Rows(), []
        for dtype, group in by_dtype.items():
            rows, blocks = Rows(), []
            for node, shape in group:
                for index in range(3):
                    self._places.lay_out((id(node), index), "sums", node.dtype, node.shape, node.size)
                first = self._slots.new(shape.units * shape.pieces)
                lengths = shape.outer_depth, shape.outer_units, shape.inner_depth, shape.inner_units
                row = rows.add([*lengths, shape.at_once, shape.pieces, first], [self._place(node.arrays[0])])
                blocks += [
                    [row, unit, piece]
                    for unit in range(0, shape.units, shape.at_once)
                    for piece in range(shape.pieces)
                ]
                sums = [self._places.of((id(node), index)) for index in range(3)]
                is_double = int(node.dtype.itemsize == 8)
                total = totals.add([shape.units, shape.pieces, first], sums, [is_double])
                total_blocks += [[total, unit] for unit in range(0, shape.units, _UNITS_A_BLOCK)]
            if blocks:
                name = self._named(unit_source(dtype, self._limits))
                found.append(Planned(name, rows, blocks, needs_slots=True))
        if total_blocks:
            self._sources[_UNIT_TOTALS] = UNITS_TOTAL_SOURCE
            found.append(Planned(_UNIT_TOTALS, totals, total_blocks, needs_slots=True))
        return found

    # ---- At each call

    def __call__(self, leaves: Leaves) -> Leaves:
        """Return the leaves of the new gradients and of the new state.

        Args:
            leaves: of "gradients", "weights" and "state": arrays, or None.
        """
        import numpy as np

        over = self._usable_targets(leaves)
        without = {source for place, (source, _) in self._places.targets.items() if place in over}
        call = _Call(
            leaves,
            np.zeros(len(self._places), np.int64),
            self._places.buffers(self._device, without),
            over,
            {},
            [],
        )
        self._fill_pointers(call)
        slots = self._device.empty(3 * self._slots.count, np.dtype(np.float64))
        for move in self._moves:
            if isinstance(move, Launches):
                move.run(call.pointers, slots)
            else:
                self._compute(move, call)
        return self._handed_out(call)

    def _usable_targets(self, leaves: Leaves) -> dict[int, Any]:
        """Return the donated leaves that may really be written to, by place."""
        if not self._places.targets:
            return {}
        device = self._device
        given = [leaf for of_kind in leaves.values() for leaf in of_kind if leaf is not None]
        shared = crossing((*device.span(leaf), id(leaf)) for leaf in given if leaf.size)
        found = {}
        for place, ((kind, number), _) in self._places.targets.items():
            leaf = leaves[kind][number]
            if device.is_in_order(leaf) and id(leaf) not in shared:
                found[place] = leaf
        return found

    def _fill_pointers(self, call: _Call) -> None:
        device, pointers = self._device, call.pointers
        for place, (kind, number) in self._places.leaves.items():
            array = device.in_order(call.leaves[kind][number])
            call.kept.append(array)
            pointers[place] = device.pointer(array)
        bases = {name: device.pointer(buffer) for name, buffer in call.buffers.items()}
        for place, piece in self._places.pieces.items():
            buffer = call.buffers[piece.buffer]
            pointers[place] = bases[piece.buffer] + piece.start * buffer.dtype.itemsize
        for place, (_, piece) in self._places.targets.items():
            pointers[place] = device.pointer(call.over[place]) if place in call.over else bases[piece.buffer]

    def _array(self, node: TracedArray, call: _Call) -> Any:
        """Return an array as the functions of the library take it."""
        if node.operation == INPUT:
            kind, number = node.options[0]
            return call.leaves[kind][number]
        if node.operation == CONSTANT:
            return self._device.full(node.shape, node.options[0], node.dtype)
        if id(node) in call.values:
            return call.values[id(node)]
        return self._view(self._place(node), node.shape, call)

    def _view(self, place: int, shape: tuple[int, ...], call: _Call) -> Any:
        if place in call.over:
            return call.over[place]
        piece = (
            self._places.targets[place][1] if place in self._places.targets else self._places.pieces[place]
        )
        return call.buffers[piece.buffer][piece.start : piece.start + prod(shape)].reshape(shape)

    def _compute(self, node: TracedArray, call: _Call) -> None:
        given = [self._array(array, call) for array in node.arrays]
        if node.operation == SQUARE_SUMS:
            for index, value in enumerate(self._square_sums(given[0], node.options[0])):
                self._keep((id(node), index), value, call)
            return
        value = whole_function(node)(*given)
        call.values[id(node)] = value = self._device.in_order(value).reshape(node.shape)
        self._keep(id(node), value, call)

    def _keep(self, key: Any, value: Any, call: _Call) -> None:
        value = self._device.in_order(value)
        call.kept.append(value)
        if self._places.known(key):
            place = self._places.of(key)
            call.pointers[place] = self._device.pointer(value)
            call.over[place] = value

    def _handed_out(self, call: _Call) -> Leaves:
        results: Leaves = {kind: [None] * count for kind, count in self._counts.items()}
        given: set[int] = set()
        for result in self._results:
            kind, number = result.place
            node = result.node
            array = self._array(node, call)
            is_own = node.operation != INPUT and id(node) not in call.values
            if is_own and id(node) not in given:
                given.add(id(node))
            elif node.operation != INPUT:
                array = array.copy()
            results[kind][number] = array
        return results


def _pieces(size: int) -> int:
    return -(-size // PIECE)


def _number_kernel(node: TracedArray) -> Kernel:
    """Return the kernel that squares one number."""
    dtype = node.dtype.str
    if node.operation != CONSTANT:
        return Kernel((), (dtype,), (), (), (), ((Ref("array", 0), dtype),))
    copy = Operation(COPY, (Literal(node.options[0], dtype),), dtype)
    return Kernel((copy,), (), (), (), (), ((Ref("result", 0), dtype),))

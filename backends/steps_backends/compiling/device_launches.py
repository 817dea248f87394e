"""Launches of generated kernels: the tables of pointers that they read, and who does which piece."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .device_memory import Device, Launch

STATIC = -1


@dataclass(eq=False)
class Rows:
    """A table whose entries are numbers, or pointers that each call fills in.

    Attributes:
        entries: row by row, pairs of a number and a place; of a number the place is STATIC.
    """

    entries: list[list[tuple[int, int]]] = field(default_factory=list)

    def add(self, numbers: Sequence[int], places: Sequence[int], after: Sequence[int] = ()) -> int:
        """Add a row of numbers, pointers, and numbers again; return its number."""
        row = [(number, STATIC) for number in numbers]
        row += [(0, place) for place in places]
        row += [(number, STATIC) for number in after]
        self.entries.append(row)
        return len(self.entries) - 1


@dataclass(eq=False)
class Planned:
    """One launch.

    Attributes:
        name: of the kernel.
        rows: its table.
        blocks: a row of numbers for each block of threads; None: a thread does a row.
        needs_slots: whether it takes the slots of sums.
    """

    name: str
    rows: Rows
    blocks: list[list[int]] | None
    needs_slots: bool


class Launches:
    """Launches one after another, with one table for all of them.

    Args:
        device: runs them.
        functions: by the names of the kernels.
        planned: in order.
    """

    def __init__(self, device: Device, functions: dict[str, Launch], planned: Sequence[Planned]) -> None:
        import numpy as np

        self._device = device
        entries = np.asarray(
            [entry for launch in planned for row in launch.rows.entries for entry in row], np.int64
        ).reshape(-1, 2)
        self._numbers, places = np.ascontiguousarray(entries[:, 0]), entries[:, 1]
        self._filled = np.flatnonzero(places != STATIC)
        self._places = places[self._filled]
        self._steps: list[tuple[Launch, slice, Any, int, bool, int]] = []
        start = 0
        for launch in planned:
            size = sum(map(len, launch.rows.entries))
            count = len(launch.rows.entries)
            blocks = None if launch.blocks is None else np.asarray(launch.blocks, np.int64).reshape(-1)
            grid = -(-count // device.threads) if launch.blocks is None else len(launch.blocks)
            entry = (
                functions[launch.name],
                slice(start, start + size),
                blocks,
                grid,
                launch.needs_slots,
                count,
            )
            self._steps.append(entry)
            start += size
        self._blocks: list[Any] = []
        self._last: tuple[Any, Any] | None = None

    def run(self, pointers: Any, slots: Any) -> None:
        """Launch all, with the pointers of this call."""
        table = self._table(pointers)
        if not self._blocks:
            self._blocks = [None if step[2] is None else self._device.table(step[2]) for step in self._steps]
        for (launch, part, _, grid, needs_slots, count), blocks in zip(
            self._steps, self._blocks, strict=True
        ):
            arguments = [table[part], count if blocks is None else blocks]
            launch(grid, [*arguments, slots] if needs_slots else arguments)

    def _table(self, pointers: Any) -> Any:
        """Return the table on the device: the last one, where nothing has moved."""
        import numpy as np

        filled = pointers[self._places]
        if self._last is None or not np.array_equal(self._last[0], filled):
            numbers = self._numbers.copy()
            numbers[self._filled] = filled
            self._last = filled, self._device.table(numbers)
        return self._last[1]

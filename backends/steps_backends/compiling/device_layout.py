"""Where a plan for a device keeps what it computes: in one buffer for each tree and dtype of results."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from .device_memory import Device
from .numpy_layout import Source
from .tracing import TracedArray

# Arrays begin at multiples of so many elements, so that threads read whole lines of memory.
_LINE = 32


@dataclass(eq=False)
class _Buffer:
    dtype: Any
    size: int = 0


@dataclass(frozen=True, eq=False)
class Piece:
    """Where an array lies in its buffer."""

    buffer: Hashable
    start: int
    size: int
    shape: tuple[int, ...]


@dataclass(eq=False)
class Places:
    """Numbers, which index a vector of pointers, for all that kernels read and write.

    Attributes:
        pieces: by place, of what lies in a buffer.
        targets: by place, of what may be written over a donated leaf.
        leaves: by place, of what is given.
    """

    pieces: dict[int, Piece] = field(default_factory=dict)
    targets: dict[int, tuple[Source, Piece]] = field(default_factory=dict)
    leaves: dict[int, Source] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _buffers: dict[Hashable, _Buffer] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, key: Hashable) -> int:
        """Return the place of something."""
        return self._numbers.setdefault(key, len(self._numbers))

    def known(self, key: Hashable) -> bool:
        """Return whether something has a place."""
        return key in self._numbers

    def same(self, key: Hashable, other: Hashable) -> None:
        """Give something the place of something else."""
        self._numbers[key] = self.of(other)

    def lay_out(self, key: Hashable, owner: str, dtype: Any, shape: tuple[int, ...], size: int) -> None:
        """Give something a piece of the buffer of an owner."""
        name = owner, dtype.str
        buffer = self._buffers.setdefault(name, _Buffer(dtype))
        start = buffer.size if size == 1 else -(-buffer.size // _LINE) * _LINE
        buffer.size = start + size
        self.pieces[self.of(key)] = Piece(name, start, size, shape)

    def lay_over(self, key: Hashable, source: Source, dtype: Any, shape: tuple[int, ...], size: int) -> None:
        """Let something be written over a donated leaf, or else to a buffer of its own."""
        name = ("over", source)
        self._buffers[name] = _Buffer(dtype, size)
        self.targets[self.of(key)] = source, Piece(name, 0, size, shape)

    def buffers(self, device: Device, without: set[Source]) -> dict[Hashable, Any]:
        """Return new buffers; none for what is written over these leaves."""
        return {
            name: device.empty(buffer.size, buffer.dtype)
            for name, buffer in self._buffers.items()
            if not (isinstance(name, tuple) and name[0] == "over" and name[1] in without)
        }


@dataclass(eq=False)
class Slots:
    """Places for the sums of pieces, those of one total side by side.

    Attributes:
        count: how many there are.
    """

    count: int = 0
    _sizes: dict[int, int] = field(default_factory=dict)
    _firsts: dict[int, int] = field(default_factory=dict)
    _taken: dict[int, int] = field(default_factory=dict)

    def reserve(self, total: TracedArray, count: int) -> None:
        """Say how many a total needs, before any is taken."""
        self._sizes[id(total)] = self._sizes.get(id(total), 0) + count

    def new(self, count: int) -> int:
        """Return the first of new ones."""
        self.count += count
        return self.count - count

    def of(self, total: TracedArray) -> tuple[int, int]:
        """Return the first slot of a total, and how many it has."""
        size = self._sizes.get(id(total), 0)
        if id(total) not in self._firsts:
            self._firsts[id(total)] = self.new(size)
        return self._firsts[id(total)], size

    def take(self, total: TracedArray, count: int) -> int:
        """Return the first of some slots of a total."""
        first, _ = self.of(total)
        taken = self._taken.get(id(total), 0)
        self._taken[id(total)] = taken + count
        return first + taken

"""What a plan asks of a device whose kernels it generates: memory, tables, and launches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

# Takes the number of blocks of threads, and the arguments: arrays of the device, or whole numbers.
Launch = Callable[[int, Sequence[Any]], None]


class Device(Protocol):
    """A device, and the arrays of one library on it.

    Attributes:
        threads: of a block, a power of two.
    """

    threads: int

    def functions(self, sources: Mapping[str, str]) -> dict[str, Launch]:
        """Return what launches each kernel, compiled.

        Args:
            sources: the texts by the names of the kernels, without what they share.

        Raises:
            TracingError: they cannot be compiled.
        """
        ...

    def table(self, numbers: Any) -> Any:
        """Return NumPy's int64 numbers on the device, without waiting for it."""
        ...

    def empty(self, size: int, dtype: Any) -> Any:
        """Return an array of one axis with any values."""
        ...

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
        """Return an array of one number."""
        ...

    def in_order(self, array: Any) -> Any:
        """Return the array with its elements in C order: itself where they are."""
        ...

    def is_in_order(self, array: Any) -> bool:
        """Return whether the elements lie in C order and may be written to."""
        ...

    def pointer(self, array: Any) -> int:
        """Return where the array begins in the memory of the device."""
        ...

    def span(self, array: Any) -> tuple[int, int]:
        """Return where the array's elements begin and end in memory."""
        ...

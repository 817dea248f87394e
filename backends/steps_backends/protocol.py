"""What the suite asks of a backend."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from .declaration import Declaration
from .host import HostArray


@dataclass(frozen=True)
class Probe:
    """What was found when a backend was really used.

    Attributes:
        runs: whether it can run here.
        reason: why it cannot, in words with the way out; None where it runs.
        version: the version of the library, where it could be asked.
        deviations: where the declaration and reality disagree, one sentence each.
    """

    runs: bool
    reason: str | None = None
    version: str | None = None
    deviations: tuple[str, ...] = ()


class Backend(Protocol):
    """One array library in one configuration on one device.

    Making a backend imports nothing. Every method but ``probe`` may assume that the library is there.
    Rows of JAX and of array-api-strict set switches of the whole process when they make an array or
    call a function, so in one process use one row after the other, never two in turns within a case.
    """

    @property
    def declaration(self) -> Declaration:
        """What the backend says about itself."""
        ...

    def probe(self) -> Probe:
        """Use the library on the device, and compare what happens with the declaration."""
        ...

    def array(self, host: HostArray) -> Any:
        """Return an array of this library with exactly these values, dtype and shape, on the device.

        Raises:
            TypeError: the library has no such dtype in this configuration.
        """
        ...

    def read(self, array: Any) -> HostArray:
        """Return the exact values of an array of this library."""
        ...

    def holds(self, value: Any) -> bool:
        """Return whether value is an array of this library; its scalars are not arrays."""
        ...

    def device_of(self, array: Any) -> str:
        """Return the device of an array, or all of them, as a text that is equal for equal devices."""
        ...

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Wait until these arrays are computed."""
        ...

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args), run in the way of this row; positional arguments are trees of arrays."""
        ...


class HostReadError(Exception):
    """A value was read on the host, or waited for, where nothing may be; the text says what was done."""


class SeesReads(Protocol):
    """What a backend with the trait ``sees_reads`` has beyond."""

    def unread(self, function: Callable[..., Any], *args: Any) -> None:
        """Run function(*args) where no value can be read, on arrays like those in args.

        Raises:
            HostReadError: a value was read.
        """
        ...


class TwoDevices(Protocol):
    """What a backend with the trait ``two_devices`` has beyond."""

    def elsewhere(self, array: Any) -> Any:
        """Return the array on the second device."""
        ...

    def moves(self, function: Callable[..., Any], *args: Any) -> list[tuple[int, ...]]:
        """Return the shapes of the arrays that function(*args) moves from one device to the other."""
        ...


class Sharded(Protocol):
    """What a backend with the trait ``sharded`` has beyond."""

    def parts_of(self, array: Any) -> str:
        """Return which part of an array lies where, as a text that is equal where that is equal."""
        ...

    def unsharded(self, array: Any) -> Any:
        """Return the whole array on one device, or as each process has it."""
        ...

    def collectives(self, function: Callable[..., Any], *args: Any) -> Counter[str]:
        """Return how many collective operations function(*args) has, by name, such as ``all-reduce``."""
        ...


class TwoProcesses(Protocol):
    """What a backend with the trait ``two_processes`` has beyond; it can be used once both have joined."""

    def can_meet(self) -> bool:
        """Return whether what two processes need is there; where not, the probe says what is missing."""
        ...

    def join(self, folder: str, rank: int) -> None:
        """Meet the other process, which is told the same folder and the other rank, 0 or 1."""
        ...

    def meet_again(self) -> None:
        """Start the talk of the two afresh, whatever one of them has missed; both call this."""
        ...

    def exchange(self, text: str) -> list[str]:
        """Return what both say, that of rank 0 first.

        Raises:
            RuntimeError: the other one does not answer.
        """
        ...


class Transforms(Protocol):
    """What a backend has beyond, each for its trait: compiles, batches, differentiates, scans."""

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function compiled as one graph; it fails where the graph would break."""
        ...

    def batched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of trees whose leaves are stacked along a new first axis."""
        ...

    def derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the derivative, by the first argument, of a function whose result is one number."""
        ...

    def scanned(self, body: Callable[[Any, Any], tuple[Any, Any]], carry: Any, steps: Any) -> tuple[Any, Any]:
        """Return the last carry and the stacked results of calling body(carry, step) along the first axis."""
        ...

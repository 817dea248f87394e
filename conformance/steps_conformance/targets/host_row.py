"""The row of targets in other processes: values alone, with no array library on this side."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from steps_backends import LEAF_DTYPES, Declaration, HostArray, Probe

HOST = "host"
"""The name of the row."""


@dataclass(frozen=True)
class HostBackend:
    """Plain values. They are what travels, so nothing is computed or converted on this side."""

    declaration: Declaration

    def probe(self) -> Probe:
        """Always run; whether the other side does is the target's affair."""
        return Probe(True)

    def array(self, host: HostArray) -> HostArray:
        """Return host."""
        return host

    def read(self, array: HostArray) -> HostArray:
        """Return array."""
        return array

    def holds(self, value: Any) -> bool:
        """Return whether value is an array of values."""
        return isinstance(value, HostArray)

    def device_of(self, array: HostArray) -> str:
        """Return ``cpu``, where the values lie on this side."""
        return "cpu"

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Do nothing: an answer that has arrived is computed."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args)."""
        return function(*args)


row = HostBackend(
    Declaration(HOST, "none: values as text", "nothing", "cpu", LEAF_DTYPES, frozenset({"eager"}))
)

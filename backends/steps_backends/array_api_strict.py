"""array-api-strict: the standard and nothing beyond it, also on a pretended device and with features off."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .numpy import from_numpy, to_numpy
from .probing import probe
from .protocol import Backend, HostReadError, Probe

_DTYPES = ("float32", "float64", "complex64", "complex128")
_DEVICES = {"cpu": "CPU_DEVICE", "device1": "device1"}
_OTHER_DEVICE = {"cpu": "device1", "device1": "CPU_DEVICE"}
_READS = (
    "__array__",
    "__bool__",
    "__buffer__",
    "__complex__",
    "__dlpack__",
    "__float__",
    "__index__",
    "__int__",
)
"""The ways in which a value leaves a strict array."""


@dataclass(frozen=True)
class StrictBackend:
    """array-api-strict on one of its devices.

    Whether optional features are on is a switch of the whole process; each row sets it as it needs when
    it makes an array or calls a function.
    """

    declaration: Declaration

    def probe(self) -> Probe:
        """Use the library, and compare with the declaration."""
        return probe(self)

    def array(self, host: HostArray) -> Any:
        """Return a strict array on the device."""
        strict = self._strict()
        if not hasattr(strict, host.dtype):
            raise TypeError(f"array-api-strict has no {host.dtype}; it has what the standard names")
        device = strict.Device(_DEVICES[self.declaration.device])
        return strict.asarray(to_numpy(host), dtype=getattr(strict, host.dtype), device=device)

    def read(self, array: Any) -> HostArray:
        """Return the values of a strict array."""
        import numpy as np
        from array_api_strict import Device

        # only arrays on its CPU device can be exported
        return from_numpy(np.from_dlpack(array.to_device(Device("CPU_DEVICE"))))

    def holds(self, value: Any) -> bool:
        """Return whether value is a strict array."""
        import array_api_strict as strict

        return isinstance(value, type(strict.empty(())))

    def device_of(self, array: Any) -> str:
        """Return the name of the device, ``cpu`` for the library's ``CPU_DEVICE``."""
        name = str(array.device).rsplit("(", maxsplit=1)[-1].strip("')\"")
        return "cpu" if name == "CPU_DEVICE" else name

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Do nothing: the library has finished when it returns."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args), with the optional features as the row has them."""
        self._strict()
        return function(*args)

    def unread(self, function: Callable[..., Any], *args: Any) -> None:
        """Run function(*args) and count the reads of its arrays."""
        reads: list[str] = []
        with self._watched(_READS, lambda name, *_: reads.append(name)):
            self.call(function, *args)
        if reads:
            raise HostReadError(f"{', '.join(sorted(set(reads)))} of an array was called, {len(reads)} times")

    def elsewhere(self, array: Any) -> Any:
        """Return the array on the library's other device."""
        return array.to_device(self._strict().Device(_OTHER_DEVICE[self.declaration.device]))

    def moves(self, function: Callable[..., Any], *args: Any) -> list[tuple[int, ...]]:
        """Return the shapes of the arrays that function(*args) moves from one device to the other."""
        shapes: list[tuple[int, ...]] = []

        def record(_: str, array: Any, device: Any, **__: Any) -> None:
            if device != array.device:
                shapes.append(tuple(array.shape))

        with self._watched(("to_device",), record):
            self.call(function, *args)
        return shapes

    @contextmanager
    def _watched(self, methods: Iterable[str], record: Callable[..., None]) -> Iterator[None]:
        """Have record called before each call of these methods of any array."""
        # Python looks special methods up on the class.
        kind = type(self._strict().empty(()))
        found = {name: getattr(kind, name) for name in methods if hasattr(kind, name)}
        try:
            for name, method in found.items():
                setattr(kind, name, _recording(name, method, record))
            yield
        finally:
            for name, method in found.items():
                setattr(kind, name, method)

    def _strict(self) -> Any:
        import array_api_strict as strict

        full = "optional_features_off" not in self.declaration.traits
        if strict.get_array_api_strict_flags()["boolean_indexing"] != full:
            strict.set_array_api_strict_flags(
                boolean_indexing=full,
                data_dependent_shapes=full,
                enabled_extensions=("linalg", "fft") if full else (),
            )
        return strict


def _recording(name: str, method: Callable[..., Any], record: Callable[..., None]) -> Callable[..., Any]:
    def recorded(array: Any, *args: Any, **options: Any) -> Any:
        record(name, array, *args, **options)
        return method(array, *args, **options)

    return recorded


def _row(name: str, device: str, *traits: str) -> StrictBackend:
    declared = frozenset({"eager", "mutable", "sees_reads", "two_devices", *traits})
    return StrictBackend(Declaration(name, "array_api_strict", "array-api-strict", device, _DTYPES, declared))


ROWS: tuple[Backend, ...] = (
    _row("array-api-strict", "cpu"),
    _row("array-api-strict-device1", "device1", "fake_device"),
    _row("array-api-strict-minimal", "cpu", "optional_features_off"),
)

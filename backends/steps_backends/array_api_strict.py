"""array-api-strict: the standard and nothing beyond it, also on a pretended device and with features off."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .numpy import from_numpy, to_numpy
from .probing import probe
from .protocol import Backend, Probe

_DTYPES = ("float32", "float64", "complex64", "complex128")
_DEVICES = {"cpu": "CPU_DEVICE", "device1": "device1"}


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


def _row(name: str, device: str, *traits: str) -> StrictBackend:
    declared = frozenset({"eager", "mutable", *traits})
    return StrictBackend(Declaration(name, "array_api_strict", "array-api-strict", device, _DTYPES, declared))


ROWS: tuple[Backend, ...] = (
    _row("array-api-strict", "cpu"),
    _row("array-api-strict-device1", "device1", "fake_device"),
    _row("array-api-strict-minimal", "cpu", "optional_features_off"),
)

"""CuPy on CUDA. bfloat16 needs CuPy 14, which takes it from ml_dtypes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .numpy import from_numpy, to_numpy
from .probing import probe
from .protocol import Backend, Probe

_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@dataclass(frozen=True)
class CupyBackend:
    """CuPy on the current CUDA device."""

    declaration: Declaration

    def probe(self) -> Probe:
        """Use CuPy on the device, and compare with the declaration."""
        return probe(self, device_problem=self._device_problem)

    def _device_problem(self) -> str | None:
        import cupy

        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            return f"no CUDA device: {error}"
        return None if count else "no CUDA device: the runtime counts 0"

    def array(self, host: HostArray) -> Any:
        """Return a CuPy array on the current device."""
        import cupy

        return cupy.asarray(to_numpy(host))

    def read(self, array: Any) -> HostArray:
        """Return the values of a CuPy array."""
        import cupy

        return from_numpy(cupy.asnumpy(array))

    def holds(self, value: Any) -> bool:
        """Return whether value is a CuPy array."""
        import cupy

        return isinstance(value, cupy.ndarray)

    def device_of(self, array: Any) -> str:
        """Return the device, such as ``cuda:0``."""
        return f"cuda:{array.device.id}"

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Wait for the device."""
        import cupy

        cupy.cuda.Device().synchronize()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args)."""
        return function(*args)


ROWS: tuple[Backend, ...] = (
    CupyBackend(
        Declaration(
            "cupy", "cupy", "cupy-cuda13x ml_dtypes", "cuda", _DTYPES, frozenset({"eager", "mutable"})
        )
    ),
)

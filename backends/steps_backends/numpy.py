"""NumPy, with bfloat16 from ml_dtypes; also with arrays that forbid writing."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .probing import probe
from .protocol import Backend, Probe

_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def to_numpy(host: HostArray) -> Any:
    """Return a NumPy array with the values of host."""
    import numpy as np

    return np.array(host.values, dtype=numpy_dtype(host.dtype)).reshape(host.shape)


def from_numpy(array: Any) -> HostArray:
    """Return the values of a NumPy array."""
    return HostArray(array.dtype.name, tuple(array.shape), tuple(array.ravel().tolist()))


def numpy_dtype(name: str) -> Any:
    """Return the NumPy dtype of that name; bfloat16 is the one of ml_dtypes."""
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        raise TypeError("NumPy has no bfloat16 of its own; pip install ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True)
class NumpyBackend:
    """NumPy on the CPU."""

    declaration: Declaration

    def probe(self) -> Probe:
        """Use NumPy, and compare with the declaration."""
        return probe(self)

    def array(self, host: HostArray) -> Any:
        """Return an ndarray, writable unless this is the read-only row."""
        array = to_numpy(host)
        array.flags.writeable = "read_only" not in self.declaration.traits
        return array

    def read(self, array: Any) -> HostArray:
        """Return the values of an ndarray."""
        return from_numpy(array)

    def holds(self, value: Any) -> bool:
        """Return whether value is an ndarray; a scalar such as ``numpy.float32(1)`` is not."""
        import numpy as np

        return isinstance(value, np.ndarray)

    def device_of(self, array: Any) -> str:
        """Return ``cpu``."""
        return str(array.device)

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Do nothing: NumPy has finished when it returns."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args); the read-only row forbids writing to any array in args."""
        if "read_only" in self.declaration.traits:
            for array in self._arrays(args):
                array.flags.writeable = False
        return function(*args)

    def _arrays(self, tree: Any) -> Iterator[Any]:
        if self.holds(tree):
            yield tree
        elif isinstance(tree, (list, tuple)):
            for item in tree:
                yield from self._arrays(item)
        elif isinstance(tree, dict):
            yield from self._arrays(list(tree.values()))


def _row(name: str, *traits: str) -> NumpyBackend:
    return NumpyBackend(Declaration(name, "numpy", "numpy ml_dtypes", "cpu", _DTYPES, frozenset(traits)))


ROWS: tuple[Backend, ...] = (_row("numpy", "eager", "mutable"), _row("numpy-readonly", "eager", "read_only"))

"""JAX on the CPU: as it comes, under jax.jit, and with 64-bit types."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .numpy import from_numpy, to_numpy
from .probing import probe
from .protocol import Backend, Probe

_DTYPES = ("float16", "bfloat16", "float32", "complex64")


@dataclass(frozen=True)
class JaxBackend:
    """JAX on the CPU.

    Whether 64-bit types exist is a switch of the whole process; each row sets it as it needs when it
    makes an array or calls a function.
    """

    declaration: Declaration

    def probe(self) -> Probe:
        """Use JAX, and compare with the declaration."""
        return probe(self)

    def array(self, host: HostArray) -> Any:
        """Return a JAX array, committed to the CPU."""
        jax = self._jax()
        array = jax.device_put(_checked(to_numpy(host), self._x64), jax.local_devices(backend="cpu")[0])
        if array.dtype.name != host.dtype:
            raise TypeError(f"jax makes {array.dtype.name} of {host.dtype} here; the row jax-x64 has it")
        return array

    def read(self, array: Any) -> HostArray:
        """Return the values of a JAX array."""
        import numpy as np

        return from_numpy(np.asarray(array))

    def holds(self, value: Any) -> bool:
        """Return whether value is a JAX array."""
        import jax

        return isinstance(value, jax.Array)

    def device_of(self, array: Any) -> str:
        """Return the names of the array's devices, such as ``cpu:0``."""
        return ", ".join(sorted(f"{device.platform}:{device.id}" for device in array.devices()))

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Wait until these arrays are computed."""
        import jax

        jax.block_until_ready(list(tree_leaves))

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args), compiled for the row jax-jit."""
        self._jax()
        return _jitted(function)(*args) if "jit" in self.declaration.traits else function(*args)

    @property
    def _x64(self) -> bool:
        return "x64" in self.declaration.traits

    def _jax(self) -> Any:
        import jax

        if jax.config.jax_enable_x64 != self._x64:
            jax.config.update("jax_enable_x64", self._x64)
        return jax


def _checked(array: Any, x64: bool) -> Any:
    """Refuse what JAX would narrow, which it does with a warning at most."""
    if not x64 and array.dtype.name in ("float64", "complex128", "int64", "uint64"):
        raise TypeError(f"jax has no {array.dtype.name} while 64-bit types are off; the row jax-x64 has it")
    return array


@lru_cache(maxsize=256)
def _jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled function, the same one for the same function, so that it compiles once."""
    import jax

    compiled: Callable[..., Any] = jax.jit(function)
    return compiled


def _row(name: str, dtypes: tuple[str, ...], *traits: str) -> JaxBackend:
    declared = frozenset({"flushes_subnormals", *traits})
    return JaxBackend(Declaration(name, "jax", "jax", "cpu", dtypes, declared))


ROWS: tuple[Backend, ...] = (
    _row("jax", _DTYPES, "eager"),
    _row("jax-jit", _DTYPES, "jit"),
    _row("jax-x64", (*_DTYPES, "float64", "complex128"), "eager", "x64"),
)

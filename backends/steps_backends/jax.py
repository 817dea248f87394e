"""JAX on the CPU: as it comes, under jax.jit, and with 64-bit types."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .numpy import from_numpy, to_numpy
from .probing import probe
from .protocol import Backend, HostReadError, Probe

_DTYPES = ("float16", "bfloat16", "float32", "complex64")
_ALWAYS = ("flushes_subnormals", "sees_reads", "compiles", "batches", "differentiates", "scans")


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

    def unread(self, function: Callable[..., Any], *args: Any) -> None:
        """Trace function(*args), as jax.jit does, where arrays have no values."""
        jax = self._jax()
        errors = jax.errors
        try:
            jax.eval_shape(function, *args)
        except (
            errors.ConcretizationTypeError,
            errors.TracerArrayConversionError,
            errors.TracerIntegerConversionError,
        ) as error:
            raise HostReadError(str(error).split("\n", maxsplit=1)[0]) from error

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return jax.jit(function)."""
        compiled: Callable[..., Any] = self._jax().jit(function)
        return compiled

    def batched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return jax.vmap(function), compiled: each operation by itself would take longer to compile."""
        jax = self._jax()
        batched: Callable[..., Any] = jax.jit(jax.vmap(function))
        return batched

    def derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return jax.grad(function), compiled as for a batch."""
        jax = self._jax()
        derivative: Callable[..., Any] = jax.jit(jax.grad(function))
        return derivative

    def scanned(self, body: Callable[[Any, Any], tuple[Any, Any]], carry: Any, steps: Any) -> tuple[Any, Any]:
        """Return jax.lax.scan(body, carry, steps)."""
        last, results = self._jax().lax.scan(body, carry, steps)
        return last, results

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
    declared = frozenset({*_ALWAYS, *traits})
    return JaxBackend(Declaration(name, "jax", "jax", "cpu", dtypes, declared))


ROWS: tuple[Backend, ...] = (
    _row("jax", _DTYPES, "eager"),
    _row("jax-jit", _DTYPES, "jit"),
    _row("jax-x64", (*_DTYPES, "float64", "complex128"), "eager", "x64"),
)

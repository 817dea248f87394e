"""JAX: as it comes, under jax.jit, with 64-bit types, sharded over devices of the CPU, and on CUDA."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import jax_sharding
from .declaration import Declaration
from .host import HostArray
from .numpy import from_numpy, to_numpy
from .probing import probe
from .protocol import Backend, HostReadError, Probe

_DTYPES = ("float16", "bfloat16", "float32", "complex64")
_ALWAYS = ("flushes_subnormals", "sees_reads", "compiles", "batches", "differentiates", "scans")


@dataclass(frozen=True)
class JaxBackend:
    """JAX on one device, or sharded over several.

    Whether 64-bit types exist is a switch of the whole process; each row sets it as it needs when it
    makes an array or calls a function.
    """

    declaration: Declaration

    def probe(self) -> Probe:
        """Use JAX, and compare with the declaration."""
        return probe(self, device_problem=self._device_problem)

    def _device_problem(self) -> str | None:
        jax = self._jax()
        if self._sharded:
            return jax_sharding.problem()
        if self.declaration.device == "cpu":
            return None
        try:
            jax.local_devices(backend="cuda")
        except RuntimeError as error:
            return f"no CUDA device: {str(error).splitlines()[0]}"
        return None

    def array(self, host: HostArray) -> Any:
        """Return a JAX array, committed to the row's device or sharded over its devices."""
        jax = self._jax()
        place = (
            jax_sharding.sharding_for(host.shape)
            if self._sharded
            else jax.local_devices(backend=self.declaration.device)[0]
        )
        array = jax.device_put(_checked(to_numpy(host), self._x64), place)
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
        # "gpu" is JAX's name for CUDA
        names = {"gpu": "cuda"}
        return ", ".join(
            sorted(f"{names.get(one.platform, one.platform)}:{one.id}" for one in array.devices())
        )

    def parts_of(self, array: Any) -> str:
        """Return the devices, and what each has."""
        return f"{self.device_of(array)} ({jax_sharding.parts(array)})"

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
        if self.declaration.device == "cuda":
            self._run_without_copies_to_the_host(function, *args)

    def _run_without_copies_to_the_host(self, function: Callable[..., Any], *args: Any) -> None:
        """Run function for real, where JAX raises at a copy to the host; on the CPU there are none to see."""
        jax = self._jax()
        try:
            with jax.transfer_guard_device_to_host("disallow"):
                function(*args)
        except RuntimeError as error:
            if "transfer" not in str(error):
                raise
            raise HostReadError(str(error).splitlines()[0]) from error

    def unsharded(self, array: Any) -> Any:
        """Return the array on one device."""
        jax = self._jax()
        return jax.device_put(array, jax.local_devices(backend="cpu")[0])

    def collectives(self, function: Callable[..., Any], *args: Any) -> Counter[str]:
        """Return how many collectives function(*args) has when it is compiled."""
        self._jax()
        return jax_sharding.collectives(function, *args)

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
    def _sharded(self) -> bool:
        return "sharded" in self.declaration.traits

    @property
    def _x64(self) -> bool:
        return "x64" in self.declaration.traits

    def _jax(self) -> Any:
        import jax

        if self._sharded:
            jax_sharding.ask_for_devices()
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


def _row(name: str, dtypes: tuple[str, ...], *traits: str, device: str = "cpu") -> JaxBackend:
    declared = frozenset({*_ALWAYS, *traits})
    requirement = "jax" if device == "cpu" else "jax[cuda13]"
    return JaxBackend(Declaration(name, "jax", requirement, device, dtypes, declared))


ROWS: tuple[Backend, ...] = (
    _row("jax", _DTYPES, "eager"),
    _row("jax-jit", _DTYPES, "jit"),
    _row("jax-x64", (*_DTYPES, "float64", "complex128"), "eager", "x64"),
    _row("jax-sharded", _DTYPES, "eager", "sharded"),
    _row("jax-cuda", _DTYPES, "eager", device="cuda"),
)

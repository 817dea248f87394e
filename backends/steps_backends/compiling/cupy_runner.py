"""A step on CuPy: from plans whose kernels are generated in CUDA and compiled at run time by CuPy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .cuda_source import THREADS, limits_of, prelude
from .device_memory import Launch
from .device_plan import DevicePlan
from .numpy_layout import Result
from .packages import module_of
from .shared_memory import OwnArrays
from .traced_runner import TracedRunner
from .tracing import TracingError

Function = Callable[[Any], Any]

# No product and sum may become one operation: then the bits are those of CuPy's own functions.
OPTIONS = ("--std=c++17", "--fmad=false")


def cupy_runner(
    step: Any, package: str, donated: frozenset[str], tell: Callable[[str], None]
) -> TracedRunner:
    """Return what runs a step of a package on CuPy.

    Args:
        step: of the package.
        package: the name of its package of steps.
        donated: the trees whose memory may be written to.
        tell: is told why a step cannot be traced or compiled.
    """
    norms = module_of(package, "numerics.norms")
    limits = limits_of(module_of(package, "numerics.formats"))

    def plan(results: Sequence[Result], counts: dict[str, int], xp: Any) -> DevicePlan:
        def square_sums(array: Any, axes: tuple[int, ...]) -> Any:
            return norms.square_sums(xp, array, axes)

        return DevicePlan(results, counts, donated, CupyDevice(), limits, square_sums)

    return TracedRunner(step, package, CupySharing(), plan, tell)


class CupyDevice:
    """The device that was the current one when the plan was made; its methods are those of `Device`."""

    threads = THREADS

    def functions(self, sources: Mapping[str, str]) -> dict[str, Launch]:
        """Return what launches each kernel; CuPy keeps what it compiled on disk."""
        import cupy

        return {name: self._function(cupy, name, text) for name, text in sources.items()}

    def _function(self, cupy: Any, name: str, text: str) -> Launch:
        kernel = cupy.RawKernel(prelude() + text, name, options=OPTIONS)
        try:
            kernel.compile()
        except cupy.cuda.compiler.CompileException as error:
            raise TracingError(f"CUDA could not compile it ({str(error).splitlines()[0]})") from error

        def launch(blocks: int, arguments: Sequence[Any]) -> None:
            import numpy as np

            given = tuple(np.int64(each) if isinstance(each, int) else each for each in arguments)
            kernel((blocks,), (THREADS,), given)

        return launch

    def table(self, numbers: Any) -> Any:
        """Return NumPy's numbers on the device; CuPy copies them by way of pinned memory of its own."""
        import cupy

        return cupy.asarray(numbers)

    def empty(self, size: int, dtype: Any) -> Any:
        """Return an array of one axis with any values."""
        import cupy

        return cupy.empty(size, dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
        """Return an array of one number."""
        import cupy

        return cupy.full(shape, value, dtype)

    def in_order(self, array: Any) -> Any:
        """Return the array with its elements in C order: itself where they are."""
        import cupy

        return cupy.ascontiguousarray(array).reshape(array.shape)

    def is_in_order(self, array: Any) -> bool:
        """Return whether the elements lie in C order; CuPy's arrays may all be written to."""
        return bool(array.flags.c_contiguous)

    def pointer(self, array: Any) -> int:
        """Return where the array begins in the memory of the device."""
        return int(array.data.ptr)

    def span(self, array: Any) -> tuple[int, int]:
        """Return where the array's elements begin and end in memory."""
        low, high = 0, array.itemsize
        for length, stride in zip(array.shape, array.strides, strict=True):
            reach = (length - 1) * stride
            low, high = low + min(reach, 0), high + max(reach, 0)
        return array.data.ptr + low, array.data.ptr + high


class CupySharing(OwnArrays):
    """CuPy's arrays on the current device."""

    def opened(self, tree: str, leaves: list[Any]) -> list[Any]:
        """Return the leaves.

        Raises:
            TracingError: a leaf is no array of the current device.
        """
        import cupy

        current = cupy.cuda.runtime.getDevice()
        for leaf in leaves:
            if leaf is None:
                continue
            if type(leaf) is not cupy.ndarray:
                raise TracingError(f"a leaf is a {type(leaf).__name__}")
            if leaf.device.id != current:
                raise TracingError(f"a leaf is on the device {leaf.device.id}, the current one is {current}")
        return leaves

"""CUDA's kernels on the CPU: their text is compiled by g++, with CUDA's few words defined for it.

All but CuPy's own launching is run so. A block has one thread, or several real ones that wait for each other.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from steps_backends.compiling.cuda_source import limits_of, prelude
from steps_backends.compiling.device_plan import DevicePlan
from steps_backends.compiling.shared_memory import NumpySharing
from steps_backends.compiling.traced_runner import TracedRunner

from steps_core import namespaces
from steps_core.numerics import formats, norms
from steps_core.trees import flatten

WORDS = Path(__file__).with_name("cuda_words.hpp")
# Bits as NumPy's: no product and sum become one operation.
FLAGS = ("-std=c++20", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-pthread", "-w")


def has_compiler() -> bool:
    """Return whether g++ is here."""
    return shutil.which("g++") is not None


class CpuDevice:
    """A device of NumPy's arrays, for plans. Kernels do nothing until `build` has compiled them all at once.

    Attributes:
        threads: of a block.
        sources: of all kernels.
        launches: the names of those launched.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self._folder, self.threads = folder, threads
        self._library: Any = None
        self.sources: dict[str, str] = {}
        self.launches: list[str] = []

    def build(self) -> None:
        """Compile all kernels."""
        launchers = "".join(_launcher(name, text) for name, text in self.sources.items())
        text = "\n".join([WORDS.read_text(), prelude(), *self.sources.values(), launchers])
        source = self._folder / f"kernels_{self.threads}.cpp"
        source.write_text(text)
        library = source.with_suffix(".so")
        flags = [*FLAGS, *(["-DONE_THREAD"] if self.threads == 1 else [])]
        subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)  # noqa: S607
        self._library = ctypes.CDLL(str(library))

    def functions(self, sources: Mapping[str, str]) -> dict[str, Callable[..., None]]:
        """Return what launches each kernel."""
        self.sources.update(sources)
        return {name: self._launch(name) for name in sources}

    def _launch(self, name: str) -> Callable[..., None]:
        def launch(blocks: int, arguments: Sequence[Any]) -> None:
            self.launches.append(name)
            if self._library is not None:
                given = [
                    ctypes.c_longlong(each) if isinstance(each, int) else ctypes.c_void_p(each.ctypes.data)
                    for each in arguments
                ]
                function = getattr(self._library, f"launch_{name}")
                function(ctypes.c_uint(blocks), ctypes.c_uint(self.threads), *given)

        return launch

    def table(self, numbers: Any) -> Any:
        """Return a copy, as a device has one."""
        return numbers.copy()

    def empty(self, size: int, dtype: Any) -> Any:
        """Return bytes that nobody should read."""
        return np.full(size * np.dtype(dtype).itemsize, 0xA5, np.uint8).view(dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
        """Return an array of one number."""
        return np.full(shape, value, dtype)

    def in_order(self, array: Any) -> Any:
        """Return the array in C order."""
        return np.ascontiguousarray(array).reshape(np.shape(array))

    def is_in_order(self, array: Any) -> bool:
        """Return whether it is so."""
        return bool(array.flags.c_contiguous and array.flags.writeable)

    def pointer(self, array: Any) -> int:
        """Return its address."""
        return int(array.ctypes.data)

    def span(self, array: Any) -> tuple[int, int]:
        """Return where it begins and ends."""
        start, stop = np.lib.array_utils.byte_bounds(array)
        return int(start), int(stop)


def _launcher(name: str, text: str) -> str:
    """Return a function of C that runs all blocks and threads of a kernel."""
    parameters = text.split("(", 1)[1].split(")", 1)[0]
    given = ", ".join(part.split()[-1] for part in parameters.split(","))
    return (
        f'extern "C" void launch_{name}(unsigned blocks_, unsigned threads_, {parameters}) '
        f"{{ run_all(blocks_, threads_, [=] {{ {name}({given}); }}); }}\n"
    )


def runner_on(device: CpuDevice, step: Any, donated: Iterable[str] = ()) -> Callable[..., Any]:
    """Return a step that runs as on CuPy, but on this device; what cannot be traced is an error."""

    def square_sums(array: Any, axes: tuple[int, ...]) -> Any:
        return norms.square_sums(namespaces.namespace_of(array), array, axes)

    def plan(results: Any, counts: Any, xp: Any) -> DevicePlan:
        return DevicePlan(results, counts, frozenset(donated), device, limits_of(formats), square_sums)

    def tell(reason: str) -> None:
        raise AssertionError(reason)

    runner = TracedRunner(step, "steps_core", NumpySharing(namespaces), plan, tell)

    def run(gradients: Any, weights: Any = None, state: Any = None) -> Any:
        return runner(gradients, flatten(gradients), weights, state)

    return run

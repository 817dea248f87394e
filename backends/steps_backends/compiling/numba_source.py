"""A kernel as one loop that numba compiles: each element is read once, and written once.

The loop does the operations of the kernel one by one in their formats, without fast-math and without fused
multiply-adds, so that its bits are those of NumPy. Its text lies in a file of the user's cache, beside which
numba keeps the machine code.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from typing import Any

from .kernels import Kernel, Literal, Operand, Operation, Ref
from .notation import ARITHMETIC, COMPARISONS
from .numpy_source import BlockFunction
from .tracing import CAST, COPY

_DTYPES = {"<f4": "float32", "<f8": "float64", "|b1": "bool_"}
_TEXTS = {
    **ARITHMETIC,
    **COMPARISONS,
    "absolute": "abs({0})",
    "sqrt": "np.sqrt({0})",
    "logical_and": "{0} & {1}",
    "logical_or": "{0} | {1}",
    "logical_not": "not {0}",
    "isfinite": "np.isfinite({0})",
    "isnan": "np.isnan({0})",
    "where": "{1} if {0} else {2}",
    # NaN where either is, as NumPy's.
    "minimum": "{0} if ({0} < {1} or {0} != {0}) else {1}",
    "maximum": "{0} if ({0} > {1} or {0} != {0}) else {1}",
    COPY: "{0}",
}


def fused_function(kernel: Kernel, aliases: tuple[int | None, ...]) -> BlockFunction | None:
    """Return the compiled loop of a kernel; None where numba is missing or would not give NumPy's bits.

    Args:
        kernel: specialised.
        aliases: for each stored result, the array whose memory it is written to, or None.
    """
    if kernel.parts or kernel.summed or not _is_supported(kernel) or not has_numba():
        return None
    return _compiled(kernel, aliases)


def _is_supported(kernel: Kernel) -> bool:
    dtypes = {
        *kernel.arrays,
        *kernel.scalars,
        *(operation.dtype for operation in kernel.operations),
        *(dtype for _, dtype in kernel.stored),
    }
    names = {operation.name for operation in kernel.operations}
    return dtypes <= _DTYPES.keys() and names <= {*_TEXTS, CAST}


@cache
def has_numba() -> bool:
    """Return whether numba can be used, and say once that it cannot."""
    if find_spec("numba") is None:
        _say("without numba NumPy runs block by block; pip install 'steps-core[numba]' makes it faster")
        return False
    try:
        import numba  # noqa: F401
    except ImportError as error:
        _say(f"numba cannot be imported ({error}), so NumPy runs block by block")
        return False
    return True


def _say(text: str) -> None:
    sys.stderr.write(f"steps_backends: {text}\n")


@lru_cache(maxsize=1024)
def _compiled(kernel: Kernel, aliases: tuple[int | None, ...]) -> BlockFunction:
    source = loop_source(kernel, aliases)
    loop = _loop_of(source)
    own = [number for number, array in enumerate(aliases) if array is None]

    def block(
        arrays: Sequence[Any], outputs: Sequence[Any], _: Any, scalars: Sequence[Any], *__: Any
    ) -> None:
        loop(*arrays, *(outputs[number] for number in own), *scalars)

    return _Loop(block, (), (), source)


class _Loop(BlockFunction):
    """A compiled loop, which needs no blocks: it runs on all rows that a thread has."""

    def run(self, start: int, stop: int, rows: int, *arguments: Any) -> None:
        """Run on the rows from start to stop at once."""
        super().run(start, stop, max(1, stop - start), *arguments)


def square_sum() -> Callable[[Any, float, float], float]:
    """Return what adds up the squares of a contiguous array of float32 of one axis, in a number of float64.

    It takes the array, and the range in which the sum of a block may be added in float32. Other blocks, and
    what is left, are added in float64, where each square is exact and in range.
    """
    return _loop_of(_SQUARE_SUM)


_SQUARE_SUM = """\
import numba
import numpy as np


@numba.njit(nogil=True, fastmath={"reassoc", "contract"}, cache=True)
def loop(x, low, high):
    total = 0.0
    blocks = x.size // 512
    for block in range(blocks):
        part = np.float32(0.0)
        for i in range(block * 512, block * 512 + 512):
            part += x[i] * x[i]
        if low <= part <= high:
            total += np.float64(part)
        else:
            for i in range(block * 512, block * 512 + 512):
                value = np.float64(x[i])
                total += value * value
    for i in range(blocks * 512, x.size):
        value = np.float64(x[i])
        total += value * value
    return total
"""


def _loop_of(source: str) -> Callable[..., Any]:
    """Return the loop of a module's text, made once; both threads of a pass may be the first to need it."""
    with _making:
        if source not in _made:
            _made[source] = _announcing_loop(source)
        return _made[source]


_making = Lock()
_made: dict[str, Callable[..., Any]] = {}


def _announcing_loop(source: str) -> Callable[..., Any]:
    """Return the loop of a text, whose first run says that it may have to be compiled."""
    loop = _module_of(source).loop
    is_ready = False

    def run(*arguments: Any) -> Any:
        nonlocal is_ready
        if is_ready:
            return loop(*arguments)
        misses = sum(loop.stats.cache_misses.values())
        _say_on_terminal("compiling a fused loop with numba (once; it is kept on disk) ... ")
        result = loop(*arguments)
        compiled = sum(loop.stats.cache_misses.values()) > misses
        _say_on_terminal("done\n" if compiled else "found on disk\n", continues=True)
        is_ready = True
        return result

    return run


def _say_on_terminal(text: str, *, continues: bool = False) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(text if continues else f"steps_backends: {text}")
        sys.stderr.flush()


def _module_of(source: str) -> Any:
    """Return the module of a text, from a file, because numba keeps machine code beside files only."""
    name = f"steps_core_loop_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    file = _cache_folder() / f"{name}.py"
    if not file.is_file() or file.read_text() != source:
        partial = file.with_suffix(f".{os.getpid()}")
        partial.write_text(source)
        partial.replace(file)
    spec = spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    # Where numba looks for it when it reads the machine code again.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def _cache_folder() -> Path:
    """Return a folder of this user that can be written to."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "steps-core" / "loops"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        import tempfile

        return Path(tempfile.mkdtemp(prefix="steps-core-"))
    return folder


def loop_source(kernel: Kernel, aliases: tuple[int | None, ...]) -> str:
    """Return the text of a module with the function ``loop``."""
    constants: dict[str, str] = {}
    lines = [f"a{index}_ = a{index}[i]" for index in range(len(kernel.arrays))]
    lines += [
        f"r{index} = {_text(operation, kernel, constants)}"
        for index, operation in enumerate(kernel.operations)
    ]
    outputs = []
    for number, (operand, dtype) in enumerate(kernel.stored):
        array = aliases[number]
        if array is None:
            outputs.append(f"o{number}")
        target = f"o{number}" if array is None else f"a{array}"
        lines.append(f"{target}[i] = {_operand(operand, dtype, constants)}")
    arguments = [
        *(f"a{index}" for index in range(len(kernel.arrays))),
        *outputs,
        *(f"s{index}" for index in range(len(kernel.scalars))),
    ]
    length = f"{(outputs or arguments)[0]}.size"
    return "\n".join(
        [
            "import numba",
            "import numpy as np",
            "",
            *(f"{name} = {text}" for text, name in constants.items()),
            "",
            "",
            '@numba.njit(nogil=True, error_model="numpy", cache=True)',
            f"def loop({', '.join(arguments)}):",
            f"    for i in range({length}):",
            *(f"        {line}" for line in lines),
            "",
        ]
    )


def _text(operation: Operation, kernel: Kernel, constants: dict[str, str]) -> str:
    dtype = _format_of(operation, kernel)
    given = [_operand(operand, dtype, constants) for operand in operation.operands]
    if operation.name == CAST:
        return f"np.{_DTYPES[operation.dtype]}({given[0]})"
    return _TEXTS[operation.name].format(*given)


def _format_of(operation: Operation, kernel: Kernel) -> str:
    """Return the dtype that Python's numbers take in an operation."""
    for operand in operation.operands:
        if isinstance(operand, Ref):
            dtype = {
                "array": kernel.arrays,
                "scalar": kernel.scalars,
                "result": tuple(before.dtype for before in kernel.operations),
            }[operand.kind][operand.index]
            if dtype != "|b1":
                return dtype
    return operation.dtype


def _operand(operand: Operand, dtype: str, constants: dict[str, str]) -> str:
    if isinstance(operand, Literal):
        value = operand.value
        text = repr(value) if isinstance(value, (bool, int)) else f'float.fromhex("{float(value).hex()}")'
        named = f"np.{_DTYPES[operand.dtype or dtype]}({text})"
        return constants.setdefault(named, f"c{len(constants)}")
    return f"a{operand.index}_" if operand.kind == "array" else f"{operand.kind[0]}{operand.index}"

"""A kernel as CUDA: one launch for all arrays that it is computed of, which are found by a table of pointers.

Each row of the table is one array's work: its length, the lengths of its axes if something is broadcast, and
pointers to arrays, parts, scalars and results. A block of threads does one piece of a row. Nothing depends on
the values of scalars, which stay on the device. The text includes nothing and uses few words of CUDA.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from .kernels import Kernel, Literal, Operand, Operation, Ref
from .notation import ARITHMETIC, COMPARISONS
from .tracing import CAST, COPY, TracingError

THREADS = 256
# Elements of a row that one block of threads does.
PIECE = THREADS * 16

PRELUDE = Path(__file__).with_name("cuda_prelude.cuh")

# The formats in memory. Those of two bytes are computed with as float.
TYPES = {
    "<f2": "f16",
    "<V2": "bf16",
    "<f4": "float",
    "<f8": "double",
    "|b1": "bool",
    "<i4": "int",
    "<i8": "i64",
    "<c8": "c8",
    "<c16": "c16",
}
NARROW = ("<f2", "<V2")
REAL_OF = {"<f4": "<f4", "<f8": "<f8", "<c8": "<f4", "<c16": "<f8"}

_TEXTS = {
    **ARITHMETIC,
    "minimum": "least({0}, {1})",
    "maximum": "greatest({0}, {1})",
    "sign": "sign_of({0})",
}
_MATH = ("sqrt", "exp", "log", "log1p", "expm1", "cos")
# Their operands are taken as they are.
_TESTS = {
    "isfinite": "is_finite({0})",
    "isnan": "is_nan({0})",
    "absolute": "magnitude({0})",
    "real": "{0}.re",
    "imag": "{0}.im",
    "logical_not": "!{0}",
    "logical_and": "{0} && {1}",
    "logical_or": "{0} || {1}",
}


@dataclass(frozen=True)
class Limits:
    """What tells big, middle and small numbers of each format apart.

    Attributes:
        float32, float64: above what they are big, and the factor they then get; below what small, and theirs.
    """

    float32: tuple[float, float, float, float]
    float64: tuple[float, float, float, float]


def limits_of(formats: Any) -> Limits:
    """Return the limits that a package of steps has in its module of formats."""
    return Limits(
        *(
            (form.big_above, 2.0**-form.big_exponent, form.small_below, 2.0**-form.small_exponent)
            for form in (formats.FLOAT32, formats.FLOAT64)
        )
    )


@cache
def prelude() -> str:
    """Return what all kernels share."""
    return PRELUDE.read_text(encoding="utf-8")


@lru_cache(maxsize=1024)
def pass_source(kernel: Kernel, limits: Limits) -> tuple[str, str]:
    """Return the name and the text of a kernel over arrays: a block of threads for each piece of a row.

    Its arguments: the rows; for each block its row, its start, and a slot for each sum; the slots.
    """
    slots = 2 + len(kernel.summed)
    head = [
        f"const i64* block = blocks + {slots} * (i64)blockIdx.x;",
        f"const i64* row = rows + {row_width(kernel)} * block[0];",
        f"const i64 start = block[1], end = start + {PIECE};",
        "const i64 stop = end < row[0] ? end : row[0];",
        *_openings(kernel),
        *(f"range_sums q{number};" for number in range(len(kernel.summed))),
    ]
    names = {dtype: f"limits_{_type(dtype)}" for _, dtype in kernel.summed}
    head += [f"const range_limits {name} = {limits_text(dtype, limits)};" for dtype, name in names.items()]
    body = [
        *_computing(kernel),
        *(
            f"q{number}.add({_value(operand, dtype, kernel)}, {names[dtype]});"
            for number, (operand, dtype) in enumerate(kernel.summed)
        ),
    ]
    tail = [f"__shared__ double scratch[{THREADS}];"] if kernel.summed else []
    tail += [
        f"store_block_sums(q{number}, slots + 3 * block[{2 + number}], scratch);"
        for number in range(len(kernel.summed))
    ]
    loop = "for (i64 i = start + threadIdx.x; i < stop; i += blockDim.x) {"
    arguments = "const i64* rows, const i64* blocks, double* slots"
    key = f"{kernel!r}{limits!r}"
    return _named("pass", key, arguments, [*head, loop, *(f"    {line}" for line in body), "}", *tail])


@lru_cache(maxsize=1024)
def number_source(kernel: Kernel) -> tuple[str, str]:
    """Return the name and the text of a kernel over numbers: a thread for each row.

    Its arguments: the rows, and how many there are.
    """
    lines = [
        "const i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;",
        "if (number >= count) return;",
        f"const i64* row = rows + {row_width(kernel)} * number;",
        "const i64 i = 0;",
        *_openings(kernel),
        *_computing(kernel),
    ]
    return _named("numbers", repr(kernel), "const i64* rows, const i64 count", lines)


def row_width(kernel: Kernel) -> int:
    """Return how many entries a row of the table has."""
    given = len(kernel.arrays) + len(kernel.parts) + len(kernel.scalars) + len(kernel.stored)
    return 1 + _rank(kernel) + given


def _rank(kernel: Kernel) -> int:
    return len(kernel.parts[0][1]) if kernel.parts else 0


def _named(kind: str, key: str, arguments: str, lines: Sequence[str]) -> tuple[str, str]:
    body = "\n".join(f"    {line}" for line in lines)
    name = f"{kind}_{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    return name, f'extern "C" __global__ void {name}({arguments}) {{\n{body}\n}}\n'


def _openings(kernel: Kernel) -> list[str]:
    """Return what reads the pointers and the scalars of a row."""
    lines = []
    place = 1 + _rank(kernel)
    for number, dtype in enumerate(kernel.arrays):
        lines.append(f"const {_type(dtype)}* A{number} = (const {_type(dtype)}*)row[{place}];")
        place += 1
    for number, (dtype, _) in enumerate(kernel.parts):
        lines.append(f"const {_type(dtype)}* P{number} = (const {_type(dtype)}*)row[{place}];")
        place += 1
    for number, dtype in enumerate(kernel.scalars):
        lines.append(f"const {_type(dtype)} s{number} = *(const {_type(dtype)}*)row[{place}];")
        place += 1
    for number, (_, dtype) in enumerate(kernel.stored):
        lines.append(f"{_type(dtype)}* O{number} = ({_type(dtype)}*)row[{place}];")
        place += 1
    return lines


def _computing(kernel: Kernel) -> list[str]:
    """Return what computes element ``i`` and stores it."""
    lines = [f"const {_type(dtype)} a{n} = A{n}[i];" for n, dtype in enumerate(kernel.arrays)]
    rank = _rank(kernel)
    if rank:
        lines.append("i64 rest = i;")
        lines += [
            f"const i64 x{axis} = rest % row[{1 + axis}]; rest /= row[{1 + axis}];"
            for axis in range(rank - 1, -1, -1)
        ]
    for number, (dtype, is_one) in enumerate(kernel.parts):
        index = "0"
        for axis in range(rank):
            if not is_one[axis]:
                index = f"x{axis}" if index == "0" else f"({index} * row[{1 + axis}] + x{axis})"
        lines.append(f"const {_type(dtype)} p{number} = P{number}[{index}];")
    lines += [
        f"const {_type(operation.dtype)} r{number} = {_text(operation, kernel)};"
        for number, operation in enumerate(kernel.operations)
    ]
    return lines + [
        f"O{number}[i] = {_value(operand, dtype, kernel)};"
        for number, (operand, dtype) in enumerate(kernel.stored)
    ]


def _text(operation: Operation, kernel: Kernel) -> str:
    """Return the expression of an operation.

    Raises:
        TracingError: there is none.
    """
    name, operands, dtype = operation.name, operation.operands, operation.dtype
    if name in (CAST, COPY):
        return _value(operands[0], dtype, kernel)
    if name == "where":
        condition = _value(operands[0], "|b1", kernel)
        return f"{condition} ? {_value(operands[1], dtype, kernel)} : {_value(operands[2], dtype, kernel)}"
    own = [found for found in (dtype_of(operand, kernel) for operand in operands) if found is not None]
    if dtype not in NARROW and not set(own) & set(NARROW):
        is_complex = dtype.startswith("<c") or any(found.startswith("<c") for found in own)
        if name in _TEXTS and not (is_complex and name in ("minimum", "maximum")):
            return _TEXTS[name].format(*(_value(operand, dtype, kernel) for operand in operands))
        if name in _MATH and dtype in ("<f4", "<f8"):
            return f"{name}{'f' if dtype == '<f4' else ''}({_value(operands[0], dtype, kernel)})"
        if name == "power" and dtype in ("<f4", "<f8"):
            return _power(operands, dtype, kernel)
        if name in COMPARISONS and not (is_complex and name not in ("equal", "not_equal")):
            common = _common(own)
            return COMPARISONS[name].format(*(_value(operand, common, kernel) for operand in operands))
        if name in _TESTS:
            kinds = [dtype_of(operand, kernel) or dtype for operand in operands]
            texts = (_value(operand, kind, kernel) for operand, kind in zip(operands, kinds, strict=True))
            return _TESTS[name].format(*texts)
    raise TracingError(f"there is no CUDA for {name} of {' and '.join(own) or dtype}")


def _power(operands: Sequence[Operand], dtype: str, kernel: Kernel) -> str:
    base, exponent = operands
    text = _value(base, dtype, kernel)
    if isinstance(exponent, Literal) and exponent.value == 2:  # As NumPy does.
        return f"{text} * {text}"
    return f"pow{'f' if dtype == '<f4' else ''}({text}, {_value(exponent, dtype, kernel)})"


def dtype_of(operand: Operand, kernel: Kernel) -> str | None:
    """Return the dtype of an operand; None of a Python number."""
    if isinstance(operand, Literal):
        return operand.dtype
    if operand.kind == "result":
        return kernel.operations[operand.index].dtype
    if operand.kind == "part":
        return kernel.parts[operand.index][0]
    return (kernel.arrays if operand.kind == "array" else kernel.scalars)[operand.index]


def _common(dtypes: Sequence[str]) -> str:
    import numpy as np

    return str(np.result_type(*dtypes).str)


def _value(operand: Operand, dtype: str, kernel: Kernel) -> str:
    """Return an operand in a dtype."""
    if isinstance(operand, Literal):
        return _converted(_number(operand.value, operand.dtype or dtype), operand.dtype or dtype, dtype)
    return _converted(_name(operand), str(dtype_of(operand, kernel)), dtype)


def _name(ref: Ref) -> str:
    return f"{ref.kind[0]}{ref.index}"


def _converted(text: str, own: str, dtype: str) -> str:
    if own == dtype:
        return text
    if own in NARROW:
        text = f"widened({text})"
    if dtype in NARROW:
        return f"as_{TYPES[dtype]}({text})"
    if dtype.startswith("<c") and not own.startswith("<c"):
        return f"{TYPES[dtype]}(({TYPES[REAL_OF[dtype]]}){text})"
    return f"(({_type(dtype)}){text})"


def _number(value: Any, dtype: str) -> str:
    """Return a number of a dtype, to the bit."""
    if dtype in NARROW:
        return f"as_{TYPES[dtype]}({_number(value, '<f8')})"
    if dtype.startswith("<c"):
        value, real = complex(value), REAL_OF[dtype]
        return f"{TYPES[dtype]}({_number(value.real, real)}, {_number(value.imag, real)})"
    if dtype == "|b1":
        return "true" if value else "false"
    if dtype in ("<i4", "<i8"):
        return f"(({_type(dtype)}){int(value)}LL)"
    if math.isnan(value):
        return f'(({_type(dtype)})__builtin_nan(""))'
    if math.isinf(value):
        return f"(({_type(dtype)}){'-' if value < 0 else ''}__builtin_huge_val())"
    return f"(({_type(dtype)}){float(value)!r})"


def _type(dtype: str) -> str:
    if dtype not in TYPES:
        raise TracingError(f"there is no CUDA for the dtype {dtype}")
    return TYPES[dtype]


def limits_text(dtype: str, limits: Limits) -> str:
    """Return the limits for the parts of a dtype."""
    numbers = limits.float32 if REAL_OF[dtype] == "<f4" else limits.float64
    return "{" + ", ".join(map(repr, numbers)) + "}"

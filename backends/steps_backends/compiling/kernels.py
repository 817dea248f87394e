"""Kernels: what a component computes, without the arrays it computes it of.

Components of equal kernels run the same code. A kernel is specialised for what is known of its numbers at a
call: a clip that keeps its norm, a factor of 1. No bit of a result depends on it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .passes import Component
from .tracing import CAST, CONSTANT, COPY, TracedArray


@dataclass(frozen=True)
class Ref:
    """An operand: result number ``index`` of the kernel, or its array, scalar or part of that number."""

    kind: str  # "result", "array", "scalar" or "part"
    index: int


@dataclass(frozen=True)
class Literal:
    """A number in the code; with a dtype, or as Python's, which takes that of what it meets."""

    value: Any
    dtype: str | None = None

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (repr(self.value), self.dtype) == (
            repr(other.value),
            other.dtype,
        )


Operand = Ref | Literal


@dataclass(frozen=True)
class Operation:
    """One element-wise operation and the dtype of its result."""

    name: str
    operands: tuple[Operand, ...]
    dtype: str


@dataclass(frozen=True)
class Kernel:
    """What is computed of each element.

    Attributes:
        operations: in order; results count from 0.
        arrays, scalars: the dtypes of what it takes.
        parts: the dtypes of what is broadcast, and along which axes that has length 1.
        stored: what is written, with its dtype.
        summed: what squares are summed of, with its dtype.
    """

    operations: tuple[Operation, ...]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    parts: tuple[tuple[str, tuple[bool, ...]], ...]
    stored: tuple[tuple[Operand, str], ...]
    summed: tuple[tuple[Operand, str], ...]

    @property
    def is_flat(self) -> bool:
        """Whether all arrays may be taken as one row of elements."""
        return not self.parts


def kernel_of(component: Component) -> Kernel:
    """Return the kernel of a component."""
    places: dict[int, Operand] = {}
    for kind, given in (
        ("array", component.arrays),
        ("scalar", component.scalars),
        ("part", component.parts),
        ("result", component.nodes),
    ):
        places |= {id(array): Ref(kind, index) for index, array in enumerate(given)}

    def operand(given: Any) -> Operand:
        if not isinstance(given, TracedArray):
            return Literal(given)
        if given.operation == CONSTANT:
            return Literal(given.options[0], given.dtype.str)
        return places[id(given)]

    def operation(node: TracedArray) -> Operation:
        if node.operation == CONSTANT:
            return Operation(COPY, (Literal(node.options[0], node.dtype.str),), node.dtype.str)
        return Operation(node.operation, tuple(map(operand, node.inputs)), node.dtype.str)

    rank = len(component.shape)
    return Kernel(
        tuple(map(operation, component.nodes)),
        tuple(array.dtype.str for array in component.arrays),
        tuple(array.dtype.str for array in component.scalars),
        tuple((array.dtype.str, _lengths_of_one(array, rank)) for array in component.parts),
        tuple((places[id(array)], array.dtype.str) for array in component.stored),
        tuple((operand(array), array.dtype.str) for array, _ in component.summed),
    )


def _lengths_of_one(array: TracedArray, rank: int) -> tuple[bool, ...]:
    return (True,) * (rank - array.ndim) + tuple(length == 1 for length in array.shape)


# ---- Specialising

Fact = Any  # True, False; 1 for exactly 1; 0 for +0; "+" for above 0; None: nothing


def fact_function(dtype: str) -> Callable[[Any], Fact]:
    """Return what tells what may be known of a number of this dtype."""
    kind = dtype[1]
    return bool if kind == "b" else _fact_of_real if kind == "f" else _no_fact


def _fact_of_real(value: Any) -> Fact:
    if value > 0:
        return 1 if value == 1 else "+"
    return 0 if value == 0 and math.copysign(1.0, value) > 0 else None


def _no_fact(value: Any) -> Fact:
    return None


@lru_cache(maxsize=1024)
def specialised(kernel: Kernel, facts: tuple[Fact, ...]) -> Kernel:
    """Return a kernel that computes the same bits where these facts hold of its scalars."""
    new: list[Operation] = []
    places: list[Operand] = []

    def moved(operand: Operand) -> Operand:
        return places[operand.index] if isinstance(operand, Ref) and operand.kind == "result" else operand

    for old in kernel.operations:
        operation = replace(old, operands=tuple(map(moved, old.operands)))
        operation = _rewritten(operation, new, facts)
        found = _known(operation, new, facts, kernel)
        if found is None:
            new.append(operation)
            found = Ref("result", len(new) - 1)
        places.append(found)
    return _without_unused(
        replace(
            kernel,
            operations=tuple(new),
            stored=tuple((moved(operand), dtype) for operand, dtype in kernel.stored),
            summed=tuple((moved(operand), dtype) for operand, dtype in kernel.summed),
        )
    )


def _fact(operand: Operand, facts: Sequence[Fact]) -> Fact:
    if isinstance(operand, Literal):
        return operand.value if isinstance(operand.value, bool) else None
    return facts[operand.index] if operand.kind == "scalar" else None


def _is_number(fact: Fact, number: int) -> bool:
    return type(fact) is int and fact == number


def _rewritten(operation: Operation, before: list[Operation], facts: Sequence[Fact]) -> Operation:
    """Return an operation that gives the same bits with less work; what it needs goes to the list."""
    name, operands = operation.name, operation.operands
    if name == "where" and isinstance(_fact(operands[0], facts), bool):
        chosen = operands[1] if _fact(operands[0], facts) else operands[2]
        return Operation(CAST, (chosen,), operation.dtype)
    if name != "add":
        return operation
    first, number = operands
    if number == Literal(0.0):
        # sqrt(v + 0) + 0 differs from sqrt(v) + 0 for no v: both turn -0 into 0.
        root = _result(first, before, "sqrt")
        shifted = None if root is None else _result(root.operands[0], before, "add")
        if root is not None and shifted is not None and _is_number(_fact(shifted.operands[1], facts), 0):
            before.append(replace(root, operands=(shifted.operands[0],)))
            return replace(operation, operands=(Ref("result", len(before) - 1), number))
        return operation
    # (x + 0) + s differs from x + s for no s but -0.
    shifted = _result(first, before, "add")
    if shifted is not None and shifted.operands[1] == Literal(0.0) and _is_positive(number, facts):
        return replace(operation, operands=(shifted.operands[0], number))
    return operation


def _known(
    operation: Operation, before: Sequence[Operation], facts: Sequence[Fact], kernel: Kernel
) -> Operand | None:
    """Return the operand that an operation is known to give, if it is."""
    name, operands = operation.name, operation.operands
    if name == CAST and _dtype_of(operands[0], before, kernel) == operation.dtype:
        return operands[0]
    if name == "multiply":
        for one, other in (operands, operands[::-1]):
            if _is_number(_fact(one, facts), 1) and _dtype_of(other, before, kernel) == operation.dtype:
                return other
    if name == "equal" and operands[1] == Literal(0) and _is_above_zero(operands[0], before, facts):
        return Literal(False)
    return None


def _dtype_of(operand: Operand, before: Sequence[Operation], kernel: Kernel) -> str | None:
    """Return the dtype of an operand that is as large as the results; None of others."""
    if isinstance(operand, Literal) or operand.kind not in ("result", "array"):
        return None
    return before[operand.index].dtype if operand.kind == "result" else kernel.arrays[operand.index]


def _result(operand: Operand, before: Sequence[Operation], name: str) -> Operation | None:
    """Return the operation behind an operand, if it has that name."""
    if isinstance(operand, Literal) or operand.kind != "result":
        return None
    operation = before[operand.index]
    return operation if operation.name == name else None


def _is_positive(number: Operand, facts: Sequence[Fact]) -> bool:
    """Return whether a scalar is above 0, or +0."""
    fact = _fact(number, facts)
    return fact == "+" or type(fact) is int


def _is_above_zero(operand: Operand, before: Sequence[Operation], facts: Sequence[Fact]) -> bool:
    """Return whether this is the sum of a root and a number above 0: above 0, or NaN."""
    total = _result(operand, before, "add")
    if total is None or _result(total.operands[0], before, "sqrt") is None:
        return False
    number = total.operands[1]
    return _is_positive(number, facts) and not _is_number(_fact(number, facts), 0)


def _without_unused(kernel: Kernel) -> Kernel:
    used: set[int] = set()
    waiting = [operand for operand, _ in (*kernel.stored, *kernel.summed)]
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, Ref) and operand.kind == "result" and operand.index not in used:
            used.add(operand.index)
            waiting += kernel.operations[operand.index].operands
    order = sorted(used)
    places = {old: new for new, old in enumerate(order)}

    def moved(operand: Operand) -> Operand:
        if isinstance(operand, Ref) and operand.kind == "result":
            return Ref("result", places[operand.index])
        return operand

    return replace(
        kernel,
        operations=tuple(
            replace(kernel.operations[old], operands=tuple(map(moved, kernel.operations[old].operands)))
            for old in order
        ),
        stored=tuple((moved(operand), dtype) for operand, dtype in kernel.stored),
        summed=tuple((moved(operand), dtype) for operand, dtype in kernel.summed),
    )

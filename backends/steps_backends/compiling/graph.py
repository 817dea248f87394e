"""The graph of a traced step: put in order, equal parts shared, and rewritten where that changes no bit."""

from collections.abc import Iterable
from typing import Any

from .tracing import CONSTANT, COPY, EVALUATED, INPUT, Operand, TracedArray


def in_order(results: Iterable[TracedArray]) -> list[TracedArray]:
    """Return all arrays that the results depend on, each after its inputs."""
    done: dict[int, TracedArray] = {}
    waiting = list(results)[::-1]
    while waiting:
        array = waiting[-1]
        if id(array) in done:
            waiting.pop()
            continue
        missing = [given for given in array.arrays if id(given) not in done]
        if missing:
            waiting.extend(reversed(missing))
        else:
            done[id(array)] = waiting.pop()
    return list(done.values())


def simplified(results: Iterable[TracedArray]) -> list[TracedArray]:
    """Return the same results from a graph that computes each thing once, to the same bits."""
    results = list(results)
    new: dict[int, TracedArray] = {}
    known: dict[Any, TracedArray] = {}
    for array in in_order(results):
        inputs = tuple(
            new[id(operand)] if isinstance(operand, TracedArray) else operand for operand in array.inputs
        )
        made = TracedArray(array.operation, inputs, array.options, array.shape, array.dtype)
        if array.operation in (INPUT, COPY, EVALUATED):
            new[id(array)] = array if array.operation == INPUT else made
            continue
        key = _key(made)
        if key not in known:
            known[key] = _rewritten(made, known)
        new[id(array)] = known[key]
    return [new[id(array)] for array in results]


def _key(array: TracedArray) -> Any:
    operands = (
        id(operand) if isinstance(operand, TracedArray) else (type(operand), repr(operand))
        for operand in array.inputs
    )
    options = tuple(map(repr, array.options)) if array.operation == CONSTANT else array.options
    # Slices, which an index may hold, have no hash before Python 3.12.
    return array.operation, tuple(operands), repr(options), array.shape, array.dtype


def _rewritten(array: TracedArray, known: dict[Any, TracedArray]) -> TracedArray:
    if array.operation == "where":
        _, chosen, other = array.inputs
        if chosen is other:
            return chosen  # type: ignore[no-any-return]
        argument = _argument_of_safe_root(array)
        if argument is not None:
            root = TracedArray("sqrt", (argument,), (), array.shape, array.dtype)
            root = known.setdefault(_key(root), root)
            # The root of -0 is -0, which adding 0 makes 0; it changes nothing else.
            return TracedArray("add", (root, 0.0), (), array.shape, array.dtype)
    return array


def _argument_of_safe_root(array: TracedArray) -> TracedArray | None:
    """Return x where this is ``where(x == 0, 0.0, sqrt(where(x == 0, 1.0, x)))`` of real x."""
    is_zero, zero, root = array.inputs
    if not (is_same(zero, 0.0) and getattr(root, "operation", "") == "sqrt"):
        return None
    (inner,) = root.inputs
    if inner.operation != "where" or inner.inputs[0] is not is_zero or not is_same(inner.inputs[1], 1.0):
        return None
    argument = inner.inputs[2]
    compares = is_zero.operation == "equal" and is_zero.inputs[0] is argument and is_zero.inputs[1] == 0
    is_real = isinstance(argument, TracedArray) and argument.dtype.kind == "f"
    return argument if compares and is_real and argument.dtype == array.dtype else None


def is_same(operand: Operand, number: float) -> bool:
    """Return whether an operand is this Python number."""
    return type(operand) is type(number) and operand == number

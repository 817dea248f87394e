"""What is computed between passes, as code for NumPy: numbers one by one, and arrays as a whole."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from .numpy_sums import SquareSummer
from .passes import is_single, is_summed_in_passes
from .tracing import (
    CAST,
    CONSTANT,
    COPY,
    ELEMENTWISE,
    EVALUATED,
    MEMBER,
    SQUARE_SUMS,
    TracedArray,
    is_number,
    whole_function,
)

Function = Callable[[Any], Any]

_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "logical_and": "&",
    "logical_or": "|",
}
_SIGNS = {"negative": "-", "logical_not": "~"}


class SingleWriter:
    """Writes the code of nodes, whose values are in the list ``v``.

    A number is held as NumPy's scalar, everything else as an array; sums of squares as a list of triples.

    Attributes:
        slots: where each value is held, by id of the node.
        names: what the code refers to.

    Args:
        slots: as above.
        summer: computes sums of squares.
        calling: makes a function of the user take and give NumPy's arrays.
    """

    def __init__(
        self, slots: Mapping[int, int], summer: SquareSummer, calling: Callable[[Function], Function]
    ) -> None:
        import numpy as np

        self.slots, self._summer, self._calling = slots, summer, calling
        self.names: dict[str, Any] = {"asarray": np.asarray}
        self._known: dict[int, str] = {}

    def lines(self, node: TracedArray) -> list[str]:
        """Return the code of one node."""
        target = f"v[{self.slots[id(node)]}]"
        if is_summed_in_passes(node) or node.operation == SQUARE_SUMS:
            return self._sums(node, target)
        if node.operation in ELEMENTWISE:
            return [f"{target} = {self._number(node)}"]
        if node.operation == MEMBER:
            (reduction,) = node.inputs
            return [f"{target} = v[{self.slots[id(reduction)]}][{node.options[0]}]"]
        whole = whole_function(node)
        function = self._named(self._calling(whole) if node.operation == EVALUATED else whole)
        arrays = ", ".join(self._array(operand) for operand in node.inputs)
        result = f"{function}({arrays})"
        if is_single(node):
            dtype = self._named(node.dtype)
            result = f"asarray({result}, {dtype}).reshape(())[()]"
        return [f"{target} = {result}"]

    def _number(self, node: TracedArray) -> str:
        name = node.operation
        given = [self._operand(operand) for operand in node.inputs]
        if node.dtype.kind != "c":
            if name in _OPERATORS:
                return f"{given[0]} {_OPERATORS[name]} {given[1]}"
            if name in _SIGNS:
                return f"{_SIGNS[name]}{given[0]}"
        if name == "where":
            # Each branch in the dtype of the result.
            dtype = self._named(node.dtype.type)
            chosen, other = (
                text
                if isinstance(operand, TracedArray) and operand.dtype == node.dtype
                else f"{dtype}({text})"
                for operand, text in zip(node.inputs[1:], given[1:], strict=True)
            )
            return f"{chosen} if {given[0]} else {other}"
        if name == CAST:
            if node.dtype.kind == "f":
                return f"{self._named(node.dtype.type)}({given[0]})"
            return f"asarray({given[0]}).astype({self._named(node.dtype)})[()]"
        if name == COPY:
            return given[0]
        if name in ("real", "imag"):
            return f"{given[0]}.{name}"
        import numpy as np

        return f"{self._named(getattr(np, name))}({', '.join(given)})"

    def _operand(self, operand: Any) -> str:
        if is_number(operand):
            return repr(operand) if _is_plain(operand) else self._named(operand)
        if operand.operation == CONSTANT:
            return self._named(operand.dtype.type(operand.options[0]))
        return f"v[{self.slots[id(operand)]}]"

    def _array(self, operand: TracedArray) -> str:
        text = self._operand(operand)
        if operand.operation == CONSTANT and not is_single(operand):
            import numpy as np

            return self._named(np.full(operand.shape, operand.options[0], operand.dtype))
        if not is_single(operand):
            return text
        return f"asarray({text}, {self._named(operand.dtype)}).reshape({operand.shape!r})"

    def _sums(self, node: TracedArray, target: str) -> list[str]:
        if not is_summed_in_passes(node):
            (array,) = node.inputs
            function = self._named(self._summer.of_units)
            return [f"{target} = {function}({self._array(array)}, {node.options[0]!r})"]
        # The passes before have left their triples here.
        singles = [self._array(array) for array in node.inputs if is_single(array)]
        block = self._named(self._summer.of_block)
        total, dtype = self._named(self._summer.total), self._named(node.dtype)
        own = ", ".join(f"{block}({text})" for text in singles)
        return [f"{target} = {total}([*v[{self.slots[id(node)]}], {own}], {dtype})"]

    def _named(self, value: Any) -> str:
        name = self._known.setdefault(id(value), f"n{len(self._known)}")
        self.names[name] = value
        return name


def _is_plain(number: Any) -> bool:
    """Return whether Python reads back the text of a number."""
    return isinstance(number, (bool, int)) or (isinstance(number, float) and math.isfinite(number))

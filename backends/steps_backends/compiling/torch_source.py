"""A traced step as one function of PyTorch, for its compiler: the text says what the graph says.

PyTorch takes the dtype of a tensor with axes over that of a number, NumPy the wider one: so operands are cast
to what was traced. Sums of squares are the functions of the step's package, which the compiler sees through.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .kernels import Kernel, Literal, Ref
from .notation import ARITHMETIC, COMPARISONS
from .numpy_tasks import Task, slices_of
from .passes import is_single, is_summed_in_passes
from .shared_memory import bfloat16
from .tracing import (
    CAST,
    CONSTANT,
    COPY,
    ELEMENTWISE,
    EVALUATED,
    MEMBER,
    SQUARE_SUMS,
    TracedArray,
    TracingError,
    is_number,
)

_OPERATORS = {**ARITHMETIC, "power": "{0} ** {1}"}
_FUNCTIONS = {
    **{name: f"torch.{name}" for name in ("sqrt", "exp", "log", "log1p", "expm1", "cos")},
    **{name: f"torch.{name}" for name in ("minimum", "maximum")},
    "sign": "torch.sgn",
}
# Their operands are taken as they are.
_TESTS = {
    **{name: f"torch.{name}" for name in ("isfinite", "isnan", "real", "imag")},
    "absolute": "torch.abs",
    **{name: f"torch.{name}" for name in ("logical_and", "logical_or", "logical_not")},
}
# With these a Python number must be made a tensor.
_TAKES_TENSORS = ("minimum", "maximum")

BFLOAT16 = "<V2"
Text = Callable[[str], str]  # of an operand that is cast to a dtype; an empty one: as it is


class Writer:
    """Writes lines of a function; what it names beside PyTorch is in ``names``.

    Args:
        norms: the module of norms of the step's package.
        xp: the namespace of PyTorch.
    """

    def __init__(self, norms: Any, xp: Any) -> None:
        import torch

        self.names: dict[str, Any] = {"torch": torch, "norms": norms, "xp": xp}
        self.lines: list[str] = []
        self._texts: dict[int, str] = {}
        self._summed: dict[int, list[str]] = {}

    def name(self, node: TracedArray, text: str) -> None:
        """Let a text stand for a node."""
        self._texts[id(node)] = text

    def knows(self, node: TracedArray) -> bool:
        """Return whether a text stands for a node."""
        return id(node) in self._texts

    def text(self, node: TracedArray) -> str:
        """Return the text of a node: a number without axes, or an array of any shape of its size."""
        if node.operation == CONSTANT:
            return self.full(node.options[0], node.dtype)
        return self._texts[id(node)]

    def flat(self, node: TracedArray) -> str:
        """Return the text of a node in one axis."""
        if node.operation == CONSTANT:
            return f"{self.text(node)}.expand({node.size})"
        return f"{self.text(node)}.reshape(-1)"

    def shaped(self, node: TracedArray) -> str:
        """Return the text of a node in its shape."""
        if node.operation == CONSTANT:
            return f"{self.text(node)}.expand({node.shape!r})"
        return f"{self.text(node)}.reshape({node.shape!r})"

    def full(self, value: Any, dtype: Any) -> str:
        """Return the text of a number of a dtype."""
        return f"torch.full((), {_number(value)}, dtype={self.dtype(_dtype(dtype))}, device=device)"

    def dtype(self, dtype: Any) -> str:
        """Return the text of a dtype."""
        import numpy as np

        return f"torch.{np.dtype(dtype).name}"

    # ---- What is computed by itself

    def single(self, node: TracedArray) -> None:
        """Write one node that is no part of a pass."""
        self._assign(node, self._single(node))

    def _assign(self, node: TracedArray, expression: str) -> None:
        target = f"v{len(self._texts)}"
        self.lines.append(f"{target} = {expression}")
        self.name(node, target)

    def _single(self, node: TracedArray) -> str:
        if node.operation in ELEMENTWISE:
            given = [
                (_number_text(operand) if is_number(operand) else _cast_text(self, operand))
                for operand in node.inputs
            ]
            dtypes = [None if is_number(operand) else operand.dtype for operand in node.inputs]
            return self.operation(node.operation, given, dtypes, node.dtype)
        if is_summed_in_passes(node):
            arrays = [f"{self.text(given)}.reshape(-1)" for given in node.arrays if is_single(given)]
            arrays += self._summed.get(id(node), [])
            return f"norms.joint_square_sums(xp, [{', '.join(arrays)}])"
        if node.operation == SQUARE_SUMS:
            return f"norms.square_sums(xp, {self.shaped(node.arrays[0])}, {node.options[0]!r})"
        if node.operation == MEMBER:
            return f"{self._texts[id(node.arrays[0])]}[{node.options[0]}]"
        return self._whole(node)

    def _whole(self, node: TracedArray) -> str:
        name, options = node.operation, node.options
        given = [self.shaped(array) for array in node.arrays]
        if name == EVALUATED:
            function = f"f{len(self.names)}"
            self.names[function] = options[0]
            return f"{function}({self.text(node.arrays[0])}.reshape(()))"
        texts: dict[str, Callable[[], str]] = {
            "getitem": lambda: given[0] + _taken(options[0], node.arrays[0]),
            "stack": lambda: f"torch.stack([{', '.join(given)}])",
            "reshape": lambda: f"{given[0]}.reshape({options[0]!r})",
            "transpose": lambda: f"{given[0]}.permute({options[0]!r})",
            "sum": lambda: f"torch.sum({given[0]}, {_axes(options[0], node)}, {options[1]})",
            "max": lambda: f"torch.amax({given[0]}, {_axes(options[0], node)}, {options[1]})",
        }
        result = texts[name]()
        return f"{result}.reshape(())" if is_single(node) else result

    # ---- Passes

    def task(self, task: Task, number: int, arrays: Sequence[str]) -> list[str]:
        """Write one task; return the texts of what it stores.

        Args:
            task: what to write.
            number: of the task.
            arrays: the texts of its arrays: in one axis if the kernel is flat, else in their shapes.
        """
        kernel = task.kernel
        prefix = f"t{number}_"
        parts = [self.shaped(part) for part in task.parts]
        scalars = [self.text(scalar) for scalar in task.scalars]

        def operand(given: Any) -> Text:
            if isinstance(given, Literal):
                if given.dtype is None:
                    return _number_text(given.value)
                return _casting(self.full(given.value, given.dtype), given.dtype, self)
            texts: Mapping[str, Sequence[str]] = {"array": arrays, "scalar": scalars, "part": parts}
            text = f"{prefix}{given.index}" if given.kind == "result" else texts[given.kind][given.index]
            return _casting(text, _dtype_of(given, kernel), self)

        guards = _guards(kernel)
        for index, operation in enumerate(kernel.operations):
            given = [operand(each) for each in operation.operands]
            if index in guards:
                condition = scalars[guards[index]]
                given = [
                    _one_where(condition, text) if isinstance(each, Ref) and each.kind == "scalar" else text
                    for each, text in zip(operation.operands, given, strict=True)
                ]
            dtypes = [
                None if isinstance(each, Literal) and each.dtype is None else _numpy_dtype(each, kernel)
                for each in operation.operands
            ]
            text = self.operation(operation.name, given, dtypes, _dtype(operation.dtype))
            self.lines.append(f"{prefix}{index} = {text}")
        shape = (task.size,) if kernel.is_flat else task.shape

        def whole(each: Any, dtype: str) -> str:
            text = operand(each)(self.dtype(_dtype(dtype)))
            return text if self._is_whole(each, kernel) else f"torch.broadcast_to({text}, {shape!r})"

        for (each, dtype), total in zip(kernel.summed, task.sums, strict=True):
            self._summed.setdefault(id(total), []).append(f"({whole(each, dtype)}).reshape(-1)")
        return [whole(each, dtype) for each, dtype in kernel.stored]

    def _is_whole(self, ref: Any, kernel: Kernel) -> bool:
        """Return whether a value has all the elements: it depends on an array."""
        if isinstance(ref, Literal):
            return False
        if ref.kind == "result":
            return any(self._is_whole(each, kernel) for each in kernel.operations[ref.index].operands)
        return bool(ref.kind == "array")

    def empty(self, task: Task) -> None:
        """Write a task without elements: its sums are of nothing, and what it stores is empty."""
        for (_, dtype), total in zip(task.kernel.summed, task.sums, strict=True):
            self._summed.setdefault(id(total), []).append(self._nothing((0,), _dtype(dtype)))
        for members in task.stored:
            for member in members:
                self.name(member, self._nothing(member.shape, member.dtype))

    def _nothing(self, shape: tuple[int, ...], dtype: Any) -> str:
        return f"torch.empty({shape!r}, dtype={self.dtype(dtype)}, device=device)"

    def stored(self, task: Task, texts: Sequence[str]) -> list[str]:
        """Give names to what a task stores, member by member; return the names of the whole."""
        found = []
        for members, text in zip(task.stored, texts, strict=True):
            whole = f"w{len(self._texts)}"
            self.lines.append(f"{whole} = {text}")
            found.append(whole)
            for member, part in zip(members, slices_of(members), strict=True):
                taken = f"{whole}.narrow(0, {part.start}, {member.size})" if task.is_packed else whole
                self.name(member, taken)
        return found

    # ---- One operation

    def operation(self, name: str, given: Sequence[Text], dtypes: Sequence[Any], dtype: Any) -> str:
        """Return the text of an element-wise operation; a dtype of None is that of a Python number."""
        result = self.dtype(dtype)
        if name == CAST:
            return given[0](result)
        if name == COPY:
            return given[0](result)
        if name in _OPERATORS:
            return _OPERATORS[name].format(*(text(result) for text in given))
        if name == "where":
            chosen, other = (
                self._tensor(text, kind, result) for text, kind in zip(given[1:], dtypes[1:], strict=True)
            )
            return f"torch.where({given[0]('')}, {chosen}, {other})"
        if name in _FUNCTIONS:
            if name in _TAKES_TENSORS:
                operands = [
                    self._tensor(text, kind, result) for text, kind in zip(given, dtypes, strict=True)
                ]
            else:
                operands = [text(result) for text in given]
            return f"{_FUNCTIONS[name]}({', '.join(operands)})"
        if name in _TESTS:
            return f"{_TESTS[name]}({', '.join(text('') for text in given)})"
        if name in COMPARISONS:
            import numpy as np

            kinds = [kind for kind in dtypes if kind is not None]
            common = self.dtype(np.result_type(*kinds))
            return COMPARISONS[name].format(*(text(common) for text in given))
        raise TracingError(f"PyTorch's compiler is not given {name}")

    def _tensor(self, text: Text, kind: Any, dtype: str) -> str:
        if kind is None:
            return f"torch.full((), {text('')}, dtype={dtype}, device=device)"
        return text(dtype)


def _guards(kernel: Kernel) -> dict[int, int]:
    """Return the products with scalars that only a choice by a scalar uses, and which scalar chooses.

    Where the choice falls on something else, the product is computed all the same; it then may be subnormal,
    which takes the CPU a hundred times as long.
    """
    uses: dict[int, int] = {}
    wanted = [each for each, _ in (*kernel.stored, *kernel.summed)]
    for each in [*wanted, *(each for operation in kernel.operations for each in operation.operands)]:
        if isinstance(each, Ref) and each.kind == "result":
            uses[each.index] = uses.get(each.index, 0) + 1
    found: dict[int, int] = {}
    for operation in kernel.operations:
        if operation.name != "where":
            continue
        condition, _, other = operation.operands
        while (
            isinstance(condition, Ref)
            and condition.kind == "scalar"
            and isinstance(other, Ref)
            and other.kind == "result"
            and uses[other.index] == 1
            and kernel.operations[other.index].name == "multiply"
        ):
            found[other.index] = condition.index
            other = kernel.operations[other.index].operands[0]
    return found


def _one_where(condition: str, text: Text) -> Text:
    return lambda dtype: f"torch.where({condition}, 1.0, {text(dtype)})"


def function_of(lines: Iterable[str], names: dict[str, Any], parameters: str) -> Callable[..., Any]:
    """Return the function ``update`` with these lines."""
    source = "\n".join([f"def update({parameters}):", *(f"    {line}" for line in lines)])
    space = dict(names)
    exec(source, space)  # noqa: S102  # Only words of this module.
    function: Callable[..., Any] = space["update"]
    function.source = source  # type: ignore[attr-defined]
    return function


def _number(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _number_text(value: Any) -> Text:
    return lambda dtype: _number(value)


def _cast_text(writer: Writer, node: TracedArray) -> Text:
    return _casting(writer.text(node), writer.dtype(node.dtype), writer)


def _casting(text: str, own: str, writer: Writer) -> Text:
    own = own if own.startswith("torch.") else writer.dtype(_dtype(own))
    return lambda dtype: text if dtype in ("", own) else f"({text}).to({dtype})"


def _dtype_of(ref: Ref, kernel: Kernel) -> str:
    if ref.kind == "result":
        return kernel.operations[ref.index].dtype
    if ref.kind == "part":
        return kernel.parts[ref.index][0]
    return (kernel.arrays if ref.kind == "array" else kernel.scalars)[ref.index]


def _numpy_dtype(operand: Any, kernel: Kernel) -> Any:
    return _dtype(operand.dtype if isinstance(operand, Literal) else _dtype_of(operand, kernel))


def _dtype(text: Any) -> Any:
    """Return the dtype of a kernel's text; NumPy itself does not know bfloat16 again by its own."""
    import numpy as np

    return np.dtype(bfloat16() if text == BFLOAT16 else text)


def _taken(index: tuple[Any, ...], array: TracedArray) -> str:
    """Return the methods that take what an index of numbers and slices takes.

    PyTorch's own indexing asks the CUDA driver even for a fake tensor.
    """
    if any(entry is None or (isinstance(entry, slice) and entry.step not in (None, 1)) for entry in index):
        return f"[{index!r}]".replace("Ellipsis", "...")
    missing = array.ndim - sum(entry is not ... for entry in index)
    every = [each for entry in index for each in ([slice(None)] * missing if entry is ... else [entry])]
    text, axis = "", 0
    for length, entry in zip(array.shape, every, strict=False):
        if isinstance(entry, slice):
            start, stop, _ = entry.indices(length)
            if (start, stop) != (0, length):
                text += f".narrow({axis}, {start}, {max(0, stop - start)})"
            axis += 1
        else:
            text += f".select({axis}, {entry})"
    return text


def _axes(axis: Any, node: TracedArray) -> str:
    return repr(tuple(range(node.arrays[0].ndim)) if axis is None else axis)

"""Arrays that record what is done to them: a step runs on them once, and what it computes becomes a graph."""

from collections.abc import Callable, Iterable
from functools import cache
from math import prod
from typing import Any, NoReturn

Operand = Any  # a TracedArray, or a Python number, which takes the dtype of what it meets
Shape = tuple[int, ...]

INPUT, CONSTANT, COPY, CAST, EVALUATED = "input", "constant", "copy", "cast", "evaluated"
SQUARE_SUMS, JOINT_SQUARE_SUMS, MEMBER = "square_sums", "joint_square_sums", "member"

# Of these each element of the result depends on one element of each operand. Most bear NumPy's names.
ELEMENTWISE = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "power", "negative", "absolute", "sign"),
        *("sqrt", "exp", "log", "log1p", "expm1", "cos", "minimum", "maximum", "where", "real", "imag"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_not", "isfinite", "isnan"),
        *(CAST, COPY, CONSTANT),
    }
)


class TracingError(Exception):
    """The step did something that cannot be recorded; the text says what, with "it" for the step.

    Attributes:
        is_refusal: whether the step itself said that it must not be traced.
    """

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


class TransformedError(TracingError):
    """A transformation of the user, such as a derivative, is to see the step itself, and no plan."""


def _operator(operation: str, *, is_reflected: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Operand, other: Operand) -> Any:
        return recorded(operation, other, self) if is_reflected else recorded(operation, self, other)

    return operator


class TracedArray:
    """An array without values: one node of the graph, which never changes.

    Attributes:
        operation: what computes it.
        inputs: the operands.
        arrays: those of them that are arrays.
        options: what else the operation takes.
        shape, dtype: of the result; a NumPy dtype.
    """

    __slots__ = ("arrays", "dtype", "inputs", "operation", "options", "shape")

    __array_ufunc__ = None  # so that NumPy's arrays leave operators to this class
    device = "cpu"

    def __init__(
        self, operation: str, inputs: Iterable[Operand], options: tuple[Any, ...], shape: Shape, dtype: Any
    ) -> None:
        self.operation, self.inputs, self.options = operation, tuple(inputs), options
        self.shape, self.dtype = tuple(shape), dtype
        self.arrays = [operand for operand in self.inputs if isinstance(operand, TracedArray)]

    def __repr__(self) -> str:
        return f"TracedArray({self.operation}, shape={self.shape}, dtype={self.dtype})"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from .namespace import NAMESPACE

        return NAMESPACE

    def __getitem__(self, index: Any) -> "TracedArray":
        return part(self, index if isinstance(index, tuple) else (index,))

    __hash__ = object.__hash__
    __eq__ = _operator("equal")
    __ne__ = _operator("not_equal")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __add__, __radd__ = _operator("add"), _operator("add", is_reflected=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", is_reflected=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", is_reflected=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", is_reflected=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", is_reflected=True)
    __and__, __or__ = _operator("logical_and"), _operator("logical_or")

    def __neg__(self) -> "TracedArray":
        return recorded("negative", self)

    def __abs__(self) -> "TracedArray":
        return recorded("absolute", self)

    def __invert__(self) -> "TracedArray":
        return recorded("logical_not", self)

    def _refused(self, *args: Any, **options: Any) -> NoReturn:
        raise TracingError("it asks for the values of an array")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = __len__ = __array__ = _refused


def is_number(operand: Operand) -> bool:
    """Return whether an operand is a plain Python number rather than an array."""
    return type(operand) in (bool, int, float, complex)


# ---- Element by element


def recorded(operation: str, *operands: Operand) -> TracedArray:
    """Return the result of an element-wise operation."""
    shape: Shape | None = None
    kinds: list[Any] = []
    for operand in operands:
        if isinstance(operand, TracedArray):
            kinds.append(operand.dtype)
            if shape is None:
                shape = operand.shape
            elif operand.shape != shape:
                shape = _broadcast(shape, operand.shape)
        elif is_number(operand):
            kinds.append(type(operand))
        else:
            raise TracingError(f"it computes with a {type(operand).__name__} that is no array of this call")
    assert shape is not None
    return TracedArray(operation, operands, (), shape, _result_dtype(operation, tuple(kinds)))


def _broadcast(one: Shape, other: Shape) -> Shape:
    import numpy as np

    return np.broadcast_shapes(one, other)  # type: ignore[no-any-return]


@cache
def _result_dtype(operation: str, kinds: tuple[Any, ...]) -> Any:
    """Return the dtype that NumPy gives, which it is asked for on arrays without elements."""
    import numpy as np

    if operation in ("real", "imag"):
        return getattr(np.empty(0, kinds[0]), operation).dtype
    operands = [kind(1) if isinstance(kind, type) else np.empty(0, kind) for kind in kinds]
    return getattr(np, operation)(*operands).dtype


def cast(array: TracedArray, dtype: Any, *, copy: bool = True) -> TracedArray:
    """Return the array in another dtype; a copy of it where that is asked for."""
    import numpy as np

    dtype = np.dtype(dtype)
    if array.dtype == dtype:
        return TracedArray(COPY, (array,), (), array.shape, dtype) if copy else array
    return TracedArray(CAST, (array,), (), array.shape, dtype)


def constant(value: Any, shape: Shape, dtype: Any) -> TracedArray:
    """Return an array of one number everywhere."""
    import numpy as np

    if not is_number(value):
        raise TracingError(f"it fills an array with a {type(value).__name__}")
    return TracedArray(CONSTANT, (), (value,), shape, np.dtype(dtype))


# ---- Of a whole array


def reshaped(array: TracedArray, shape: Shape) -> TracedArray:
    """Return the elements in another shape, one length of which may be -1."""
    known = prod(length for length in shape if length != -1)
    full = tuple(array.size // known if length == -1 else length for length in shape)
    return TracedArray("reshape", (array,), (full,), full, array.dtype)


def permuted(array: TracedArray, axes: tuple[int, ...]) -> TracedArray:
    """Return the array with its axes in another order."""
    return TracedArray("transpose", (array,), (axes,), tuple(array.shape[axis] for axis in axes), array.dtype)


def part(array: TracedArray, index: tuple[Any, ...]) -> TracedArray:
    """Return what an index of numbers and slices takes of the array."""
    import numpy as np

    if any(not isinstance(entry, (int, slice, type(...), type(None))) for entry in index):
        raise TracingError("it indexes an array by values")
    shape = np.broadcast_to(np.zeros((), array.dtype), array.shape)[index].shape
    return TracedArray("getitem", (array,), (index,), shape, array.dtype)


def stacked(arrays: Iterable[TracedArray]) -> TracedArray:
    """Return arrays of one shape along a new first axis."""
    given = tuple(arrays)
    if any(array.dtype != given[0].dtype for array in given):
        raise TracingError("it stacks arrays of several dtypes")
    return TracedArray("stack", given, (), (len(given), *given[0].shape), given[0].dtype)


def reduced(operation: str, array: TracedArray, axis: Any, keepdims: bool) -> TracedArray:
    """Return the sum or the largest along some axes; None: all."""
    axes = range(array.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    gone = {axis % array.ndim for axis in axes}
    lengths = [1 if axis in gone else length for axis, length in enumerate(array.shape)]
    shape = lengths if keepdims else [length for axis, length in enumerate(lengths) if axis not in gone]
    dtype = _result_dtype("sum", (array.dtype,)) if operation == "sum" else array.dtype
    return TracedArray(operation, (array,), (axis, keepdims), tuple(shape), dtype)


def whole_function(array: TracedArray) -> Callable[..., Any]:
    """Return what computes such a result of NumPy arrays, in the words of NumPy."""
    import numpy as np

    options = array.options
    if array.operation == EVALUATED:
        return options[0]  # type: ignore[no-any-return]
    functions: dict[str, Callable[..., Any]] = {
        "getitem": lambda given: given[options[0]],
        "stack": lambda *given: np.stack(given),
        "reshape": lambda given: np.reshape(given, options[0]),
        "transpose": lambda given: np.transpose(given, options[0]),
        "sum": lambda given: np.sum(given, axis=options[0], keepdims=options[1]),
        "max": lambda given: np.max(given, axis=options[0], keepdims=options[1]),
        MEMBER: lambda given: given[options[0]],
    }
    return functions[array.operation]


# ---- The named reductions


def square_sums(
    operation: str, arrays: Iterable[TracedArray], axes: tuple[int, ...]
) -> tuple[TracedArray, ...]:
    """Return the three results of a named reduction, over axes that stay with length 1 or of all elements."""
    given = tuple(arrays)
    first = given[0]
    shape: Shape = ()
    if operation == SQUARE_SUMS:
        shape = tuple(1 if axis in axes else length for axis, length in enumerate(first.shape))
    dtype = _result_dtype("absolute", (first.dtype,))
    reduction = TracedArray(operation, given, (axes,), shape, dtype)
    return tuple(TracedArray(MEMBER, (reduction,), (index,), shape, dtype) for index in range(3))


def evaluated(function: Callable[[Any], Any], count: TracedArray) -> TracedArray:
    """Return the 0-d float32 result of a function that is called at each run."""
    import numpy as np

    return TracedArray(EVALUATED, (count,), (function,), (), np.dtype("float32"))

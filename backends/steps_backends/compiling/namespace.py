"""The array-API functions that steps use, on arrays that record: what a step sees instead of a library."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from . import tracing
from .tracing import (
    INPUT,
    JOINT_SQUARE_SUMS,
    SQUARE_SUMS,
    TracedArray,
    TracingError,
    cast,
    constant,
    permuted,
    recorded,
    reduced,
    reshaped,
    stacked,
)

_FUNCTIONS = {
    **{name: name for name in ("sqrt", "exp", "log", "log1p", "expm1", "cos", "sign", "real", "imag")},
    **{name: name for name in ("isfinite", "isnan", "logical_and", "logical_or", "logical_not")},
    **{name: name for name in ("add", "subtract", "multiply", "divide", "equal", "not_equal", "negative")},
    **{name: name for name in ("less", "less_equal", "greater", "greater_equal")},
    **{name: name for name in ("minimum", "maximum", "where")},
    "abs": "absolute",
    "pow": "power",
}
_DTYPES = ("bool", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")


class Recorder:
    """What keeps whole things: the named reductions, and functions that must be called at each run."""

    def of_square_sums(
        self,
        arrays: Iterable[TracedArray],
        axes: Iterable[tuple[int, ...]],
        function: Callable[[list[Any]], Any],
    ) -> Any:
        """Return a function of the sums of squares by range of each array, over its own axes."""
        pairs = zip(arrays, axes, strict=True)
        return function([tracing.square_sums(SQUARE_SUMS, (x,), own) for x, own in pairs])

    def joint_square_sums(self, arrays: Iterable[TracedArray]) -> tuple[TracedArray, ...]:
        """Return the sums of squares by range of all elements of all arrays."""
        return tracing.square_sums(JOINT_SQUARE_SUMS, arrays, ())

    def evaluated(self, function: Any, count: TracedArray) -> TracedArray:
        """Return the result of a function of the count."""
        return tracing.evaluated(function, count)

    def seen_by_users(self, leaf: TracedArray) -> Any:
        """Return what a function of the user may look at in place of a leaf, with its library's dtype."""
        seen = leaf.options[1] if leaf.operation == INPUT else None
        return leaf if seen is None else seen

    def stop(self) -> None:
        """Say that a step stops in the debugger here."""
        if not _PASSES_BREAKPOINTS.get():
            raise BreakpointError

    def refuse(self, reason: str) -> NoReturn:
        """Say that what comes next cannot be recorded."""
        raise TracingError(reason, is_refusal=True)


class BreakpointError(Exception):
    """The step stops in the debugger at each call, which only a plain call can do."""


_PASSES_BREAKPOINTS = ContextVar("passes_breakpoints", default=False)


@contextmanager
def passing_breakpoints() -> Iterator[None]:
    """Record steps as if they stopped nowhere."""
    token = _PASSES_BREAKPOINTS.set(True)
    try:
        yield
    finally:
        _PASSES_BREAKPOINTS.reset(token)


class TracedNamespace:
    """A namespace of the array API with NumPy's dtypes, as far as steps go.

    A function that is missing here raises TracingError.
    """

    # The library behind it, as error texts name it.
    __name__ = "numpy"
    recorder = Recorder()

    def __getattr__(self, name: str) -> Any:
        if name in _DTYPES:
            import numpy as np

            return np.dtype(name)
        if name not in _FUNCTIONS:
            if name.startswith("__"):
                raise AttributeError(name)
            raise TracingError(f"it uses {name}, which cannot be recorded")
        operation = _FUNCTIONS[name]

        def function(*operands: Any) -> TracedArray:
            return recorded(operation, *operands)

        setattr(self, name, function)
        return function

    def astype(self, x: TracedArray, dtype: Any, *, copy: bool = True) -> TracedArray:
        """Return x in another dtype."""
        return cast(x, dtype, copy=copy)

    def asarray(self, value: Any, *, dtype: Any = None, device: Any = None) -> TracedArray:
        """Return a number as an array; an array as it is."""
        if isinstance(value, TracedArray):
            return value if dtype is None else cast(value, dtype, copy=False)
        if dtype is None:
            raise TracingError("it makes an array of a number without a dtype")
        return constant(value, (), dtype)

    def full_like(self, x: TracedArray, value: Any, *, dtype: Any = None, device: Any = None) -> TracedArray:
        """Return an array of one number, in the shape of x."""
        return constant(value, x.shape, x.dtype if dtype is None else dtype)

    def zeros_like(self, x: TracedArray, *, dtype: Any = None, device: Any = None) -> TracedArray:
        """Return zeros in the shape of x."""
        return self.full_like(x, 0, dtype=dtype)

    def ones_like(self, x: TracedArray, *, dtype: Any = None, device: Any = None) -> TracedArray:
        """Return ones in the shape of x."""
        return self.full_like(x, 1, dtype=dtype)

    def reshape(self, x: TracedArray, shape: tuple[int, ...]) -> TracedArray:
        """Return the elements of x in another shape."""
        return reshaped(x, shape)

    def permute_dims(self, x: TracedArray, axes: tuple[int, ...]) -> TracedArray:
        """Return x with its axes in another order."""
        return permuted(x, axes)

    def stack(self, arrays: Iterable[TracedArray]) -> TracedArray:
        """Return arrays along a new first axis."""
        return stacked(arrays)

    def sum(self, x: TracedArray, *, axis: Any = None, keepdims: bool = False) -> TracedArray:
        """Return the sum over some axes."""
        return reduced("sum", x, axis, keepdims)

    def max(self, x: TracedArray, *, axis: Any = None, keepdims: bool = False) -> TracedArray:
        """Return the largest over some axes."""
        return reduced("max", x, axis, keepdims)

    def isdtype(self, dtype: Any, kind: Any) -> bool:
        """Return whether a dtype is of a kind."""
        import numpy as np

        return bool(np.isdtype(dtype, kind))


NAMESPACE = TracedNamespace()

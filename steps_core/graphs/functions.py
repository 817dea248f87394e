"""The functions that compute inside a graph, beside Python's operators and the steps.

Each takes trees, scalars or numbers and works leaf by leaf; a scalar, such as a global norm, meets every
leaf, and what a reduction leaves of a leaf meets that leaf. Narrow leaves are computed in float32.
"""

from typing import Any

from .stateful import Counter, MovingAverage, PreviousValue, Trace
from .tracing import Symbol, operation, stateful

Operand = Any  # a value of the graph, or a number


def sign(x: Operand, *, name: str | None = None) -> Symbol:
    """Return -1, 0 or 1 for each element.

    sign(x) = x / |x|, and 0 where x is 0, also for complex x; NaN stays

    Args:
        x: value of the graph.
        name: of the node. Default: the operation's name, numbered from the second.

    Raises:
        ArgumentTypeError: x is no value of a graph that is being traced.

    Example:
        >>> from steps_core import graph, graphs
        >>> graph(lambda gradients: -graphs.sign(gradients), name="sign_descent")
        sign_descent(gradients):
            sign = sign(gradients)
            negative = negative(sign)
            return negative
    """
    return operation("sign", x, node_name=name)


def square(x: Operand, *, name: str | None = None) -> Symbol:
    """Return x * x for each element; arguments and errors as of `sign`."""
    return operation("square", x, node_name=name)


def sqrt(x: Operand, *, name: str | None = None) -> Symbol:
    """Return the square root of each element, NaN below 0; its derivative at 0 is 0, so that it is finite.

    Arguments and errors as of `sign`.
    """
    return operation("sqrt", x, node_name=name)


def exp(x: Operand, *, name: str | None = None) -> Symbol:
    """Return e to the power of each element; arguments and errors as of `sign`."""
    return operation("exp", x, node_name=name)


def log(x: Operand, *, name: str | None = None) -> Symbol:
    """Return the natural logarithm of each element; arguments and errors as of `sign`."""
    return operation("log", x, node_name=name)


def isfinite(x: Operand, *, name: str | None = None) -> Symbol:
    """Return for each element whether it is neither NaN nor infinite; arguments and errors as of `sign`."""
    return operation("isfinite", x, node_name=name)


def minimum(x: Operand, y: Operand, *, name: str | None = None) -> Symbol:
    """Return the smaller of two, element by element; NaN where either is NaN.

    Args:
        x, y: values of the graph, or one of them a number. Complex leaves, which have no order, are refused.
        name: of the node. Default: the operation's name, numbered from the second.

    Raises:
        ArgumentTypeError: neither is a value of a graph that is being traced.

    Example:
        >>> from steps_core import graph, graphs
        >>> graph(lambda gradients: graphs.minimum(gradients, 1.0), name="capped").output
        'minimum'
    """
    return operation("minimum", x, y, node_name=name)


def maximum(x: Operand, y: Operand, *, name: str | None = None) -> Symbol:
    """Return the larger of two, element by element; NaN where either is NaN. As `minimum` otherwise."""
    return operation("maximum", x, y, node_name=name)


def clip(x: Operand, lower: Operand, upper: Operand, *, name: str | None = None) -> Symbol:
    """Return x brought between two bounds, element by element: min(max(x, lower), upper).

    As `minimum` otherwise. `GradientClippingStep` clips norms.
    """
    return operation("clip", x, lower, upper, node_name=name)


def where(condition: Operand, x: Operand, y: Operand, *, name: str | None = None) -> Symbol:
    """Return x where a condition holds, else y, element by element.

    Args:
        condition: result of a comparison, of `isfinite`, or of these joined by ``&``, ``|`` and ``~``.
        x, y: values of the graph or numbers.
        name: of the node. Default: the operation's name, numbered from the second.

    Raises:
        ArgumentTypeError: the condition holds no booleans.

    Example:
        >>> from steps_core import graph, graphs
        >>> @graph
        ... def deadened(gradients, *, least=0.1):
        ...     return graphs.where(abs(gradients) < least, 0.0, gradients)
    """
    return operation("where", condition, x, y, node_name=name)


def norm(
    x: Operand,
    *,
    over: str = "tree",
    order: float = 2.0,
    unit_axis: Any = "auto",
    name: str | None = None,
) -> Symbol:
    """Return the norm of the tree, of each leaf, or of each unit of each leaf.

    order 2: sqrt(sum |x|^2), right over the whole range of the format;  1: sum |x|;  infinity: max |x|

    Args:
        x: tree of the graph.
        over: "tree": one scalar; "leaf": a 0-d array for each leaf; "unit": an array for each leaf, the
            axes that a unit stretches over kept with length 1. Default "tree".
        order: 1, 2 or infinity. Default 2.
        unit_axis: as of `GradientClippingStep`. Default "auto".
        name: of the node. Default: the operation's name, numbered from the second.

    Returns:
        A scalar or a tree, in float32 or the wider format of its leaf; the norm of nothing is 0.

    Raises:
        ArgumentTypeError, ArgumentError: x is no tree, or an option breaks its rule.

    Example:
        >>> from steps_core import graph, graphs
        >>> @graph
        ... def normalised(gradients):
        ...     return -gradients / graphs.maximum(graphs.norm(gradients), 1e-12)
    """
    return operation("norm", x, over=over, order=order, unit_axis=unit_axis, node_name=name)


def mean(x: Operand, *, over: str = "tree", unit_axis: Any = "auto", name: str | None = None) -> Symbol:
    """Return the mean over the tree, each leaf, or each unit; right also where the sum overflows.

    Arguments and errors as of `norm`; over the tree, complex leaves are refused. The mean of nothing is 0.
    """
    return operation("mean", x, over=over, unit_axis=unit_axis, node_name=name)


def sum(x: Operand, *, over: str = "tree", unit_axis: Any = "auto", name: str | None = None) -> Symbol:  # noqa: A001
    """Return the sum of all elements of the tree, of each leaf, or of each unit.

    Arguments and errors as of `norm`; over the tree, complex leaves are refused.
    """
    return operation("sum", x, over=over, unit_axis=unit_axis, node_name=name)


def moving_average(
    x: Operand, *, decay: Any = 0.9, bias_correction: Any = False, name: str | None = None
) -> Symbol:
    """Return the exponential moving average of a value over the calls.

    m = decay * m + (1 - decay) * x;  result = m, or m / (1 - decay^t) with bias_correction, t = 1 first

    Args:
        x: tree or scalar of the graph.
        decay: weight of the past, at least 0 and below 1; may be a hyper-parameter. Default 0.9.
        bias_correction: divide out the zeros that the average started from. Default False.
        name: of the node, and of its entry in the state. Default: the operation's name, numbered.

    Raises:
        ArgumentTypeError, ArgumentError: x is no value of a graph, or an option breaks its rule.

    Example:
        >>> from steps_core import graph, graphs
        >>> @graph
        ... def averaged(gradients, *, decay=0.9):
        ...     return -graphs.moving_average(gradients, decay=decay)
    """
    return stateful(MovingAverage(decay=decay, bias_correction=bias_correction), [x], name)


def trace(x: Operand, *, decay: Any = 0.9, nesterov: Any = False, name: str | None = None) -> Symbol:
    """Return a decaying sum of a value over the calls, as `MomentumStep`.

    m = decay * m + x;  result = m, or x + decay * m with nesterov

    Arguments and errors as of `moving_average`.
    """
    return stateful(Trace(decay=decay, nesterov=nesterov), [x], name)


def previous_value(x: Operand, *, name: str | None = None) -> Symbol:
    """Return what x was in the call before; zeros in the first. Arguments as of `moving_average`."""
    return stateful(PreviousValue(), [x], name)


def counter(*, name: str | None = None) -> Symbol:
    """Return the number of calls before this one, 0 in the first, as a scalar.

    Raises:
        ArgumentTypeError: no graph is being traced.
    """
    return stateful(Counter(), [], name)


__all__ = [
    "clip",
    "counter",
    "exp",
    "isfinite",
    "log",
    "maximum",
    "mean",
    "minimum",
    "moving_average",
    "norm",
    "previous_value",
    "sign",
    "sqrt",
    "square",
    "sum",
    "trace",
    "where",
]

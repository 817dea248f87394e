"""Tracing: an ordinary Python function is run once on symbols, and what it does becomes a graph."""

import inspect
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from numbers import Real
from typing import Any, NoReturn, overload

from .. import checks
from ..contract import Step
from ..deferred import Deferred, Reference, Template
from ..errors import ArgumentError, ArgumentTypeError, refusal
from ..packets import checked_names
from .graph import Graph
from .model import Input, Node, OperationNode, Parameter, StepNode
from .operations import OPERATIONS
from .stateful import STATEFUL_NAMES

_CURRENT: ContextVar["Trace | None"] = ContextVar("current trace", default=None)

_WAY_OUT = "compute with the functions of graphs, such as where(condition, x, y)"


class Symbol(Deferred):
    """What a value is while a graph is traced: a name in it. Operators and steps add nodes."""

    __array_ufunc__ = None  # NumPy's operators give way to those below.

    def __init__(self, trace: "Trace", name: str) -> None:
        self.trace = trace
        self.name = name

    def as_reference(self) -> Reference:
        """Return what stands for this value in the options of a step."""
        return Reference(self.name)

    def processed_by(self, step: Step | Template, weights: Any, name: str | None) -> "Symbol":
        """Add a step that is applied to this value."""
        inputs = [self] if weights is None else [self, weights]
        return self.trace.add_step(step, inputs, name)

    def extracted(self, names: Sequence[str]) -> "Symbol":
        """Add the extraction of streams."""
        return operation("extract_streams", self, names=checked_names(names))

    def merged(self, packets: Sequence[Any]) -> "Symbol":
        """Add the merging of streams."""
        return operation("merge_streams", *packets)

    def __add__(self, other: Any) -> "Symbol":
        return operation("add", self, other)

    def __radd__(self, other: Any) -> "Symbol":
        return operation("add", other, self)

    def __sub__(self, other: Any) -> "Symbol":
        return operation("subtract", self, other)

    def __rsub__(self, other: Any) -> "Symbol":
        return operation("subtract", other, self)

    def __mul__(self, other: Any) -> "Symbol":
        return operation("multiply", self, other)

    def __rmul__(self, other: Any) -> "Symbol":
        return operation("multiply", other, self)

    def __truediv__(self, other: Any) -> "Symbol":
        return operation("divide", self, other)

    def __rtruediv__(self, other: Any) -> "Symbol":
        return operation("divide", other, self)

    def __pow__(self, other: Any) -> "Symbol":
        return operation("power", self, other)

    def __rpow__(self, other: Any) -> "Symbol":
        return operation("power", other, self)

    def __neg__(self) -> "Symbol":
        return operation("negative", self)

    def __pos__(self) -> "Symbol":
        return self

    def __abs__(self) -> "Symbol":
        return operation("abs", self)

    def __lt__(self, other: Any) -> "Symbol":
        return operation("less", self, other)

    def __le__(self, other: Any) -> "Symbol":
        return operation("less_equal", self, other)

    def __gt__(self, other: Any) -> "Symbol":
        return operation("greater", self, other)

    def __ge__(self, other: Any) -> "Symbol":
        return operation("greater_equal", self, other)

    def __and__(self, other: Any) -> "Symbol":
        return operation("logical_and", self, other)

    def __or__(self, other: Any) -> "Symbol":
        return operation("logical_or", self, other)

    def __invert__(self) -> "Symbol":
        return operation("logical_not", self)

    def __eq__(self, other: object) -> bool:
        """Refuse: the answer would not depend on the values."""
        self._refuse("be compared with ==")

    def __ne__(self, other: object) -> bool:
        """Refuse: the answer would not depend on the values."""
        self._refuse("be compared with !=")

    __hash__ = Deferred.__hash__

    def __bool__(self) -> bool:  # noqa: PLE0304
        self._refuse("be used as a condition")

    def __float__(self) -> float:
        self._refuse("be turned into a number")

    __int__ = __index__ = __complex__ = __float__

    @property
    def gradients(self) -> NoReturn:
        """Refuse: a step in a graph returns its gradients alone."""
        self.__iter__()

    state = gradients

    def __iter__(self) -> NoReturn:
        raise refusal(
            ArgumentTypeError,
            f"the value {self.name!r} of a graph",
            "be used whole",
            self,
            "a step in a graph returns its gradients alone, and CustomStep keeps the state; "
            'parts are taken with extract_streams(packet, ["name"])',
        )

    def __getitem__(self, key: Any) -> NoReturn:
        self.__iter__()

    def __len__(self) -> int:  # noqa: PLE0303
        self._refuse("be asked for its length")

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        self._refuse("be turned into an array")

    def _refuse(self, what: str) -> NoReturn:
        rule = f"not {what} while the graph is traced: it has no value yet"
        raise refusal(ArgumentTypeError, f"the value {self.name!r} of a graph", rule, self, _WAY_OUT)

    def __repr__(self) -> str:
        return f"<{self.name} of the graph {self.trace.title}>"


class Trace:
    """The nodes that a function has added so far."""

    def __init__(self, title: str, taken: Sequence[str]) -> None:
        self.title = title
        self.nodes: list[Node] = []
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def add_step(self, step: Step | Template, inputs: Sequence[Any], name: str | None) -> Symbol:
        """Add a step."""
        kind = step.kind if isinstance(step, Template) else type(step)
        title = STATEFUL_NAMES.get(kind) or _snake_case(kind.__name__)
        node = StepNode(self._named(name, title), step, tuple(self._input(value) for value in inputs))
        return self._added(node)

    def add_operation(
        self, operation: str, inputs: Sequence[Any], name: str | None, options: dict[str, Any]
    ) -> Symbol:
        """Add an operation; options that are as by default are left out."""
        known = OPERATIONS[operation]
        checked = known.checked(options)
        beyond = tuple(
            (option, value) for option, value in checked.items() if value != known.options[option][0]
        )
        node = OperationNode(
            self._named(name, operation), operation, tuple(self._input(value) for value in inputs), beyond
        )
        return self._added(node)

    def _added(self, node: Node) -> Symbol:
        self.nodes.append(node)
        self._taken.add(node.name)
        return Symbol(self, node.name)

    def _input(self, value: Any) -> Input:
        if isinstance(value, Symbol):
            if value.trace is not self:
                way_out = "pass it as a placeholder or a hyper-parameter"
                rule = f"belong to the graph {self.title}, which is being traced"
                raise refusal(ArgumentError, "an input", rule, value, way_out)
            return value.name
        if isinstance(value, bool) or not isinstance(value, Real):
            rule = "be a value of the graph or a number"
            way_out = "use a number, or a hyper-parameter that is one"
            raise refusal(ArgumentTypeError, "an input", rule, value, way_out)
        return checks.number("an input", value)

    def _named(self, name: str | None, title: str) -> str:
        if name is not None:
            return name
        while True:
            number = self._numbers.get(title, 0) + 1
            self._numbers[title] = number
            found = title if number == 1 else f"{title}_{number}"
            if found not in self._taken:
                return found


def operation(name: str, *inputs: Any, node_name: str | None = None, **options: Any) -> Symbol:
    """Add an operation to the graph that is being traced."""
    trace = next((value.trace for value in inputs if isinstance(value, Symbol)), None)
    if trace is None:
        given = inputs[0] if inputs else None
        way_out = "call it in a function under @graph; outside, use the array library's own function"
        raise refusal(ArgumentTypeError, f"an input of {name}", "be a value of a graph", given, way_out)
    return trace.add_operation(name, inputs, node_name, options)


def stateful(step: Step | Template, inputs: Sequence[Any], node_name: str | None) -> Symbol:
    """Add an operation with a state to the graph that is being traced."""
    trace = next((value.trace for value in inputs if isinstance(value, Symbol)), None)
    trace = trace or (_CURRENT.get() if not inputs else None)
    if trace is None:
        title = STATEFUL_NAMES[type(step)] if isinstance(step, Step) else "it"
        given = inputs[0] if inputs else None
        way_out = "call it in a function under @graph"
        raise refusal(ArgumentTypeError, f"the input of {title}", "be a value of a graph", given, way_out)
    return trace.add_step(step, inputs, node_name)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@overload
def graph(function: Callable[..., Any], /) -> Graph: ...
@overload
def graph(
    *, negates: bool | None = None, name: str | None = None
) -> Callable[[Callable[..., Any]], Graph]: ...


def graph(
    function: Callable[..., Any] | None = None,
    /,
    *,
    negates: bool | None = None,
    name: str | None = None,
) -> Graph | Callable[[Callable[..., Any]], Graph]:
    """Make a graph of a function, which is run once, on symbols.

    The function's one or two positional arguments are gradients and weights, under any names; its
    keyword-only arguments are hyper-parameters, each with a default. Inside, operators and the functions
    of `graphs` compute; a step called on a value, ``AdamStep()(gradients)``, gives its
    gradients alone; a step made with a hyper-parameter, ``AdamStep(learning_rate=rate)``, is made when
    the hyper-parameter has its value.

    Args:
        function: the function.
        negates: whether the result is to be added to the weights; only where the nodes leave that open.
        name: of the graph. Default: the function's name.

    Returns:
        The `Graph`; without a function, a decorator that makes it.

    Raises:
        ArgumentTypeError: the function has other arguments, or returns something else than a value.
        ArgumentError, UnknownNameError: the graph breaks a rule; see `Graph`.

    Example:
        >>> from steps_core import CustomStep, GradientClippingStep, graph
        >>> import numpy as np
        >>> @graph
        ... def clipped(gradients, *, threshold=1.0):
        ...     return -GradientClippingStep(variant="global", threshold=threshold)(gradients)
        >>> CustomStep(clipped, threshold=10.0)(np.asarray([3.0, 4.0])).gradients
        array([-3., -4.])
    """
    if function is None:
        return lambda decorated: _traced(decorated, negates, name)
    return _traced(function, negates, name)


def _traced(function: Any, negates: bool | None, name: str | None) -> Graph:
    if not callable(function) or isinstance(function, (Graph, Step, type)):
        way_out = "write @graph above a function of gradients and weights"
        raise refusal(ArgumentTypeError, "function", "be a function", function, way_out)
    title = str(getattr(function, "__name__", "graph")) if name is None else name
    placeholders, parameters = _arguments(function)
    trace = Trace(title, [*placeholders, *(parameter.name for parameter in parameters)])
    token = _CURRENT.set(trace)
    try:
        output = function(
            *(Symbol(trace, place) for place in placeholders),
            **{parameter.name: Symbol(trace, parameter.name) for parameter in parameters},
        )
    finally:
        _CURRENT.reset(token)
    if not isinstance(output, Symbol):
        rule = "return one value of the graph"
        raise refusal(ArgumentTypeError, f"the function {title}", rule, output, "return the updates alone")
    return Graph(
        placeholders=placeholders,
        parameters=parameters,
        nodes=tuple(trace.nodes),
        output=str(trace._input(output)),  # noqa: SLF001
        name=title,
        negates=negates,
    )


def _arguments(function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[Parameter, ...]]:
    placeholders: list[str] = []
    parameters: list[Parameter] = []
    for argument in inspect.signature(function).parameters.values():
        has_default = argument.default is not argument.empty
        if argument.kind is argument.KEYWORD_ONLY:
            if not has_default:
                way_out = f"write {argument.name}=1.0"
                place = f"the hyper-parameter {argument.name!r}"
                raise refusal(ArgumentTypeError, place, "have a default", argument.name, way_out)
            parameters.append(Parameter(argument.name, argument.default))
        elif argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD) or has_default:
            rule = "be positional without a default, or keyword-only with one"
            way_out = "write (gradients, weights, *, name=default)"
            raise refusal(
                ArgumentTypeError,
                f"the argument {argument.name!r} of the function",
                rule,
                str(argument),
                way_out,
            )
        else:
            placeholders.append(argument.name)
    return tuple(placeholders), tuple(parameters)

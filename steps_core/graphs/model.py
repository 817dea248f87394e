"""The data of a graph: placeholders, hyper-parameters, nodes and an output, checked when it is made."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ..contract import Step
from ..deferred import Template
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError, refusal
from .operations import OPERATIONS
from .stateful import STATEFUL_NAMES, Counter

MOST_NODES = 10_000
MOST_CHARACTERS = 200  # of a graph's name

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_NUMBERED = [*map(str, range(10)), "N"]
PORTS = (
    *("self", "cls"),  # Python passes these itself.
    *("gradients", "weights", "state", "graph", "graph_signature", "overrides", "set_breakpoint", "metadata"),
    *(f"{port}{number}" for port in ("name", "val") for number in _NUMBERED),
)

Input = str | float
"""The name of a placeholder, hyper-parameter or node; or a constant."""


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter: a name and the value that it has unless it is overridden."""

    name: str
    default: Any


@dataclass(frozen=True)
class StepNode:
    """A step, or an operation with a state, applied to gradients and, if given, weights."""

    name: str
    step: Step | Template
    inputs: tuple[Input, ...]

    @property
    def kind(self) -> type:
        """The class of the step."""
        return self.step.kind if isinstance(self.step, Template) else type(self.step)

    @property
    def title(self) -> str:
        """What the node does, in a word."""
        return STATEFUL_NAMES.get(self.kind, self.kind.__name__)

    def references(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Return where options refer to hyper-parameters, and to which."""
        if isinstance(self.step, Template):
            yield from self.step.references()


@dataclass(frozen=True)
class OperationNode:
    """A stateless operation applied to its inputs."""

    name: str
    operation: str
    inputs: tuple[Input, ...]
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def title(self) -> str:
        """What the node does, in a word."""
        return self.operation

    def references(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Return nothing: the options of operations are fixed."""
        return iter(())


Node = StepNode | OperationNode


@dataclass(frozen=True, repr=False)
class GraphData:
    """The data of a graph; `Graph` adds what can be done with it."""

    placeholders: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    nodes: tuple[Node, ...]
    output: str
    name: str = "graph"
    negates: bool | None = None


@dataclass(frozen=True)
class Structure:
    """A graph's nodes by name and in an order in which each comes after its inputs."""

    nodes: Mapping[str, Node]
    order: tuple[str, ...]
    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def check_structure(
    placeholders: Sequence[str],
    parameters: Sequence[Parameter],
    nodes: Sequence[Node],
    output: str,
) -> Structure:
    """Return the nodes in order; refuse names, inputs and cycles that break a rule, naming the node."""
    _check_placeholders(placeholders)
    _check_names(placeholders, parameters, nodes)
    known = [*placeholders, *(p.name for p in parameters), *(n.name for n in nodes)]
    for node in nodes:
        _check_inputs(node, known)
    if output not in known:
        raise _unknown("output", output, known)
    by_name = {node.name: node for node in nodes}
    order = _sorted(by_name)
    users = _users(nodes, output)
    _check_used(placeholders, parameters, nodes, users)
    return Structure(by_name, order, users)


def _check_placeholders(placeholders: Sequence[str]) -> None:
    if len(placeholders) not in (1, 2):
        rule = "be one (gradients) or two (gradients, weights)"
        raise refusal(
            ArgumentError, "placeholders", rule, tuple(placeholders), "write (gradients, weights, *, ...)"
        )


def _check_names(placeholders: Sequence[str], parameters: Sequence[Parameter], nodes: Sequence[Node]) -> None:
    if len(nodes) > MOST_NODES:
        raise refusal(
            ArgumentError, "nodes", f"be at most {MOST_NODES}", len(nodes), "split the graph in two"
        )
    seen: set[str] = set()
    named = [("placeholder", name) for name in placeholders]
    named += [("parameter", parameter.name) for parameter in parameters]
    named += [("node", node.name) for node in nodes]
    for what, name in named:
        if not isinstance(name, str):
            raise refusal(ArgumentTypeError, f"the name of a {what}", "be a text", name, "pass a name")
        if not _NAME.fullmatch(name):
            rule = "be of letters, digits and underscores, at most 100, no digit first"
            raise refusal(ArgumentError, f"the name of a {what}", rule, name, "rename it")
        if what == "parameter" and name in PORTS:
            rule = "not be the name of a port of CustomStep"
            raise refusal(ArgumentError, "the name of a parameter", rule, name, "rename it")
        if name in seen:
            raise refusal(ArgumentError, f"the name of a {what}", "be used once", name, "rename one of them")
        seen.add(name)


def _check_inputs(node: Node, known: Sequence[str]) -> None:
    place = f"node {node.name!r}"
    if isinstance(node, OperationNode):
        operation = OPERATIONS.get(node.operation)
        if operation is None:
            raise _unknown(f"{place}: operation", node.operation, OPERATIONS)
        few, most = (1, 100) if operation.arity is None else (operation.arity, operation.arity)
    elif node.kind is Counter:
        few, most = 0, 0
    else:
        few, most = (1, 1) if node.kind in STATEFUL_NAMES else (1, 2)
    if not few <= len(node.inputs) <= most:
        count = f"{few}" if few == most else f"{few} to {most}"
        raise refusal(
            ArgumentError,
            f"{place}: inputs",
            f"be {count} of {node.title}",
            tuple(node.inputs),
            "give each input once",
        )
    for value in node.inputs:
        if isinstance(value, str):
            if value not in known:
                raise _unknown(f"{place}: input", value, known)
        elif not isinstance(value, float) or value != value:
            rule = "be a name or a number other than NaN"
            raise refusal(ArgumentTypeError, f"{place}: input", rule, value, "pass a float")
    for option, name in node.references():
        if name not in known:
            raise _unknown(f"{place}: option {'.'.join(option)}", name, known)


def dependencies(node: Node) -> Iterator[str]:
    """Return the names of everything that a node reads."""
    yield from (value for value in node.inputs if isinstance(value, str))
    yield from (name for _, name in node.references())


def _sorted(nodes: Mapping[str, Node]) -> tuple[str, ...]:
    sorter = TopologicalSorter(
        {name: [d for d in dependencies(node) if d in nodes] for name, node in nodes.items()}
    )
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        rule = "not depend on each other in a circle"
        raise refusal(ArgumentError, "nodes", rule, cycle, "cut the circle at one of them") from None


def _users(nodes: Iterable[Node], output: str) -> dict[str, tuple[str, ...]]:
    users: dict[str, list[str]] = {output: ["the output"]}
    for node in nodes:
        for name in dependencies(node):
            users.setdefault(name, []).append(node.name)
    return {name: tuple(listed) for name, listed in users.items()}


def _check_used(
    placeholders: Sequence[str],
    parameters: Sequence[Parameter],
    nodes: Sequence[Node],
    users: Mapping[str, Sequence[str]],
) -> None:
    named = [("placeholder", name) for name in placeholders]
    named += [("parameter", parameter.name) for parameter in parameters]
    named += [("node", node.name) for node in nodes]
    for what, name in named:
        if name not in users:
            way_out = "use it, or leave it out"
            raise refusal(
                ArgumentError, f"the {what} {name!r}", "be used by a node or the output", name, way_out
            )


def _unknown(argument: str, name: str, known: Iterable[str]) -> UnknownNameError:
    listed = ", ".join(known) or "none"
    return UnknownNameError(
        f"{argument} must be one of {listed}, got {name!r} ({type(name).__name__}); check the spelling",
        argument=argument,
        rule=f"be one of {listed}",
        value=name,
        way_out="check the spelling",
    )

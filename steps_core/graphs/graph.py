"""Graphs: optimizer steps as data, that can be traced from a function, written as JSON and drawn."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..contract import Step
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError, refusal
from .drawing import mermaid, text
from .hyper_parameters import settled_value
from .model import MOST_CHARACTERS, GraphData, OperationNode, Parameter, StepNode, Structure, check_structure
from .plan import Plan, make_plan


@dataclass(frozen=True, repr=False)
class Graph(GraphData):
    """A graph of steps and operations: what `CustomStep` runs. It never changes.

    Made by the decorator `graph` from a function, or by `Graph.from_json`.

    Args:
        placeholders: the names of gradients and, if the graph uses them, weights.
        parameters: hyper-parameters with their defaults.
        nodes: steps and operations, each with its inputs by name.
        output: name of the placeholder or node that is the result.
        name: what the graph is called. Default "graph".
        negates: whether the result is to be added to the weights, said where the nodes leave it open;
            None elsewhere: ``CustomStep(graph).negates`` tells it for every graph. Default None.

    Raises:
        ArgumentError, ArgumentTypeError, UnknownNameError: a node's inputs, an option, or a default breaks
            its rule; nodes depend on each other in a circle; something is not used; the text names it.

    Example:
        >>> from steps_core import graph
        >>> @graph
        ... def decayed(gradients, weights, *, weight_decay=1e-4):
        ...     return -(gradients + weight_decay * weights)
        >>> decayed
        decayed(gradients, weights, *, weight_decay=0.0001):
            multiply = multiply(weight_decay, weights)
            add = add(gradients, multiply)
            negative = negative(add)
            return negative
    """

    _structure: Structure = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Check the graph with the defaults of its hyper-parameters."""
        if not isinstance(self.name, str):
            raise refusal(ArgumentTypeError, "name", "be a text", self.name, "pass a name")
        if not self.name.isprintable() or not 0 < len(self.name) <= MOST_CHARACTERS:
            rule = f"be of 1 to {MOST_CHARACTERS} printable characters"
            raise refusal(ArgumentError, "name", rule, self.name, "pass a short name on one line")
        if self.negates is not None and not isinstance(self.negates, bool):
            raise refusal(ArgumentTypeError, "negates", "be True, False or None", self.negates, "pass a bool")
        _check_types(self)
        settled = tuple(Parameter(p.name, settled_value(p.name, p.default)) for p in self.parameters)
        object.__setattr__(self, "parameters", settled)
        checked = check_structure(self.placeholders, self.parameters, self.nodes, self.output)
        object.__setattr__(self, "_structure", checked)
        self.planned({})

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Refuse: a graph runs as a step."""
        way_out = f"write CustomStep({self.name})(gradients, weights)"
        raise refusal(ArgumentTypeError, f"the graph {self.name}", "not be called itself", arguments, way_out)

    @property
    def signature(self) -> str:
        """The placeholders, such as ``(gradients,weights)``."""
        return f"({','.join(self.placeholders)})"

    @property
    def defaults(self) -> dict[str, Any]:
        """The hyper-parameters and their defaults."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    def planned(self, overrides: Mapping[str, Any]) -> Plan:
        """Return the plan for these values of hyper-parameters; the others keep their defaults.

        Raises:
            UnknownNameError: the graph has no such hyper-parameter.
            StepsError: a value does not suit the node that it feeds.
        """
        for name in overrides:
            if name not in self.defaults:
                raise unknown_parameter(name, list(self.defaults))
        values = {**self.defaults, **{name: settled_value(name, value) for name, value in overrides.items()}}
        return make_plan(
            self._structure,
            self.placeholders,
            self.parameters,
            self.output,
            values,
            declared=self.negates,
        )

    def to_json(self) -> str:
        """Return the graph as a JSON document, from which `from_json` makes an equal one.

        Raises:
            ArgumentTypeError: an option or default has no name that another program could know.
        """
        return json.dumps(self.describe(), indent=2)

    def describe(self) -> dict[str, Any]:
        """Return the graph as the values of its JSON document."""
        from .json_form import document_of

        return document_of(self)

    @classmethod
    def from_json(cls, document: str | bytes | Mapping[str, Any]) -> "Graph":
        """Return the graph that a JSON document holds. Nothing in it is executed.

        Args:
            document: JSON text, or what was parsed from it.

        Raises:
            StepsError: the document is no graph of a known version, or too large, or breaks a rule of
                graphs; the text names the place.
        """
        from .json_form import read

        return read(document)  # type: ignore[return-value]

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of the documents.

        Example:
            >>> Graph.json_schema()["title"]
            'A graph of gradient-processing steps'
        """
        file = Path(__file__).with_name("graph.schema.json")
        schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return schema

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flow chart."""
        return mermaid(self)

    def __repr__(self) -> str:
        return text(self)


def _check_types(graph: Graph) -> None:
    """Refuse fields of other types, which a graph made by hand may have."""
    kinds: dict[str, tuple[type, ...]] = {
        "placeholders": (str,),
        "parameters": (Parameter,),
        "nodes": (StepNode, OperationNode),
    }
    for name, kind in kinds.items():
        entries = getattr(graph, name)
        if not isinstance(entries, tuple) or not all(isinstance(entry, kind) for entry in entries):
            rule = f"be a tuple of {' or '.join(k.__name__ for k in kind)}"
            raise refusal(ArgumentTypeError, name, rule, entries, "write @graph above a function instead")
    for node in graph.nodes:
        if isinstance(node, StepNode) and not issubclass(node.kind, Step):
            way_out = "pass a step such as AdamStep()"
            raise refusal(ArgumentTypeError, f"node {node.name!r}: step", "be a step", node.step, way_out)


def unknown_parameter(name: Any, known: Sequence[str]) -> UnknownNameError:
    """Return the error for a hyper-parameter that a graph does not have."""
    listed = ", ".join(known) or "none"
    return UnknownNameError(
        f"overrides must name hyper-parameters of the graph ({listed}), got {name!r} "
        f"({type(name).__name__}); check the spelling",
        argument="overrides",
        rule=f"name hyper-parameters of the graph ({listed})",
        value=name,
        way_out="check the spelling",
    )

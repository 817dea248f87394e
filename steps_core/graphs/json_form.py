"""Graphs as JSON: versioned, with a schema, and read without executing anything.

Only the operations of this package and the steps that `build` knows have names here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from .. import checks
from ..building import built_options, built_step, built_value, check_level
from ..descriptions import described
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError, refusal
from .model import MOST_NODES, GraphData, Input, Node, OperationNode, Parameter, StepNode
from .operations import OPERATIONS
from .stateful import STATEFUL, STATEFUL_NAMES

FORMAT = "steps-core-graph"
VERSION = 1
_MOST_CHARACTERS = 10_000_000
_TOP = ("format", "version", "name", "placeholders", "parameters", "nodes", "output", "negates")
_WAY_OUT = "pass what Graph.to_json() wrote"


def document_of(graph: GraphData) -> dict[str, Any]:
    """Return a graph as JSON values."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "placeholders": list(graph.placeholders),
        "parameters": [
            {"name": parameter.name, "default": described(parameter.default)}
            for parameter in graph.parameters
        ],
        "nodes": [_node_document(node) for node in graph.nodes],
        "output": graph.output,
    }
    if graph.negates is not None:
        document["negates"] = graph.negates
    return document


def _node_document(node: Node) -> dict[str, Any]:
    try:
        return _written_node(node)
    except ArgumentTypeError as error:
        error.args = (f"node {node.name!r}: {error}",)
        raise


def _written_node(node: Node) -> dict[str, Any]:
    inputs = [value if isinstance(value, str) else described(value) for value in node.inputs]
    if isinstance(node, OperationNode):
        options = {name: described(value) for name, value in node.options}
        return _without_empty({"name": node.name, "operation": node.operation, "inputs": inputs}, options)
    description = node.step.describe()
    if node.kind in STATEFUL_NAMES:
        form = {"name": node.name, "operation": STATEFUL_NAMES[node.kind], "inputs": inputs}
        return _without_empty(form, description["options"])
    return {"name": node.name, "step": description, "inputs": inputs}


def _without_empty(form: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return {**form, "options": options} if options else form


def read(document: str | bytes | Mapping[str, Any]) -> GraphData:
    """Return the graph that a document holds."""
    return graph_of(_parsed(document) if isinstance(document, (str, bytes)) else document, "graph", 0)


def _parsed(text: str | bytes) -> Any:
    if len(text) > _MOST_CHARACTERS:
        rule = f"be at most {_MOST_CHARACTERS} characters long"
        raise refusal(ArgumentError, "document", rule, len(text), "split the graph in two")
    try:
        return json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = str(error) or "nested too deep"
        raise refusal(ArgumentError, "document", f"be JSON ({reason})", text, _WAY_OUT) from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the entry {double!r} twice")
    return entries


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON; numbers are written as hexadecimal texts")


def graph_of(document: Any, path: str, level: int) -> GraphData:
    """Return the graph that parsed JSON holds, so many levels deep in another description."""
    from .graph import Graph

    check_level(path, level)
    _require_object(document, path, _TOP, ("format", "version", "placeholders", "nodes", "output"))
    if document["format"] != FORMAT:
        raise refusal(ArgumentError, f"{path}['format']", f"be {FORMAT!r}", document["format"], _WAY_OUT)
    if type(document["version"]) is not int or document["version"] != VERSION:
        way_out = "use the version of this package that wrote it"
        raise refusal(ArgumentError, f"{path}['version']", f"be {VERSION}", document["version"], way_out)
    nodes = _listed(document, "nodes", path)
    if len(nodes) > MOST_NODES:
        raise refusal(
            ArgumentError,
            f"{path}['nodes']",
            f"be at most {MOST_NODES}",
            len(nodes),
            "split the graph in two",
        )
    negates = document.get("negates")
    return Graph(
        placeholders=tuple(
            _text(name, f"{path}['placeholders'][{index}]")
            for index, name in enumerate(_listed(document, "placeholders", path))
        ),
        parameters=tuple(
            _parameter(entry, f"{path}['parameters'][{index}]", level)
            for index, entry in enumerate(_listed(document, "parameters", path))
        ),
        nodes=tuple(_node(entry, f"{path}['nodes'][{index}]", level) for index, entry in enumerate(nodes)),
        output=_text(document["output"], f"{path}['output']"),
        name=_text(document.get("name", "graph"), f"{path}['name']"),
        negates=negates,
    )


def _parameter(entry: Any, path: str, level: int) -> Parameter:
    _require_object(entry, path, ("name", "default"), ("name",))
    name = _text(entry["name"], f"{path}['name']")
    if "default" not in entry:
        way_out = 'add "default": {"float": "0x1.0p+0"}, for example'
        raise refusal(ArgumentError, f"the parameter {name!r}", "have a default", entry, way_out)
    return Parameter(name, built_value(entry["default"], f"the default of parameter {name!r}", level))


def _node(entry: Any, path: str, level: int) -> Node:
    _require_object(entry, path, ("name", "operation", "step", "inputs", "options"), ("name",))
    name = _text(entry["name"], f"{path}['name']")
    place = f"node {name!r}"
    inputs = tuple(
        _input(value, f"{place}: inputs[{index}]")
        for index, value in enumerate(_listed(entry, "inputs", place))
    )
    if ("operation" in entry) == ("step" in entry) or ("step" in entry and "options" in entry):
        rule = "have either an operation with options, or a step"
        raise refusal(ArgumentError, place, rule, entry, _WAY_OUT)
    if "step" in entry:
        return StepNode(name, built_step(entry["step"], f"{place}: step", level), inputs)
    operation = _text(entry["operation"], f"{place}: operation")
    options = built_options(entry.get("options", {}), f"{place}: options", level)
    if operation in STATEFUL:
        checks.only_known(place, list(options), [f.name for f in fields(STATEFUL[operation])])
        return StepNode(name, STATEFUL[operation](**options), inputs)
    if operation not in OPERATIONS:
        listed = ", ".join([*OPERATIONS, *STATEFUL])
        raise UnknownNameError(
            f"{place}: operation must be one of {listed}, got {operation!r} (str); check the spelling",
            argument="operation",
            rule=f"be one of {listed}",
            value=operation,
            way_out="check the spelling",
        )
    return OperationNode(name, operation, inputs, _beyond_defaults(operation, options, place))


def _beyond_defaults(operation: str, options: Mapping[str, Any], place: str) -> tuple[tuple[str, Any], ...]:
    known = OPERATIONS[operation]
    try:
        checked = known.checked(options)
    except (ArgumentError, ArgumentTypeError, UnknownNameError) as error:
        error.args = (f"{place}: {error}",)
        raise
    return tuple((name, value) for name, value in checked.items() if value != known.options[name][0])


def _input(value: Any, path: str) -> Input:
    if isinstance(value, str):
        return value
    number = built_value(value, path, 0) if isinstance(value, Mapping) else None
    if not isinstance(number, float):
        way_out = 'write a name, or {"float": "0x1.0p+0"}'
        raise refusal(ArgumentTypeError, path, "be a name or a tagged float", value, way_out)
    return number


def _require_object(value: Any, path: str, known: Sequence[str], needed: Sequence[str]) -> None:
    if not isinstance(value, Mapping):
        raise refusal(ArgumentTypeError, path, "be a JSON object", value, _WAY_OUT)
    for name in value:
        if name not in known:
            rule = f"have no other entries than {', '.join(known)}"
            raise refusal(ArgumentError, path, rule, name, "remove it")
    for name in needed:
        if name not in value:
            raise refusal(ArgumentError, path, f"have the entry {name!r}", sorted(value), "add it")


def _listed(entry: Mapping[str, Any], key: str, path: str) -> Sequence[Any]:
    value = entry.get(key, [])
    if not isinstance(value, (list, tuple)):
        raise refusal(ArgumentTypeError, f"{path}[{key!r}]", "be a list", value, _WAY_OUT)
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise refusal(ArgumentTypeError, path, "be a text", value, "pass a name")
    return value

"""Graphs in the JSON form that targets get."""

from collections.abc import Mapping, Sequence
from typing import Any

from .descriptions import encoded
from .targets.protocol import Description

Document = dict[str, Any]


def graph(
    *nodes: Mapping[str, Any],
    placeholders: Sequence[str] = ("gradients",),
    parameters: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Document:
    """Return a graph whose last node is its output.

    Args:
        nodes: as `node` and `step_node` make them.
        placeholders: gradients and perhaps weights.
        parameters: hyper-parameters with their defaults.
        rest: further entries, such as negates or another output.
    """
    return {
        "format": "steps-core-graph",
        "version": 1,
        "placeholders": list(placeholders),
        "parameters": [
            {"name": name, "default": encoded(value)} for name, value in (parameters or {}).items()
        ],
        "nodes": [dict(node) for node in nodes],
        "output": nodes[-1]["name"] if nodes else placeholders[0],
        **rest,
    }


def both(*nodes: Mapping[str, Any], **rest: Any) -> Document:
    """Return a graph of gradients and weights."""
    return graph(*nodes, placeholders=("gradients", "weights"), **rest)


def node(name: str, operation: str, *inputs: str | float, **options: Any) -> Document:
    """Return a node of an operation; a number among the inputs is a constant."""
    made: Document = {
        "name": name,
        "operation": operation,
        "inputs": [value if isinstance(value, str) else encoded(float(value)) for value in inputs],
    }
    return {**made, "options": {key: option(value) for key, value in options.items()}} if options else made


def step_node(name: str, step: Description, *inputs: str) -> Document:
    """Return a node of a step."""
    return {"name": name, "step": step, "inputs": list(inputs)}


def described(name: str, /, **options: Any) -> Description:
    """Return the description of a step in which an option may be a `parameter`."""
    return {"step": name, "options": {key: option(value) for key, value in options.items()}}


def parameter(name: str) -> dict[str, str]:
    """Return what stands for the value of a hyper-parameter in an option."""
    return {"parameter": name}


def option(value: Any) -> Any:
    """Return an option's value as JSON."""
    return value if isinstance(value, dict) else encoded(value)


def custom(document: Mapping[str, Any], **overrides: Any) -> Description:
    """Return the description of a custom step."""
    options: dict[str, Any] = {"graph": dict(document)}
    if overrides:
        options["overrides"] = {name: option(value) for name, value in overrides.items()}
    return {"step": "CustomStep", "options": options}

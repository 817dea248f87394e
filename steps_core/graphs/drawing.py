"""Graphs for people: as text that reads like the function, and as a Mermaid flow chart."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .model import Input, Node, StepNode, dependencies
from .stateful import STATEFUL_NAMES

if TYPE_CHECKING:
    from .graph import Graph


def text(graph: "Graph") -> str:
    """Return signature, hyper-parameters and nodes, one a line."""
    parameters = [f"{parameter.name}={parameter.default!r}" for parameter in graph.parameters]
    head = ", ".join([*graph.placeholders, *(["*", *parameters] if parameters else [])])
    lines = [f"{graph.name}({head}):"]
    lines += [f"    {node.name} = {_call(node)}" for node in graph.nodes]
    return "\n".join([*lines, f"    return {graph.output}"])


def _call(node: Node) -> str:
    inputs = [_shown(value) for value in node.inputs]
    if isinstance(node, StepNode):
        if node.kind in STATEFUL_NAMES:
            options = _options_text(node)
            return f"{node.title}({', '.join([*inputs, *([options] if options else [])])})"
        return f"{node.step!r}({', '.join(inputs)})"
    options_given = [f"{name}={value!r}" for name, value in node.options]
    return f"{node.operation}({', '.join([*inputs, *options_given])})"


def _options_text(node: StepNode) -> str:
    shown = repr(node.step)
    return shown[shown.index("(") + 1 : -1]


def _shown(value: Input) -> str:
    return value if isinstance(value, str) else f"{value!r}"


def mermaid(graph: "Graph") -> str:
    """Return the flow chart: placeholders round, hyper-parameters slanted, nodes in boxes."""
    places = _places(graph)
    lines = ["flowchart TD"]
    lines += [f'    {places[name]}(["{name}"])' for name in graph.placeholders]
    lines += [f'    {places[p.name]}[/"{p.name} = {_escaped(p.default)}"/]' for p in graph.parameters]
    for node in graph.nodes:
        lines.append(f'    {places[node.name]}["{_label(node)}"]')
    for node in graph.nodes:
        lines += [f"    {places[name]} --> {places[node.name]}" for name in dict.fromkeys(dependencies(node))]
    lines += ['    output(["updates"])', f"    {places[graph.output]} ==> output"]
    return "\n".join(lines)


def _places(graph: "Graph") -> dict[str, str]:
    names: Iterable[str] = [
        *graph.placeholders,
        *(parameter.name for parameter in graph.parameters),
        *(node.name for node in graph.nodes),
    ]
    # Numbers, because some names, such as "end", mean something in Mermaid.
    return {name: f"n{number}" for number, name in enumerate(names)}


def _label(node: Node) -> str:
    constants = [repr(value) for value in node.inputs if not isinstance(value, str)]
    if isinstance(node, StepNode):
        body = _options_text(node) if node.kind in STATEFUL_NAMES else repr(node.step)
    else:
        body = ", ".join(f"{name}={value!r}" for name, value in node.options)
    details = _escaped(", ".join(filter(None, [body, *constants])))
    return f"{node.name}<br/>{details}" if details else node.name


def _escaped(value: Any) -> str:
    shown = value if isinstance(value, str) else repr(value)
    for character, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        shown = shown.replace(character, entity)
    return shown

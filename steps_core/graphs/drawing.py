"""Graphs for people: as text that reads like the function, and as a Mermaid flow chart."""

from collections.abc import Iterable
from typing import Any

from ..contract import Step
from ..deferred import Entries, Reference, Template
from ..descriptions import options_beyond_defaults
from .model import GraphData, Node, StepNode
from .stateful import STATEFUL_NAMES


def text(graph: GraphData) -> str:
    """Return signature, hyper-parameters and nodes, one a line."""
    parameters = [f"{parameter.name}={parameter.default!r}" for parameter in graph.parameters]
    head = ", ".join([*graph.placeholders, *(["*", *parameters] if parameters else [])])
    said = "" if graph.negates is None else f"  # negates={graph.negates}"
    lines = [f"{graph.name}({head}):{said}"]
    lines += [f"    {node.name} = {_call(node)}" for node in graph.nodes]
    return "\n".join([*lines, f"    return {graph.output}"])


def _call(node: Node) -> str:
    inputs = [value if isinstance(value, str) else f"{value!r}" for value in node.inputs]
    if isinstance(node, StepNode) and node.kind not in STATEFUL_NAMES:
        return f"{_shown(node.step)}({', '.join(inputs)})"
    return f"{node.title}({', '.join([*inputs, *_options(node)])})"


def _options(node: Node) -> list[str]:
    """Return the options of an operation, also of one with a state, as far as they are not as by default."""
    options = _beyond_defaults(node.step) if isinstance(node, StepNode) else dict(node.options)
    return [f"{name}={_shown(value)}" for name, value in options.items()]


def _beyond_defaults(step: Any) -> dict[str, Any]:
    return dict(step.options) if isinstance(step, Template) else options_beyond_defaults(step)


def _shown(value: Any) -> str:
    """Return a step, an option or a graph in short: by name, with the options that are not as by default."""
    if isinstance(value, Reference):
        return value.name
    if isinstance(value, Entries):
        return f"{{{', '.join(f'{name!r}: {_shown(entry)}' for name, entry in value.items)}}}"
    if isinstance(value, (Step, Template)):
        kind = value.kind if isinstance(value, Template) else type(value)
        options = dict(getattr(value, "slots", ())) or _beyond_defaults(value)
        listed = ", ".join(f"{name}={_shown(option)}" for name, option in options.items())
        return f"{kind.__name__}({listed})"
    if isinstance(value, tuple) and any(isinstance(entry, (Step, Template, Reference)) for entry in value):
        return f"({', '.join(map(_shown, value))})"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    shown = repr(value)
    # A graph takes many lines; here its name says enough.
    return str(value.name) if "\n" in shown and hasattr(value, "name") else shown


def mermaid(graph: GraphData) -> str:
    """Return the flow chart: placeholders round, hyper-parameters slanted, nodes in boxes."""
    places = _places(graph)
    lines = ["flowchart TD"]
    lines += [f'    {places[name]}(["{name}"])' for name in graph.placeholders]
    lines += [f'    {places[p.name]}[/"{p.name} = {_escaped(p.default)}"/]' for p in graph.parameters]
    for node in graph.nodes:
        lines.append(f'    {places[node.name]}["{_label(node)}"]')
    for node in graph.nodes:
        lines += [f"    {places[name]} {arrow} {places[node.name]}" for name, arrow in _arrows(node)]
    lines += ['    output(["updates"])', f"    {places[graph.output]} ==> output"]
    return "\n".join(lines)


def _places(graph: GraphData) -> dict[str, str]:
    names: Iterable[str] = [
        *graph.placeholders,
        *(parameter.name for parameter in graph.parameters),
        *(node.name for node in graph.nodes),
    ]
    # Numbers, because some names, such as "end", mean something in Mermaid.
    return {name: f"n{number}" for number, name in enumerate(names)}


def _arrows(node: Node) -> list[tuple[str, str]]:
    """Return what a node reads, and the arrow: numbered where it has several inputs, whose order counts."""
    numbered = len(node.inputs) > 1
    inputs = [
        (value, f"-->|{place}|" if numbered else "-->")
        for place, value in enumerate(node.inputs, start=1)
        if isinstance(value, str)
    ]
    return [*inputs, *((name, "-.->") for name in dict.fromkeys(name for _, name in node.references()))]


def _label(node: Node) -> str:
    constants = [
        f"input {place}: {value!r}"
        for place, value in enumerate(node.inputs, start=1)
        if not isinstance(value, str)
    ]
    is_step = isinstance(node, StepNode) and node.kind not in STATEFUL_NAMES
    body = [_shown(node.step)] if isinstance(node, StepNode) and is_step else _options(node)
    is_named_otherwise = not is_step and node.title not in node.name
    details = _escaped(", ".join([*([node.title] if is_named_otherwise else []), *body, *constants]))
    return f"{node.name}<br/>{details}" if details else node.name


def _escaped(value: Any) -> str:
    shown = value if isinstance(value, str) else repr(value)
    for character, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        shown = shown.replace(character, entity)
    return shown

"""Whether a graph negates: read from its nodes, as far as they tell."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, refusal
from .model import Input, OperationNode, StepNode, Structure
from .stateful import STATEFUL_NAMES

# The sign of a value against the gradients': negated, kept, or None where it has none (weights, numbers).
Sign = bool | None

_OF_FIRST = ("sign", "clip", "extract_streams", "sum", "mean", "sqrt")
_AGREEING = ("add", "minimum", "maximum", "merge_streams", "where")


class AmbiguousSignError(Exception):
    """Two inputs of a node have different signs; its name says which."""


def negates(
    structure: Structure,
    output: str,
    gradients: str,
    number_of: Callable[[Input], Any],
    step_of: Mapping[str, Any],
) -> bool:
    """Return whether the output is negated.

    Args:
        structure: the nodes.
        output: name of the output.
        gradients: name of the first placeholder.
        number_of: gives the number that an input is, or None.
        step_of: steps by the names of their nodes.

    Raises:
        AmbiguousSignError: inputs of a node on the way disagree.
    """
    signs: dict[str, Sign] = {gradients: False}

    def sign_of(value: Input) -> Sign:
        return signs.get(value) if isinstance(value, str) else None

    for name in structure.order:
        node = structure.nodes[name]
        inputs = [sign_of(value) for value in node.inputs]
        if isinstance(node, StepNode):
            signs[name] = _of_step(node, inputs, step_of[name])
        else:
            signs[name] = _of_operation(node, inputs, [number_of(value) for value in node.inputs])
    return bool(signs[output])


def _of_step(node: StepNode, inputs: Sequence[Sign], step: Any) -> Sign:
    if node.kind in STATEFUL_NAMES:
        return inputs[0] if inputs else None
    return bool(step.negates) ^ bool(inputs[0])


def _of_operation(node: OperationNode, inputs: Sequence[Sign], numbers: Sequence[Any]) -> Sign:
    name = node.operation
    if name == "negative":
        return None if inputs[0] is None else not inputs[0]
    if name in ("multiply", "divide"):
        flips = sum(number is not None and number < 0 for number in numbers) % 2 == 1
        known = [sign for sign in inputs if sign is not None]
        return (sum(known) + flips) % 2 == 1 if known else None
    if name == "subtract":
        return _agreed(node, [inputs[0], None if inputs[1] is None else not inputs[1]], keeps_difference=True)
    if name in _AGREEING:
        return _agreed(node, inputs[1:] if name == "where" else inputs)
    return inputs[0] if name in _OF_FIRST else None


def _agreed(node: OperationNode, signs: Sequence[Sign], *, keeps_difference: bool = False) -> Sign:
    known = {sign for sign in signs if sign is not None}
    if len(known) == 2:
        # The difference of two like values, as of a gradient and its mean, keeps the sign of the first.
        if keeps_difference:
            return signs[0]
        raise AmbiguousSignError(node.name)
    return known.pop() if known else None


def sign_error(name: str) -> ArgumentError:
    """Return the error for a graph whose sign is not told by its nodes."""
    way_out = "say @graph(negates=True) or @graph(negates=False)"
    error = refusal(
        ArgumentError,
        "negates",
        f"be given, because the inputs of node {name!r} have two signs",
        None,
        way_out,
    )
    assert isinstance(error, ArgumentError)
    return error

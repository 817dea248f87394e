"""Whether a graph negates: read from its nodes, as far as they tell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, refusal
from .model import Input, OperationNode, StepNode, Structure
from .stateful import STATEFUL_NAMES


@dataclass(frozen=True)
class Sign:
    """The sign of a value.

    Attributes:
        follows: whether it points along the gradients, or against them; weights, sizes and numbers do not.
        is_flipped: whether a negation stands before it.
    """

    follows: bool
    is_flipped: bool


_KEEPS_FIRST = ("sign", "clip", "extract_streams", "sum", "mean")
_AGREES = ("add", "subtract", "minimum", "maximum", "merge_streams", "where")


class AmbiguousSignError(Exception):
    """Two inputs of a node have different signs; its text is the node's name."""


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
    signs: dict[str, Sign] = {gradients: Sign(follows=True, is_flipped=False)}

    def sign_of(value: Input) -> Sign:
        if isinstance(value, str) and value in signs:
            return signs[value]
        number = number_of(value)
        return Sign(follows=False, is_flipped=isinstance(number, (int, float)) and number < 0)

    for name in structure.order:
        node = structure.nodes[name]
        inputs = [sign_of(value) for value in node.inputs]
        if isinstance(node, StepNode):
            signs[name] = _of_step(node, inputs, step_of[name])
        else:
            signs[name] = _of_operation(node, inputs)
    return signs[output].follows and signs[output].is_flipped


def _of_step(node: StepNode, inputs: Sequence[Sign], step: Any) -> Sign:
    if node.kind in STATEFUL_NAMES:
        return inputs[0] if inputs else Sign(follows=False, is_flipped=False)
    return Sign(follows=True, is_flipped=bool(step.negates) ^ inputs[0].is_flipped)


def _of_operation(node: OperationNode, inputs: Sequence[Sign]) -> Sign:
    name = node.operation
    if name == "negative":
        return Sign(inputs[0].follows, not inputs[0].is_flipped)
    if name in ("multiply", "divide"):
        return Sign(any(i.follows for i in inputs), sum(i.is_flipped for i in inputs) % 2 == 1)
    if name == "subtract":
        minus = Sign(inputs[1].follows, not inputs[1].is_flipped)
        # The difference of two like values, as of a gradient and its mean, keeps the sign of the first.
        if inputs[0].follows and minus.follows and inputs[0] != minus:
            return inputs[0]
        return _agreed(node, [inputs[0], minus])
    if name in _AGREES:
        return _agreed(node, inputs[1:] if name == "where" else inputs)
    return inputs[0] if name in _KEEPS_FIRST else Sign(follows=False, is_flipped=False)


def _agreed(node: OperationNode, signs: Sequence[Sign]) -> Sign:
    following = {sign for sign in signs if sign.follows}
    if len(following) == 2:
        raise AmbiguousSignError(node.name)
    if following:
        return following.pop()
    return Sign(follows=False, is_flipped=all(sign.is_flipped for sign in signs))


def sign_error(name: str) -> ArgumentError:
    """Return the error for a graph whose sign is not told by its nodes."""
    way_out = "say @graph(negates=True) or @graph(negates=False)"
    rule = f"be given, because the inputs of node {name!r} have two signs"
    error = refusal(ArgumentError, "negates", rule, None, way_out)
    assert isinstance(error, ArgumentError)
    return error

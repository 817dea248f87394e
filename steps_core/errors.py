"""The errors of this package: each says what was wrong, what was received, and the way out."""

from typing import Any


class StepsError(Exception):
    """Base of every error raised here.

    The text is complete by itself; programs read the parts.

    Attributes:
        argument: the argument that was wrong, as the caller spells it.
        rule: what it must be.
        value: what was received.
        way_out: what to do instead.
        path: the place inside a tree, such as ``gradients['layer1']['bias']``.
        slot: the step inside a chain, such as ``step2`` or ``step1.step3``.
    """

    def __init__(
        self,
        message: str,
        *,
        argument: str | None = None,
        rule: str | None = None,
        value: Any = None,
        way_out: str | None = None,
        path: str | None = None,
        slot: str | None = None,
    ) -> None:
        super().__init__(message)
        self.argument = argument
        self.rule = rule
        self.value = value
        self.way_out = way_out
        self.path = path
        self.slot = slot

    def __str__(self) -> str:
        # KeyError would show the repr of the text.
        return str(self.args[0])


class ArgumentError(StepsError, ValueError):
    """An argument has the right type and a value that is not allowed."""


class ArgumentTypeError(StepsError, TypeError):
    """An argument has a type that is not allowed."""


class UnknownNameError(StepsError, KeyError):
    """A step, schedule, option or slot of that name does not exist."""


class LeafTypeError(StepsError, TypeError):
    """A leaf of a tree is not a floating or complex array."""


class TreeMismatchError(StepsError, ValueError):
    """Two trees that belong together differ in structure, shape, library or device."""


class StateError(StepsError, ValueError):
    """A state does not have the form that the step made."""


def shown(value: Any) -> str:
    """Return the value and its type for an error text, short whatever the value is."""
    name = type(value).__name__
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype} ({name})"
    text = repr(value)
    if len(text) > 80:
        text = f"{text[:77]}..."
    return f"{text} ({name})"


def refusal(
    kind: type[StepsError], argument: str, rule: str, value: Any, way_out: str, **parts: str | None
) -> StepsError:
    """Return an error in the one form of text: argument, rule, value, type, way out."""
    message = f"{argument} must {rule}, got {shown(value)}; {way_out}"
    return kind(message, argument=argument, rule=rule, value=value, way_out=way_out, **parts)

"""What a target in Python has and gives back, checked where a mistake would else be seen as a riddle."""

from types import FunctionType, ModuleType
from typing import Any

from ..received import received
from .protocol import OPTIONAL_METHODS, Target, TargetStep
from .scope import Scope

_PARTS = ("name", "version", "path", "hash", "capabilities", "make")
_TEXTS = ("name", "version", "path", "hash")
_GUIDE = (
    "steps_conformance.targets.protocol says what each is, docs/test-your-implementation.md shows a whole one"
)


class NoTargetError(TypeError):
    """What was named is no target; the text says what it lacks, and what to write."""


class WrongReturnError(TypeError):
    """A target gave back what its protocol does not say; the text shows it."""

    kind = "the target broke the protocol"


def checked_target(found: Any, reference: str) -> Target:
    """Return what was found where the user named a target, if it is one.

    Args:
        found: the object.
        reference: how the user named it.

    Raises:
        NoTargetError: it lacks a part, or a part is of another type.
    """
    if isinstance(found, type):
        raise NoTargetError(
            f"{reference} is a class, and a target is an instance of one: write target = "
            f"{found.__name__}() in {found.__module__}, and name that, --target {found.__module__}:target"
        )
    lacking = [part for part in _PARTS if not hasattr(found, part)]
    if lacking:
        raise NoTargetError(
            f"a target must have {', '.join(_PARTS[:-1])} and {_PARTS[-1]}, and {reference}, {_what(found)}, "
            f"has no {', '.join(lacking)}; {_GUIDE}"
        )
    for part in _TEXTS:
        value = getattr(found, part)
        if not isinstance(value, str):
            raise NoTargetError(
                f"{part} of {reference} must be a text, got {received(value)}; write str(...)"
            )
    _check_capabilities(found, reference)
    if not callable(found.make):
        raise NoTargetError(
            f"make of {reference} must be a method that returns a step, got {received(found.make)}; {_GUIDE}"
        )
    scope = getattr(found, "scope", None)
    if scope is not None and not isinstance(scope, Scope):
        raise NoTargetError(
            f"scope of {reference} must be a steps_conformance.targets.scope.Scope, got {received(scope)}"
        )
    target: Target = found
    return target


def checked_step(made: Any) -> TargetStep:
    """Return what make gave back, if it is a step.

    Raises:
        WrongReturnError: it is none.
    """
    if not all(callable(getattr(made, method, None)) for method in ("init", "apply")):
        raise WrongReturnError(
            f"make must return a step, with the methods init and apply, got {received(made)}; "
            "where there is no such step, raise NotExpressible"
        )
    step: TargetStep = made
    return step


def checked_result(result: Any) -> tuple[Any, Any]:
    """Return the two that apply gave back.

    Raises:
        WrongReturnError: it gave back something else; a tree of two parts would pass for them in silence.
    """
    if not isinstance(result, tuple) or len(result) != 2:
        count = f"{len(result)} values, " if isinstance(result, tuple) else ""
        raise WrongReturnError(
            f"apply must return (gradients, state), a tuple of two, got {count}{received(result)}; "
            "a step that remembers nothing returns {} as its state"
        )
    return result


def _check_capabilities(found: Any, reference: str) -> None:
    claimed = found.capabilities
    if not isinstance(claimed, set | frozenset) or not all(isinstance(one, str) for one in claimed):
        raise NoTargetError(
            f"capabilities of {reference} must be a set of names, such as frozenset({{'state_form'}}), "
            f"got {received(claimed)}"
        )
    for capability in sorted(claimed & OPTIONAL_METHODS.keys()):
        for method in OPTIONAL_METHODS[capability]:
            if not callable(getattr(found, method, None)):
                raise NoTargetError(
                    f"{reference} claims {capability} and has no method {method}; add it, or do not claim it"
                )


def _what(found: Any) -> str:
    if isinstance(found, FunctionType):
        return "a function"
    if isinstance(found, ModuleType):
        return "a module"
    return received(found)

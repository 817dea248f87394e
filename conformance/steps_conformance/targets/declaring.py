"""What a target declares that it lacks, turned into UNSUPPORTED without hiding a failure."""

from typing import Any

from .checking import checked_step
from .protocol import Description, NotExpressible, Target, TargetStep


class NotDeclaredError(Exception):
    """A case needs what the target declares that it lacks; the text says what."""


class DeclaringTarget:
    """A target whose NotExpressible counts as a declaration where it comes from make, and nowhere else.

    Args:
        target: the target.
        dtypes: the leaf dtypes of the case; a step that declares fewer is not made.
    """

    def __init__(self, target: Target, dtypes: frozenset[str]) -> None:
        self._target = target
        self._dtypes = dtypes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def make(self, description: Description) -> TargetStep:
        """Return the step of that description.

        Raises:
            NotDeclaredError: the target has no such step.
            Refusal: it refuses.
        """
        try:
            step = checked_step(self._target.make(description))
        except NotExpressible as declaration:
            reason = str(declaration) or "no reason given"
            raise NotDeclaredError(f"{self._target.name} cannot express this: {reason}") from None
        lacking = sorted(self._dtypes - getattr(step, "dtypes", self._dtypes))
        if lacking:
            raise NotDeclaredError(f"this step of {self._target.name} does not declare {', '.join(lacking)}")
        return step


class OpaqueState:
    """The state of a target that does not claim ``state_form``: carried from call to call, never looked into.

    Only the suite makes it and only a case can look into it, so no target can end a case this way.
    """

    def __init__(self, state: Any) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        raise _looked_into()

    def __getitem__(self, key: Any) -> Any:
        raise _looked_into()

    def __iter__(self) -> Any:
        raise _looked_into()

    def __or__(self, other: Any) -> Any:
        raise _looked_into()

    def __eq__(self, other: object) -> bool:
        raise _looked_into()

    __hash__ = object.__hash__


def opened(state: Any) -> Any:
    """Return what the target itself gave as a state; what a case made up passes as it is."""
    return vars(state)["_state"] if isinstance(state, OpaqueState) else state


def _looked_into() -> NotDeclaredError:
    return NotDeclaredError("the case looks into the state, and the target does not claim state_form")

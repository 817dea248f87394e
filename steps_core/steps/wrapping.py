"""What the steps that wrap one inner step share."""

from abc import abstractmethod
from dataclasses import dataclass

from ..contract import Step, StepLike, checked_step


@dataclass(frozen=True)
class WrappingStep(Step):
    """A step that runs another one; in the chain it counts as what it wraps."""

    inner: StepLike

    def _check_options(self) -> None:
        checked_step("inner", self.inner)
        self._check_own_options()

    @abstractmethod
    def _check_own_options(self) -> None:
        """Refuse bad options beside the inner step."""

    @property
    def negates(self) -> bool:
        """As the inner step."""
        return self.inner.negates

    @property
    def needs_weights(self) -> bool:
        """As the inner step."""
        return bool(getattr(self.inner, "needs_weights", False))

    @property
    def constrains(self) -> bool:
        """As the inner step."""
        return bool(getattr(self.inner, "constrains", False))

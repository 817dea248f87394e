"""The installed steps_core as a target."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from .protocol import CAPABILITIES, REFUSAL_KINDS, Description, Refusal
from .provenance import source_hash


@dataclass(frozen=True)
class PackageTarget:
    """A package with the interface of steps_core, imported when it is first used.

    Attributes:
        package: the name to import; a copy may have any name.
    """

    package: str = "steps_core"

    @property
    def _module(self) -> ModuleType:
        return import_module(self.package)

    @property
    def name(self) -> str:
        """The name of the package."""
        return self.package

    @property
    def version(self) -> str:
        """The version that the package gives."""
        return str(self._module.__version__)

    @property
    def path(self) -> str:
        """The folder of the package."""
        file = self._module.__file__
        if file is None:
            raise ImportError(f"{self.package} is a folder without __init__.py, no package")
        return str(Path(file).parent)

    @property
    def hash(self) -> str:
        """SHA-256 of the sources."""
        return source_hash(self.path)

    @property
    def capabilities(self) -> frozenset[str]:
        """All of them."""
        return frozenset(CAPABILITIES)

    def make(self, description: Description) -> "PackageStep":
        """Return the step of that description."""
        with refusals(self._module):
            return PackageStep(self._module, self._module.build(description))

    def apply_updates(self, weights: Any, updates: Any) -> Any:
        """Return the weights with the updates added."""
        with refusals(self._module):
            return self._module.apply_updates(weights, updates)

    def save_state(self, state: Any, file: str) -> None:
        """Write a state to a file."""
        with refusals(self._module):
            self._module.save_state(state, file)

    def load_state(self, file: str, like: Any) -> Any:
        """Return the state from a file, in the form and on the library of like."""
        with refusals(self._module):
            return self._module.load_state(file, like=like)

    def negates(self, description: Description) -> bool:
        """Return whether the step of that description negates."""
        with refusals(self._module):
            answer: bool = self._module.build(description).negates
            return answer

    def check_end_to_end(self, description: Description) -> None:
        """Refuse a step that is not end-to-end."""
        with refusals(self._module):
            self._module.check_end_to_end(self._module.build(description))

    def describe(self, description: Description) -> Description:
        """Make the step of that description, and return what it says of itself."""
        with refusals(self._module):
            answer: Description = self._module.build(description).describe()
            return answer


@dataclass(frozen=True)
class PackageStep:
    """One step of the package."""

    module: ModuleType
    step: Any

    def init(self, weights: Any) -> Any:
        """Return the state for weights."""
        with refusals(self.module):
            return self.step.init(weights)

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the processed gradients and the next state."""
        with refusals(self.module):
            result = self.step(gradients, weights, state)
            return result.gradients, result.state


@contextmanager
def refusals(module: ModuleType) -> Iterator[None]:
    """Turn the package's own errors into Refusal; any other exception passes, and counts as a fault."""
    try:
        yield
    except module.StepsError as error:
        raise Refusal(_kind(error), "\n".join([str(error), *getattr(error, "__notes__", ())])) from error


def _kind(error: Exception) -> str:
    builtin = {"ValueError": ValueError, "TypeError": TypeError, "KeyError": KeyError}
    kinds = [name for name in REFUSAL_KINDS if isinstance(error, builtin[name])]
    if len(kinds) != 1:
        raise AssertionError(f"{type(error).__name__} must derive from one of {REFUSAL_KINDS}") from error
    return kinds[0]


target = PackageTarget()

"""The installed steps_core with every step compiled, as a target."""

from dataclasses import dataclass
from typing import Any

from steps_backends import compile  # noqa: A004  # The field's word.

from .protocol import Description
from .steps_core import PackageStep, PackageTarget, refusals
from .steps_core import target as plain_target


@dataclass(frozen=True)
class CompiledTarget:
    """A package whose steps are compiled as soon as they are made.

    Attributes:
        package: the target whose steps are compiled; all else is asked of it.
        donate: as `steps_backends.compile` takes it.
    """

    package: PackageTarget = plain_target
    donate: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the package, and that it is compiled."""
        return f"{self.package.name}+compiled"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.package, name)

    def make(self, description: Description) -> PackageStep:
        """Return the step of that description, compiled."""
        plain = self.package.make(description)
        with refusals(plain.module):
            return PackageStep(plain.module, compile(plain.step, self.donate))


target = CompiledTarget()

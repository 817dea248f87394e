"""Targets with planted faults."""

import os
from dataclasses import dataclass
from typing import Any

from steps_conformance.targets.protocol import Description, Refusal


@dataclass(frozen=True)
class PlantedStep:
    name: str

    def init(self, weights: Any) -> Any:
        return {}

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        if self.name == "RaisingStep":
            raise ZeroDivisionError("planted")
        return gradients, {}


@dataclass(frozen=True)
class PlantedTarget:
    """Knows IdentityStep and RaisingStep, and refuses every other."""

    name: str = "planted"
    version: str = "1.0"
    path: str = "planted/targets.py"
    hash: str = "0" * 64
    capabilities: frozenset[str] = frozenset()

    def make(self, description: Description) -> PlantedStep:
        if description["step"] not in ("IdentityStep", "RaisingStep"):
            raise Refusal("KeyError", f"no step is called {description['step']!r}")
        return PlantedStep(description["step"])


class HashlessTarget(PlantedTarget):
    """Fails when it is asked who it is."""

    @property
    def hash(self) -> str:
        raise OSError("planted: no sources")

    @hash.setter
    def hash(self, value: str) -> None:
        pass


class ChangingTarget(PlantedTarget):
    """Is another copy in each process."""

    @property
    def hash(self) -> str:
        return f"{os.getpid():064}"

    @hash.setter
    def hash(self, value: str) -> None:
        pass


target = PlantedTarget()
evil = PlantedTarget(name="<script>alert(1)</script>", version="<i>1</i>", path="`</code><b>|")
boastful = PlantedTarget(capabilities=frozenset({"telepathy"}))

"""Targets with planted faults."""

import os
from dataclasses import dataclass
from pathlib import Path
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


FORMS = frozenset({"state_form", "trees", "error_form"})


class PlantedTarget:
    """Knows IdentityStep and RaisingStep, and refuses every other."""

    def __init__(
        self,
        *,
        name: str = "planted",
        version: str = "1.0",
        path: str = "planted/targets.py",
        digest: str = "0" * 64,
        capabilities: frozenset[str] = FORMS,
    ) -> None:
        self.name, self.version, self.path, self.hash = name, version, path, digest
        self.capabilities = capabilities

    def make(self, description: Description) -> PlantedStep:
        if description["step"] not in ("IdentityStep", "RaisingStep"):
            raise Refusal("KeyError", f"no step is called {description['step']!r}")
        return PlantedStep(description["step"])


target = PlantedTarget()
evil = PlantedTarget(name="<script>alert(1)</script>", version="<i>1</i>", path="`</code><b>|")
boastful = PlantedTarget(capabilities=frozenset({"telepathy"}))
# another copy in each process
changing = PlantedTarget(digest=f"{os.getpid():064}")
hashless = PlantedTarget()
del hashless.hash
# with an expectation file of its own
declaring = PlantedTarget()
declaring.expectations = str(Path(__file__).with_name("expectations.toml"))  # type: ignore[attr-defined]
astray = PlantedTarget()
astray.expectations = "expectations.toml"  # type: ignore[attr-defined]

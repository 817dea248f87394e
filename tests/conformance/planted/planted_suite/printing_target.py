"""A target that prints, from Python and from below."""

import os
import sys
from typing import Any

from .targets import PlantedTarget


class PrintingTarget(PlantedTarget):
    def make(self, description: Any) -> Any:
        sys.stdout.write("printed by Python\n")
        os.write(1, b"printed from below\n")
        return super().make({**description, "step": "IdentityStep"})


target = PrintingTarget()

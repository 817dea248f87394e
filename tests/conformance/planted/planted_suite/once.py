"""A target that can be imported once: the variable PLANTED_MARK names a file that remembers it."""

import os
from pathlib import Path

from .targets import PlantedTarget

_mark = Path(os.environ["PLANTED_MARK"])
if _mark.exists():
    raise RuntimeError("planted: only once")
_mark.touch()
target = PlantedTarget()

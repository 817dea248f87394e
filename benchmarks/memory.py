"""Memory of a compiled chain: what a call takes at most beyond what it was given.

`python memory.py LIBRARY WORK DONATED ANSWER.json`, with all, state or nothing donated; run.py starts it.
"""

import gc
import json
import sys
from pathlib import Path
from typing import Any

from libraries import arrays_of
from steps_backends import compile as compiled
from works import STEPS, WORKS, gradients_of

DONATIONS = {"nothing": (), "state": ("state",), "all": ("gradients", "state")}
CALLS = 3
_PAGES = Path("/proc/self/status")


def main(library: str, work: str, donated: str, answer_file: str) -> None:
    """Write what the calls took at most, as a share of the size of the gradients."""
    gradients: Any = gradients_of(WORKS[work])
    size = sum(leaf.nbytes for leaf in gradients)
    if library != "numpy":
        gradients = arrays_of(library, gradients, "float32")
    step = compiled(STEPS["chain"], DONATIONS[donated])
    state = step.init(gradients)
    for _ in range(2):
        updates, state = step(gradients, None, state)
        gradients = updates if donated == "all" else gradients
    del updates
    gc.collect()
    before = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(CALLS):
        updates, state = step(gradients, None, state)
        gradients = updates if donated == "all" else gradients
        del updates
    highest = (_kilobytes("VmHWM") - before) * 1024
    Path(answer_file).write_text(json.dumps(highest / size), encoding="utf-8")


def _kilobytes(field: str) -> int:
    (line,) = (one for one in _PAGES.read_text().splitlines() if one.startswith(field))
    return int(line.split()[1])


if __name__ == "__main__":
    main(*sys.argv[1:])

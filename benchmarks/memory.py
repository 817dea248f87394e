"""Memory of a compiled chain: what its calls take at most beyond what they are given.

`python memory.py LIBRARY WORK DONATED ANSWER.json`, with all, state or nothing donated; run.py starts it.
"""

import gc
import json
import sys
from pathlib import Path
from typing import Any

from libraries import arrays_of, filled
from steps_backends import compile as compiled
from works import STEPS, WORKS, Work, gradients_of

DONATIONS = {"nothing": (), "state": ("state",), "all": ("gradients", "state")}
# Outputs of its own take as much as the gradients, and the state twice as much; a tenth is for the rest.
AT_MOST = {"nothing": 3.1, "state": 1.1, "all": 0.1}
LIBRARIES = ("numpy", "torch", "jax")
# For the C library: what an array leaves goes back to the system, and is not there unseen for the next one.
SEEN = {"MALLOC_MMAP_THRESHOLD_": "65536"}
CALLS = 5
_PAGES = Path("/proc/self/status")


def main(library: str, work: str, donated: str, answer_file: str) -> None:
    """Write what calls took at most, as a share of the size of the gradients.

    Buffers that a step keeps from call to call count too. What tracing and compiling need does not: a first
    step on the same work has left this process as much room as they take.
    """
    for _ in range(2):
        highest = _called(library, WORKS[work], donated)
    Path(answer_file).write_text(json.dumps(highest), encoding="utf-8")


def _called(library: str, work: Work, donated: str) -> float:
    originals: list[Any] = gradients_of(work)
    originals = originals if library == "numpy" else arrays_of(library, originals, "float32")
    gradients: Any = [leaf + 0 for leaf in originals]
    step = compiled(STEPS["chain"], DONATIONS[donated])
    state = step.init(gradients)
    _settle(library, [gradients, state])
    before = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(CALLS):
        updates, state = step(gradients, None, state)
        if donated == "all":
            gradients = updates if library == "jax" else filled(library, updates, originals)
        del updates
    _settle(library, [gradients, state])
    return (_kilobytes("VmHWM") - before) * 1024 / (4 * work.size)


def _settle(library: str, tree: Any) -> None:
    """Wait until arrays are really there: also the zeros of a new state, which need no memory before."""
    if library == "jax":
        import jax

        jax.block_until_ready(tree)
    else:
        _touch(tree)
    gc.collect()


def _touch(tree: Any) -> None:
    for entry in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(entry, (tuple, list, dict)):
            _touch(entry)
        elif entry is not None:
            entry += 0  # noqa: PLW2901  # In place.


def _kilobytes(field: str) -> int:
    (line,) = (one for one in _PAGES.read_text().splitlines() if one.startswith(field))
    return int(line.split()[1])


if __name__ == "__main__":
    main(*sys.argv[1:])

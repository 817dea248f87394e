"""One backend: ``python -m steps_conformance.accuracy.worker ROW TARGET LARGEST REQUIREMENT...``."""

import json
import sys
from dataclasses import asdict
from functools import partial

from ..loading import load_backend, load_target
from ..one_process import ThisProcess, work_and_leave
from ..run import Run
from .measures import measures_of
from .measuring import measure


def main(row: str, target: str, largest: str, *requirements: str) -> None:
    """Write one JSON line for each measure to standard output, as soon as it is taken."""
    process = ThisProcess()
    run = Run(load_backend(row), load_target(target))
    for taken in measure(run, measures_of(requirements, int(largest))):
        process.end_if_forked()
        sys.stdout.write(json.dumps(asdict(taken)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    work_and_leave(partial(main, *sys.argv[1:]))

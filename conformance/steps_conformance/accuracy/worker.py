"""One backend: ``python -m steps_conformance.accuracy.worker ROW TARGET LARGEST REQUIREMENT...``."""

import json
import sys
from dataclasses import asdict

from ..loading import load_backend, load_target
from ..run import Run
from .measures import measures_of
from .measuring import measure


def main(row: str, target: str, largest: str, *requirements: str) -> None:
    """Write one JSON line for each measure to standard output, as soon as it is taken."""
    run = Run(load_backend(row), load_target(target))
    for taken in measure(run, measures_of(requirements, int(largest))):
        sys.stdout.write(json.dumps(asdict(taken)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

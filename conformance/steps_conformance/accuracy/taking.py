"""Measuring on several backends, each in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator

from .measuring import Row


class MeasuringError(Exception):
    """The process of a backend ended with an error; the text is its last words."""


def take(row: str, target: str, largest: int) -> Iterator[Row]:
    """Yield what is measured on one backend, as it comes.

    Raises:
        MeasuringError: the process ended with an error.
    """
    command = [sys.executable, "-P", "-m", "steps_conformance.accuracy.worker", row, target, str(largest)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own program
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            yield Row(**json.loads(line))
        said = process.stderr.read().strip().splitlines()
    if process.returncode:
        raise MeasuringError(said[-1] if said else f"exit code {process.returncode}")

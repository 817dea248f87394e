"""Measuring on several backends, each in a process of its own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator

from .results import Row


class MeasuringError(Exception):
    """The process of a backend ended with an error; the text is its last words."""


def take(row: str, target: str, largest: int, requirements: Iterable[str]) -> Iterator[Row]:
    """Yield what is measured of these requirements on one backend, as it comes.

    Raises:
        MeasuringError: the process ended with an error.
    """
    worker = [sys.executable, "-P", "-m", "steps_conformance.accuracy.worker"]
    command = [*worker, row, target, str(largest), *sorted(requirements)]
    # a file for the errors: a pipe that nobody reads meanwhile could fill up and stop the process
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,  # noqa: S603 - our own program
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield Row(**json.loads(line))
            process.wait()
        finally:
            process.kill()
        errors.seek(0)
        said = errors.read().strip().splitlines()
    if process.returncode:
        raise MeasuringError(said[-1] if said else f"exit code {process.returncode}")

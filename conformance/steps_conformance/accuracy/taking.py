"""Measuring on several backends, each in a process of its own."""

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator

from ..worker_process import end_group
from .results import Row

# The largest inputs take minutes, on slow machines several.
_LONGEST_SECONDS = 900.0


class MeasuringError(Exception):
    """The process of a backend ended with an error, or hangs; the text says so, or is its last words."""


def take(
    row: str,
    target: str,
    largest: int,
    requirements: Iterable[str],
    *,
    longest_seconds: float = _LONGEST_SECONDS,
) -> Iterator[Row]:
    """Yield what is measured of these requirements on one backend, as it comes.

    Args:
        row: the backend.
        target: what is measured, as the user names it.
        largest: the largest size of inputs.
        requirements: ids.
        longest_seconds: how long one measure may take.

    Raises:
        MeasuringError: the process ended with an error, or a measure took too long.
    """
    worker = [sys.executable, "-P", "-m", "steps_conformance.accuracy.worker"]
    command = [*worker, row, target, str(largest), *sorted(requirements)]
    # a file for the errors: a pipe that nobody reads meanwhile could fill up and stop the process
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(  # noqa: S603 - our own program
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process,
    ):
        assert process.stdout is not None
        watch = _Watch(process, longest_seconds)
        try:
            for line in process.stdout:
                watch.restart()
                yield Row(**json.loads(line))
            process.wait()
        finally:
            watch.end()
            end_group(process)
        if watch.has_killed:
            raise MeasuringError(f"a measure took longer than {longest_seconds:g} s")
        errors.seek(0)
        said = errors.read().strip().splitlines()
    if process.returncode:
        raise MeasuringError(said[-1] if said else f"exit code {process.returncode}")


class _Watch:
    """Kills a process that is silent for too long."""

    def __init__(self, process: "subprocess.Popen[str]", seconds: float) -> None:
        self._process, self._seconds = process, seconds
        self.has_killed = False
        self._timer = self._started()

    def _started(self) -> threading.Timer:
        timer = threading.Timer(self._seconds, self._kill)
        timer.daemon = True
        timer.start()
        return timer

    def _kill(self) -> None:
        self.has_killed = True
        end_group(self._process)

    def restart(self) -> None:
        """Wait again from now on."""
        self._timer.cancel()
        self._timer = self._started()

    def end(self) -> None:
        """Wait no more."""
        self._timer.cancel()

"""Running a function in a forked process, which may loop for ever, exhaust its memory or die."""

import os
import pickle
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steps_conformance.memory import limit_memory

is_available = hasattr(os, "fork")
"""Whether this system can fork."""


@dataclass(frozen=True)
class Ended:
    """What became of a process that ended without an answer.

    Attributes:
        signal: name of the signal that ended it, SIGALRM where its time was up; else empty.
        code: its exit code.
    """

    signal: str
    code: int


class ChildFailedError(Exception):
    """The function raised in the process; the text is its traceback."""


@dataclass(frozen=True)
class Running:
    """A function that runs in a forked process."""

    process: int
    reading: int

    def answer(self) -> Any:
        """Wait, and return what the function returns, or an Ended.

        Raises:
            ChildFailedError: the function raised.
        """
        with os.fdopen(self.reading, "rb") as stream:
            content = stream.read()
        _, status = os.waitpid(self.process, 0)
        if not content:
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            return Ended(signal.Signals(number).name if number else "", os.waitstatus_to_exitcode(status))
        worked, value = pickle.loads(content)
        if not worked:
            raise ChildFailedError(value)
        return value


def started(function: Callable[[], Any], *, mebibytes: int = 4096) -> Running:
    """Let a function run in a forked process."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _answer(function, writing, mebibytes)
    os.close(writing)
    return Running(process, reading)


def isolated(function: Callable[[], Any]) -> Any:
    """Return what a function returns in a forked process, or an Ended.

    Raises:
        ChildFailedError: the function raised.
    """
    return started(function).answer()


def allow_seconds(seconds: float) -> None:
    """Let the system end this process when this time is over; a new call starts the time anew."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _answer(function: Callable[[], Any], writing: int, mebibytes: int) -> None:
    """Write the answer and end the process, without anything that its parent has to do at its end."""
    try:
        # a mutant may stop in the debugger, which must find an end of its input
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        limit_memory(mebibytes)
        answer = pickle.dumps((True, function()))
    except BaseException:  # noqa: BLE001 - whatever it was, the parent says it
        answer = pickle.dumps((False, traceback.format_exc()))
    with os.fdopen(writing, "wb") as stream:
        stream.write(answer)
    os._exit(0)

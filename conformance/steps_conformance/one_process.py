"""One process does the work of the suite, and ends when it is done, whatever a target leaves behind."""

import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

_FAILED = 1
_FORKED = 5


class ThisProcess:
    """The process that made it.

    A target may fork and come back from a call in the child too. The child then holds the work of the suite
    and its open files, and would do and write everything a second time.
    """

    def __init__(self) -> None:
        self._id = os.getpid()

    def end_if_forked(self) -> None:
        """End the process that runs this, unless it is the one that made it."""
        if os.getpid() != self._id:
            os._exit(_FORKED)


def work_and_leave(work: Callable[[], None]) -> NoReturn:
    """Do the work of this process, and end it at once.

    An ordinary end waits for every thread that a target has left running, and may never come.
    """
    status = 0
    try:
        work()
    except Exception:  # noqa: BLE001 - shown as an ordinary end would show it
        traceback.print_exc()
        status = _FAILED
    _end_now(status)


def leave_threads_behind(status: int) -> None:
    """End this process at once where a thread that a target has left would hold up an ordinary end."""
    if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
        _end_now(status)


def _end_now(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)

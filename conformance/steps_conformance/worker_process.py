"""A worker process, watched from outside through its journal."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .journal import Event, JournalReader
from .outcomes import Outcome
from .output_tail import OutputTail
from .worker import Order

_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Limits:
    """How long a worker may take, and how often it may die.

    Attributes:
        case_seconds: time limit of one case.
        start_seconds: time limit of everything before the first case and between two cases.
        restarts: how often the process of one row is started again, or that of a target that is a command.
        memory: how much memory a process may hold, in MiB; None for no limit.
    """

    case_seconds: float = 120.0
    start_seconds: float = 300.0
    restarts: int = 10
    memory: int | None = None


@dataclass
class WorkerProcess:
    """One worker process and what its journal says.

    Attributes:
        order: what it has to do.
        folder: a new folder for its order, journal and output.
        limits: how long it may take.
        stop: set to have it killed.
        current: the case that it has started and not ended.
        ended: how it ended by itself; None where it was killed.
        events: what it wrote so far.
    """

    order: Order
    folder: Path
    limits: Limits
    stop: threading.Event = field(default_factory=threading.Event)
    current: str | None = None
    ended: str | None = None
    events: list[Event] = field(default_factory=list)
    _said: OutputTail | None = None

    def run(self) -> Iterator[Event]:
        """Start the process and yield its events until it ends; it is killed where it takes too long."""
        self.folder.mkdir(parents=True)
        order, journal = (self.folder / name for name in ("order.json", "journal.jsonl"))
        limited = replace(
            self.order, memory=self.limits.memory, restarts=self.limits.restarts, folder=str(self.folder)
        )
        order.write_text(json.dumps(asdict(limited)), encoding="utf-8")
        # -P: the current folder must not shadow what is installed
        command = [sys.executable, "-P", "-m", "steps_conformance.worker", str(order), str(journal)]
        process = subprocess.Popen(  # noqa: S603 - this package's own worker
            command,
            # open as long as this process lives; the worker ends when it closes
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            # an interrupt from the keyboard is for the parent alone, and a group can be ended as a whole
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        self._said = OutputTail(process.stdout)
        try:
            yield from self._follow(process, JournalReader(journal))
        finally:
            end_group(process)
            process.wait()
            process.stdin.close()
            self._said.wait()

    def output(self) -> str:
        """Return the last lines that the process printed."""
        return "" if self._said is None else self._said.lines()

    def _follow(self, process: "subprocess.Popen[bytes]", journal: JournalReader) -> Iterator[Event]:
        since = time.monotonic()
        while True:
            # asked first, so that what it wrote before it ended is still read
            status = process.poll()
            events = journal.new_events()
            for event in events:
                self.current = event["id"] if event["event"] == "start" else None
                self.events.append(event)
                yield event
            if events:
                since = time.monotonic()
            if status is not None:
                self.ended = _how_it_ended(status)
                return
            if self.stop.is_set() or time.monotonic() - since > self._limit():
                return
            time.sleep(_POLL_SECONDS)

    def _limit(self) -> float:
        return self.limits.start_seconds if self.current is None else self.limits.case_seconds

    def missing(self) -> str | None:
        """Return why the order could not be carried out, if the worker itself says so."""
        for event in self.events:
            if event["event"] == "missing":
                return f"the {event['what']} did not start: {event['reason']}"
        return None

    def broken_off(self) -> tuple[Outcome, str, float]:
        """Return outcome, message and seconds of the case in the middle of which the process ended."""
        if self.ended is None:
            limit = self.limits.case_seconds
            return Outcome.TIMEOUT, f"took longer than {limit:g} s", limit
        said = self.output()
        text = f"the process {self.ended} in the middle of the case"
        return Outcome.CRASH, f"{text}\n{said}" if said else text, 0.0


def end_group(process: "subprocess.Popen[Any]") -> None:
    """End a process and what it has started, such as a target that hangs; its group outlives it."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _how_it_ended(status: int) -> str:
    return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"


def _environment() -> dict[str, str]:
    # -O in the environment would strip the assertions of cases
    return {key: value for key, value in os.environ.items() if key != "PYTHONOPTIMIZE"}

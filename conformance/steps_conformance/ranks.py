"""Rows whose cases run in two processes at once: the worker starts the second, both meet at each case."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

from .case import Case
from .execution import Result, execute
from .outcomes import Outcome
from .targets.protocol import Target

TRAIT = "two_processes"
_BOTH_ARE_IN_STEP = (Outcome.PASS, Outcome.UNSUPPORTED)
_LEFT_ALONE = 5


class TwoProcesses:
    """This process and the other one, each with the same backend, target and cases.

    Args:
        backend: one with the trait ``two_processes``.
        folder: where the two meet.
        rank: 0 in this process, 1 in the other one.
    """

    def __init__(self, backend: Any, folder: str, rank: int) -> None:
        self._backend = backend
        backend.join(folder, rank)

    def execute(self, case: Case, target: Target) -> Result:
        """Run a case in both processes, and return what became of it: the worse of the two outcomes."""
        self._exchange(case.id)
        mine = execute(case, self._backend, target)
        both = [
            Result(Outcome(fields["outcome"]), fields["message"], fields["seconds"])
            for fields in map(json.loads, self._exchange(json.dumps(asdict(mine))))
        ]
        if any(result.outcome not in _BOTH_ARE_IN_STEP for result in both):
            self._backend.meet_again()
        return _together(both)

    def _exchange(self, text: str) -> list[str]:
        try:
            told: list[str] = self._backend.exchange(text)
        except RuntimeError as error:
            end_alone(f"the other process does not answer: {error}")
        return told


def start_second(order: Any) -> None:
    """Start the second process of a worker with this order; it ends with this one, whose pipe closes then."""
    file, journal = (Path(order.folder) / name for name in ("second-order.json", "second-journal.jsonl"))
    file.write_text(json.dumps(asdict(replace(order, rank=1))), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "steps_conformance.worker", str(file), str(journal)]
    second = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - this package's own worker
    threading.Thread(target=_watch, args=(second,), daemon=True).start()


def end_alone(why: str) -> NoReturn:
    """End this process in the middle of a case, which is then seen as a crash of the case."""
    sys.stderr.write(f"{why}\n")
    sys.stderr.flush()
    os._exit(_LEFT_ALONE)


def _watch(second: "subprocess.Popen[bytes]") -> None:
    """End this process as soon as the second one has failed; else it would wait for what that says."""
    status = second.wait()
    if status != 0:
        end_alone(f"the second process ended with status {status}")


def _together(both: list[Result]) -> Result:
    """Return the result of a case: where one process failed, that of the one that failed first."""
    first, second = both
    if (first.outcome, first.message) == (second.outcome, second.message):
        return first
    failed = [(one.seconds, rank) for rank, one in enumerate(both) if one.outcome not in _BOTH_ARE_IN_STEP]
    _, rank = min(failed, default=(0.0, 0))
    return replace(both[rank], message=f"in process {rank} of two: {both[rank].message}")

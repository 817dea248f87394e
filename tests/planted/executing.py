"""How cases are executed on a backend: in this process, or in two where arrays lie in parts in two."""

import os
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import TypeVar

from steps_backends import Backend
from steps_conformance.case import Case
from steps_conformance.execution import Result, execute
from steps_conformance.ranks import TRAIT, TwoProcesses
from steps_conformance.targets.protocol import Target

Answer = TypeVar("Answer")
Execution = Callable[[Case, Target], Result]


def with_execution(backend: Backend, work: Callable[[Execution], Answer]) -> Answer:
    """Return what work gives, which gets a function that executes a case for a target.

    Where the backend needs two processes, the second is forked from this one and does the same work. Each
    limits its own time (isolated.allow_seconds), so neither waits for ever for the other.
    """
    if TRAIT not in backend.declaration.traits:
        return work(partial(_executed, backend))
    with TemporaryDirectory() as folder:
        second = os.fork()
        if second == 0:
            _work_and_end(lambda: work(TwoProcesses(backend, folder, 1).execute))
        answer = work(TwoProcesses(backend, folder, 0).execute)
        os.waitpid(second, 0)
        return answer


def _executed(backend: Backend, case: Case, target: Target) -> Result:
    return execute(case, backend, target)


def _work_and_end(work: Callable[[], object]) -> None:
    """Do the work, and end this process without anything that its parent has to do at its end."""
    try:
        work()
    finally:
        os._exit(0)

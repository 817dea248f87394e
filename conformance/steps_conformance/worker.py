"""The process of one backend row: `python -m steps_conformance.worker ORDER JOURNAL`.

It writes to the journal what it found and, before and after each case, what it does. Its parent reads
that, so a process that dies or hangs is seen as a crash or timeout of the case that it had started.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from .case import load_cases
from .execution import Result, execute
from .journal import JournalWriter
from .loading import load_backend, load_target
from .memory import limit_memory
from .one_process import work_and_leave
from .outcomes import FAILURES, Outcome
from .ranks import TRAIT, TwoProcesses, start_second
from .targets.command import CommandTarget
from .targets.connection import ProtocolError, TargetEndedError, TargetFaultError
from .targets.copy import other_copies
from .targets.protocol import CAPABILITIES, Refusal, Target
from .targets.scope import scope_of

_ORPHANED = 4

_GONE = Result(Outcome.NOTRUN, "the suite changed while the run went on: there is no such case now")


@dataclass(frozen=True)
class Order:
    """What a worker has to do.

    Attributes:
        target: the target as the user names it; None to look at the backend only.
        backend: the row's name, or ``module:attribute``; None to look at the target only.
        cases: the package of the cases.
        ids: the cases to run, in this order.
        memory: limit of the process's memory in MiB; None for no limit.
        restarts: how often the process of a target that is a command is started again.
        rank: 1 for the second process of a row that needs two.
        folder: a folder for files of its own; two processes meet there.
    """

    target: str | None = None
    backend: str | None = None
    cases: str = "steps_conformance.cases"
    ids: tuple[str, ...] = ()
    memory: int | None = None
    restarts: int = 10
    rank: int = 0
    folder: str = ""


def main(order_file: str, journal_file: str) -> None:
    """Carry out the order in a file."""
    faulthandler.enable()
    _end_with_parent()
    fields = json.loads(Path(order_file).read_text(encoding="utf-8"))
    order = Order(**{**fields, "ids": tuple(fields["ids"])})
    if order.memory is not None:
        limit_memory(order.memory)
    journal = JournalWriter(Path(journal_file))
    carry_out(order, journal)
    journal.write("done")
    journal.close()


def _end_with_parent() -> None:
    """End this process when its parent does, however that ends: its pipe to standard input closes then."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        os.read(pipe, 1)
        _end_children()
        os._exit(_ORPHANED)

    threading.Thread(target=wait, daemon=True).start()


def _end_children() -> None:
    """End what this process has started, such as a target that hangs; the worker leads a group of its own."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)


def carry_out(order: Order, journal: JournalWriter) -> None:
    """Look at backend and target, and run the cases; stop at the first thing that is missing."""
    backend: Any = None
    target: Any = None
    both: TwoProcesses | None = None
    loaded_at_start: list[str] = []
    if order.backend is not None:
        backend = _found(journal, "backend", load_backend, order.backend)
        # Where they cannot meet, the probe says what is missing, as of any row.
        if backend and TRAIT in backend.declaration.traits and backend.can_meet():
            both = _found(journal, "second process", partial(_both, order), backend)
            if both is None:
                return
        probe = _journaled(journal, "probe", _probe_facts, backend) if backend else None
        if probe is None or not probe["runs"]:
            return
    if order.target is not None:
        target = _found(journal, "target", partial(load_target, restarts=order.restarts), order.target)
        if target is None or _journaled(journal, "target", _target_facts, target) is None:
            return
        loaded_at_start = other_copies(target.path)
    cases = load_cases(order.cases) if order.ids else {}
    run_case = partial(execute, backend=backend, target=target)
    if both is not None:
        run_case = partial(both.execute, target=target)
    for place, identity in enumerate(order.ids, start=1):
        journal.write("start", id=identity)
        result = run_case(cases[identity]) if identity in cases else _GONE
        if place == len(order.ids) and isinstance(target, CommandTarget):
            result = _with_what_is_left(target, result)
        journal.write("end", id=identity, **asdict(result))
    if target is not None:
        for folder in other_copies(target.path):
            if folder not in loaded_at_start:
                journal.write("warning", text=_another_copy(folder))
    if isinstance(target, CommandTarget):
        target.close()


def _both(order: Order, backend: Any) -> TwoProcesses:
    """Return this process and the other one, which that of rank 0 starts."""
    if order.rank == 0:
        start_second(order)
    return TwoProcesses(backend, order.folder, order.rank)


def _with_what_is_left(target: CommandTarget, result: Result) -> Result:
    """Return the result of the last case: no further request would show an answer too many."""
    if result.outcome in FAILURES:
        return result
    try:
        target.check_nothing_is_left()
    except ProtocolError as fault:
        return replace(result, outcome=Outcome.ERROR, message=f"{fault.kind}: after the last case, {fault}")
    except (Refusal, TargetFaultError, TargetEndedError):
        # that it greets once only is its own affair
        return result
    return result


def _found(journal: JournalWriter, what: str, find: Callable[[Any], Any], *args: Any) -> Any:
    """Return what find gives; where it raises, journal why and return None."""
    try:
        return find(*args)
    except Exception as error:  # noqa: BLE001 - whatever a foreign module raises is a finding
        journal.write("missing", what=what, reason=f"{type(error).__name__}: {error}")
        return None


def _journaled(journal: JournalWriter, event: str, find: Callable[[Any], Any], *args: Any) -> Any:
    """Return the facts that find gives, and journal them."""
    facts = _found(journal, event, find, *args)
    if facts is not None:
        journal.write(event, **facts)
    return facts


def _probe_facts(backend: Any) -> dict[str, Any]:
    declared = backend.declaration
    facts = {"library": declared.library, "device": declared.device, "dtypes": list(declared.dtypes)}
    return {**asdict(backend.probe()), **facts, "traits": sorted(declared.traits)}


def _target_facts(target: Target) -> dict[str, Any]:
    unknown = sorted(target.capabilities - CAPABILITIES.keys())
    if unknown:
        raise ValueError(f"capabilities must come from {', '.join(CAPABILITIES)}, got {', '.join(unknown)}")
    scope_of(target)  # one that is malformed is found here, and not in the first case
    facts = {fact: getattr(target, fact) for fact in ("name", "version", "path", "hash")}
    return {
        **facts,
        "capabilities": sorted(target.capabilities),
        "expectations": _expectation_files(target),
        "warnings": [_another_copy(folder) for folder in other_copies(target.path)],
    }


def _another_copy(folder: str) -> str:
    return (
        f"another copy is loaded beside the tested one, from {folder}; a module that imports it is not tested"
    )


def _expectation_files(target: Target) -> list[str]:
    file = getattr(target, "expectations", None)
    if file is None:
        return []
    if not isinstance(file, str | os.PathLike) or not Path(file).is_absolute():
        raise ValueError(
            f"expectations must be the absolute path of a file, got {file!r} ({type(file).__name__}); "
            'give str(Path(__file__).with_name("expectations.toml"))'
        )
    return [os.fspath(file)]


if __name__ == "__main__":
    work_and_leave(partial(main, *sys.argv[1:]))

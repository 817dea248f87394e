"""Running the cases of one backend row: a process that dies or hangs is started again, within bounds."""

import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .journal import Event
from .outcomes import Outcome
from .reports.model import CaseResult, RowFacts, RowWarning, TargetFacts
from .worker import Order
from .worker_process import Limits, WorkerProcess

_LONGEST_MESSAGE = 4000


class TargetDidNotStartError(Exception):
    """The target could not be imported or did not answer; the text says why."""


def look_at_target(target: str, folder: Path, limits: Limits) -> TargetFacts:
    """Return what the target says of itself, asked in a process of its own."""
    worker = WorkerProcess(Order(target), folder, limits)
    for event in worker.run():
        if event["event"] == "target":
            return TargetFacts(**_tuples(event))
    why = worker.missing() or f"the process {worker.ended or 'took too long'}\n{worker.output()}"
    raise TargetDidNotStartError(f"target {target}: {why.strip()}")


def look_at_backend(name: str) -> RowFacts:
    """Return what a probe in a process of its own finds about a backend."""
    with tempfile.TemporaryDirectory(prefix="steps-conformance-") as folder:
        worker = WorkerProcess(Order(backend=name), Path(folder) / "probe", Limits())
        probed = any(event["event"] == "probe" for event in worker.run())
        return _row_facts(name, worker) if probed else _row_that_did_not_run(name, worker)


class RowRun:
    """The run of one row.

    Args:
        order: what to run.
        folder: a folder for the files of each process.
        limits: limits of time and restarts.
        found_row: called once, as soon as it is known whether the row runs.
        found_result: called for each result; exactly once for each id if the row runs to its end.
        found_warning: called with what came up while the cases ran and makes their results doubtful.
        stop: set to have the row broken off.
        target_hash: hash of the copy that the report names; another one is a deviation.
    """

    def __init__(
        self,
        order: Order,
        folder: Path,
        limits: Limits,
        *,
        found_row: Callable[[RowFacts], None],
        found_result: Callable[[CaseResult], None],
        found_warning: Callable[[RowWarning], None],
        stop: threading.Event,
        target_hash: str | None = None,
    ) -> None:
        self._target_hash = target_hash
        self._order, self._folder, self._limits, self._stop = order, folder, limits, stop
        self._found_row, self._found_result = found_row, found_result
        self._found_warning = found_warning
        self._row = order.backend or ""
        self._remaining = list(order.ids)
        self._known = False

    def run(self) -> None:
        """Run the cases, starting again after each crash and timeout."""
        for attempt in range(self._limits.restarts + 1):
            worker = self._run_process(attempt)
            if self._stop.is_set():
                return
            if not self._known:
                self._found_row(_row_that_did_not_run(self._row, worker))
                return
            if worker.current is not None:
                self._finish(worker.current, *worker.broken_off())
            elif self._remaining:
                self._give_up(_why_it_stopped(worker))
            if not self._remaining:
                return
        self._give_up(f"given up: its process may be started again {self._limits.restarts} times")

    def _run_process(self, attempt: int) -> WorkerProcess:
        order = replace(self._order, ids=tuple(self._remaining))
        worker = WorkerProcess(order, self._folder / str(attempt), self._limits, self._stop)
        for event in worker.run():
            if event["event"] == "target" and not self._known:
                self._known = True
                self._found_row(self._facts(event["hash"], worker))
            elif event["event"] == "end":
                self._finish(event["id"], Outcome(event["outcome"]), event["message"], event["seconds"])
            elif event["event"] == "warning":
                self._found_warning(RowWarning(self._row, event["text"]))
        return worker

    def _facts(self, loaded_hash: str, worker: WorkerProcess) -> RowFacts:
        facts = _row_facts(self._row, worker)
        if self._target_hash in (None, loaded_hash):
            return facts
        other = f"it tested another copy than the header names, with the hash {loaded_hash[:12]}"
        return replace(facts, deviations=(*facts.deviations, other))

    def _finish(self, identity: str, outcome: Outcome, message: str, seconds: float = 0.0) -> None:
        self._remaining.remove(identity)
        self._found_result(CaseResult(self._row, identity, outcome, _shortened(message), seconds))

    def _give_up(self, why: str) -> None:
        for identity in tuple(self._remaining):
            self._finish(identity, Outcome.NOTRUN, why)


def _shortened(message: str) -> str:
    """Return a message without its middle where it is too long for a report."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = _LONGEST_MESSAGE // 2
    return f"{message[:half]}\n... {len(message) - 2 * half} characters ...\n{message[-half:]}"


def _why_it_stopped(worker: WorkerProcess) -> str:
    why = worker.missing() or f"the process {worker.ended or 'took too long'} between two cases"
    return f"{why}\n{worker.output()}".strip()


def _row_facts(row: str, worker: WorkerProcess) -> RowFacts:
    probe = next(event for event in worker.events if event["event"] == "probe")
    return RowFacts(row, **_tuples(probe))


def _row_that_did_not_run(row: str, worker: WorkerProcess) -> RowFacts:
    probes = [event for event in worker.events if event["event"] == "probe"]
    reason = worker.missing() or (probes[0]["reason"] if probes else None)
    if reason is None:
        reason = (
            f"the process {worker.ended or 'took too long'} before its first case\n{worker.output()}".strip()
        )
    facts = _tuples(probes[0]) if probes else {}
    return RowFacts(row, **{**facts, "runs": False, "reason": reason})


def _tuples(event: Event) -> Event:
    """Return the fields of an event; JSON has lists where the facts have tuples."""
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in event.items()}
    del fields["event"]
    return fields

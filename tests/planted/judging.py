"""Whether the suite notices a fault of the catalogue: the cases of the requirements that it names are run."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import steps_backends
from steps_backends import Backend
from steps_conformance.case import Case
from steps_conformance.execution import Result, execute
from steps_conformance.outcomes import FAILURES
from steps_conformance.targets.steps_core import PackageTarget

from .catalogue import Fault
from .loading import forget, load_copy, source_of


@dataclass(frozen=True)
class Judgement:
    """What the suite says of a fault.

    Attributes:
        fault: the fault.
        noticed_by: for each requirement that it breaks, the first case that noticed; None where none did.
        messages: what those cases said.
        seconds: how long it took.
    """

    fault: Fault
    noticed_by: Mapping[str, str | None]
    messages: Mapping[str, str]
    seconds: float

    @property
    def is_caught(self) -> bool:
        """Whether every requirement that it breaks has a case that noticed."""
        return all(self.noticed_by.values())

    @property
    def missed(self) -> list[str]:
        """The requirements none of whose cases noticed."""
        return [identity for identity, case in self.noticed_by.items() if case is None]


class Judge:
    """Judges faults; the cases that notice one must pass on the implementation as it is."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        self._cases = cases
        self._intact = PackageTarget(load_copy(source_of("steps_core")).__name__)
        self._passed: dict[tuple[str, str], bool] = {}

    def judge(self, fault: Fault) -> Judgement:
        """Return what becomes of a fault."""
        started = time.perf_counter()
        backend = steps_backends.get(fault.row)
        planted = fault.plant()
        noticed: dict[str, str | None] = {}
        messages = {}
        try:
            for requirement in fault.breaks:
                found = self._first_to_notice(requirement, backend, planted.target)
                noticed[requirement] = None if found is None else found[0].id
                if found is not None:
                    messages[found[0].id] = found[1].message
        finally:
            forget(planted.package)
        return Judgement(fault, noticed, messages, time.perf_counter() - started)

    def _first_to_notice(
        self, requirement: str, backend: Backend, target: PackageTarget
    ) -> tuple[Case, Result] | None:
        listed = [case for case in self._cases.values() if case.requirement == requirement]
        if not listed:
            raise LookupError(f"no case shows the requirement {requirement}; name one that exists")
        for case in listed:
            result = execute(case, backend, target)
            if result.outcome in FAILURES and self._holds_without(case, backend):
                return case, result
        return None

    def _holds_without(self, case: Case, backend: Backend) -> bool:
        """Return whether a case passes on the implementation as it is."""
        key = (backend.declaration.name, case.id)
        if key not in self._passed:
            self._passed[key] = execute(case, backend, self._intact).outcome == "PASS"
        return self._passed[key]

"""One case on one backend as an item of pytest."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from steps_backends import Backend

from ..case import Case
from ..execution import Result, execute
from ..expectations.model import Expectation, declared
from ..outcomes import FAILURES, Outcome
from ..requirements import Requirement
from ..targets.protocol import Target

PROPERTY = "steps_conformance"
"""The name of the property of a report that the judge of the whole run reads, JSON."""

_UNSURVIVED = frozenset({Outcome.CRASH, Outcome.TIMEOUT})


class CaseFailed(Exception):  # noqa: N818 - the name that a summary line shows
    """A case does not hold; the text is all that a reader needs."""


class CaseItem(pytest.Item):
    """One case on one backend.

    UNSUPPORTED is a skip; a failure that an expectation file declares, and a SHOULD that does not hold, are
    expected failures. A case that is declared to end or hang its process is skipped, as nothing here could
    watch it do so.
    """

    def __init__(
        self,
        *,
        case: Case,
        rule: Requirement,
        backend: Backend,
        target: Target,
        expectations: Sequence[Expectation],
        strict: bool,
        **node: Any,
    ) -> None:
        super().__init__(**node)
        self._case, self._rule, self._strict = case, rule, strict
        self._backend, self._target = backend, target
        self._expectations = expectations
        self.add_marker(rule.level.lower())
        self.add_marker(case.topic)
        self.user_properties += [("requirement", rule.id), ("level", rule.level), ("topic", case.topic)]

    def runtest(self) -> None:
        """Run the case, and end in the way of pytest that its outcome stands for."""
        fatal = next((one for one in self._expectations if one.outcome in _UNSURVIVED), None)
        if fatal is not None:
            pytest.skip(f"declared as {fatal.outcome} ({fatal.reason}); `steps-conformance run` watches it")
        result = execute(self._case, self._backend, self._target)
        self._record(result)
        if result.outcome is Outcome.UNSUPPORTED:
            pytest.skip(f"not supported: {result.message}")
        self._judge(result)

    def _judge(self, result: Result) -> None:
        # whether a whole requirement passes that was declared to fail is seen at the end of the run only
        here = [replace(one, whole=not one.is_of_a_requirement) for one in self._expectations]
        made = declared({self._case.id: result.outcome}, here).get(self._case.id)
        if made is not None and made.outcome is Outcome.XFAIL:
            pytest.xfail(f"declared: {made.expectation.reason}")
        if made is not None:
            raise CaseFailed(f"{Outcome.XPASS}: {made.why()}")
        if result.outcome not in FAILURES:
            return
        if self._rule.level == "SHOULD" and not self._strict:
            pytest.xfail(f"SHOULD is not met: {result.message}")
        raise CaseFailed(f"{result.outcome}: {result.message}")

    def _record(self, result: Result) -> None:
        """Leave for the judge of the whole run, in whichever process it is, what it has to know."""
        entries = [
            {"id": one.id, "file": one.file, "outcome": one.outcome, "reason": one.reason, "cases": one.cases}
            for one in self._expectations
        ]
        row = self._backend.declaration.name
        facts = {"id": self._case.id, "row": row, "outcome": result.outcome, "level": self._rule.level}
        self.user_properties.append((PROPERTY, json.dumps({**facts, "entries": entries})))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return text and rule, without the lines of this package between the reader and them."""
        if isinstance(excinfo.value, CaseFailed):
            return f"{excinfo.value}\n{self._rule.id} ({self._rule.level}): {self._rule.title}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Return the backend as the place, and a heading.

        The heading must not be the end of the node id: pytest would show the id with `::` for each dot in it.
        """
        place = self.nodeid.rpartition("::")[0]
        return place, None, f"{self.name} on {self._backend.declaration.name}"

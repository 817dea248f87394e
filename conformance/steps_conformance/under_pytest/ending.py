"""What can be judged only when all cases have run, in whichever processes that was."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ..expectations.model import Expectation, declared
from ..outcomes import FAILURES, Outcome
from .item import PROPERTY


class Ending:
    """Fails a run in which a declared deviation of a requirement did not happen, or nothing passed."""

    def __init__(self) -> None:
        self._facts: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a case leaves."""
        if report.when == "call":
            self._facts += [
                json.loads(str(value)) for name, value in report.user_properties if name == PROPERTY
            ]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Give the run an exit status of its own where its cases alone do not show what is wrong."""
        if session.exitstatus != pytest.ExitCode.OK or session.config.option.collectonly:
            return
        if any(self._stale()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif not any(fact["outcome"] == Outcome.PASS for fact in self._facts):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what is wrong with the whole run, and which SHOULD does not hold."""
        if terminalreporter.config.option.collectonly:
            return
        lines = [*self._stale(), *self._unmet()]
        if self._facts and not any(fact["outcome"] == Outcome.PASS for fact in self._facts):
            lines.append("no case passed: this run shows nothing")
        if lines:
            terminalreporter.section("conformance")
            for line in lines:
                terminalreporter.line(line)

    def _unmet(self) -> Iterator[str]:
        for fact in self._facts:
            if fact["level"] == "SHOULD" and fact["outcome"] in FAILURES:
                yield f"SHOULD is not met: {fact['id']} on {fact['row']}"

    def _stale(self) -> Iterator[str]:
        found: dict[str, dict[str, Outcome]] = {}
        entries: dict[str, dict[str, Expectation]] = {}
        for fact in self._facts:
            found.setdefault(fact["row"], {})[fact["id"]] = Outcome(fact["outcome"])
            for entry in fact["entries"]:
                fields = {**entry, "outcome": Outcome(entry["outcome"]), "cases": tuple(entry["cases"])}
                entries.setdefault(fact["row"], {})[json.dumps(entry)] = Expectation(**fields)
        for row, expectations in entries.items():
            stale = {
                made.why(): made.expectation
                for made in declared(found[row], expectations.values()).values()
                # of a case alone, its item has failed
                if made.outcome is Outcome.XPASS and made.expectation.is_of_a_requirement
            }
            for why, one in stale.items():
                yield f"{Outcome.XPASS}: {one.id} on {row}: {why}"

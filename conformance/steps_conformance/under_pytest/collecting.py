"""The suite, its backends and its cases as nodes of pytest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import steps_backends
from steps_backends import Backend

from ..case import Case, load_cases
from ..expectations.files import ExpectationError, load_expectations
from ..expectations.model import Expectation
from ..expectations.resolving import resolved
from ..loading import is_command, load_backend, load_target
from ..plan import SelectionError, selected
from ..requirements import Requirement, load_requirements
from ..targets.command import CommandTarget
from ..targets.host_row import HOST
from ..targets.protocol import Target
from .item import CaseItem


@dataclass(frozen=True)
class Asked:
    """What the options ask for.

    Attributes:
        target: the implementation under test.
        cases: the chosen cases by id.
        requirements: all requirements by id.
        expectations: the known deviations, each with all the cases that it means.
        strict: whether a SHOULD counts like a MUST.
    """

    target: Target
    cases: Mapping[str, Case]
    requirements: Mapping[str, Requirement]
    expectations: tuple[Expectation, ...]
    strict: bool


class Suite(pytest.Collector):
    """All backends that are asked for."""

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield a node for each backend; one that was not named, and cannot run, is there and says so."""
        options = self.config.option
        rows, named = _rows(options.steps_target, options.steps_backend), set(options.steps_backend)
        asked = _asked(options, rows)
        for row in rows:
            yield BackendNode.from_parent(
                self,
                name=row,
                nodeid=f"{self.nodeid}/{row}",
                asked=_on(row, asked, options.steps_id),
                named=row in named,
            )


class BackendNode(pytest.Collector):
    """The cases on one backend."""

    def __init__(self, *, asked: Asked, named: bool, **node: Any) -> None:
        super().__init__(**node)
        self._asked = asked
        self._named = named

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each case.

        Raises:
            CollectError: the backend was named and cannot run, or is not what it says.
        """
        backend = load_backend(self.name)
        probe = backend.probe()
        if not probe.runs and self._named:
            raise self.CollectError(f"{self.name} was asked for and does not run: {probe.reason}")
        if probe.deviations:
            raise self.CollectError(f"{self.name} is not what it says: {'; '.join(probe.deviations)}")
        if not probe.runs:
            yield NotRun.from_parent(self, name="not-run", reason=probe.reason)
            return
        expected = list(self._expected(backend, probe.version))
        for case in self._asked.cases.values():
            yield CaseItem.from_parent(
                self,
                name=case.id,
                # as a text, in which pytest finds the part in brackets: --lf compares with what it read
                nodeid=f"{self.nodeid}::{case.id}",
                case=case,
                rule=self._asked.requirements[case.requirement],
                backend=backend,
                target=self._asked.target,
                expectations=[one for one in expected if case.id in one.cases],
                strict=self._asked.strict,
            )

    def _expected(self, backend: Backend, version: str | None) -> Iterator[Expectation]:
        declared = backend.declaration
        for one in self._asked.expectations:
            if one.when.holds_on(
                row=self.name, library=declared.library, version=version, traits=declared.traits
            ):
                yield one


class NotRun(pytest.Item):
    """A backend that nobody named and that cannot run here: shown as skipped, never as passed."""

    def __init__(self, *, reason: str | None, **node: Any) -> None:
        super().__init__(**node)
        self._reason = reason

    def runtest(self) -> None:
        """Skip with the reason."""
        pytest.skip(f"does not run here: {self._reason}")

    def reportinfo(self) -> tuple[str, None, str]:
        """Return the backend as the place."""
        return self.nodeid.rpartition("::")[0], None, f"{self.name} here"


def provenance(reference: str) -> str:
    """Return in one line what a target says of itself."""
    try:
        target = _target(reference)
        return f"{target.name} {target.version}  {target.path}  sha256 {target.hash[:12]}"
    except pytest.Collector.CollectError as error:
        return str(error)


_LOADED: dict[str, Target] = {}


def _loaded(reference: str) -> Target:
    """Return the target; it is loaded, or started where it is a command, once a run."""
    if reference not in _LOADED:
        _LOADED[reference] = load_target(reference)
    return _LOADED[reference]


def close_targets() -> None:
    """End the process of a target that is a command."""
    while _LOADED:
        _, target = _LOADED.popitem()
        if isinstance(target, CommandTarget):
            target.close()


def _rows(reference: str, given: list[str]) -> list[str]:
    if is_command(reference):
        if given:
            raise pytest.Collector.CollectError(
                f"a command gets values, not arrays of a library, so it runs on the row {HOST} alone, "
                f"got --backend {given[0]}; leave --backend out"
            )
        return [HOST]
    known = steps_backends.names()
    for name in given:
        if name not in known and name != "all" and ":" not in name:
            raise pytest.Collector.CollectError(
                f"no backend is called {name!r}; there are {', '.join(known)}, and module:attribute"
            )
    wanted = [*(known if not given or "all" in given else ()), *given]
    return [name for name in dict.fromkeys(wanted) if name != "all"]


def _asked(options: Any, rows: list[str]) -> Asked:
    suite = load_cases()
    target = _target(options.steps_target)
    own = getattr(target, "expectations", None)
    files = [Path(file) for file in [*options.steps_expectations, *([own] if own else [])]]
    ids = [identity.rpartition("::")[2] for identity in options.steps_id]
    try:
        expectations = resolved(load_expectations(files), suite, suite.keys(), rows)
        cases = selected(suite, topics=options.steps_topic, ids=ids)
    except (ExpectationError, SelectionError) as error:
        raise pytest.Collector.CollectError(str(error)) from None
    return Asked(target, cases, load_requirements(), expectations, options.steps_strict)


def _target(reference: str) -> Target:
    try:
        target = _loaded(reference)
        _ = target.name, target.version, target.capabilities
    except Exception as error:
        text = f"target {reference} did not start: {type(error).__name__}: {error}"
        raise pytest.Collector.CollectError(text) from error
    return target


def _on(row: str, asked: Asked, ids: list[str]) -> Asked:
    """Return what is asked of one backend: an id may name the backend on which it is to run."""
    of_rows = [identity.rpartition("::") for identity in ids]
    if not any(backend for backend, _, _ in of_rows):
        return asked
    here = [identity for backend, _, identity in of_rows if backend in ("", row)]
    cases = selected(asked.cases, ids=here) if here else {}
    return Asked(asked.target, cases, asked.requirements, asked.expectations, asked.strict)

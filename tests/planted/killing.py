"""Trying mutants: each in a process of its own, on the cases that execute it, until one notices."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import CodeType

from steps_backends import Backend
from steps_conformance.case import Case
from steps_conformance.outcomes import FAILURES, Outcome
from steps_conformance.targets.steps_core import PackageTarget

from .covering import Footprint, Statement, footprints
from .executing import Execution, with_execution
from .fate import Fate
from .isolated import Ended, allow_seconds, isolated
from .loading import Source, load_copy
from .mutants import Mutant
from .sharing import shared


@dataclass(frozen=True)
class Patience:
    """How long mutants may take on a backend.

    Attributes:
        least: seconds for each case, at least; a case that takes longer never ends.
        times: how many times longer than on the implementation as it is.
        together: a mutant is tried on the first cases alone, as many as take so many seconds.
    """

    least: float = 3.0
    times: float = 20.0
    together: float = math.inf


class BaselineError(Exception):
    """A case fails on the implementation as it is, so it can show nothing about a fault."""


class Row:
    """The cases of one backend, and which statements each executes.

    Args:
        backend: what makes and reads arrays.
        cases: the cases, by id.
        source: the implementation.
        found: what another backend's row found, where the same cases are to be tried here; they are run once
            to find out where this is not given.
        patience: how long mutants may take.
    """

    def __init__(
        self,
        backend: Backend,
        cases: Mapping[str, Case],
        source: Source,
        found: Mapping[str, Footprint] | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._backend, self._source, self._patience = backend, source, patience or Patience()
        if found is None:
            found = isolated(lambda: footprints(cases.values(), backend, source))
        self.footprints = found
        problems = [f"{identity}: {one.problem}" for identity, one in found.items() if one.problem]
        if problems:
            raise BaselineError("\n".join(problems))
        self._footprints = {identity: one for identity, one in found.items() if one.runs}
        self._cases = cases
        self._by_statement: dict[Statement, list[str]] = defaultdict(list)
        self._by_module: dict[str, list[str]] = defaultdict(list)
        for identity in self._in_good_order():
            statements = self._footprints[identity].statements
            for statement in statements:
                self._by_statement[statement].append(identity)
            for module in {module for module, _ in statements}:
                self._by_module[module].append(identity)
        self._noticed_before: dict[str, list[str]] = defaultdict(list)

    def _in_good_order(self) -> list[str]:
        """Return the cases so that each requirement has its turn, with its fastest case first."""
        by_requirement: dict[str, list[str]] = defaultdict(list)
        for identity in sorted(self._footprints, key=lambda one: self._footprints[one].seconds):
            by_requirement[self._cases[identity].requirement].append(identity)
        rank = {
            identity: (place, self._footprints[identity].seconds)
            for listed in by_requirement.values()
            for place, identity in enumerate(listed)
        }
        return sorted(self._footprints, key=rank.__getitem__)

    def that_execute(self, mutant: Mutant) -> Sequence[str]:
        """Return the cases that can notice a mutant, those first that noticed others nearby."""
        if mutant.is_run:
            able = self._by_statement.get((mutant.module, mutant.line), [])
        else:
            # what stands outside of functions runs when the module is imported, and acts in all that use it
            users = [mutant.module, *sorted(self._source.importers(mutant.module))]
            able = list(dict.fromkeys(one for module in users for one in self._by_module.get(module, [])))
        possible = set(able)
        before = [*self._noticed_before[mutant.scope], *self._noticed_before[mutant.module]]
        known = [one for one in dict.fromkeys(before) if one in possible]
        return list(dict.fromkeys([*known, *able]))

    def _affordable(self, cases: Sequence[str]) -> list[str]:
        ends = accumulate((self._footprints[one].seconds for one in cases), initial=0.0)
        return [one for one, before in zip(cases, ends, strict=False) if before < self._patience.together]

    def try_out(self, mutant: Mutant) -> Fate:
        """Return what becomes of a mutant on the cases that execute it."""
        cases = self._affordable(self.that_execute(mutant))
        started = time.perf_counter()
        if not cases:
            return Fate("", 0, 0.0)
        code = mutant.code(self._source)
        answer = isolated(
            lambda: with_execution(
                self._backend, lambda run: self._first_to_notice({mutant.module: code}, cases, run)
            )
        )
        seconds = time.perf_counter() - started
        if isinstance(answer, Ended):
            by = (
                "time"
                if answer.signal == "SIGALRM"
                else f"the end of the process ({answer.signal or answer.code})"
            )
            return Fate(by, len(cases), seconds)
        by, message = answer
        fate = Fate(by, len(cases), seconds, message)
        self._remember(mutant, fate)
        return fate

    def _remember(self, mutant: Mutant, fate: Fate) -> None:
        """Ask the case that noticed a mutant first about others nearby."""
        if fate.by not in self._cases:
            return
        for where in (mutant.scope, mutant.module):
            before = self._noticed_before[where]
            if fate.by in before:
                before.remove(fate.by)
            before.insert(0, fate.by)

    def try_all(
        self, mutants: Sequence[Mutant], tried: Callable[[Mutant], None] = lambda mutant: None
    ) -> Iterator[Fate]:
        """Yield what becomes of each mutant; as many are tried at once as there are processors.

        Args:
            mutants: the mutants, in the order in which they are told.
            tried: is told of each that is done.
        """
        for mutant, fate in zip(mutants, shared(self.try_out, mutants), strict=True):
            self._remember(mutant, fate)
            tried(mutant)
            yield fate

    def _first_to_notice(
        self, changed: Mapping[str, CodeType], cases: Iterable[str], run: Execution
    ) -> tuple[str, str]:
        allow_seconds(self._patience.least)
        try:
            package = load_copy(self._source, changed)
        except Exception as error:  # noqa: BLE001 - a mutant may break the import in any way
            return "loading", f"{type(error).__name__}: {error}"
        target = PackageTarget(package.__name__)
        for identity in cases:
            self._allow(identity)
            result = run(self._cases[identity], target)
            if result.outcome in FAILURES and self._holds_without(identity, run):
                return identity, result.message
        return "", ""

    def _allow(self, identity: str) -> None:
        """Let the process end when a case takes too long."""
        usual = self._footprints[identity].seconds
        allow_seconds(max(self._patience.least, self._patience.times * usual))

    def _holds_without(self, identity: str, run: Execution) -> bool:
        """Return whether a case passes here on the implementation as it is."""
        self._allow(identity)
        intact = PackageTarget(load_copy(self._source).__name__)
        return run(self._cases[identity], intact).outcome == Outcome.PASS

"""Who judges the judges: mutants of the suite's oracle and comparers, each of which must fail a test.

A case is worth what its expected values and comparisons are worth. So each formula of the oracle is checked
by identities and second derivations, and each comparer by inputs that it must refuse; and those checks are
tried here, on every small change of what they check: ``python -m planted.judges``.
"""

import os
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Annotated

import pytest
import typer
from rich.table import Table

from .catalogue import load_faults
from .equivalent import load_explained
from .fate import Fate, Score
from .isolated import Ended, allow_seconds, isolated
from .loading import Finder, Source, finding, forget, source_of
from .mutants import mutants_of
from .page import read_data, with_judges, write
from .sharing import shared
from .showing import console

LIST = Path(__file__).with_name("judges.toml")

_TESTS = Path(__file__).parents[1] / "conformance"
_SECONDS = 30.0

# By module of the suite the tests that check it; and topics, whose cases must else fail on the implementation
# as it is: a second derivation.
CHECKED_BY = {
    "compare": ("test_compare.py",),
    "ulps": ("test_compare.py",),
    "oracle.adam": ("test_oracle_steps.py",),
    "oracle.centering": ("test_oracle_clipping.py",),
    "oracle.clipping": ("test_oracle_clipping.py",),
    "oracle.constraint": ("test_oracle_clipping.py",),
    "oracle.exact": ("test_oracle_clipping.py", "test_oracle_steps.py"),
    "oracle.graphs": ("test_oracle_graphs.py", "operations", "custom"),
    "oracle.momentum": ("test_oracle_steps.py",),
    "oracle.rmsprop": ("test_oracle_steps.py",),
    "oracle.schedules": ("test_oracle_schedules.py", "test_oracle_steps.py"),
    "oracle.sequences": ("test_oracle_steps.py",),
    "oracle.units": ("test_oracle_clipping.py",),
}


class ChecksFailError(Exception):
    """The tests fail on the suite as it is."""


def score(source: Source, module: str) -> Score:
    """Return what becomes of the mutants of one module.

    Raises:
        ChecksFailError: its tests fail without any mutant.
    """
    checks, explained, found = CHECKED_BY[module], load_explained(LIST), Score(module)
    as_it_is = _outcome(source, module, source.code(module), checks)
    if not as_it_is.survives:
        raise ChecksFailError(f"what checks {module} fails as it is: {', '.join(checks)} ({as_it_is.by})")
    mutants = mutants_of(source, module)
    explained.check_known(mutants, [module])
    reasons = {mutant: explained.reason_for(mutant, is_executed=True) for mutant in mutants}
    found.mutants = len(mutants)
    found.explained.update(reason.kind for reason in reasons.values() if reason is not None)
    have_to_be = [mutant for mutant, reason in reasons.items() if reason is None]
    fates = shared(lambda mutant: _outcome(source, module, mutant.code(source), checks), have_to_be)
    for mutant, fate in zip(have_to_be, fates, strict=True):
        found.seconds += fate.seconds
        found.noticed += not fate.survives
        found.out_of_time += fate.by == "time"
        found.survivors += [mutant] * fate.survives
    return found


def _outcome(source: Source, module: str, code: CodeType, checks: Sequence[str]) -> Fate:
    started = time.perf_counter()
    answer = isolated(lambda: _failing_test(source, module, code, checks))
    by = answer
    if isinstance(answer, Ended):
        by = "time" if answer.signal == "SIGALRM" else "the end of the process"
    return Fate(by, len(checks), time.perf_counter() - started)


def _failing_test(source: Source, module: str, code: CodeType, checks: Sequence[str]) -> str:
    """Return which check fails with another module in the place of one; nothing where all pass."""
    allow_seconds(_SECONDS)
    # Else the module that this process has imported already would be tried.
    forget(import_module(source.package))
    with finding(Finder(source.package, source, {module: code})):
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        tests, skipped = [str(_TESTS / name) for name in checks if name.endswith(".py")], _Skipped()
        ended = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=[skipped])
        if ended != pytest.ExitCode.OK or skipped.tests:
            return f"{ended!s}, skipped: {skipped.tests}"
        topics = [name for name in checks if not name.endswith(".py")]
        return _failing_case(topics) if topics else ""


class _Skipped:
    """Collects the tests that pytest skips: what they check would else go untried."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of a test that was skipped."""
        if report.skipped:
            self.tests.append(report.nodeid)


def _failing_case(topics: Sequence[str]) -> str:
    """Return the first case of some topics that does not hold on NumPy; the suite is imported here."""
    import steps_backends
    from steps_conformance.case import load_cases
    from steps_conformance.execution import execute
    from steps_conformance.outcomes import FAILURES
    from steps_conformance.targets.steps_core import target

    backend = steps_backends.get("numpy")
    of_topics = [case for case in load_cases().values() if case.topic in topics]
    failing = (case.id for case in of_topics if execute(case, backend, target).outcome in FAILURES)
    return next(failing, "")


def main(
    module: Annotated[list[str] | None, typer.Option(help="This module only.")] = None,
    save: Annotated[bool, typer.Option("--write", help="Write the figures, and docs/teeth.md.")] = False,
) -> None:
    """Try the checks of the oracle and of the comparers; exit code 1 where a mutant survives."""
    source, output, scores = source_of("steps_conformance"), console(), list[Score]()
    table = Table("module", "checked by", title="Judges")
    for name in ("mutants", "noticed", "explained", "survivors", "time"):
        table.add_column(name, justify="right")
    for name in module or CHECKED_BY:
        found = score(source, name)
        scores.append(found)
        counts = (found.mutants, found.noticed, sum(found.explained.values()), len(found.survivors))
        table.add_row(name, ", ".join(CHECKED_BY[name]), *map(str, counts), f"{found.seconds:.0f} s")
    output.print(table)
    survivors = [mutant for found in scores for mutant in found.survivors]
    for mutant in survivors:
        output.print(f"survives: {mutant.identity} (line {mutant.line})", markup=False, soft_wrap=True)
    if save:
        write(with_judges(scores, read_data()), list(load_faults().values()), load_explained())
    raise typer.Exit(1 if survivors else 0)


if __name__ == "__main__":
    typer.run(main)

"""The catalogue of planted faults, run: `nox -s teeth`, or `python -m planted` with tests/ on PYTHONPATH."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Annotated

import steps_backends
import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from steps_conformance.case import Case, load_cases

from .catalogue import Fault, load_faults
from .equivalent import KINDS, Elsewhere, load_explained
from .fate import Fate, Score
from .isolated import is_available, isolated
from .judging import Judge, Judgement
from .killing import Patience, Row
from .loading import Source, source_of
from .mutants import Mutant, mutants_of
from .page import data_of, read_data, write
from .scoring import SCOPE, scores
from .showing import console

# NumPy is asked first, as it is the fastest; PyTorch about what NumPy does not notice. JAX compiles all,
# so it is asked about single cases alone, which equivalent.toml names.
FIRST, SECOND = "numpy", "torch"
PATIENT = Patience(least=300.0)

output = console()


def main(
    module: Annotated[
        list[str] | None, typer.Option(help="Mutate this module only, such as numerics.norms.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Mutate every module, try listed mutants too, on further backends.")
    ] = False,
    mutants: Annotated[bool, typer.Option(help="Whether to try mutants beside the catalogue.")] = True,
    save: Annotated[
        bool, typer.Option("--write", help="Write the figures of the suite, and docs/teeth.md.")
    ] = False,
) -> None:
    """Try the suite on wrong implementations; exit code 1 where one survives."""
    if mutants and not is_available:
        raise typer.BadParameter("mutants need os.fork, which this system lacks; pass --no-mutants")
    started = time.perf_counter()
    faults, cases, source = load_faults(), load_cases(), source_of("steps_core")
    judge = Judge(cases)
    with Progress(console=output, transient=True) as progress:
        tracked = progress.track(list(faults.values()), description="faults")
        judgements = [_judged(judge, fault) for fault in tracked]
    output.print(table_of_faults(judgements))
    found: list[Score] = []
    explained = load_explained()
    if mutants:
        modules = module or (sorted(filter(None, source.files)) if every else list(SCOPE))
        all_mutants = [one for name in modules for one in mutants_of(source, name)]
        explained.check_known(all_mutants, modules)
        with Progress(console=output, transient=True) as progress:
            task = progress.add_task("mutants", total=len(all_mutants))
            first = Row(steps_backends.get(FIRST), cases, source)
            found = scores(
                source,
                modules,
                rows(first, cases, source, all_cases=every),
                explained,
                confirm=partial(confirmed, cases, source),
                try_explained=every,
                tried=lambda mutant: progress.advance(task),
            )
        output.print(table_of_scores(found))
    for line in problems(judgements, found):
        output.print(line, markup=False, soft_wrap=True)
    caught = sum(one.is_caught for one in judgements)
    noticed, tried = sum(s.noticed for s in found), sum(s.mutants - sum(s.explained.values()) for s in found)
    output.print(
        f"{caught} of {len(judgements)} planted faults caught, {noticed} of {tried} mutants noticed, "
        f"in {time.perf_counter() - started:.0f} s"
    )
    if save:
        write(data_of(judgements, found, read_data()), list(faults.values()), explained)
    if problems(judgements, found):
        raise typer.Exit(1)


def rows(first: Row, cases: Mapping[str, Case], source: Source, *, all_cases: bool) -> Iterator[Row]:
    """Yield the backends, each with the cases that execute a mutant there.

    Args:
        first: the first of them.
        cases: the cases, by id.
        source: the implementation.
        all_cases: whether the others find out for themselves; else they take the first one's word for it.
    """
    yield first
    yield Row(steps_backends.get(SECOND), cases, source, None if all_cases else first.footprints, PATIENT)


def confirmed(
    cases: Mapping[str, Case], source: Source, where: Elsewhere, mutants: Sequence[Mutant]
) -> Iterator[Fate]:
    """Yield what becomes of mutants on the cases of another backend that are said to notice them."""
    backend = steps_backends.get(where.row)
    import_module(backend.declaration.library)  # Once, and not in every process that tries a mutant.
    named = {identity: cases[identity] for identity in where.cases}
    return Row(backend, named, source, None, PATIENT).try_all(mutants)


def _judged(judge: Judge, fault: Fault) -> Judgement:
    """Judge a fault, in a process of its own where JAX would start threads, which no fork survives."""
    apart = is_available and fault.row.startswith("jax")
    judgement: Judgement = isolated(lambda: judge.judge(fault)) if apart else judge.judge(fault)
    return judgement


def problems(judgements: list[Judgement], found: list[Score]) -> list[str]:
    """Return what makes the build fail, a line each."""
    lines = [
        f"not noticed by any case of {', '.join(one.missed)}: {one.fault.name}; add a case, or name the "
        "requirements that it breaks"
        for one in judgements
        if not one.is_caught
    ]
    for score in found:
        lines += [f"survives: {mutant.identity} (line {mutant.line})" for mutant in score.survivors]
        lines += [
            f"listed in equivalent.toml, but {fate.by} notices it: {mutant.identity}; remove the entry"
            for mutant, fate in score.listed_but_noticed
        ]
    return lines


def table_of_faults(judgements: list[Judgement]) -> Table:
    """Return the kill matrix."""
    table = Table("fault", "requirement", "caught by", "time", title="Planted faults", highlight=False)
    for one in judgements:
        first = True
        for requirement, case in one.noticed_by.items():
            table.add_row(
                one.fault.name if first else "",
                requirement,
                escape(case.partition("/")[2]) if case else "[bold red]no case[/]",
                f"{one.seconds:.2f} s" if first else "",
            )
            first = False
    return table


def table_of_scores(found: list[Score]) -> Table:
    """Return the mutation score by module."""
    table = Table("module", title="Mutants")
    for name in ("mutants", "noticed", "by time", *KINDS, "survivors", "score", "time"):
        table.add_column(name, justify="right")
    for score in found:
        kinds = [str(score.explained[kind]) for kind in KINDS]
        counts = [str(score.mutants), str(score.noticed), str(score.out_of_time), *kinds]
        table.add_row(
            score.module,
            *counts,
            str(len(score.survivors)),
            f"{score.percent:.1f} %",
            f"{score.seconds:.0f} s",
        )
    return table


if __name__ == "__main__":
    typer.run(main)

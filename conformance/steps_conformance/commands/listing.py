"""The commands that show what there is: `list` and `backends`."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Annotated

import steps_backends
import typer

from ..console import backends_table, coverage_table, requirements_table
from ..coverage import Coverage, coverage, shipped_capabilities, shipped_declarations
from ..runner import look_at_backend
from .choosing import chosen, load_suite
from .options import JOBS, Topics
from .terminal import errors, output, stop


def list_command(
    topic: Topics = None,
    show_cases: Annotated[bool, typer.Option("--cases", help="The ids of the cases, one a line.")] = False,
    show_coverage: Annotated[
        bool, typer.Option("--coverage", help="How far requirements and cases cover each other, in percent.")
    ] = False,
) -> None:
    """Show the requirements and their cases; exit code 1 where one lacks the other, or a case never runs."""
    if show_cases and show_coverage:
        raise stop("--cases and --coverage exclude each other; pass one of them")
    requirements, cases = load_suite(exit_code=1)
    found = coverage(requirements, cases, shipped_declarations(), shipped_capabilities())
    shown = chosen(cases, topic or (), ())
    if show_cases:
        for identity in shown:
            output.print(identity, markup=False, soft_wrap=True)
    elif show_coverage:
        kept = tuple(one for one in found.topics if not topic or one.topic in topic)
        output.print(coverage_table(replace(found, topics=kept)))
    else:
        rules = [rule for rule in requirements.values() if not topic or rule.topic in topic]
        output.print(requirements_table(rules, Counter(case.requirement for case in shown.values())))
    output.print(f"{len(requirements)} requirements, {len(cases)} cases")
    for line in _missing(found):
        errors.print(line, style="red", markup=False, soft_wrap=True)
    raise typer.Exit(0 if found.complete else 1)


def _missing(found: Coverage) -> Iterator[str]:
    for identity, why in found.requirements_without_case.items():
        yield f"{identity} {why}"
    for identity in found.cases_without_requirement:
        yield f"{identity} shows no requirement that is written down"
    for identity, why in found.dead_cases.items():
        yield f"{identity} can never run: {why}"


def backends_command() -> None:
    """Show every backend, whether it can run here, and why not."""
    with ThreadPoolExecutor(max_workers=JOBS) as pool:
        facts = list(pool.map(look_at_backend, steps_backends.names()))
    output.print(backends_table(facts))

"""The command `random`."""

import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from steps_backends import Backend

from ..outcomes import FAILURES
from ..random_lane.properties import PROPERTIES, Property
from ..random_lane.searching import Finding, file_of, rounds, search
from ..targets.host_row import HOST
from ..targets.protocol import Target as TargetProtocol
from ..vectors.replaying import replayed
from .here import backends_here, target_here
from .options import TARGET, Backends, Target
from .report_folder import make_folder
from .terminal import NO_VERDICT, errors, output, stop

_FOUND = 1


def random_command(
    backend: Backends = None,
    target: Target = TARGET,
    names: Annotated[
        list[str] | None, typer.Option("--property", help="Only this property; may be given several times.")
    ] = None,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=0, help="How long to go on on each backend, after a first round."),
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed tries the same examples.")] = 0,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Folder for what is found: vectors that replay on any target."),
    ] = None,
) -> None:
    """Search at random for inputs on which a target is wrong; the verdict of `run` does not depend on it.

    Exit code: 0 nothing was found; 1 something was; 2 it could not be searched, because a backend that was
    named does not run, the target did not start, or it offers none of the steps.
    """
    wanted = _chosen(names or ())
    if save is not None:
        make_folder("--save", save)
    subject = target_here(target)
    searched = found = 0
    for name, row in backends_here(target, backend or ()):
        lacking: set[str] = set()
        for number in rounds(seed, seconds):
            for one in wanted:
                if one.name in lacking:
                    continue
                made = search(one, row, subject, number=number)
                if not made.ran:
                    lacking.add(one.name)
                    output.print(f"{name}: {one.name}: not searched: {made.lacking}", markup=False)
                    continue
                searched += 1
                if made.finding is None:
                    output.print(f"{name}: {one.name}: nothing found, {made.ran} examples, seed {number}")
                    continue
                found += 1
                _show(name, made.finding, number)
                replay = [*(() if name == HOST else ("--backend", name)), "--target", target]
                _keep(made.finding, row, subject, save, replay)
            if found:
                # what is found once is found in every round
                break
    if not searched:
        errors.print("nothing was searched", style="red")
        raise typer.Exit(NO_VERDICT)
    raise typer.Exit(_FOUND if found else 0)


def _chosen(names: list[str] | tuple[str, ...]) -> list[Property]:
    for name in names:
        if name not in PROPERTIES:
            near = get_close_matches(name, PROPERTIES, n=3) or list(PROPERTIES)
            raise stop(f"no property is called {name!r}; there are {', '.join(near)}")
    return [one for one in PROPERTIES.values() if not names or one.name in names]


def _show(row: str, finding: Finding, number: int) -> None:
    head = f"{row}: {finding.name}: FOUND with seed {number}, {finding.vector.requirement}"
    output.print(head, style="bold red", markup=False, soft_wrap=True)
    output.print(f"{finding.result.outcome}: {finding.result.message}", markup=False, soft_wrap=True)
    output.print(f"step: {finding.vector.step}", markup=False, soft_wrap=True)


def _keep(
    finding: Finding, row: Backend, target: TargetProtocol, folder: Path | None, where: list[str]
) -> None:
    """Write the vectors, and say whether they alone show it: of a relation between calls they may not."""
    alone = [
        one for one in (finding.vector, *finding.related) if replayed(one, row, target).outcome in FAILURES
    ]
    if folder is None:
        output.print("`--save DIR` writes it as vectors that replay")
        return
    name, text = file_of(finding)
    (folder / name).write_text(text, encoding="utf-8", newline="\n")
    replay = shlex.join(["steps-conformance", "vectors", "--play", str(folder / name), *where])
    output.print(f"replay: {replay}", markup=False, soft_wrap=True)
    if not alone:
        output.print(f"the vectors alone pass: `random --property {finding.name}` shows it", markup=False)

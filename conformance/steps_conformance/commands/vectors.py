"""The command `vectors`."""

from pathlib import Path
from typing import Annotated

import typer

from ..outcomes import FAILURES, Outcome
from ..vectors.files import differing_files, files_in, write_files
from ..vectors.model import MalformedVectorsError, load_vectors, read_vectors
from ..vectors.replaying import replayed
from .here import backends_here, target_here
from .options import TARGET, Backends, Target
from .terminal import NO_VERDICT, errors, output, stop


def vectors_command(
    check: Annotated[
        bool, typer.Option("--check", help="Make them again and compare byte for byte.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Replace the files with what is made.")] = False,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--play",
            help="Play the vectors of this file or folder on a target, on each backend.",
        ),
    ] = None,
    backend: Backends = None,
    target: Target = TARGET,
) -> None:
    """Show the files of vectors; with --check exit code 1 where one is not what the oracle makes today.

    With --play: exit code 0 all hold, 1 one does not, 2 none could be played.
    """
    if check + write + bool(files) > 1:
        raise stop("--check, --write and --play exclude each other; pass one of them")
    if not files and (backend or target != TARGET):
        raise stop("--backend and --target go with --play FILE or --play FOLDER")
    if files:
        _play(files, backend or [], target)
    if write:
        output.print(f"written: {', '.join(write_files()) or 'nothing, all files are as made'}")
        return
    for topic, listed in load_vectors().items():
        output.print(f"{topic}.json: {len(listed)} vectors", highlight=False)
    if not check:
        return
    differing = differing_files()
    for name in differing:
        errors.print(f"{name} is not what is made today; run `vectors --write`", style="red", markup=False)
    if not differing:
        output.print("all files are what is made today, byte for byte")
    raise typer.Exit(1 if differing else 0)


def _play(files: list[Path], backends: list[str], reference: str) -> None:
    """Play vectors, and end the command."""
    for place in files:
        if not files_in(place):
            raise stop(
                f"--play must name a file of vectors or a folder with some, and {place} has no .json file"
            )
    try:
        vectors = [vector for place in files for file in files_in(place) for vector in read_vectors(file)]
    except MalformedVectorsError as error:
        raise stop(str(error)) from None
    target = target_here(reference)
    outcomes = []
    for name, row in backends_here(reference, backends):
        for vector in vectors:
            result = replayed(vector, row, target)
            outcomes.append(result.outcome)
            text = f"{name}: {vector.id}: {result.outcome}  {result.message}".rstrip()
            output.print(text, markup=False, soft_wrap=True)
    if FAILURES.intersection(outcomes):
        raise typer.Exit(1)
    raise typer.Exit(0 if Outcome.PASS in outcomes else NO_VERDICT)

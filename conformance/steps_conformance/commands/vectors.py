"""The command `vectors`."""

from typing import Annotated

import typer

from ..vectors.files import differing_files, write_files
from ..vectors.model import load_vectors
from .terminal import errors, output, stop


def vectors_command(
    check: Annotated[
        bool, typer.Option("--check", help="Make them again and compare byte for byte.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Replace the files with what is made.")] = False,
) -> None:
    """Show the files of vectors; with --check exit code 1 where one is not what the oracle makes today."""
    if check and write:
        raise stop("--check and --write exclude each other; pass one of them")
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

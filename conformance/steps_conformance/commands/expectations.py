"""The command `expectations update`."""

from pathlib import Path
from typing import Annotated

import typer

from ..expectations.files import ExpectationError
from ..expectations.rewriting import updated
from .choosing import load_suite
from .report_folder import read_whole
from .terminal import output, stop


def update_command(
    file: Annotated[Path, typer.Argument(help="The expectation file; made where there is none.")],
    report: Annotated[Path, typer.Option("--report", help="The folder or report.jsonl of a run.")],
) -> None:
    """Bring an expectation file up to date with a report; its comments are kept.

    Entries that pass now are removed or narrowed to the backends where they hold, and new failures are added
    with the reason "TODO: say why". `run` refuses a file with such a reason.
    """
    found = read_whole(report)
    _, suite = load_suite()
    try:
        update = updated(file, found, suite)
    except ExpectationError as error:
        raise stop(str(error)) from None
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    part.write_text(update.text, encoding="utf-8", newline="")
    part.replace(file)
    for word, ids in (
        ("removed", update.removed),
        ("narrowed", update.narrowed),
        ("added, say why", update.added),
    ):
        for identity in ids:
            output.print(f"{word}: {identity}", markup=False, soft_wrap=True)
    if not (update.removed or update.narrowed or update.added):
        output.print("nothing to change")

"""The command `report merge`."""

from pathlib import Path
from typing import Annotated

import typer

from ..console import summary
from ..reports import jsonl
from ..reports.merging import MergeError, merge
from ..reports.verdict import judge
from .report_folder import LINES, lines_of, make_folder, read_whole, write_readable
from .terminal import output, stop


def merge_command(
    out: Annotated[Path, typer.Argument(help="The folder of the merged report; made where there is none.")],
    reports: Annotated[list[Path], typer.Argument(help="Folders of reports, or their report.jsonl.")],
) -> None:
    """Make one report of several, of one target and suite: of different backends, or of shares of the cases.

    Exit code: that of the merged report's verdict, as of `run`; 2 also where a report is truncated, or two
    contradict each other, and then nothing is written.
    """
    if (out / LINES).exists():
        raise stop(
            f"OUT must hold no report, and {out} holds {LINES}, which would be lost; the first argument is "
            "where the result goes: name a new folder, and then the reports"
        )
    files = [lines_of(place) for place in reports]
    found = [(str(file), read_whole(file)) for file in files]
    try:
        merged = merge(found)
    except MergeError as error:
        raise stop(str(error)) from None
    verdict = judge(merged)
    make_folder("OUT, where the result goes,", out)
    jsonl.write(merged, out / LINES)
    write_readable(merged, verdict, out)
    output.print(summary(merged, verdict, out))
    raise typer.Exit(verdict.exit_code)

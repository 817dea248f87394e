"""The command `report render`."""

from pathlib import Path
from typing import Annotated

import typer

from ..reports.verdict import judge
from .options import GithubSummary, Summary
from .report_folder import append_summary, lines_of, read_report, summary_files, unfinished, write_readable
from .terminal import NO_VERDICT, errors, stop


def render_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a report.jsonl.")],
    summary_file: Summary = None,
    github_summary: GithubSummary = False,
) -> None:
    """Make every readable form of a report again: report.html, report.md, report.xml and badge.json.

    Exit code: 0 they are written, whatever the verdict is; 2 there is no readable report.jsonl, or it is
    truncated. A truncated one is rendered too, and every form says so.
    """
    if folder.exists() and not folder.is_dir():
        raise stop(f"DIR must be the folder of a report, and {folder} is a file; pass {folder.parent}")
    summaries = summary_files(summary_file, github=github_summary)
    found = read_report(folder)
    verdict = judge(found)
    write_readable(found, verdict, folder)
    append_summary(found, verdict, summaries)
    if not found.complete:
        errors.print(unfinished(lines_of(folder)), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(NO_VERDICT)

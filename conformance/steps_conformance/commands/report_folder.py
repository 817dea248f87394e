"""The folder of a report: report.jsonl, and the readable forms beside it."""

from pathlib import Path

from ..reports import html, jsonl, markdown
from ..reports.model import Report
from ..reports.verdict import Verdict
from .terminal import output, stop

LINES = "report.jsonl"


def read_whole(file: Path) -> Report:
    """Return the report in a file, which must be whole."""
    try:
        found = jsonl.read(file)
    except (OSError, jsonl.MalformedReportError) as error:
        raise stop(str(error)) from None
    if not found.complete:
        raise stop(f"{file} has no footer: its run did not come to its end; run the suite again")
    return found


def write_readable(report: Report, verdict: Verdict, folder: Path) -> None:
    """Write what people read."""
    (folder / "report.md").write_text(markdown.render(report, verdict), encoding="utf-8")
    (folder / "report.html").write_text(html.render(report, verdict), encoding="utf-8")
    output.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)

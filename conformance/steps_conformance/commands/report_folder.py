"""The folder of a report: report.jsonl, and the readable forms beside it."""

import os
import tempfile
from pathlib import Path

from ..reports import jsonl, markdown
from ..reports.forms import write_forms
from ..reports.model import Report
from ..reports.verdict import Verdict
from .terminal import output, stop

LINES = "report.jsonl"
_GITHUB_SUMMARY = "GITHUB_STEP_SUMMARY"


def lines_of(place: Path) -> Path:
    """Return the file of a report, which a user names by its folder or itself."""
    return place / LINES if place.is_dir() else place


def make_folder(argument: str, place: Path) -> None:
    """Make a folder to write to where there is none; the command ends where it cannot be one."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        # asked now, as a run takes its time
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise stop(
            f"{argument} must be a folder that can be written to, got {place}: {error.strerror}; name another"
        ) from None


def read_report(place: Path) -> Report:
    """Return the report that a user names by its folder or file; it may be truncated."""
    file = lines_of(place)
    try:
        return jsonl.read(file)
    except FileNotFoundError:
        raise stop(
            f"there is no report at {file}; name a folder that `run --report DIR` wrote, or the {LINES} in it"
        ) from None
    except OSError as error:
        raise stop(f"{file} cannot be read: {error.strerror}") from None
    except jsonl.MalformedReportError as error:
        raise stop(str(error)) from None


def read_whole(place: Path) -> Report:
    """Return the report that a user names by its folder or file, and which must be whole."""
    found = read_report(place)
    if not found.complete:
        raise stop(unfinished(lines_of(place)))
    return found


def unfinished(file: Path) -> str:
    """Return what is to be said of a report that is not whole."""
    return (
        f"{file} has no footer: its run did not come to its end; go on with it by the command that began it, "
        f"with --resume {file.parent} in the place of --report"
    )


def write_readable(report: Report, verdict: Verdict, folder: Path) -> None:
    """Write what people and CI systems read."""
    write_forms(report, verdict, folder)
    output.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)


def summary_files(summary: Path | None, *, github: bool) -> list[Path]:
    """Return the files into which the Markdown goes; a way that leads nowhere ends the command."""
    files = [] if summary is None else [summary]
    if github:
        named = os.environ.get(_GITHUB_SUMMARY)
        if not named:
            raise stop(
                f"--github-summary writes to the file that {_GITHUB_SUMMARY} names, and it is not set; "
                "outside of GitHub Actions pass --summary FILE"
            )
        files.append(Path(named))
    for file in files:
        try:
            # asked now, as a run takes its time; nothing is written yet
            file.open("a").close()
        except OSError as error:
            raise stop(f"the summary {file} cannot be written: {error.strerror}") from None
    return files


def append_summary(report: Report, verdict: Verdict, files: list[Path]) -> None:
    """Add the Markdown to files; a job summary may hold what earlier steps wrote."""
    for file in files:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(markdown.render(report, verdict))

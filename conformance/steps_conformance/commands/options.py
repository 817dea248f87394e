"""The options that commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer

TARGET = "steps_conformance.targets.steps_core:target"
JOBS = min(os.cpu_count() or 1, 4)

Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend", help="A row of `backends`, or module:attribute; `all` for every row that can run."
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        help="What to test: module:attribute of a target, path:DIR for a copy of the package, or a command "
        "such as 'node clip_target.js' that speaks docs/target-protocol.md.",
    ),
]
Topics = Annotated[list[str] | None, typer.Option("--topic", help="Only the cases of this topic.")]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", help="Only this case or this requirement; CLIP-* for all that start so."),
]
ReportFolder = Annotated[
    Path | None, typer.Option("--report", help="Folder for report.jsonl and its readable forms.")
]
Summary = Annotated[Path | None, typer.Option("--summary", help="A file to which the Markdown is added.")]
GithubSummary = Annotated[
    bool,
    typer.Option("--github-summary", help="Add the Markdown to the summary of this job of GitHub Actions."),
]
Expectations = Annotated[
    list[Path] | None,
    typer.Option("--expectations", help="A TOML file of known deviations; may be given several times."),
]
Largest = Annotated[int, typer.Option("--largest", min=1, help="The largest size of inputs of --accuracy.")]
Strict = Annotated[bool, typer.Option("--strict", help="A SHOULD counts like a MUST.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="How many backends run at a time.")]
CaseSeconds = Annotated[float, typer.Option("--case-seconds", min=0.1, help="Time limit of one case.")]
MemoryLimit = Annotated[
    int | None,
    typer.Option("--memory-limit", min=64, help="MiB that a backend's process may hold; Linux only."),
]
Resume = Annotated[
    Path | None,
    typer.Option("--resume", help="Folder of a report that broke off; what it lacks is run and added to it."),
]
Restarts = Annotated[
    int,
    typer.Option("--restarts", min=0, help="How often a backend's process, or a command's, is restarted."),
]

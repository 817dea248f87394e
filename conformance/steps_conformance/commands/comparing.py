"""The command `report diff`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from ..reports.diffing import CannotCompareError, Change, Diff, Kind, diff
from ..reports.model import Report
from ..reports.showing import shown, shown_text
from .report_folder import read_whole
from .terminal import output, stop

_SHOWN = 50
_STYLES = {Kind.NEWLY_FAILING: "bold red", Kind.NEWLY_PASSING: "green"}


def diff_command(
    old: Annotated[Path, typer.Argument(help="The folder or report.jsonl of the older report.")],
    new: Annotated[Path, typer.Argument(help="The newer one.")],
    as_json: Annotated[bool, typer.Option("--json", help="All changes as JSON.")] = False,
) -> None:
    """Show what changed from one report to another, by case id and backend.

    Exit code: 0 nothing is worse; 1 a case fails that did not, or a pass is not seen again; 2 the reports
    cannot be compared.
    """
    reports = [read_whole(place) for place in (old, new)]
    try:
        found = diff(*reports)
    except CannotCompareError as error:
        raise stop(str(error)) from None
    if as_json:
        # plain, without folding of lines; two number signs could begin a command of a CI system
        typer.echo(json.dumps(_as_json(reports, found), indent=1).replace("##", r"\u0023#"))
    else:
        _print(reports, found)
    raise typer.Exit(1 if found.worse else 0)


def _as_json(reports: list[Report], found: Diff) -> dict[str, Any]:
    sides = [
        {"suite": report.header.suite, "started": report.header.started, "target": _target(report)}
        for report in reports
    ]
    changes = {
        kind.replace(" ", "_"): [
            {key: value for key, value in asdict(change).items() if key != "kind"}
            for change in found.of(kind)
        ]
        for kind in Kind
    }
    return {
        "schema": 1,
        "old": sides[0],
        "new": sides[1],
        "worse": found.worse,
        "same": found.same,
        **changes,
    }


def _target(report: Report) -> dict[str, str]:
    target = report.header.target
    return {"name": target.name, "version": target.version, "hash": target.hash}


def _print(reports: list[Report], found: Diff) -> None:
    for word, report in zip(("old", "new"), reports, strict=True):
        target, header = report.header.target, report.header
        line = f"{word}: {target.name} {target.version}, sha256 {target.hash[:12]}, suite {header.suite}"
        output.print(shown_text(f"{line}, {header.started}"), style="dim", markup=False, soft_wrap=True)
    for kind in Kind:
        # what is worse comes first, and is not cut off
        changes = tuple(sorted(found.of(kind), key=lambda change: not change.worse))
        if changes:
            output.print(_table(kind, changes))
        if len(changes) > _SHOWN:
            output.print(f"{len(changes) - _SHOWN:,} more of {len(changes):,}; --json writes them all")
    counts = ", ".join(f"{len(found.of(kind)):,} {kind}" for kind in Kind if found.of(kind))
    output.print(f"{counts or 'no change'}; {found.same:,} as before", soft_wrap=True)
    worse = sum(change.worse for change in found.changes)
    told = f"something is worse: {worse:,} in red" if worse else "nothing is worse"
    output.print(told, style="bold red" if found.worse else "bold green")


def _table(kind: Kind, changes: tuple[Change, ...]) -> Table:
    table = Table(
        title=Text(kind, style=_STYLES.get(kind, "bold")), title_justify="left", box=None, pad_edge=False
    )
    for column in ("backend", "case", "level", "was", "is"):
        table.add_column(column, overflow="fold")
    for change in shown(changes[:_SHOWN]):
        style = "red" if change.worse else ""
        cells = (change.row, change.id, change.level, change.old or "", change.new or "")
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return table

"""The table of what was measured: a line for each measure, a column for each backend."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.table import Table

from ..markdown_text import plain
from .results import Row


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the backends in the order in which they were measured."""
    return list(dict.fromkeys(row.backend for row in rows))


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Return the cells: requirement, what, dtype, size, and the ulps on each backend."""
    return _lines(_ordered(rows), columns(rows))


def _ordered(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one thing that is measured together, by dtype and size."""
    things = list(dict.fromkeys((row.requirement, row.name) for row in rows))
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    return sorted(
        rows, key=lambda row: (things.index((row.requirement, row.name)), dtypes.index(row.dtype), row.size)
    )


def _lines(rows: Sequence[Row], backends: Sequence[str]) -> list[list[str]]:
    cells: dict[tuple[str, str, str, int], dict[str, str]] = {}
    for row in rows:
        ulps = "-" if row.ulps is None else f"{row.ulps:.2f}"
        cells.setdefault((row.requirement, row.name, row.dtype, row.size), {})[row.backend] = ulps
    return [
        [requirement, name, dtype, f"{size:,}", *(found.get(backend, "") for backend in backends)]
        for (requirement, name, dtype, size), found in cells.items()
    ]


@dataclass(frozen=True)
class Group:
    """The lines of one thing that is measured.

    Attributes:
        requirement: the requirement whose tolerance it backs.
        name: what is measured, in words.
        lines: dtype, size, and the ulps on each backend, where there is a number on any.
        reasons: why there are no others.
    """

    requirement: str
    name: str
    lines: list[list[str]]
    reasons: list[str]


def groups(rows: Sequence[Row]) -> list[Group]:
    """Return the lines of each thing that is measured together, in order of dtype and size."""
    found = []
    for (requirement, name), together in groupby(_ordered(rows), lambda row: (row.requirement, row.name)):
        own = list(together)
        measured = {(row.dtype, row.size) for row in own if row.ulps is not None}
        kept = [row for row in own if (row.dtype, row.size) in measured]
        reasons = list(dict.fromkeys(row.reason for row in own if row.ulps is None))
        found.append(Group(requirement, name, [line[2:] for line in _lines(kept, columns(rows))], reasons))
    return found


def rich_table(rows: Sequence[Row]) -> Table:
    """Return the table for a terminal."""
    table = Table(title="largest error in ulps", box=None, pad_edge=False)
    for heading in ("requirement", "what", "dtype"):
        table.add_column(heading)
    for heading in ("size", *columns(rows)):
        table.add_column(heading, justify="right")
    for line in lines(rows):
        table.add_row(*line)
    return table


def markdown_table(rows: Sequence[Row]) -> str:
    """Return the table as a section of Markdown."""
    headings = ["requirement", "what", "dtype", "size", *columns(rows)]
    rule = ["---"] * 3 + ["---:"] * (len(headings) - 3)
    cells = [[plain(cell) for cell in line] for line in (headings, *lines(rows))]
    body = [f"| {' | '.join(line)} |" for line in (cells[0], rule, *cells[1:])]
    intro = "Largest error in ulps of the dtype, against the oracle, over seeded inputs. `-`: not measured."
    return "\n".join(["## Accuracy", "", intro, "", *body, ""])

"""The table of what was measured: a line for each measure, a column for each backend."""

from collections.abc import Sequence

from rich.table import Table

from ..markdown_text import plain
from .results import Row


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the backends in the order in which they were measured."""
    return list(dict.fromkeys(row.backend for row in rows))


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Return the cells: requirement, what, dtype, size, and the ulps on each backend."""
    cells: dict[tuple[str, str, str, int], dict[str, str]] = {}
    for row in rows:
        ulps = "-" if row.ulps is None else f"{row.ulps:.2f}"
        cells.setdefault((row.requirement, row.name, row.dtype, row.size), {})[row.backend] = ulps
    return [
        [requirement, name, dtype, f"{size:,}", *(found.get(backend, "") for backend in columns(rows))]
        for (requirement, name, dtype, size), found in cells.items()
    ]


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

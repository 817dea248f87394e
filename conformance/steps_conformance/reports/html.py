"""The report as one HTML file that needs no network."""

from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, StrictUndefined

from ..accuracy import table
from ..outcomes import MEANINGS
from .model import Report
from .tables import (
    declared_allowances,
    deviations,
    failures,
    matrix,
    outcomes_seen,
    row_summaries,
    rows_that_ran,
    slowest,
)
from .verdict import Verdict


def render(report: Report, verdict: Verdict) -> str:
    """Return the report as HTML; whatever a target or backend said is escaped."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        report=report,
        header=report.header,
        verdict=verdict,
        outcomes=outcomes_seen(report),
        meanings=MEANINGS,
        rows=row_summaries(report),
        columns=rows_that_ran(report),
        topics=list(matrix(report)),
        failures=[(rule, list(found)) for rule, found in groupby(failures(report), lambda f: f.requirement)],
        slowest=slowest(report),
        deviations=deviations(report),
        allowances=declared_allowances(report),
        accuracy_columns=table.columns(report.accuracy),
        accuracy_groups=table.groups(report.accuracy),
    )

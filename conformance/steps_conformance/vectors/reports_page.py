"""The page that lists public reports about other libraries, and what shows each of them here."""

import re

from .coverage_page import table
from .reports import Answered, load_probes, load_reports

_INTRO = """# Reports about other libraries, and what answers them here

Made from `reports.toml` beside the vectors by `python -m steps_conformance.vectors.pages docs`.

People who train models have reported these faults of gradient clipping and optimizers in public. What stands
under "shown by" is an input that replays: `steps-conformance run --id ID` runs it on this implementation, and
with `--target` on yours. A name with `::` is a test of this project, for what is not values in and out.
The texts are our own; the threads are named so that you can read what was said there.
"""
_THREAD = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)")


def reports_page() -> str:
    """Return the text of the page."""
    reports, probes = load_reports(), load_probes()
    outside = sum(bool(report.outside) for report in reports)
    heads = ["", "threads", "what went wrong", "what is right", "shown by"]
    rows = [
        [report.label, "<br>".join(map(_linked, report.threads)), report.about, report.right, _shown(report)]
        for report in reports
    ]
    parts = (
        _INTRO,
        f"## {len(reports)} reports, {outside} of them outside of what a step does\n",
        table(heads, rows),
        "## The same inputs on five libraries\n",
        "Tried on the global clips of PyTorch, Optax, Keras and MLX, and on the layer clip of Keras.\n",
        table(
            ["input", "what they made of it", "shown by"],
            ([probe.label, probe.about, _shown(probe)] for probe in probes),
        ),
    )
    return "\n".join(parts)


def _shown(answered: Answered) -> str:
    if answered.outside:
        return f"Outside: {answered.outside}"
    return "<br>".join(f"`{name}`" for name in (*answered.shown, *answered.tests))


def _linked(thread: str) -> str:
    match = _THREAD.fullmatch(thread)
    return (
        f"[{thread}](https://github.com/{match['repository']}/issues/{match['number']})" if match else thread
    )

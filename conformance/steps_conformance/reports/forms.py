"""Every readable form of a report, by the name of its file."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from . import badge, html, junit, markdown
from .model import Report
from .verdict import Verdict

FORMS: Mapping[str, Callable[[Report, Verdict], str]] = MappingProxyType(
    {
        "report.md": markdown.render,
        "report.html": html.render,
        "report.xml": junit.render,
        "badge.json": badge.render,
    }
)


def write_forms(report: Report, verdict: Verdict, folder: Path) -> None:
    """Write every form into a folder; one that cannot be made leaves all of them as they were."""
    texts = {name: render(report, verdict) for name, render in FORMS.items()}
    for name, text in texts.items():
        part = folder / f"{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(folder / name)

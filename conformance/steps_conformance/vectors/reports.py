"""The public reports that the suite answers, read from ``reports.toml``."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from .model import Vector

NUMBERS = range(1, 59)
"""The numbers of the reports in the survey."""

PROBES = 22
"""How many inputs were tried on five libraries."""


@dataclass(frozen=True)
class Answered:
    """A report or a probe, and what answers it.

    Attributes:
        label: the number of a report, or the input of a probe.
        threads: the public threads of a report.
        about: what went wrong elsewhere.
        right: what must happen; empty for a probe, whose vectors say it.
        shown: ids of vectors and cases.
        tests: tests of this project, ``file::function``.
        outside: why nothing here shows it; empty where something does.
    """

    label: str
    threads: tuple[str, ...]
    about: str
    right: str
    shown: tuple[str, ...]
    tests: tuple[str, ...]
    outside: str


def load_reports() -> list[Answered]:
    """Return the reports, in the order of their numbers."""
    return [
        _answered(entry, str(entry["number"]), entry["about"], entry["right"])
        for entry in _content()["report"]
    ]


def load_probes() -> list[Answered]:
    """Return the probes, in the order of the survey."""
    return [_answered(entry, entry["input"], entry["went"], "") for entry in _content()["probe"]]


def with_sources(vectors: Iterable[Vector]) -> list[Vector]:
    """Return the vectors, each with the first thread of every report that it answers among its sources."""
    threads: dict[str, list[str]] = {}
    for report in load_reports():
        for identity in report.shown:
            threads.setdefault(identity, []).append(report.threads[0])
    return [_sourced(vector, threads.get(vector.id, [])) for vector in vectors]


def _sourced(vector: Vector, threads: list[str]) -> Vector:
    own = [vector.source] if vector.source else []
    return replace(vector, source=", ".join(dict.fromkeys([*own, *threads])))


def _content() -> Any:
    return tomllib.loads((resources.files(__package__) / "reports.toml").read_text(encoding="utf-8"))


def _answered(entry: Any, label: str, about: str, right: str) -> Answered:
    def texts(key: str) -> tuple[str, ...]:
        return tuple(entry.get(key, ()))

    found = Answered(
        label, texts("threads"), about, right, texts("shown"), texts("tests"), entry.get("outside", "")
    )
    if bool(found.outside) == bool(found.shown or found.tests):
        raise ValueError(
            f"report {label} needs either shown or tests, or else outside, got shown {found.shown}, "
            f"tests {found.tests}, outside {found.outside!r}"
        )
    return found

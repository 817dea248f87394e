"""The page that shows which kinds of input the vectors have."""

from collections.abc import Iterable, Sequence

from .coverage import ABSENT, KINDS, SUBJECTS, counts, runs
from .model import load_vectors

_INTRO = """# Kinds of input in the vectors

Made from the vector files by `python -m steps_conformance.vectors.pages docs`; a test fails when one is lost.

A cell says how many vectors of that step have that kind of input. `-`: none, for a reason given below.
An empty cell: the kind makes no sense there. "At each place" is the first, a middle and the last element,
and the first and the last leaf. Ranks, dtypes and places count only where a step has all of them.
"""


def coverage_page() -> str:
    """Return the text of the page."""
    vectors = [vector for listed in load_vectors().values() for vector in listed]
    found = counts(vectors)
    heads = ["kind of input", *(name.removesuffix("Step") for name in SUBJECTS)]
    rows = [[kind.name, *(_cell(found, kind.name, name) for name in SUBJECTS)] for kind in KINDS]
    long_rows = [
        [name, option, str(long), str(given)] for (name, option), (long, given) in runs(vectors).items()
    ]
    reasons = [
        f"- {kind}: {reason} ({', '.join(name for name, why in names.items() if why == reason)})"
        for kind, names in ABSENT.items()
        for reason in dict.fromkeys(names.values())
    ]
    parts = (
        _INTRO,
        table(heads, rows),
        "## What is not there, and why\n",
        "\n".join(reasons) + "\n",
        "## Steps that remember\n",
        table(["step", "with", "runs of 50 calls", "runs from a given state"], long_rows),
        f"{len(vectors):,} vectors in all.\n",
    )
    return "\n".join(parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(found: dict[tuple[str, str], int], kind: str, name: str) -> str:
    if name in ABSENT.get(kind, {}):
        return "-"
    return str(found[kind, name]) if (kind, name) in found else ""

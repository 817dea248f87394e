"""Pages that are made from the vectors: ``python -m steps_conformance.vectors.pages docs`` writes them."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from .coverage_page import coverage_page
from .reports_page import reports_page

PAGES: Mapping[str, Callable[[], str]] = {
    "kinds-of-input.md": coverage_page,
    "reports-of-peers.md": reports_page,
}
"""The name of each page, and what makes its text."""


def main(folder: str) -> None:
    """Write every page into a folder."""
    for name, page in PAGES.items():
        (Path(folder) / name).write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("give the folder of the pages: python -m steps_conformance.vectors.pages docs")
    main(sys.argv[1])

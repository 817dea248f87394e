"""constraints.txt pins everything that the extras bring, so a run can be repeated."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LINES = [
    line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")
]
PINS = {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in LINES)}


def needed(name: str, extras: tuple[str, ...], seen: set[tuple[str, str]]) -> set[str]:
    """Return the names of all distributions that a distribution with these extras brings here."""
    found: set[str] = set()
    for text in requires(name) or []:
        requirement = Requirement(text)
        wanted = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        )
        key = (canonicalize_name(requirement.name), ",".join(sorted(requirement.extras)))
        if wanted and key not in seen:
            seen.add(key)
            found.add(key[0])
            try:
                found |= needed(key[0], tuple(requirement.extras), seen)
            except PackageNotFoundError:
                continue  # an extra that is not installed here
    return found - {"steps-core"}


def test_every_line_pins_one_version_in_order():
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in LINES)
    assert list(PINS) == sorted(PINS)
    assert len(PINS) == len(LINES)


def test_everything_that_the_tests_bring_is_pinned():
    names = needed("steps-core", ("test", "lint"), set())

    assert {"torch", "jax", "numpy", "array-api-strict", "pytest", "mypy"} <= names
    assert names - PINS.keys() == set()

"""What the unit tests share: each test that takes `library` runs once on every array library."""

import sys
from pathlib import Path
from typing import Any

import pytest

# pytest imports test files by path; the modules beside this file are imported by name.
sys.path.insert(0, str(Path(__file__).parent))

from libraries import KINDS, NAMES, Library


@pytest.fixture(params=NAMES)
def library(request: Any) -> Library:
    """An array library; one that is not installed is skipped, and says so."""
    pytest.importorskip(request.param)
    return Library(request.param)


@pytest.fixture(params=KINDS, ids="-".join)
def kind(request: Any) -> tuple[Library, str]:
    """An array library and one of its dtypes."""
    name, dtype = request.param
    pytest.importorskip(name)
    return Library(name), dtype


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Run the tests on JAX first, and in one process: it compiles each operation once a process."""
    items.sort(key=lambda item: "jax" not in item.name)
    for item in items:
        if "jax" in item.name:
            item.add_marker(pytest.mark.xdist_group("jax"))

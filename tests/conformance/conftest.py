"""The planted suite, importable here and in the worker processes that tests start."""

import importlib
import os
from pathlib import Path

import pytest

PLANTED = Path(__file__).parent / "planted"


@pytest.fixture
def planted(monkeypatch):
    """The module of the planted targets, with the planted suite on the path."""
    monkeypatch.syspath_prepend(PLANTED)
    inherited = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PLANTED), *filter(None, [inherited])]))
    return importlib.import_module("planted_suite.targets")

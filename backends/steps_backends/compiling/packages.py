"""The package that a step comes from: steps_core, or a copy of it under another name."""

from importlib import import_module
from types import ModuleType
from typing import Any

_CONTRACT = ".contract"


def package_of(step: Any) -> str | None:
    """Return the name of the package whose Step a step derives from; None for a step by protocol."""
    for kind in type(step).__mro__:
        if kind.__name__ == "Step" and kind.__module__.endswith(_CONTRACT):
            return kind.__module__.removesuffix(_CONTRACT)
    return None


def module_of(package: str, name: str) -> ModuleType:
    """Return a module of such a package."""
    return import_module(f"{package}.{name}")

"""Finding what the user names: targets and backends as ``module:attribute``."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import steps_backends
from steps_backends import Backend


class NotFoundError(Exception):
    """What the user named does not exist; the text says where the name went wrong."""


def load_attribute(reference: str) -> Any:
    """Return the object that ``module:attribute`` names; modules in the current folder are found last."""
    module_name, colon, attribute = reference.partition(":")
    if not (module_name and colon and attribute):
        raise NotFoundError(f"write module:attribute, such as my_package.adapter:target, got {reference!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        # at the end: nothing that is installed is shadowed by a file that happens to lie here
        sys.path.append(here)
    value: Any = import_module(module_name)
    for name in attribute.split("."):
        if not hasattr(value, name):
            raise NotFoundError(f"{module_name} has no attribute {attribute!r}, named in {reference!r}")
        value = getattr(value, name)
    return value


def load_backend(name: str) -> Backend:
    """Return the backend of that name, or the one that ``module:attribute`` names."""
    if ":" in name:
        backend: Backend = load_attribute(name)
        return backend
    return steps_backends.get(name)

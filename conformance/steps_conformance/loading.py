"""Finding what the user names: targets in three forms, and backends."""

import re
import shlex
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import steps_backends
from steps_backends import Backend

from .targets.checking import checked_target
from .targets.command import CommandTarget
from .targets.connection import Connection
from .targets.copy import load_copy
from .targets.host_row import HOST
from .targets.host_row import row as host_row
from .targets.protocol import Target

_ATTRIBUTE = re.compile(r"[\w.]+:[\w.]+")
_COPY = "path:"


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


def is_command(reference: str) -> bool:
    """Return whether a target is named as a command, not as ``module:attribute`` or ``path:DIR``."""
    if reference.startswith(_COPY) or _ATTRIBUTE.fullmatch(reference):
        return False
    words = _words(reference)
    return bool(words) and shutil.which(words[0]) is not None


def load_target(reference: str, *, restarts: int = 10) -> Target:
    """Return the target that the user names.

    Args:
        reference: ``module:attribute``, ``path:DIR`` for a copy of the package, or a command.
        restarts: how often the process of a command is started again.

    Raises:
        NotFoundError: it is none of the three.
        NoTargetError: what ``module:attribute`` names is no target.
        NoPackageError: DIR holds no package.
    """
    if reference.startswith(_COPY):
        return load_copy(reference.removeprefix(_COPY))
    if is_command(reference):
        return CommandTarget(reference, Connection(_words(reference), restarts=restarts))
    if not _ATTRIBUTE.fullmatch(reference):
        raise NotFoundError(
            "write module:attribute, such as my_package.adapter:target, or path:DIR for a copy of the "
            f"package, or a command such as 'node clip_target.js' whose program exists, got {reference!r}"
        )
    return checked_target(load_attribute(reference), reference)


def load_backend(name: str) -> Backend:
    """Return the backend of that name, or the one that ``module:attribute`` names."""
    if name == HOST:
        return host_row
    if ":" in name:
        backend: Backend = load_attribute(name)
        return backend
    return steps_backends.get(name)


def _words(reference: str) -> list[str]:
    try:
        return shlex.split(reference)
    except ValueError as error:
        raise NotFoundError(f"the command {reference!r} cannot be taken apart: {error}") from None

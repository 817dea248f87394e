"""From what the user types to options whose names nobody else has.

`--target` and `--backend` are common names. Were they registered, a project whose conftest.py has one of
them could no longer run pytest with this distribution installed. So they are only translated, in a run that
asks for the suite, and only where nobody else has registered them.
"""

import re
from collections.abc import Sequence

import pytest

SUITE = "steps_conformance"

_SHORT = ("target", "backend", "topic", "expectations")
_ID = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z][A-Z0-9]*)*-\d{3}(/.+)?")


def asks_for_suite(positional: Sequence[str]) -> bool:
    """Return whether the suite, or a case or requirement of it, stands among the positional arguments."""
    return any(arg == SUITE or id_in(arg) for arg in positional)


def translated(args: Sequence[str], parser: pytest.Parser) -> list[str]:
    """Return the arguments with our options in full.

    Args:
        args: as they were typed.
        parser: knows the options of everybody else.
    """
    free = [name for name in _SHORT if _is_free(name, parser)]
    return [_in_full(arg, free) for arg in args]


def id_in(arg: str) -> str | None:
    """Return the id, with its backend where there is one, of an argument in the form of a node id."""
    backend, separator, identity = arg.rpartition("::")
    if not _ID.fullmatch(identity):
        return None
    if not separator or backend == SUITE:
        return identity
    return f"{backend.removeprefix(f'{SUITE}/')}::{identity}" if backend.startswith(f"{SUITE}/") else None


def _in_full(arg: str, free: Sequence[str]) -> str:
    name, equals, value = arg.partition("=")
    return f"--steps-{name[2:]}{equals}{value}" if name.startswith("--") and name[2:] in free else arg


def _is_free(name: str, parser: pytest.Parser) -> bool:
    try:
        _, unknown = parser.parse_known_and_unknown_args([f"--{name}=x"])
    except pytest.UsageError:
        # somebody's flag, which takes no value
        return False
    return f"--{name}=x" in unknown

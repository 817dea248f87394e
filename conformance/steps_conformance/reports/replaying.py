"""What somebody needs to see a failure again: the command, and for a vector its input and expected result."""

import json
import re
import shlex
from functools import cache
from importlib import resources
from typing import Any

from .model import Header
from .tables import Failure

_UNKNOWN_TARGET = "MODULE:ATTRIBUTE"
_LARGEST_VECTOR = 20_000
_FLAT_LIST = re.compile(r"\[[^\[\]{}]*\]")
_LINE_END = re.compile(r"\n *")


def command(header: Header, failure: Failure) -> str:
    """Return the shell command that runs only this failure, on the backends where it was seen."""
    named = [word for row in failure.rows for word in ("--backend", row)]
    target = header.target_option or _UNKNOWN_TARGET
    return shlex.join(["steps-conformance", "run", "--id", failure.id, *named, "--target", target])


def vector_text(failure: Failure) -> str | None:
    """Return the vector that a failure is about as JSON, or where it lies if it is large; None for a case."""
    if "/v-" not in failure.id:
        return None
    file, vector = _vectors().get(failure.id, ("", None))
    if vector is None:
        return None
    # the numbers of an array stand in one line; no line end lies within a JSON string
    text = _FLAT_LIST.sub(lambda found: _LINE_END.sub(" ", found[0]), json.dumps(vector, indent=1))
    if len(text) > _LARGEST_VECTOR:
        return f"{len(text):,} characters: {failure.id} in steps_conformance/vectors/data/{file}"
    return text


@cache
def _vectors() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the shipped vectors as they are written, by id, each with the name of its file."""
    folder = resources.files("steps_conformance.vectors") / "data"
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for entry in folder.iterdir():
        if entry.name.endswith(".json"):
            content = json.loads(entry.read_text(encoding="utf-8"))
            found.update({one["id"]: (entry.name, one) for one in content.get("vectors", ())})
    return found

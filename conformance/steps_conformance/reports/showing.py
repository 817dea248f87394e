"""Text of others made safe to show: what a terminal or a CI system would act on becomes a visible escape.

Names and messages come from targets, backends and libraries. JSON lines keep them as they are. Every readable
form first makes its report ``shown``, and then only has to mind the signs of its own markup.
"""

import dataclasses
import re
from typing import Any, TypeVar, cast

_T = TypeVar("_T")

_KEPT = "\n\t"
# Workflow commands of GitHub, `::error file=f::text`, count wherever the line begins, and a terminal folds
# lines anywhere; `##[error]`, `##vso[...]` and `##teamcity[...]` are those of other systems.
_COMMAND = re.compile(r"::(?=[A-Za-z][A-Za-z_-]*(?:[ \t][^\n]*?)?::)|##(?=[A-Za-z]*\[)")
_ESCAPES = {"::": r"\x3a:", "##": r"\x23#"}


def shown_text(text: str, longest: int | None = None) -> str:
    r"""Return text with controls, invisible signs and CI commands as escapes such as ``\x1b``.

    Line ends and tabs stay, as far as they are plain; other forms of a line end become a line end.

    Args:
        text: what somebody else says.
        longest: cut after so many characters, and say how many are left out; None for no limit.
    """
    if longest is not None and len(text) > longest:
        text = f"{text[:longest]}\n... {len(text) - longest:,} more characters in report.jsonl"
    if not text.replace("\n", "").replace("\t", "").isprintable():
        plain = text.replace("\r\n", "\n")
        text = "".join(c if c in _KEPT or c.isprintable() else _escape(c) for c in plain)
    if "::" in text or "##" in text:
        text = _COMMAND.sub(lambda match: _ESCAPES[match[0]], text)
    return text


def _escape(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shown(thing: _T, longest: int | None = None) -> _T:
    """Return a report, a verdict or any part of one with all its text as ``shown_text`` gives it."""
    return cast("_T", _shown(thing, longest))


def _shown(thing: Any, longest: int | None) -> Any:
    if type(thing) is str:  # members of an enumeration are our own words
        return shown_text(thing, longest)
    if isinstance(thing, tuple | list):
        return type(thing)(_shown(one, longest) for one in thing)
    if type(thing) is dict:
        return {_shown(key, longest): _shown(value, longest) for key, value in thing.items()}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        names = [one.name for one in dataclasses.fields(thing)]
        return type(thing)(**{name: _shown(getattr(thing, name), longest) for name in names})
    return thing

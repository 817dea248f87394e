"""Reading expectation files: TOML, every entry checked, nothing unknown passed over."""

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import steps_backends
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from steps_backends import LEAF_DTYPES
from steps_backends.declaration import TRAITS

from ..outcomes import FAILURES, Outcome
from ..targets.host_row import HOST
from .model import Condition, Expectation

UNFINISHED = "TODO"
"""A reason that starts so is still to be written."""

_FORM = (
    '[[expected]] with id = "...", outcome = "FAIL", reason = "...", and where needed report = "https://..." '
    'and when = { backend = "jax" }'
)
_TOP = ("expected", "extends")
_FIELDS = ("id", "outcome", "reason", "report", "when")
_CONDITIONS = {"backend": "backends", "version": "versions", "dtype": "dtypes", "trait": "traits"}


class ExpectationError(ValueError):
    """An expectation file or entry is wrong; the text names file, entry, rule, value and the way out."""


def load_expectations(files: Sequence[Path], *, unfinished: bool = False) -> list[Expectation]:
    """Return the entries of these files and of those that they extend; a file that comes twice counts once.

    Args:
        files: the files.
        unfinished: take entries whose reason is still to be written.

    Raises:
        ExpectationError: a file cannot be read, or breaks the form, or an entry stands twice.
    """
    read: dict[Path, list[Expectation]] = {}
    for file in files:
        _read(file.resolve(), read, ())
    found = [entry for entries in read.values() for entry in entries]
    _refuse_doubles(found)
    if not unfinished:
        for entry in found:
            _refuse_unfinished(entry)
    return found


def files_of(file: Path) -> list[Path]:
    """Return a file and those that it extends.

    Raises:
        ExpectationError: one of them breaks the form.
    """
    read: dict[Path, list[Expectation]] = {}
    _read(file.resolve(), read, ())
    return list(read)


def parsed(text: str, file: Path) -> list[Expectation]:
    """Return the entries of the text of one file.

    Raises:
        ExpectationError: the text breaks the form.
    """
    return [
        _entry(fields, f"{file.name}, entry {number}", str(file))
        for number, fields in enumerate(_content(text, file).get("expected", ()), start=1)
    ]


def text_of(file: Path) -> str:
    """Return the text of a file, its ends of lines as they are, without the mark that some editors put first.

    Raises:
        ExpectationError: it cannot be read; the text says why, and not which file.
    """
    try:
        # bytes: reading as text would change the ends of lines
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ExpectationError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ExpectationError(f"cannot be read: {error}; save it as UTF-8") from None


def _read(file: Path, read: dict[Path, list[Expectation]], chain: tuple[Path, ...]) -> None:
    if file in chain:
        raise ExpectationError(
            f"{' extends '.join(one.name for one in (*chain, file))}: a file extends itself"
        )
    try:
        text = text_of(file)
    except ExpectationError as error:
        named = f", which {chain[-1].name} extends" if chain else ""
        raise ExpectationError(f"{file}{named}: {error}") from None
    for other in _content(text, file).get("extends", ()):
        _read((file.parent / other).resolve(), read, (*chain, file))
    read[file] = parsed(text, file)


def _content(text: str, file: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectationError(f"{file.name} is no TOML: {error}") from None
    _refuse_unknown(content, _TOP, f"{file.name}, top level")
    for name in _TOP:
        value = content.get(name, [])
        kind, words = (str, "file names") if name == "extends" else (dict, "tables, " + _FORM)
        if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
            raise ExpectationError(f"{file.name}: {name} must be a list of {words}; got {_shown(value)}")
    return content


def _entry(fields: Mapping[str, Any], place: str, file: str) -> Expectation:
    _refuse_unknown(fields, _FIELDS, place)
    identity = _text(fields, "id", place)
    place = f"{place} ({identity})"
    if "*" in identity or "?" in identity:
        raise ExpectationError(
            f"{place}: id must be one exact id, got {identity!r} (str); "
            "name a requirement to mean all its cases, and write an entry for each"
        )
    outcome = _text(fields, "outcome", place)
    if outcome not in FAILURES:
        kinds = ", ".join(one for one in Outcome if one in FAILURES)
        raise ExpectationError(f"{place}: outcome must be one of {kinds}, got {_shown(outcome)}")
    report = _text(fields, "report", place) if "report" in fields else ""
    when = _condition(fields["when"], place) if "when" in fields else Condition()
    return Expectation(identity, Outcome(outcome), _text(fields, "reason", place), report, when, file)


def _text(fields: Mapping[str, Any], name: str, place: str) -> str:
    if name not in fields:
        raise ExpectationError(f"{place}: {name} is missing; write {_FORM}")
    value = fields[name]
    if not isinstance(value, str) or not value.strip():
        raise ExpectationError(f"{place}: {name} must be a text that says something, got {_shown(value)}")
    return value.strip()


def _condition(fields: Any, place: str) -> Condition:
    place = f"{place}: when"
    if not isinstance(fields, dict) or not fields:
        raise ExpectationError(
            f"{place} must hold some of {', '.join(_CONDITIONS)}, got {_shown(fields)}; "
            "leave it out where the deviation is seen everywhere"
        )
    _refuse_unknown(fields, tuple(_CONDITIONS), place)
    given = {name: _texts(value, f"{place}.{name}") for name, value in fields.items()}
    if "trait" in given:
        given["trait"] = tuple(name.replace("-", "_") for name in given["trait"])
    for name, known in (
        ("backend", [*steps_backends.names(), HOST]),
        ("dtype", list(LEAF_DTYPES)),
        ("trait", list(TRAITS)),
    ):
        for value in given.get(name, ()):
            # a backend of the user's own is named as module:attribute
            if value not in known and not (name == "backend" and ":" in value):
                raise ExpectationError(f"{place}.{name}: there is no {value!r}; {_near(value, known)}")
    for value in given.get("version", ()):
        _check_version(value, f"{place}.version")
    return Condition(**{_CONDITIONS[name]: values for name, values in given.items()})


def _texts(value: Any, place: str) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, str) and one.strip() for one in values):
        raise ExpectationError(f"{place} must be a text or a list of texts, got {_shown(value)}")
    return tuple(values)


def _check_version(value: str, place: str) -> None:
    try:
        wanted = Requirement(value)
    except InvalidRequirement as error:
        raise ExpectationError(
            f"{place} must be a library and its versions, such as 'jax<0.11', got {value!r}: {error}"
        ) from None
    if wanted.marker or wanted.extras or wanted.url or not wanted.specifier:
        raise ExpectationError(
            f"{place} must be a library and its versions and nothing else, such as 'jax<0.11', got {value!r}"
        )


def library_of(specifier: str) -> str:
    """Return the name of the library of a version specifier, as PyPI spells it."""
    return canonicalize_name(Requirement(specifier).name)


def _refuse_unknown(fields: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for name in fields:
        if name not in known:
            raise ExpectationError(f"{place}: there is no field {name!r}; {_near(name, known)}")


def _refuse_doubles(entries: Sequence[Expectation]) -> None:
    seen: dict[tuple[str, Outcome, Condition], Expectation] = {}
    for entry in entries:
        key = (entry.id, entry.outcome, entry.when)
        if key in seen:
            places = " and ".join(Path(one.file).name for one in (seen[key], entry))
            raise ExpectationError(
                f"{entry.id} with the outcome {entry.outcome} stands twice under the same condition, "
                f"in {places}; remove one entry"
            )
        seen[key] = entry


def _refuse_unfinished(entry: Expectation) -> None:
    if entry.reason.upper().startswith(UNFINISHED):
        raise ExpectationError(
            f"{Path(entry.file).name} ({entry.id}): reason must say why, got {_shown(entry.reason)}; "
            "find out, and write it there"
        )


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"


def _shown(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"

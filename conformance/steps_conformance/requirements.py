"""The requirements, read from one Markdown file a topic."""

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

_HEADING = re.compile(
    r"### (?P<id>[A-Z][A-Z0-9]*(?:-[A-Z][A-Z0-9]*)*-\d{3}) \((?P<level>MUST|SHOULD)\): (?P<title>\S.*)"
)
_RETIRED = re.compile(r"Retired: (?P<id>[A-Z][A-Z0-9-]*-\d{3})\b.*")
_FIELD = re.compile(r"(?P<name>Accuracy|Source): *(?P<value>.*)")


@dataclass(frozen=True)
class Requirement:
    """One numbered rule.

    Attributes:
        id: permanent, such as ``CLIP-GLOBAL-003``.
        level: ``MUST`` or ``SHOULD``.
        title: the rule in one line.
        text: the rule in full, Markdown.
        accuracy: how exact a result has to be.
        source: where the rule comes from, and why.
        topic: the name of the file.
    """

    id: str
    level: str
    title: str
    text: str
    accuracy: str
    source: str
    topic: str


class MalformedRequirementError(ValueError):
    """A requirement file breaks its form; the text names file, line and the way out."""


def load_requirements(folder: Path | None = None) -> dict[str, Requirement]:
    """Return all requirements by id, in order of topic and line.

    Args:
        folder: where the Markdown files are; those of this package where it is not given.

    Raises:
        MalformedRequirementError: a heading or field is malformed, or an id stands twice or is retired.
    """
    where = Path(str(files(__package__).joinpath("requirements"))) if folder is None else folder
    found: dict[str, Requirement] = {}
    retired: dict[str, str] = {}
    for file in sorted(where.glob("*.md")):
        topic_found, topic_retired = parse(file.read_text(encoding="utf-8"), file.stem)
        for requirement in topic_found:
            if requirement.id in found:
                raise MalformedRequirementError(
                    f"{requirement.id} stands in {found[requirement.id].topic}.md and again in {file.name}"
                )
            found[requirement.id] = requirement
        retired.update(dict.fromkeys(topic_retired, file.name))
    for identity in retired.keys() & found.keys():
        raise MalformedRequirementError(
            f"{identity} is retired in {retired[identity]}, and used in {found[identity].topic}.md; "
            "take a new id"
        )
    return found


def parse(text: str, topic: str) -> tuple[list[Requirement], list[str]]:
    """Return the requirements of one file, and the ids that it retires."""
    found: list[Requirement] = []
    retired: list[str] = []
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), "### END"], start=1):
        if match := _RETIRED.fullmatch(line):
            retired.append(match["id"])
        elif line.startswith("Retired:"):
            raise MalformedRequirementError(
                f"{topic}.md, line {number}: {line!r} must look like 'Retired: CLIP-GLOBAL-003 (why)'; "
                "otherwise its id would be free again"
            )
        elif line.startswith("#"):
            if block and block[0].startswith("###"):
                found.append(_requirement(block, topic, start))
            block, start = [line], number
        else:
            block.append(line)
    return _without_doubles(found, topic), retired


def _without_doubles(found: list[Requirement], topic: str) -> list[Requirement]:
    identities = [requirement.id for requirement in found]
    for identity in identities:
        if identities.count(identity) > 1:
            raise MalformedRequirementError(
                f"{identity} stands twice in {topic}.md; ids are never used again"
            )
    return found


def _requirement(block: list[str], topic: str, line: int) -> Requirement:
    heading = _HEADING.fullmatch(block[0].rstrip())
    if heading is None:
        raise MalformedRequirementError(
            f"{topic}.md, line {line}: {block[0]!r} must look like "
            "'### CLIP-GLOBAL-003 (MUST): what holds, in one line'"
        )
    parts: dict[str, list[str]] = {"text": []}
    current = "text"
    for row in block[1:]:
        if match := _FIELD.fullmatch(row):
            current = match["name"].lower()
            if current in parts:
                raise MalformedRequirementError(
                    f"{topic}.md: {heading['id']} has two lines of {match['name']}"
                )
            parts[current] = [match["value"]]
        else:
            parts[current].append(row)
    texts = {name: "\n".join(rows).strip() for name, rows in parts.items()}
    for name in ("text", "accuracy", "source"):
        if not texts.get(name):
            raise MalformedRequirementError(
                f"{topic}.md: {heading['id']} has no {name}; "
                "write the rule, then 'Accuracy: ...', then 'Source: ...'"
            )
    return Requirement(heading["id"], heading["level"], heading["title"], topic=topic, **texts)

"""The files of vectors: writing them, and checking that they are what the oracle makes today."""

from importlib import resources
from pathlib import Path

from .making import MAKERS
from .model import dumped
from .reports import with_sources

_SCHEMA = "schema.json"


def folder() -> Path:
    """Return where the shipped files lie."""
    return Path(str(resources.files(__package__))) / "data"


def files_in(place: Path) -> list[Path]:
    """Return the files of vectors in a folder; of a file, itself."""
    if not place.is_dir():
        return [place]
    return sorted(file for file in place.glob("*.json") if file.name != _SCHEMA)


def made_files() -> dict[str, str]:
    """Return the text of every file by name, made anew."""
    return {f"{topic}.json": dumped(topic, with_sources(make())) for topic, make in MAKERS.items()}


def write_files() -> list[str]:
    """Write all files; return the names of those that changed."""
    changed = differing_files()
    made = made_files()
    for name in changed:
        file = folder() / name
        if name in made:
            file.write_text(made[name], encoding="utf-8", newline="\n")
        else:
            file.unlink()
    return changed


def differing_files() -> list[str]:
    """Return the names of files that are missing, left over, or differ in any byte from what is made."""
    made = made_files()
    there = {file.name for file in files_in(folder())}
    return sorted(
        name
        for name in made.keys() | there
        if name not in made or name not in there or (folder() / name).read_bytes() != made[name].encode()
    )

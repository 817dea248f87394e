"""Which copy was tested, and by which suite: a hash over the sources of a package."""

import hashlib
from pathlib import Path

PYTHON = (".py",)


def source_hash(path: str | Path, suffixes: tuple[str, ...] = PYTHON) -> str:
    """Return the SHA-256 over the sources under a folder, or of one file.

    Args:
        path: the folder or file.
        suffixes: what the names of sources end with; Python's by default.

    Names and contents count, so that a file that was added, removed, renamed or edited gives another
    hash; line endings do not, so that the same commit has one hash on every system.
    """
    root = Path(path)
    found = (file for file in root.rglob("*") if file.suffix in suffixes) if root.is_dir() else (root,)
    files = sorted(found, key=lambda file: _name(file, root))
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes().replace(b"\r\n", b"\n")
        name = _name(file, root).encode()
        # lengths keep two splits of the same bytes apart
        digest.update(b"%d:%b%d:%b" % (len(name), name, len(content), content))
    return digest.hexdigest()


def _name(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if root.is_dir() else file.name

"""Which copy was tested: a hash over the sources of a package."""

import hashlib
from pathlib import Path


def source_hash(path: str | Path) -> str:
    """Return the SHA-256 over the Python sources under a folder, or of one file.

    Names and contents count, so that a file that was added, removed, renamed or edited gives another
    hash; line endings do not, so that the same commit has one hash on every system.
    """
    root = Path(path)
    files = sorted(root.rglob("*.py"), key=lambda file: _name(file, root)) if root.is_dir() else [root]
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes().replace(b"\r\n", b"\n")
        name = _name(file, root).encode()
        # lengths keep two splits of the same bytes apart
        digest.update(b"%d:%b%d:%b" % (len(name), name, len(content), content))
    return digest.hexdigest()


def _name(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if root.is_dir() else file.name

"""What every target over another library says of itself."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ..provenance import source_hash


@dataclass(frozen=True)
class Peer:
    """Facts about a library.

    Attributes:
        name: what reports call the target, and the name of the distribution.
        sources: dotted names of the packages that are hashed: the parts that the adapter uses.
        expectations: the expectation file.
        capabilities: names out of CAPABILITIES.
    """

    name: str
    sources: tuple[str, ...]
    expectations: str
    capabilities: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        """The version of the installed distribution."""
        return version(self.name)

    @property
    def path(self) -> str:
        """The folder of the first part."""
        return self._folders[0]

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the sources: of the hashes of the parts, where there are several."""
        hashes = [source_hash(folder) for folder in self._folders]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()

    @cached_property
    def _folders(self) -> list[str]:
        return [_folder_of(package) for package in self.sources]


def _folder_of(package: str) -> str:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} is not installed; run pip install 'steps-core[peers]'")
    return str(Path(spec.origin).parent)


REAL = frozenset({"float16", "bfloat16", "float32", "float64"})
"""The real leaf dtypes, for steps that have no complex form."""

ALL = REAL | {"complex64", "complex128"}
"""All leaf dtypes."""


def expectations_of(module_file: str) -> str:
    """Return the path of the expectation file beside a module."""
    return str(Path(module_file).with_suffix(".toml"))

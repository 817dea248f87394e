"""What every target over another library says of itself."""

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
        sources: dotted name of the package that is hashed, the part that the adapter uses.
        expectations: the expectation file.
        capabilities: names out of CAPABILITIES.
    """

    name: str
    sources: str
    expectations: str
    capabilities: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        """The version of the installed distribution."""
        return version(self.name)

    @cached_property
    def path(self) -> str:
        """The folder of the sources."""
        spec = find_spec(self.sources)
        if spec is None or spec.origin is None:
            raise ImportError(f"{self.sources} is not installed; run pip install 'steps-core[peers]'")
        return str(Path(spec.origin).parent)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the sources."""
        return source_hash(self.path)


REAL = frozenset({"float16", "bfloat16", "float32", "float64"})
"""The real leaf dtypes, for steps that have no complex form."""

ALL = REAL | {"complex64", "complex128"}
"""All leaf dtypes."""


def expectations_of(module_file: str) -> str:
    """Return the path of the expectation file beside a module."""
    return str(Path(module_file).with_suffix(".toml"))

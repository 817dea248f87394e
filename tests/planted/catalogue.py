"""The catalogue of faults written by hand: each replaces one thing in a copy of the implementation."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from steps_conformance.targets.steps_core import PackageTarget

from .loading import load_copy, source_of

FOLDER = Path(__file__).parent / "faults"

_REGISTRY: dict[str, "Fault"] = {}


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: what it does, as a sentence without its subject.
        breaks: the requirements that it breaks; each has a case that notices.
        source: where such a fault was seen, or what makes it likely.
        replaces: what it replaces, as ``module:attribute`` of the package.
        make: returns the wrong thing, given the right one and the copy.
        row: the backend on which it shows.
    """

    name: str
    breaks: tuple[str, ...]
    source: str
    replaces: str
    make: Callable[[Any, "Copy"], Any]
    row: str = "numpy"

    @property
    def topic(self) -> str:
        """The file that it stands in."""
        return self.make.__module__.rsplit(".", 1)[-1]

    def plant(self) -> "Copy":
        """Return a fresh copy of the implementation with this fault in it."""
        copy = Copy(load_copy(source_of("steps_core")))
        owner, attribute = copy.place(self.replaces)
        # a property or classmethod is replaced as such
        original = inspect.getattr_static(owner, attribute)
        setattr(owner, attribute, self.make(original, copy))
        return copy


class Copy:
    """A copy of the package, its modules at hand by their names below it."""

    def __init__(self, package: ModuleType) -> None:
        self.package = package
        self.target = PackageTarget(package.__name__)

    def __getitem__(self, module: str) -> ModuleType:
        return sys.modules[f"{self.package.__name__}.{module}" if module else self.package.__name__]

    def place(self, path: str) -> tuple[Any, str]:
        """Return the module or class, and the attribute of it, that ``module:attribute`` names."""
        module, _, names = path.partition(":")
        owner: Any = self[module]
        *outer, attribute = names.split(".")
        for name in outer:
            owner = getattr(owner, name)
        if not hasattr(owner, attribute):
            raise LookupError(f"{path} replaces nothing: {owner.__name__} has no {attribute}")
        return owner, attribute


def fault(
    replaces: str, *, breaks: Iterable[str], source: str, row: str = "numpy"
) -> Callable[[Callable[[Any, Copy], Any]], Callable[[Any, Copy], Any]]:
    """Enter a function in the catalogue: it gets what it replaces and the copy, and returns the fault."""
    named = tuple(breaks)

    def enter(make: Callable[[Any, Copy], Any]) -> Callable[[Any, Copy], Any]:
        name = make.__name__.replace("_", " ")
        if name in _REGISTRY and _REGISTRY[name].make.__module__ != make.__module__:
            raise ValueError(f"two faults are called {name!r}; rename one")
        if not named:
            raise ValueError(f"the fault {name!r} must name the requirements that it breaks")
        _REGISTRY[name] = Fault(name, named, source, replaces, make, row)
        return make

    return enter


def load_faults() -> dict[str, Fault]:
    """Return all faults by name, in the order of their files and places there."""
    for module in sorted(one.name for one in iter_modules([str(FOLDER)])):
        import_module(f"{__package__}.faults.{module}")
    return dict(_REGISTRY)


def catalogue_hash() -> str:
    """Return a hash of all faults, as they are written."""
    digest = hashlib.sha256()
    for file in sorted(FOLDER.glob("*.py")):
        digest.update(f"{file.name}\0".encode() + file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()

"""Fresh copies of a package under names of their own, with the source of a module changed where asked.

Nothing is written to disk and nothing installed is patched: a copy shares no module with the original.
"""

import ast
import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_numbers = itertools.count(1)


class Source:
    """The modules of a package, by their names below it; ``""`` is the package itself."""

    def __init__(self, package: str) -> None:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"no package is called {package!r}; put its folder on PYTHONPATH")
        self.package = package
        self.folder = Path(spec.submodule_search_locations[0])
        self.files = {self._name(file): file for file in sorted(self.folder.rglob("*.py"))}
        self._trees: dict[str, ast.Module] = {}
        self._codes: dict[str, CodeType] = {}

    def _name(self, file: Path) -> str:
        parts = file.relative_to(self.folder).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def tree(self, module: str) -> ast.Module:
        """Return the syntax tree of a module; it must not be changed."""
        if module not in self._trees:
            self._trees[module] = ast.parse(self.files[module].read_text(encoding="utf-8"))
        return self._trees[module]

    def importers(self, module: str) -> set[str]:
        """Return the modules that import names from a module."""
        return {name for name, file in self.files.items() if module in self._imported(name, file)}

    def _imported(self, name: str, file: Path) -> set[str]:
        parts = [*name.split("."), "__init__"] if file.name == "__init__.py" else name.split(".")
        found = set()
        for node in ast.walk(self.tree(name)):
            if isinstance(node, ast.ImportFrom) and node.level:
                found.add(".".join([*parts[: -node.level], *([node.module] if node.module else [])]))
        return found

    def code(self, module: str) -> CodeType:
        """Return the module compiled as it is."""
        if module not in self._codes:
            self._codes[module] = self.compiled(module, self.tree(module))
        return self._codes[module]

    def compiled(self, module: str, tree: ast.Module) -> CodeType:
        """Return another tree of a module compiled in its place."""
        return compile(tree, self.files[module], "exec", dont_inherit=True)


@cache
def source_of(package: str) -> Source:
    """Return the source of a package, read once."""
    return Source(package)


class _Loader(SourceFileLoader):
    """Runs code that is given, with names that every module of the copy has beside its own."""

    def __init__(self, name: str, file: Path, code: CodeType, names: Mapping[str, Any]) -> None:
        super().__init__(name, str(file))
        self._code, self._names = code, names

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._names)
        super().exec_module(module)


class Finder:
    """Finds the modules of a package in its source, under the same or another name.

    Args:
        name: the name that the package has here.
        source: where its modules come from.
        changed: code of modules that differ, by name below the package.
        names: what every module has beside its own names.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        changed: Mapping[str, CodeType],
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self._name, self._source, self._changed, self._names = name, source, changed, names or {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of this package; of others, None."""
        if fullname != self._name and not fullname.startswith(f"{self._name}."):
            return None
        module = fullname[len(self._name) + 1 :]
        file = self._source.files.get(module)
        if file is None:
            return None
        code = self._changed.get(module) or self._source.code(module)
        folder = [str(file.parent)] if file.name == "__init__.py" else None
        loader = _Loader(fullname, file, code, self._names)
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=folder)


@contextmanager
def finding(finder: Finder) -> Iterator[None]:
    """Ask this finder before any other."""
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.meta_path.remove(finder)  # type: ignore[arg-type]


def load_copy(
    source: Source,
    changed: Mapping[str, CodeType] | None = None,
    names: Mapping[str, Any] | None = None,
) -> ModuleType:
    """Return a fresh copy of a package with all its modules, under a name that no copy had before."""
    name = f"{source.package}_copy_{next(_numbers)}"
    with finding(Finder(name, source, changed or {}, names)):
        package = import_module(name)
        for module in filter(None, source.files):
            import_module(f"{name}.{module}")
    return package


def forget(package: ModuleType) -> None:
    """Take a copy out of the loaded modules, so that many do not pile up."""
    name = package.__name__
    for module in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[module]

"""A copy of the package in a folder, loaded under the folder's name without being installed."""

import importlib.util
import pkgutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from .steps_core import PackageTarget

_INTERFACE = ("StepsError", "GradientClippingStep", "ChainedStep", "build")


class NoPackageError(Exception):
    """The folder holds no package that could be tested; the text says what is wrong and what to do."""


def load_copy(folder: str | Path) -> PackageTarget:
    """Return the target for the package in a folder.

    All its modules are imported, so that one that reaches for another copy is seen before the first case.

    Raises:
        NoPackageError: the folder is no package, or its name is taken.
    """
    root = Path(folder).resolve()
    if not (root / "__init__.py").is_file():
        raise NoPackageError(
            f"path: must name the folder of a package, with an __init__.py in it; {root} has none"
        )
    if "." in root.name:
        raise NoPackageError(
            f"the package in {root} cannot be imported with a dot in its name; rename the folder"
        )
    if root.name in sys.stdlib_module_names or root.name in sys.modules:
        raise NoPackageError(f"the name {root.name} is taken by another module; rename the folder {root}")
    package = _imported(root)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    return PackageTarget(root.name)


def other_copies(path: str) -> list[str]:
    """Return the folders of packages like the tested one that this process has also loaded."""
    tested = Path(path).resolve()
    found = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if (
            file is None
            or Path(file).name != "__init__.py"
            or not all(hasattr(module, n) for n in _INTERFACE)
        ):
            continue
        folder = Path(file).parent.resolve()
        if folder != tested:
            found.add(str(folder))
    return sorted(found)


def _imported(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        root.name, root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[root.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[root.name]
        raise
    return module

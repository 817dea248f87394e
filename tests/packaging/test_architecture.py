"""Who may import whom: the rules of the layout, read off the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "steps_core"
BACKENDS = ROOT / "backends/steps_backends"
SUITE = "conformance/steps_conformance"
CONFORMANCE = ROOT / SUITE
PACKAGES = (CORE, BACKENDS, CONFORMANCE)
ARRAY_LIBRARIES = {"numpy", "ml_dtypes", "torch", "jax", "jaxlib", "cupy", "array_api_strict"}

# What stands at the head of a module, and what only a function may import.
ALWAYS = {
    CORE: {"array_api_compat", "optree"},
    BACKENDS: set(),
    CONFORMANCE: {
        *("steps_backends", "pytest", "hypothesis", "mpmath", "typer", "rich", "jinja2"),
        *("packaging", "tomlkit"),  # version conditions, and rewriting of expectation files
    },
}
LAZILY = {
    CORE: {"numpy", "safetensors"},
    BACKENDS: {*ARRAY_LIBRARIES, "numba"},
    CONFORMANCE: set(),
}
SHARED_BY_STEPS = {"end_to_end", "nesting", "rates", "wrapping"}
EXCEPTIONS = {  # lazily, too
    BACKENDS / "compiling/compiled.py": {"steps_core"},
    CONFORMANCE / "targets/steps_core.py": {"steps_core"},
    CONFORMANCE / "targets/peers/optax.py": {"optax", "jax"},
    CONFORMANCE / "targets/peers/torch.py": {"torch"},
    CONFORMANCE / "targets/peers/keras.py": {"keras", "jax"},
    CONFORMANCE / "targets/peers/mlx.py": {"mlx", "numpy", "ml_dtypes"},
}


@dataclass(frozen=True)
class Import:
    """One imported module: its name, the dots before it, and whether it stands inside a function."""

    file: Path
    line: int
    module: str
    level: int
    lazy: bool

    @property
    def top(self) -> str:
        return self.module.split(".")[0]

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {'.' * self.level}{self.module}"


def sources(package: Path) -> list[Path]:
    files = sorted(package.rglob("*.py"))
    assert files, f"no source in {package}"
    return files


def imports_of(file: Path) -> list[Import]:
    return list(_imports_in(file, ast.parse(file.read_text()), lazy=False))


def _imports_in(file: Path, node: ast.AST, *, lazy: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(file, node.lineno, alias.name, 0, lazy)
    if isinstance(node, ast.ImportFrom):
        yield Import(file, node.lineno, node.module or "", node.level, lazy)
    inside = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    for child in ast.iter_child_nodes(node):
        yield from _imports_in(file, child, lazy=inside)


def outside(package: Path) -> list[Import]:
    """Return the imports from outside the package and the standard library."""
    found = [imported for file in sources(package) for imported in imports_of(file)]
    return [i for i in found if i.level == 0 and i.top not in sys.stdlib_module_names]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_imports_only_what_the_layout_allows(package):
    wrong = []
    for imported in outside(package):
        lazily = LAZILY[package] | EXCEPTIONS.get(imported.file, set())
        if imported.top not in ALWAYS[package] | (lazily if imported.lazy else set()):
            wrong.append(str(imported))

    assert wrong == []


@pytest.mark.parametrize("library", ["array_api_compat", "optree"])
def test_one_module_alone_is_the_door_to_a_library(library):
    doors = {i.file.relative_to(ROOT).as_posix() for i in outside(CORE) if i.top == library}

    assert len(doors) == 1, f"{library} is imported by {sorted(doors)}"


def test_only_state_files_and_the_door_to_the_host_use_numpy():
    users = {i.file.name for i in outside(CORE) if i.top in {"numpy", "safetensors"}}

    assert users <= {"state_files.py", "namespaces.py"}


def test_one_module_alone_moves_arrays_between_devices():
    movers = {
        file.name
        for file in sources(CORE)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"to", "to_device", "cpu", "cuda", "device_put"}
    }

    assert movers == {"namespaces.py"}


def test_the_core_imports_itself_only_relatively():
    """A copy under another name must never reach the installed package."""
    absolute = [str(i) for file in sources(CORE) for i in imports_of(file) if i.top == "steps_core"]

    assert absolute == []


def test_the_core_names_itself_only_in_docstring_examples():
    named = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in CORE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if "steps_core" in line and not line.strip().startswith((">>>", "..."))
    ]

    assert named == []


def test_a_failed_import_in_the_core_ends_in_an_error():
    """A fall-back to another import silently picks up another copy than the one that was meant."""
    handlers = [
        (f"{file.relative_to(ROOT)}:{node.lineno}", node)
        for file in sources(CORE)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ExceptHandler) and node.type is not None
    ]
    fall_backs = [
        place
        for place, handler in handlers
        if {"ImportError", "ModuleNotFoundError"}
        & {part.id for part in ast.walk(handler.type) if isinstance(part, ast.Name)}
        and not isinstance(handler.body[-1], ast.Raise)
    ]

    assert handlers
    assert fall_backs == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_modules_of_a_package_form_no_cycle(package):
    graph = {
        _module_name(package, file): {
            _resolved(package, file, i) for i in imports_of(file) if i.level and not i.lazy
        }
        for file in sources(package)
        if file.name != "__init__.py"
    }
    known = {name: needed & graph.keys() for name, needed in graph.items()}

    assert len(list(TopologicalSorter(known).static_order())) == len(graph)


def _module_name(package: Path, file: Path) -> str:
    return ".".join(file.relative_to(package).with_suffix("").parts)


def _resolved(package: Path, file: Path, imported: Import) -> str:
    folder = file.parents[imported.level - 1].relative_to(package)
    return ".".join([*folder.parts, *([imported.module] if imported.module else [])])


@pytest.mark.parametrize("package", ["steps_core", "steps_backends"])
def test_importing_a_package_loads_no_array_library(package):
    program = f"import sys, {package}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert package in loaded.stdout.split()
    assert ARRAY_LIBRARIES & set(loaded.stdout.split()) == set()


@pytest.mark.parametrize("folder", ["backends", "conformance", "tests", "examples"])
def test_the_folders_around_the_packages_are_no_packages(folder):
    """Two wheels that install a top-level `backends` overwrite each other silently."""
    assert (ROOT / folder).is_dir()
    assert not (ROOT / folder / "__init__.py").exists()


def test_a_step_has_the_same_word_for_its_code_tests_cases_and_requirements():
    """Whoever knows one of the four places knows all."""
    steps = {file.stem for file in (CORE / "steps").glob("*.py")} - {"__init__"} - SHARED_BY_STEPS
    places = ("tests/steps/test_{}.py", f"{SUITE}/cases/{{}}.py", f"{SUITE}/requirements/{{}}.md")
    missing = {
        (step, place) for step in steps for place in places if not (ROOT / place.format(step)).is_file()
    }

    assert {"clipping", "chain", "adam"} <= steps
    assert missing == set()

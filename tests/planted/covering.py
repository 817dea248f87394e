"""Which cases execute which statements of a copy: a mutant is tried on those alone."""

import ast
import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType

from steps_backends import Backend
from steps_conformance.case import Case
from steps_conformance.outcomes import FAILURES
from steps_conformance.targets.steps_core import PackageTarget

from .executing import Execution, with_execution
from .loading import Source, load_copy

_MARK = "__reached__"

Statement = tuple[str, int]  # module, line


@dataclass(frozen=True)
class Footprint:
    """What a case did with the implementation as it is.

    Attributes:
        seconds: how long it took.
        statements: the statements of functions that it executed.
        problem: why it does not hold; such a case cannot show that a mutant is wrong.
        runs: whether backend and target have what it needs.
    """

    seconds: float
    statements: frozenset[Statement] = field(repr=False)
    problem: str | None = None
    runs: bool = True


def footprints(cases: Iterable[Case], backend: Backend, source: Source) -> dict[str, Footprint]:
    """Return the footprint of each case, by id."""
    reached: set[Statement] = set()
    package = load_copy(source, marked_modules(source), {_MARK: reached.add})
    target = PackageTarget(package.__name__)
    return with_execution(backend, lambda run: _footprints_of(cases, run, target, reached))


def _footprints_of(
    cases: Iterable[Case], run: Execution, target: PackageTarget, reached: set[Statement]
) -> dict[str, Footprint]:
    found = {}
    for case in cases:
        reached.clear()
        result = run(case, target)
        problem = f"{result.outcome}: {result.message}" if result.outcome in FAILURES else None
        runs = result.outcome == "PASS"
        found[case.id] = Footprint(result.seconds, frozenset(reached), problem, runs)
    return found


def marked_modules(source: Source) -> Mapping[str, CodeType]:
    """Return every module with a mark before each statement of its functions."""
    return {name: source.compiled(name, _marked(source.tree(name), name)) for name in source.files}


def _marked(tree: ast.Module, module: str) -> ast.Module:
    marked = copy.deepcopy(tree)
    for node in ast.walk(marked):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _each_body(node, lambda body: _with_marks(body, module))
    return ast.fix_missing_locations(marked)


def _each_body(node: ast.AST, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Change the lists of statements in a function; those of functions in it are changed by themselves."""
    for name, value in ast.iter_fields(node):
        if not isinstance(value, list) or not value:
            continue
        for child in value:
            if isinstance(child, ast.AST) and not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                _each_body(child, change)
        if isinstance(value[0], ast.stmt):
            setattr(node, name, change(value))


def _with_marks(body: list[ast.stmt], module: str) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for place, statement in enumerate(body):
        is_docstring = (
            place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        if not is_docstring:
            out.append(ast.copy_location(_mark(module, statement.lineno), statement))
        out.append(statement)
    return out


def _mark(module: str, line: int) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(_MARK, ast.Load()), [ast.Constant((module, line))], []))

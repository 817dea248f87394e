"""Mutants: every small change of a module's functions, each with an identity that outlives other edits."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import CodeType

from .loading import Source
from .operators import Change, changes

_LONGEST = 160

# Whose strings are free text: what an error says beside names, paths and rules.
_TEXTS = {"rule", "way_out", "reason", "listed", "text", "because"}


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        module: the module's name below the package.
        function: where in it, such as ``ChainedStep.advance``; ``""`` at its head.
        operator: the kind of change.
        before: the source of what is changed.
        after: what stands there instead.
        number: which of the like changes in this function.
        line: line of the innermost statement.
        is_run: whether that statement stands in a function, and not where the module is imported.
    """

    module: str
    function: str
    operator: str
    before: str
    after: str
    number: int
    line: int = field(compare=False)
    is_run: bool = field(compare=False)
    place: "Place" = field(compare=False, repr=False)
    change: Change = field(compare=False, repr=False)

    @property
    def identity(self) -> str:
        """What the list of equivalent mutants calls it."""
        number = f" #{self.number}" if self.number > 1 else ""
        return f"{self.scope}: {self.operator}: {self.before} -> {self.after}{number}"

    @property
    def scope(self) -> str:
        """Module and function."""
        return f"{self.module}.{self.function}" if self.function else self.module

    def code(self, source: Source) -> CodeType:
        """Return the changed module, compiled."""
        tree, kept = source.tree(self.module), self.place.get()
        new = ast.copy_location(self.change.replacement, kept)
        self.place.put(ast.fix_missing_locations(new))
        try:
            return source.compiled(self.module, tree)
        finally:
            self.place.put(kept)


@dataclass(frozen=True)
class Place:
    """Where a node stands in its parent."""

    parent: ast.AST
    field: str
    index: int | None = None

    def get(self) -> ast.AST:
        """Return the node that stands there."""
        found = getattr(self.parent, self.field)
        node: ast.AST = found if self.index is None else found[self.index]
        return node

    def put(self, node: ast.AST) -> None:
        """Let another node stand there."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


@dataclass(frozen=True)
class _Around:
    """What surrounds a node."""

    function: str = ""
    line: int = 0
    is_run: bool = False
    in_text: bool = False


def mutants_of(source: Source, module: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its source."""
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for place, around, change in _walk(source.tree(module), _Around()):
        before, after = _text(place.get()), _text(change.replacement)
        if before == after:
            continue
        key = (around.function, change.operator, before, after)
        seen[key] += 1
        found.append(Mutant(module, *key, seen[key], around.line, around.is_run, place=place, change=change))
    return found


def _text(node: ast.AST) -> str:
    """Return the source of a node in one line, the head of what is long."""
    if isinstance(node, ast.comprehension):
        text = " ".join(["for ... in ...", *(f"if {ast.unparse(one)}" for one in node.ifs)])
    elif isinstance(node, (ast.If, ast.While)):
        text = f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    elif isinstance(node, ast.With):
        text = f"with {', '.join(ast.unparse(item) for item in node.items)}"
    elif isinstance(node, ast.Slice):
        text = ast.unparse(ast.Subscript(ast.Name("x"), node))[2:-1]
    else:
        text = ast.unparse(ast.fix_missing_locations(node))
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _walk(node: ast.AST, around: _Around) -> Iterator[tuple[Place, _Around, Change]]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_comment"):
            continue
        if name == "body" and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            around = replace(around, is_run=True)
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in items:
            if isinstance(child, ast.AST) and not _is_skipped(child):
                inner = _inside(child, around)
                for change in changes(child, in_text=inner.in_text):
                    if not (change.operator == "exchanged entries" and _is_choice(node, name)):
                        yield Place(node, name, index), inner, change
                yield from _walk(child, inner)


def _inside(node: ast.AST, around: _Around) -> _Around:
    if isinstance(node, ast.stmt):
        around = replace(around, line=node.lineno, in_text=_is_text(node))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        name = f"{around.function}.{node.name}" if around.function else node.name
        around = replace(around, function=name)
    elif (isinstance(node, ast.Call) and _makes_an_error(node)) or isinstance(node, ast.JoinedStr):
        around = replace(around, in_text=True)
    return around


def _is_text(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        targets = {part.id for one in node.targets for part in ast.walk(one) if isinstance(part, ast.Name)}
        return bool(targets) and targets <= _TEXTS
    return isinstance(node, ast.Raise)


def _makes_an_error(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.endswith("Error") or name in ("refusal", "add_note")


def _is_skipped(node: ast.AST) -> bool:
    """Return whether a node does nothing when the program runs."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    if isinstance(node, ast.Assign):
        return _is_alias(node)
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal))


def _is_choice(node: ast.AST, field_name: str) -> bool:
    """Return whether the entries that stand here are asked one by one, so that their order means nothing."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
    return field_name == "comparators"


def _is_alias(node: ast.Assign) -> bool:
    """Return whether a statement gives a type another name."""
    (target,) = node.targets[:1]
    name = target.id if isinstance(target, ast.Name) else ""
    return name[:1].isupper() and not name.isupper() and isinstance(node.value, (ast.Subscript, ast.BinOp))

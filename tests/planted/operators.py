"""What a mutant may change: for each node of a syntax tree, the small mistakes that one could make there."""

import ast
import itertools
from collections.abc import Iterator
from typing import NamedTuple


class Change(NamedTuple):
    """One small mistake: the kind of it, and what stands in place of the node."""

    operator: str
    replacement: ast.AST


_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitOr,
}
_EXCHANGED = {
    one: other
    for pair in (
        ("minimum", "maximum"),
        ("logical_and", "logical_or"),
        ("zeros_like", "ones_like"),
        ("isfinite", "isnan"),
        ("min", "max"),
        ("any", "all"),
        ("sin", "cos"),
        ("real", "imag"),
    )
    for one, other in (pair, pair[::-1])
}


_COMMUTATIVE = {"logical_and", "logical_or", "minimum", "maximum", "min", "max"}


def changes(node: ast.AST, *, in_text: bool) -> Iterator[Change]:
    """Yield every change of a node itself; changes of its parts come from those.

    Args:
        node: a node of a syntax tree.
        in_text: whether it stands where the text of an error is made: words and their order are free there.
    """
    if isinstance(node, ast.Compare):
        yield from _comparisons(node)
    elif isinstance(node, ast.BinOp):
        yield from _calculations(node)
    elif isinstance(node, ast.AugAssign):
        yield from _calculations(node)
        yield Change("dropped statement", ast.Pass())
    elif isinstance(node, ast.UnaryOp):
        yield from _signs(node)
    elif isinstance(node, ast.BoolOp):
        yield from _connections(node)
    elif isinstance(node, ast.Constant):
        yield from _constants(node, in_text=in_text)
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield from _conditions(node)
    elif isinstance(node, ast.comprehension):
        yield from _filters(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node, in_text=in_text)
    elif isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        yield from _orders(node)
    elif isinstance(node, ast.Slice):
        yield from _bounds(node)
    elif isinstance(node, ast.stmt):
        yield from _statements(node)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    kept = dict(ast.iter_fields(node))
    return ast.copy_location(type(node)(**{**kept, **fields}), node)


def _exchanged(items: list[ast.expr], place: int) -> list[ast.expr]:
    return [*items[:place], items[place + 1], items[place], *items[place + 2 :]]


def _comparisons(node: ast.Compare) -> Iterator[Change]:
    for place, operator in enumerate(node.ops):
        for other in _COMPARED[type(operator)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield Change("comparison", _with(node, ops=ops))


def _calculations(node: ast.BinOp | ast.AugAssign) -> Iterator[Change]:
    if type(node.op) in _CALCULATED:
        yield Change("arithmetic", _with(node, op=_CALCULATED[type(node.op)]()))


def _signs(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, (ast.USub, ast.Not)):
        yield Change("dropped sign" if isinstance(node.op, ast.USub) else "negation", node.operand)


def _connections(node: ast.BoolOp) -> Iterator[Change]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield Change("boolean operator", _with(node, op=other))
    for place in range(len(node.values)):
        left = [*node.values[:place], *node.values[place + 1 :]]
        yield Change("dropped condition", left[0] if len(left) == 1 else _with(node, values=left))


def _constants(node: ast.Constant, *, in_text: bool) -> Iterator[Change]:
    value = node.value
    others: tuple[object, ...] = ()
    if isinstance(value, bool):
        others = (not value,)
    elif isinstance(value, int):
        others = (value + 1, value - 1)
    elif isinstance(value, float):
        others = (value + 1.0, 0.0) if value else (1.0,)
    elif isinstance(value, str) and value and not in_text:
        # no text that holds the old one: a case may look for it in a longer text
        swapped = value.swapcase()
        others = (swapped if swapped != value else "other",)
    for other in others:
        yield Change("constant", _with(node, value=other, kind=None))


def _conditions(node: ast.If | ast.IfExp | ast.While) -> Iterator[Change]:
    for settled in (True, False):
        if not (settled and isinstance(node, ast.While)):
            yield Change("settled condition", _with(node, test=ast.Constant(settled)))
    if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
        yield Change("negated condition", _with(node, test=ast.UnaryOp(ast.Not(), node.test)))


def _filters(node: ast.comprehension) -> Iterator[Change]:
    for place in range(len(node.ifs)):
        yield Change("dropped filter", _with(node, ifs=[*node.ifs[:place], *node.ifs[place + 1 :]]))


def _calls(node: ast.Call, *, in_text: bool) -> Iterator[Change]:
    arguments = node.args
    own = [place for place, argument in enumerate(arguments) if not _is_namespace(argument)]
    plain = not any(isinstance(argument, ast.Starred) for argument in arguments)
    name = _called_name(node)
    if plain and not in_text and name not in _COMMUTATIVE:
        for one, other in itertools.pairwise(own):
            if other == one + 1 and ast.dump(arguments[one]) != ast.dump(arguments[other]):
                yield Change("argument order", _with(node, args=_exchanged(arguments, one)))
    if not in_text:
        for place, keyword in enumerate(node.keywords):
            # strict=True of zip states what the code around it has made sure
            if keyword.arg not in (None, "strict"):
                left = [*node.keywords[:place], *node.keywords[place + 1 :]]
                yield Change("dropped argument", _with(node, keywords=left))
    if name in _EXCHANGED:
        yield Change("other function", _with(node, func=_renamed(node.func, _EXCHANGED[name])))
    if plain and name == "where" and len(arguments) == 3:
        yield Change("settled choice", arguments[1])
        yield Change("settled choice", arguments[2])
    elif plain and len(own) == 1 and not node.keywords and not name[:1].isupper():
        yield Change("dropped call", arguments[own[0]])


def _is_namespace(argument: ast.expr) -> bool:
    named = argument.id if isinstance(argument, ast.Name) else getattr(argument, "attr", "")
    return named == "xp"


def _called_name(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _renamed(function: ast.expr, name: str) -> ast.AST:
    return _with(function, **{"id" if isinstance(function, ast.Name) else "attr": name})


def _orders(node: ast.Tuple | ast.List | ast.Dict) -> Iterator[Change]:
    field = "values" if isinstance(node, ast.Dict) else "elts"
    items: list[ast.expr] = getattr(node, field)
    for place in range(len(items) - 1):
        pair = items[place : place + 2]
        if isinstance(node, ast.Dict) and None in node.keys[place : place + 2]:
            continue
        if all(isinstance(item, (ast.Constant, ast.Starred)) for item in pair):
            continue
        if ast.dump(pair[0]) != ast.dump(pair[1]):
            yield Change("exchanged entries", _with(node, **{field: _exchanged(items, place)}))


def _bounds(node: ast.Slice) -> Iterator[Change]:
    for bound in ("lower", "upper"):
        if getattr(node, bound) is not None:
            yield Change("dropped bound", _with(node, **{bound: None}))


def _statements(node: ast.stmt) -> Iterator[Change]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, (ast.Expr, ast.Raise, ast.Continue, ast.Break)) or _changes_a_name(node):
        yield Change("dropped statement", ast.Pass())
    if isinstance(node, ast.With) and not any(item.optional_vars for item in node.items):
        yield Change("dropped context", ast.If(ast.Constant(True), node.body, []))


def _changes_a_name(node: ast.stmt) -> bool:
    """Return whether a statement gives a name a new value made of the old one."""
    if not isinstance(node, ast.Assign):
        return False
    targets = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return bool(targets & {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)})

"""The stateless operations that a graph may use: what each takes, checks and computes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

from .. import checks
from ..call import Call
from ..errors import ArgumentError, ArgumentTypeError, TreeMismatchError, refusal
from ..packets import checked_names, extract_streams, in_order_of, merge_streams
from ..trees import Tree, flatten
from . import reductions
from .arithmetic import ELEMENTWISE, NEED_ORDER, OF_TRUTHS, TRUTHS
from .values import (
    Scalar,
    TreeValue,
    Value,
    between_scalars,
    filled_like,
    leafwise,
    numbered,
    require_trees_real,
    tree_value,
)

Shape = Literal["number", "scalar", "tree"]
_SHAPES: tuple[Shape, ...] = ("number", "scalar", "tree")


@dataclass(frozen=True)
class Kind:
    """What a value is, known before any array is seen.

    Attributes:
        shape: number (a Python number), scalar (one 0-d array for all leaves), or tree.
        truth: whether it holds booleans.
    """

    shape: Shape
    truth: bool = False

    def __str__(self) -> str:
        return f"{self.shape} of booleans" if self.truth else self.shape


NUMBER, SCALAR, TREE = (Kind(shape) for shape in _SHAPES)


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: as in JSON.
        arity: how many inputs it takes; None: one or more.
        options: by name, the default and the check.
        kind: what comes out, from what goes in and the options; raises where that does not go together.
        evaluate: computes it.
    """

    name: str
    arity: int | None
    options: Mapping[str, tuple[Any, Callable[[Any], Any]]]
    kind: Callable[[Sequence[Kind], Mapping[str, Any]], Kind]
    evaluate: Callable[[Call, Sequence[Value], Mapping[str, Any]], Value]

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, checked, with defaults for those not given."""
        checks.only_known(f"the operation {self.name}", list(options), list(self.options))
        given = {name: options.get(name, default) for name, (default, _) in self.options.items()}
        return {name: check(given[name]) for name, (_, check) in self.options.items()}


def _elementwise(name: str) -> Operation:
    on_arrays, on_numbers = ELEMENTWISE[name]

    def kind(inputs: Sequence[Kind], options: Mapping[str, Any]) -> Kind:
        truths = [i.truth for i in inputs]
        wanted = [name in OF_TRUTHS or (name == "where" and place == 0) for place in range(len(inputs))]
        for place, (truth, want) in enumerate(zip(truths, wanted, strict=True), start=1):
            if truth is not want:
                what = "booleans, such as x > 0" if want else "numbers, not booleans"
                way_out = "compare first" if want else "use where(condition, x, y)"
                raise refusal(
                    ArgumentTypeError,
                    f"input {place} of {name}",
                    f"hold {what}",
                    str(inputs[place - 1]),
                    way_out,
                )
        widest = max((i.shape for i in inputs), key=_SHAPES.index)
        return Kind(widest, name in TRUTHS or name in OF_TRUTHS)

    def evaluate(call: Call, inputs: Sequence[Value], options: Mapping[str, Any]) -> Value:
        trees = [value for value in inputs if isinstance(value, TreeValue)]
        if trees:
            if name in NEED_ORDER:
                for tree in trees:
                    require_trees_real(tree, name)
            if name == "where" and not any(isinstance(value, TreeValue) for value in inputs[1:]):
                inputs = [trees[0], *(filled_like(trees[0], value) for value in inputs[1:])]
            return leafwise(on_arrays, *inputs, truth=name in TRUTHS or name in OF_TRUTHS)
        if any(isinstance(value, Scalar) for value in inputs):
            return between_scalars(on_arrays, *inputs)
        return _of_numbers(name, on_numbers, inputs)

    return Operation(name, _arity(name), {}, kind, evaluate)


_UNARY = ("negative", "abs", "sign", "square", "sqrt", "exp", "log", "isfinite", "logical_not")
_TERNARY = ("clip", "where")


def _arity(name: str) -> int:
    return 1 if name in _UNARY else 3 if name in _TERNARY else 2


def _of_numbers(name: str, rule: Callable[..., Any], numbers: Sequence[Any]) -> float | bool:
    way_out = "give the hyper-parameters other values"
    shown = f"{name}({', '.join(map(str, numbers))})"
    try:
        result = rule(*numbers)
    except (ArithmeticError, ValueError) as error:
        raise refusal(ArgumentError, shown, f"have a finite result ({error})", numbers, way_out) from None
    if result != result:
        raise refusal(ArgumentError, shown, "be a number other than NaN", numbers, way_out)
    return result if isinstance(result, bool) else float(result)


def _reduction_kind(name: str) -> Callable[[Sequence[Kind], Mapping[str, Any]], Kind]:
    def kind(inputs: Sequence[Kind], options: Mapping[str, Any]) -> Kind:
        _require_trees(name, inputs)
        return SCALAR if options.get("over", "tree") == "tree" else TREE

    return kind


def _require_trees(name: str, inputs: Sequence[Kind]) -> None:
    for place, given in enumerate(inputs, start=1):
        if given != TREE:
            way_out = "pass gradients, weights, or what is computed from them leaf by leaf"
            raise refusal(ArgumentTypeError, f"input {place} of {name}", "be a tree", str(given), way_out)


def _over(value: Any) -> str:
    return checks.choice("over", value, reductions.OVER)


def _order(value: Any) -> float:
    order = checks.number("order", value)
    if order not in reductions.ORDERS:
        raise refusal(ArgumentError, "order", "be 1, 2 or infinity", value, "pass 2 for the L2 norm")
    return order


def _unit_axis(value: Any) -> Any:
    return checks.unit_axis("unit_axis", value)


_PARTS = {"over": ("tree", _over), "unit_axis": ("auto", _unit_axis)}


def _tree_input(inputs: Sequence[Value]) -> TreeValue:
    (value,) = inputs
    assert isinstance(value, TreeValue)
    return value


def _norm(call: Call, inputs: Sequence[Value], options: Mapping[str, Any]) -> Value:
    return reductions.norm(call, _tree_input(inputs), options["over"], options["order"], options["unit_axis"])


def _sum(call: Call, inputs: Sequence[Value], options: Mapping[str, Any]) -> Value:
    return reductions.total(call, _tree_input(inputs), options["over"], options["unit_axis"])


def _mean(call: Call, inputs: Sequence[Value], options: Mapping[str, Any]) -> Value:
    return reductions.mean(call, _tree_input(inputs), options["over"], options["unit_axis"])


def _streams_kind(name: str) -> Callable[[Sequence[Kind], Mapping[str, Any]], Kind]:
    def kind(inputs: Sequence[Kind], options: Mapping[str, Any]) -> Kind:
        _require_trees(name, inputs)
        return TREE

    return kind


def _extract(call: Call, inputs: Sequence[Value], options: Mapping[str, Any]) -> Value:
    value = _tree_input(inputs)
    return _regrouped([value], extract_streams(_places(value, 0), options["names"]))


def _merge(call: Call, inputs: Sequence[Value], options: Mapping[str, Any]) -> Value:
    values = [value for value in inputs if isinstance(value, TreeValue)]
    starts = accumulate((len(value.values) for value in values), initial=0)
    merged = merge_streams(*(_places(value, start) for value, start in zip(values, starts, strict=False)))
    whole = numbered(call.gradients)
    return _regrouped(values, in_order_of(merged, whole if isinstance(whole, Mapping) else ()))


def _places(value: TreeValue, start: int) -> Mapping[str, Any]:
    """Return the tree with the leaves numbered from start; refuse one that is no packet."""
    places = numbered(value.leaves, start)
    if not isinstance(places, Mapping):
        rule, way_out = "be a packet here, a mapping of names to trees", 'pass {"conv": tree, "head": tree}'
        raise refusal(TreeMismatchError, value.leaves.name, rule, value.leaves.tree, way_out)
    return places


def _regrouped(values: Sequence[TreeValue], places: Tree) -> TreeValue:
    """Return the leaves of some values in another tree, which holds their places."""
    numbers, structure = flatten(places)
    order = [number.value for number in numbers]
    own = [leaf for value in values for leaf in value.leaves.values]
    computed = [leaf for value in values for leaf in value.values]
    formats = [leaf for value in values for leaf in value.formats]
    xp = next((value.leaves.xp for value in values if value.leaves.xp is not None), None)
    kept = [own[place] for place in order]
    leaves = replace(
        values[0].leaves,
        values=kept,
        structure=structure,
        xp=xp if any(leaf is not None for leaf in kept) else None,
    )
    result = tree_value(leaves, [computed[place] for place in order])
    if all(value.formats is value.values for value in values):
        return replace(result, is_given=all(value.is_given for value in values))
    return replace(result, formats=[formats[place] for place in order])


OPERATIONS: dict[str, Operation] = {
    **{name: _elementwise(name) for name in ELEMENTWISE},
    "norm": Operation("norm", 1, {**_PARTS, "order": (2.0, _order)}, _reduction_kind("norm"), _norm),
    "sum": Operation("sum", 1, _PARTS, _reduction_kind("sum"), _sum),
    "mean": Operation("mean", 1, _PARTS, _reduction_kind("mean"), _mean),
    "extract_streams": Operation(
        "extract_streams", 1, {"names": ((), checked_names)}, _streams_kind("extract_streams"), _extract
    ),
    "merge_streams": Operation("merge_streams", None, {}, _streams_kind("merge_streams"), _merge),
}

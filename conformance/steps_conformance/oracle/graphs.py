"""Running a graph's JSON document on exact numbers: each operation by its formula, steps by their oracles.

A value is a number, or a tree: exact arrays by the paths of their leaves, such as ``['conv'][0]``. A norm
over the tree is a number here too.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import adam, clipping, momentum
from .exact import Exact, Scalar, modulus_squared, mp, number
from .units import units

Tree = dict[str, Exact]
Value = Any
"""A number of 50 digits, a bool, or a Tree."""

_DEFAULT_AVERAGE = 0.9


def _sign(x: Scalar) -> Scalar:
    return x / abs(x) if x else x


# Real numbers are compared by their real part: mpmath has no order of complex ones.
_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "negative": lambda x: -x,
    "abs": abs,
    "sign": _sign,
    "square": lambda x: x * x,
    "sqrt": mp.sqrt,
    "exp": mp.exp,
    "log": mp.log,
    "minimum": min,
    "maximum": max,
    "clip": lambda x, lower, upper: min(max(x, lower), upper),
    "where": lambda condition, x, y: x if condition else y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "isfinite": mp.isfinite,
    "logical_and": lambda x, y: x and y,
    "logical_or": lambda x, y: x or y,
    "logical_not": lambda x: not x,
}


@dataclass
class GraphRun:
    """A graph and what its nodes remember, call after call.

    Attributes:
        document: the graph as JSON.
        overrides: values of hyper-parameters that differ from their defaults, as in the document.
        memory: by node, what it keeps: a tree or number, or the gradients that a step has seen.
    """

    document: Mapping[str, Any]
    overrides: Mapping[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    calls: int = 0

    def call(self, gradients: Tree, weights: Tree | None = None) -> Tree:
        """Return the output for one call."""
        values: dict[str, Value] = dict(
            zip(self.document["placeholders"], (gradients, weights), strict=False)
        )
        for parameter in self.document.get("parameters", ()):
            name = parameter["name"]
            values[name] = _decoded(self.overrides.get(name, parameter["default"]))
        for node in self.document["nodes"]:
            inputs = [_operand(value, values) for value in node.get("inputs", ())]
            values[node["name"]] = self._evaluated(node, inputs, values)
        self.calls += 1
        result: Tree = values[self.document["output"]]
        return {path: result[path] for path in gradients}

    def _evaluated(self, node: Mapping[str, Any], inputs: list[Value], values: Mapping[str, Value]) -> Value:
        name, options = node["name"], _options(node.get("options", {}), values)
        if "step" in node:
            description = node["step"]
            return self._stepped(
                name, description["step"], _options(description.get("options", {}), values), inputs
            )
        operation = node["operation"]
        if operation in _RULES:
            return elementwise(_RULES[operation], *inputs)
        if operation in _REDUCTIONS:
            return _reduced(_REDUCTIONS[operation](options), inputs[0], options)
        if operation == "extract_streams":
            return {path: leaf for path, leaf in inputs[0].items() if _stream(path) in options["names"]}
        if operation == "merge_streams":
            return {path: leaf for tree in inputs for path, leaf in tree.items()}
        return self._remembered(name, operation, options, inputs)

    def _remembered(
        self, name: str, operation: str, options: Mapping[str, Any], inputs: list[Value]
    ) -> Value:
        if operation == "counter":
            return mp.mpf(self.calls)
        x = inputs[0]
        old = self.memory.get(name, _zeros(x))
        if operation == "previous_value":
            self.memory[name] = x
            return old
        decay = options.get("decay", number(_DEFAULT_AVERAGE))
        if operation == "trace":
            new = elementwise(lambda m, v: decay * m + v, old, x)
            self.memory[name] = new
            return elementwise(lambda m, v: v + decay * m, new, x) if options.get("nesterov") else new
        new = elementwise(lambda m, v: decay * m + (1 - decay) * v, old, x)
        self.memory[name] = new
        share = 1 - decay ** (self.calls + 1) if options.get("bias_correction") else 1
        return elementwise(lambda m: m / share, new)

    def _stepped(self, name: str, step: str, options: dict[str, Any], inputs: list[Value]) -> Tree:
        seen = self.memory.setdefault(name, [])
        seen.append(inputs)
        return _STEPS[step](seen, options)


def elementwise(rule: Callable[..., Any], *operands: Value) -> Value:
    """Return rule for each element of each leaf; a number, and what is left of a leaf, meet every element."""
    trees = [operand for operand in operands if isinstance(operand, dict)]
    if not trees:
        return rule(*operands)
    result = {}
    for path in trees[0]:
        parts = [operand[path] if isinstance(operand, dict) else operand for operand in operands]
        # Of the same rank all have one shape here: reductions over units fill their unit.
        shape = max((part.shape for part in parts if isinstance(part, Exact)), key=len)
        columns = [_broadcast(part, shape) for part in parts]
        result[path] = Exact(shape, tuple(rule(*row) for row in zip(*columns, strict=True)))
    return result


def _broadcast(part: Any, shape: tuple[int, ...]) -> list[Any]:
    if not isinstance(part, Exact):
        return [part] * math.prod(shape)
    return list(part.values) if part.shape == shape else [part.values[0]] * math.prod(shape)


def _zeros(value: Value) -> Value:
    if isinstance(value, dict):
        return {path: leaf.map(lambda _: mp.mpf(0)) for path, leaf in value.items()}
    return mp.mpf(0)


def _norm_rule(options: Mapping[str, Any]) -> Callable[[Sequence[Scalar]], Any]:
    order = options.get("order", mp.mpf(2))
    if order == 1:
        return lambda values: mp.fsum(abs(value) for value in values)
    if order == 2:
        return lambda values: mp.sqrt(mp.fsum(modulus_squared(value) for value in values))
    return lambda values: max((abs(value) for value in values), default=mp.mpf(0))


_REDUCTIONS: dict[str, Callable[[Mapping[str, Any]], Callable[[Sequence[Scalar]], Any]]] = {
    "norm": _norm_rule,
    "sum": lambda options: mp.fsum,
    "mean": lambda options: lambda values: mp.fsum(values) / len(values) if values else mp.mpf(0),
}


def _reduced(rule: Callable[[Sequence[Scalar]], Any], tree: Tree, options: Mapping[str, Any]) -> Value:
    over = options.get("over", "tree")
    if over == "tree":
        return rule([value for leaf in tree.values() for value in leaf.values])
    if over == "leaf":
        return {path: Exact((), (rule(leaf.values),)) for path, leaf in tree.items()}
    return {path: _by_unit(rule, leaf, options.get("unit_axis", "auto")) for path, leaf in tree.items()}


def _by_unit(rule: Callable[[Sequence[Scalar]], Any], leaf: Exact, unit_axis: Any) -> Exact:
    """Return the leaf with each element replaced by the reduction over its unit."""
    result: list[Any] = list(leaf.values)
    for positions in units(leaf.shape, unit_axis):
        value = rule([leaf.values[position] for position in positions])
        for position in positions:
            result[position] = value
    return Exact(leaf.shape, tuple(result))


def _stream(path: str) -> str:
    return path[2 : path.index("'", 2)]


def _operand(value: Any, values: Mapping[str, Value]) -> Value:
    return values[value] if isinstance(value, str) else _decoded(value)


def _options(options: Mapping[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    return {
        name: values[value["parameter"]]
        if isinstance(value, Mapping) and "parameter" in value
        else _decoded(value)
        for name, value in options.items()
    }


def _decoded(value: Any) -> Any:
    if isinstance(value, Mapping) and "float" in value:
        return number(float.fromhex(value["float"]))
    return value


def _columns(seen: Sequence[Sequence[Value]], place: int) -> list[Tree]:
    return [inputs[place] for inputs in seen]


def _clipped(seen: Sequence[Sequence[Value]], options: dict[str, Any]) -> Tree:
    tree: Tree = seen[-1][0]
    rules = {
        "per-weight": clipping.per_weight,
        "per-layer": clipping.per_layer,
        "global": clipping.global_norm,
    }
    rule = rules[options.get("variant", "per-weight")]
    return dict(zip(tree, rule(list(tree.values()), options.get("threshold", 1)), strict=True))


def _last_update(rule: Callable[..., Any], seen: Sequence[Sequence[Value]], options: dict[str, Any]) -> Tree:
    gradients = _columns(seen, 0)
    weights = _columns(seen, 1) if len(seen[0]) > 1 else None
    return {
        path: rule(
            [tree[path] for tree in gradients],
            None if weights is None else [tree[path] for tree in weights],
            **options,
        ).updates[-1]
        for path in gradients[-1]
    }


def _momentum(seen: Sequence[Sequence[Value]], options: dict[str, Any]) -> Tree:
    gradients = _columns(seen, 0)
    return {
        path: momentum.momentum([tree[path] for tree in gradients], **options).updates[-1]
        for path in gradients[-1]
    }


def _scaled(seen: Sequence[Sequence[Value]], options: dict[str, Any]) -> Tree:
    factor = options["scale"] if "scale" in options else -options["learning_rate"]
    return {path: leaf.map(lambda value: value * factor) for path, leaf in seen[-1][0].items()}


_STEPS: dict[str, Callable[[Sequence[Sequence[Value]], dict[str, Any]], Tree]] = {
    "GradientClippingStep": _clipped,
    "AdamStep": lambda seen, options: _last_update(adam.adam, seen, options),
    "SGDStep": lambda seen, options: _last_update(momentum.sgd, seen, options),
    "MomentumStep": _momentum,
    "ScalingStep": _scaled,
}

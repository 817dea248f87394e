"""Vectors of trees: containers, None, empty trees, masks, and what passes through."""

from typing import Any

from steps_backends import host_array

from ...descriptions import description
from ...oracle import adam as adam_oracle
from ...oracle.exact import exact, number
from ..model import Expected, Vector, VectorCall
from .sheet import Sheet, expect, whole

HALVE = description("ScalingStep", scale=0.5)


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    a, b = host_array([1.0, -2.0]), host_array([[4.0]])
    trees: dict[str, tuple[str, Any]] = {
        "bare": ("TREE-002", a),
        "dict": ("TREE-001", {"b": a, "a": b}),
        "list": ("TREE-001", [a, b]),
        "tuple": ("TREE-001", (a, (b,))),
        "deep": ("TREE-001", {"layers": [{"w": a, "b": b}, ({"w": b},)]}),
        "with-none": ("TREE-003", {"frozen": None, "free": a}),
        "all-none": ("TREE-003", [None, {"a": None}]),
        "empty-dict": ("TREE-006", {}),
        "empty-list": ("TREE-006", []),
        "empty-inside": ("TREE-006", {"a": {}, "b": a}),
    }
    for label, (requirement, tree) in trees.items():
        one = VectorCall(tree, None, _halved(tree))
        sheet.add(requirement, label, "the tree comes back as it went in", HALVE, [one])
    _none_in_adam(sheet)
    return sheet.listed()


def _halved(tree: Any) -> Any:
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: _halved(entry) for key, entry in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_halved(entry) for entry in tree)
    return expect(tree, exact(tree).map(lambda g: g * number(0.5)), wide=0)


def _none_in_adam(sheet: Sheet) -> None:
    """A leaf without a gradient keeps its moments; the counter counts the call."""
    leaf, weights = host_array([0.5]), {"a": host_array([1.0]), "b": host_array([1.0])}
    steps = adam_oracle.adam([exact(leaf)] * 2)
    zero = Expected("float32", (1,), (0.0,))
    calls = []
    for call in range(2):
        moments = {
            key: {"a": Expected("float32", (1,), values.values, 8), "b": zero}
            for key, values in steps.states[call].items()
        }
        update = {"a": expect(leaf, steps.updates[call], wide=8), "b": None}
        calls.append(
            VectorCall({"a": leaf, "b": None}, weights, update, {"count": whole(call + 1), **moments})
        )
    sheet.add(
        "TREE-004", "adam", "None leaves the moments alone", description("AdamStep"), calls, init=weights
    )

"""The values that a hyper-parameter may have: such as never change, and have a form in JSON."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from ..deferred import is_deferred
from ..errors import ArgumentTypeError, refusal
from ..masks import MaskTree
from ..trees import flatten


def settled_value(name: str, value: Any) -> Any:
    """Return a value as a graph keeps it: tuples for lists, masks for trees of booleans, Python's numbers.

    Raises:
        ArgumentTypeError: the value is known later, or a container that could change.
    """
    place = f"the parameter {name!r}"
    if is_deferred(value):
        rule = "have a value, not one that is known later"
        raise refusal(ArgumentTypeError, place, rule, value, "give it a value")
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if type(value).__name__ in ("bool", "bool_") and hasattr(value, "item"):
        return bool(value)
    if isinstance(value, (list, tuple, Mapping)):
        leaves, _ = flatten(value)
        if leaves and all(isinstance(leaf, bool) for leaf in leaves):
            return MaskTree(value)
        if isinstance(value, Mapping):
            way_out = 'pass a number, a text, a tuple, or a mask such as {"kernel": True, "bias": False}'
            raise refusal(ArgumentTypeError, place, "be no mapping but a tree of booleans", value, way_out)
        return tuple(settled_value(name, entry) for entry in value)
    return value

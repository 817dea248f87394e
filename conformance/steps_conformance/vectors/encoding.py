"""Trees of arrays as JSON: containers by name, arrays by dtype, shape and values."""

from collections.abc import Callable
from typing import Any

from steps_backends import HostArray

from .numbers import float_of, text_of

Json = Any


def encoded_array(array: HostArray) -> Json:
    """Return an array as JSON; a complex value is a pair of its parts."""
    return {
        "dtype": array.dtype,
        "shape": list(array.shape),
        "values": [_value_text(v) for v in array.values],
    }


def decoded_array(data: Json) -> HostArray:
    """Return the array that JSON stands for."""
    return HostArray(
        data["dtype"], tuple(data["shape"]), tuple(_value(v, data["dtype"]) for v in data["values"])
    )


def encoded_tree(tree: Any, leaf: Callable[[Any], Json]) -> Json:
    """Return a tree of dicts, lists, tuples and None with its leaves encoded."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {"dict": {key: encoded_tree(entry, leaf) for key, entry in tree.items()}}
    if isinstance(tree, (list, tuple)):
        return {type(tree).__name__: [encoded_tree(entry, leaf) for entry in tree]}
    return leaf(tree)


def decoded_tree(data: Json, leaf: Callable[[Json], Any]) -> Any:
    """Return the tree that JSON stands for."""
    if data is None:
        return None
    if "dict" in data:
        return {key: decoded_tree(entry, leaf) for key, entry in data["dict"].items()}
    if "list" in data:
        return [decoded_tree(entry, leaf) for entry in data["list"]]
    if "tuple" in data:
        return tuple(decoded_tree(entry, leaf) for entry in data["tuple"])
    return leaf(data)


def _value_text(value: Any) -> Json:
    if isinstance(value, bool):
        return value
    if isinstance(value, complex):
        return [text_of(value.real), text_of(value.imag)]
    return text_of(value)


def _value(data: Json, dtype: str) -> Any:
    if isinstance(data, bool):
        return data
    if isinstance(data, list):
        real, imaginary = map(float_of, data)
        return complex(real, imaginary)
    return int(float_of(data)) if dtype.startswith("int") else float_of(data)

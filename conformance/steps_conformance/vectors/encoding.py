"""Trees of arrays as JSON: containers by name, arrays by dtype, shape and values."""

from collections.abc import Callable
from typing import Any

from steps_backends import LEAF_DTYPES, HostArray
from steps_backends.formats import COMPONENTS

from ..received import received
from .numbers import float_of, number_of, text_of

Json = Any

_WHOLE = {f"{sign}int{bits}": (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
DTYPES = (*LEAF_DTYPES, *_WHOLE, "bool")
"""The dtypes that an array in JSON may have."""


def encoded_array(array: HostArray) -> Json:
    """Return an array as JSON; a complex value is a pair of its parts."""
    return {
        "dtype": array.dtype,
        "shape": list(array.shape),
        "values": [_value_text(v) for v in array.values],
    }


def decoded_array(data: Json) -> HostArray:
    """Return the array that JSON stands for.

    Raises:
        ValueError, TypeError: dtype, shape or a value is none; the text says which, and how it is written.
    """
    dtype, shape, values = data["dtype"], data["shape"], data["values"]
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {received(dtype)}")
    if not isinstance(shape, list) or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(
            f"shape must be a list of whole numbers from 0 on, such as [2, 3], got {received(shape)}"
        )
    if not isinstance(values, list):
        raise TypeError(f'values must be a list, such as ["0x1p-1", "+0"], got {received(values)}')
    return HostArray(dtype, tuple(shape), tuple(_placed(value, dtype, n) for n, value in enumerate(values)))


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


def _placed(data: Json, dtype: str, place: int) -> Any:
    try:
        return _value(data, dtype)
    except (ValueError, TypeError) as error:
        raise type(error)(f"values[{place}]: {error}") from None


def _value(data: Json, dtype: str) -> Any:
    if dtype == "bool":
        if not isinstance(data, bool):
            raise ValueError(f"an element of a bool array must be true or false, got {received(data)}")
        return data
    if dtype in COMPONENTS:
        if not isinstance(data, list) or len(data) != 2:
            raise ValueError(
                f'an element of a {dtype} array must be a pair of texts, such as ["0x1p-1", "+0"], '
                f"got {received(data)}"
            )
        return complex(float_of(data[0]), float_of(data[1]))
    return _whole(data, dtype) if dtype in _WHOLE else float_of(data)


def _whole(data: Json, dtype: str) -> int:
    number = number_of(data)
    sign, bits = _WHOLE[dtype]
    least, end = (0, 2**bits) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    # a NaN is in no range
    if not least <= number < end or number != int(number):
        raise ValueError(f"{received(data)} is no number of {dtype}")
    return int(number)

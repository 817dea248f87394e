"""The form in which trees of arrays travel between the suite and a target in another process."""

from typing import Any

from steps_backends import LEAF_DTYPES, HostArray
from steps_backends.host import rounded

from ..received import received
from ..vectors.encoding import decoded_array, encoded_array
from .scope import NotOfferedError

PROTOCOL = 1
"""Number of the protocol; it grows when a target has to know."""

METHODS = (
    "hello",
    "make",
    "init",
    "apply",
    "apply_updates",
    "save_state",
    "load_state",
    "negates",
    "check_end_to_end",
    "describe",
)
"""What may be asked for, in the order of docs/target-protocol.md."""

_DEEPEST = 100
"""Containers inside of containers: far more than a case sends, and far less than Python's stack holds."""

_NAMED = 60
_CARRIED = "the protocol carries dicts with texts as keys, lists, tuples, None and arrays"


class MalformedTreeError(ValueError):
    """What came is no tree of arrays; the text says where and why."""


def encoded(tree: Any) -> Any:
    """Return a tree of HostArrays as JSON.

    Raises:
        NotOfferedError: the tree holds what the protocol does not carry, such as a named tuple.
    """
    if tree is None:
        return None
    if isinstance(tree, HostArray):
        return encoded_array(tree)
    if type(tree) is dict:
        if not all(isinstance(key, str) for key in tree):
            raise NotOfferedError(f"{_CARRIED}; this case has a dict with the keys {list(tree)!r}")
        return {"dict": {key: encoded(entry) for key, entry in tree.items()}}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [encoded(entry) for entry in tree]}
    raise NotOfferedError(f"{_CARRIED}; this case passes a {type(tree).__name__}")


def decoded(data: Any, path: str, *, level: int = 0) -> Any:
    """Return the tree of HostArrays that JSON stands for.

    Args:
        data: the JSON value.
        path: its name in error texts.
        level: how many containers it is in.

    Raises:
        MalformedTreeError: it is no such tree.
    """
    if level > _DEEPEST:
        raise MalformedTreeError(
            f"{path[:_NAMED]}... must be nested at most {_DEEPEST} levels deep; flatten it"
        )
    if data is None:
        return None
    if not isinstance(data, dict):
        raise MalformedTreeError(f"{path} must be null or an object, got {received(data)}")
    if data.keys() == {"dict"} and isinstance(data["dict"], dict):
        return {
            key: decoded(entry, f"{path}[{key!r}]", level=level + 1) for key, entry in data["dict"].items()
        }
    for name, container in (("list", list), ("tuple", tuple)):
        if data.keys() == {name} and isinstance(data[name], list):
            return container(
                decoded(entry, f"{path}[{place}]", level=level + 1) for place, entry in enumerate(data[name])
            )
    if data.keys() == {"dtype", "shape", "values"}:
        return _array(data, path)
    raise MalformedTreeError(
        f"{path} must have the one key dict, list or tuple, or the keys dtype, shape and values, "
        f"got {', '.join(data) or 'none'}"
    )


def _array(data: dict[str, Any], path: str) -> HostArray:
    try:
        array = decoded_array(data)
    except (ValueError, TypeError) as error:
        raise MalformedTreeError(f"{path}: {error}") from None
    if array.dtype in LEAF_DTYPES:
        for place, value in enumerate(array.values):
            if value == value and rounded(value, array.dtype) != value:
                raise MalformedTreeError(
                    f"{path}: values[{place}]: {value!r} is no number of {array.dtype}; "
                    "round before you write it"
                )
    return array

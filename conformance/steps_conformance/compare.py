"""Comparers: each raises Mismatch with a readable text, or returns nothing.

All but ``same_kind`` take values that were read into HostArrays (``run.read``). Wherever they take a
HostArray they also take a tree of them; containers are compared by class and keys, ``None`` by itself.
A NaN equals any NaN; the two zeros differ.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from steps_backends import Backend, HostArray

from .containers import children
from .exact import components
from .places import place_of
from .ulps import exactly, same_value, ulp_problem

_SHOWN = 3


class Mismatch(AssertionError):  # noqa: N818 - the name that cases read
    """A result is not what the requirement says."""


def same_bits(actual: Any, expected: Any, path: str = "") -> None:
    """Require the same dtype, shape and bits; NaN payloads do not count."""
    _walk(actual, expected, path, _same_bits)


def within_ulps(
    actual: Any, exact: Any, ulps: float, *, dtype: str | None = None, of: Any = None, path: str = ""
) -> None:
    """Require every value to lie within so many ulps of the exact one.

    An ulp is the distance of neighbouring numbers of the dtype around the exact value, subnormals
    included; of a complex value each part counts by itself. An exact value that rounds to infinity may
    be met by that infinity. NaN must be met by NaN, an infinity by itself, an exact zero by a zero of
    any sign or a number within the tolerance.

    Args:
        actual: a HostArray, or a tree of them.
        exact: per HostArray a flat sequence of floats, complex numbers, Fractions or mpmath numbers in C
            order, or one such number for an array of one element, or a HostArray.
        ulps: the tolerance.
        dtype: the format whose ulps count; that of the actual array where it is not given.
        of: magnitudes whose ulp counts, in the same form as exact; the exact values where it is not given.
        path: the name of the result in the message.
    """

    def compare(array: HostArray, values: Any, where: str) -> None:
        _within_ulps(array, values, ulps, dtype or array.dtype, None, where)

    if of is None:
        _walk(actual, exact, path, compare)
    elif isinstance(actual, HostArray):
        _within_ulps(actual, exact, ulps, dtype or actual.dtype, of, path)
    else:
        raise TypeError(
            f"of goes with one HostArray, got a tree ({type(actual).__name__}); compare leaf by leaf"
        )


def all_nan(actual: Any, path: str = "") -> None:
    """Require every value to be NaN; of a complex value at least one part."""
    _every(actual, path, lambda value: value != value, "NaN")


def all_zero(actual: Any, path: str = "") -> None:
    """Require every value to be a zero of any sign."""
    _every(actual, path, lambda value: value == 0, "zero")


def all_finite(actual: Any, path: str = "") -> None:
    """Require every value to be finite."""
    _every(actual, path, lambda value: all(math.isfinite(part) for part in components(value)), "finite")


def same_kind(backend: Backend, actual: Any, like: Any, path: str = "") -> None:
    """Require arrays of the same library, dtype, shape and device, in a tree of the same containers.

    Args:
        backend: the backend of both.
        actual: an array, or a tree of them.
        like: what it must be like.
        path: the name of the result in the message.
    """
    _walk(actual, like, path, lambda one, other, where: _same_kind(backend, one, other, where))


def _walk(actual: Any, expected: Any, path: str, compare: Callable[[Any, Any, str], None]) -> None:
    """Walk both trees together; the leaves go to compare."""
    parts = None if isinstance(actual, HostArray) else children(actual)
    if parts is None and actual is not None:
        if expected is None or isinstance(expected, dict):
            raise Mismatch(f"{_named(path)}: expected {_kind(expected)}, got {_kind(actual)}")
        compare(actual, expected, path)
        return
    if type(actual) is not type(expected):
        raise Mismatch(f"{_named(path)}: expected {_kind(expected)}, got {_kind(actual)}")
    if parts is None:
        return
    expected_parts = dict(children(expected) or ())
    for key in expected_parts.keys() ^ dict(parts).keys():
        side = "is missing" if key in expected_parts else "is not expected"
        raise Mismatch(f"{_named(path)}: entry {key} {side}")
    for key, part in parts:
        _walk(part, expected_parts[key], path + key, compare)


def _same_bits(actual: HostArray, expected: Any, path: str) -> None:
    if not isinstance(expected, HostArray):
        raise TypeError(f"{_named(path)}: expected values must be a HostArray, got {_kind(expected)}")
    _same_form(actual, expected, path)
    wrong = [
        (index, f"expected {exactly(want)}, got {exactly(got)}")
        for index, (got, want) in enumerate(zip(actual.values, expected.values, strict=True))
        if not same_value(got, want)
    ]
    _report(wrong, actual, path)


def _same_form(actual: HostArray, expected: HostArray, path: str) -> None:
    if actual.dtype != expected.dtype:
        raise Mismatch(f"{_named(path)}: expected dtype {expected.dtype}, got {actual.dtype}")
    if actual.shape != expected.shape:
        raise Mismatch(f"{_named(path)}: expected shape {expected.shape}, got {actual.shape}")


def _within_ulps(actual: HostArray, exact: Any, ulps: float, dtype: str, of: Any, path: str) -> None:
    wanted = _exact_values(exact, actual, path)
    scales = wanted if of is None else _exact_values(of, actual, path)
    wrong = []
    for index, (got, want, scale) in enumerate(zip(actual.values, wanted, scales, strict=True)):
        problem = ulp_problem(got, want, scale, ulps, dtype)
        if problem:
            wrong.append((index, problem))
    _report(wrong, actual, path)


def _exact_values(exact: Any, actual: HostArray, path: str) -> Sequence[Any]:
    if isinstance(exact, HostArray):
        _same_form(actual, exact, path)
        return exact.values
    values = tuple(exact) if isinstance(exact, (list, tuple)) else (exact,)
    if len(values) != len(actual.values):
        raise Mismatch(f"{_named(path)}: expected {len(values)} values, got {len(actual.values)}: {actual}")
    return values


def _same_kind(backend: Backend, actual: Any, like: Any, path: str) -> None:
    library = backend.declaration.library
    if not backend.holds(actual):
        raise Mismatch(f"{_named(path)}: expected an array of {library}, got {_kind(actual)}")
    if not backend.holds(like):
        raise TypeError(f"{_named(path)}: like must be an array of {library}, got {_kind(like)}")
    _same_form(backend.read(actual), backend.read(like), path)
    got, want = place_of(backend, actual), place_of(backend, like)
    if got != want:
        raise Mismatch(f"{_named(path)}: expected device {want}, got {got}")


def _every(actual: Any, path: str, holds: Callable[[Any], bool], rule: str) -> None:
    if isinstance(actual, HostArray):
        wrong = [
            (i, f"expected {rule}, got {exactly(v)}") for i, v in enumerate(actual.values) if not holds(v)
        ]
        _report(wrong, actual, path)
        return
    parts = children(actual)
    if not parts:
        raise Mismatch(f"{_named(path)}: expected arrays that are all {rule}, got {_kind(actual)}")
    for key, part in parts:
        _every(part, path + key, holds, rule)


def _report(wrong: list[tuple[int, str]], array: HostArray, path: str) -> None:
    if not wrong:
        return
    lines = [
        f"{_named(path)}{list(_position(index, array.shape)) or ''}: {text}" for index, text in wrong[:_SHOWN]
    ]
    if len(wrong) > 1:
        lines.append(
            f"{len(wrong)} of {len(array.values)} values of {array.dtype}{list(array.shape)} are wrong"
        )
    raise Mismatch("\n".join(lines))


def _position(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    position: list[int] = []
    for length in reversed(shape):
        position.insert(0, index % length)
        index //= length
    return tuple(position)


def _named(path: str) -> str:
    return path or "result"


def _kind(value: Any) -> str:
    """Return what a value is, in the words of a reader who may know no Python; classes that are not ours."""
    if value is None:
        return "None"
    if isinstance(value, HostArray):
        return "an array"
    kind = type(value)
    if kind.__module__ == "builtins":
        return f"{'an' if kind.__name__[0] in 'aeiou' else 'a'} {kind.__name__}"
    return f"{kind.__module__}.{kind.__qualname__}"

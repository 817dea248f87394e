"""The same kinds of input for every step: ranks, dtypes, empty leaves, extremes, and what is not finite."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ...containers import leaves, mapped
from ...oracle.samples import sample
from ...targets.protocol import Description
from ..model import Expected, VectorCall, unchanged
from .sheet import ALL_DTYPES, REAL_DTYPES, Sheet

RANKS = ((), (3,), (2, 3), (2, 3, 2), (2, 1, 3, 2), (2, 1, 2, 1, 3))
"""One shape of each rank from 0 to 5."""

_BAD = {"nan": math.nan, "inf": math.inf, "minus-inf": -math.inf}

Answer = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
"""Gradients and weights of some calls -> what each must give; weights of None where a step takes none."""

LeafAnswer = Callable[[HostArray, HostArray | None], Expected]


@dataclass(frozen=True)
class Subject:
    """A step, and what the oracle says to any input.

    Attributes:
        name: the first word of the vectors' names.
        step: the description.
        answer: what some calls, one after another, must give.
        requirement: the requirement of ordinary numbers.
        others: requirements of the kinds that are not ordinary: ``empty``, ``extreme``, ``zeros``, ``nan``
            and ``inf``.
        weighs: whether the step needs weights.
        dtypes: the dtypes that it takes.
        bad: whether NaN and infinities follow from the rule alone.
        wrap: puts any tree into the form that the step takes.
        many: whether to add 100 leaves, where one leaf may see another. A thousand, as the global clip has,
            would keep a compiler busy for minutes.
    """

    name: str
    step: Description
    answer: Answer
    requirement: str
    others: Mapping[str, str] = field(default_factory=dict)
    weighs: bool = False
    dtypes: Sequence[str] = ALL_DTYPES
    bad: bool = True
    many: bool = False
    wrap: Callable[[Any], Any] = lambda tree: tree


def leafwise(answer: LeafAnswer) -> Answer:
    """Return the answer of a step without memory that looks at one leaf at a time."""

    def one(gradient: Any, weight: Any) -> Any:
        weights = by_path_of(weight)
        return mapped(lambda host, path: answer(host, weights.get(path)), gradient)

    def answers(gradients: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        return [one(*pair) for pair in zip(gradients, weights, strict=True)]

    return answers


def callwise(answer: Callable[[list[HostArray], list[HostArray | None]], list[Expected]]) -> Answer:
    """Return the answer of a step that remembers, for each leaf by itself, what was before."""

    def answers(gradients: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        found = [by_path_of(tree) for tree in gradients]
        weighed = [by_path_of(tree) for tree in weights]
        runs = {
            path: answer([tree[path] for tree in found], [tree.get(path) for tree in weighed])
            for path in found[0]
        }
        numbered = enumerate(gradients)
        return [mapped(partial(_at, runs, number), tree) for number, tree in numbered]

    return answers


def _at(runs: Mapping[str, list[Expected]], number: int, _: HostArray, path: str) -> Expected:
    return runs[path][number]


def by_path_of(tree: Any) -> dict[str, HostArray]:
    """Return the arrays of a tree by their paths, None left out."""
    return {path: leaf for path, leaf in leaves(tree) if leaf is not None}


def add_every_kind(sheet: Sheet, subject: Subject) -> None:
    """Add a vector for each kind of input."""
    for dtype in subject.dtypes:
        tree = {f"rank{len(shape)}": sample(shape, dtype, seed=70 + len(shape)) for shape in RANKS}
        _add(sheet, subject, f"ranks-{dtype}", "a leaf of each rank from 0 to 5", [tree])
    _trees(sheet, subject)
    for dtype in REAL_DTYPES:
        tree = {"first": _ends(dtype), "last": sample((2,), dtype, seed=77)}
        shows = "from the smallest subnormal number to the largest"
        _add(sheet, subject, f"ends-{dtype}", shows, [tree], subject.others.get("extreme"))
    zeros = {"first": host_array([0.0, -0.0, 0.5]), "last": host_array([-0.0])}
    _add(sheet, subject, "both-zeros", "zeros of both signs", [zeros], subject.others.get("zeros"))
    if subject.bad:
        _not_finite(sheet, subject)


def _trees(sheet: Sheet, subject: Subject) -> None:
    leaf = sample((2, 3), seed=78)
    empty = {
        "none": HostArray("float32", (0,), ()),
        "flat": HostArray("float32", (0, 3), ()),
        "full": leaf,
    }
    shows = "leaves without elements pass beside others"
    _add(sheet, subject, "empty-leaf", shows, [empty], subject.others.get("empty", "TREE-011"))
    bare = "a tree without an array comes back"
    _add(sheet, subject, "empty-tree", bare, [{"first": {}, "last": []}], "TREE-006")
    _add(sheet, subject, "none-leaf", "None passes", [{"first": None, "last": leaf}], "TREE-003")
    _add(sheet, subject, "one-leaf", "a tree of one array", [{"first": leaf}])
    kinds = [dtype for dtype in ALL_DTYPES if dtype in subject.dtypes]
    several = {dtype: sample((2, 2), dtype, seed=79) for dtype in kinds}
    _add(sheet, subject, "every-dtype", "a leaf of each dtype in one tree", [several])
    if subject.many:
        many = [host_array([(-1.0) ** i * (1 + i % 7) / 8]) for i in range(100)]
        _add(sheet, subject, "100-leaves", "a hundred leaves of one element", [many])


def _ends(dtype: str) -> HostArray:
    form = format_of(dtype)
    ends = (form.smallest_subnormal, form.smallest_normal, 1.0, form.largest)
    return host_array([sign * end for end in ends for sign in (1.0, -1.0)], dtype, (4, 2))


def _not_finite(sheet: Sheet, subject: Subject) -> None:
    places = (("first", 0), ("first", 1), ("first", 2), ("last", 0), ("last", 2))
    for label, bad in _BAD.items():
        calls = []
        for leaf, element in places:
            values = {"first": [0.5, -0.25, 0.75], "last": [-0.5, 0.25, 1.0]}
            values[leaf][element] = bad
            calls.append({key: host_array([[value] for value in row]) for key, row in values.items()})
        requirement = subject.others.get("nan" if bad != bad else "inf")
        shows = "at the first, middle and last element, and in the first and last leaf"
        _add(sheet, subject, f"{label}-at-each-place", shows, calls, requirement)


def _add(
    sheet: Sheet,
    subject: Subject,
    name: str,
    shows: str,
    gradients: list[Any],
    requirement: str | None = None,
) -> None:
    given = [subject.wrap(tree) for tree in gradients]
    weights = [mapped(_weight, tree) if subject.weighs else None for tree in given]
    answers = subject.answer(given, weights)
    calls = [VectorCall(*row) for row in zip(given, weights, answers, strict=True)]
    chosen = requirement or subject.requirement
    sheet.add(chosen, f"{subject.name}-{name}", shows, subject.step, calls)


def _weight(host: HostArray, path: str) -> HostArray:
    return sample(host.shape, host.dtype, seed=80 + len(path))


def same(host: HostArray, _: object = None) -> Expected:
    """Return that a leaf comes back bit for bit."""
    return unchanged(host)

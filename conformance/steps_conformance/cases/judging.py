"""How cases give inputs to a step and judge what comes back. It holds no cases."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steps_backends import HostArray

from ..case import CaseFunction, case
from ..compare import Mismatch, same_bits, within_ulps
from ..containers import leaves, mapped
from ..descriptions import description
from ..flushing import accepting_flushed, accepting_flushed_bits
from ..oracle.exact import Exact, exact
from ..oracle.sequences import Steps
from ..run import Run
from ..targets.checking import checked_result
from ..targets.protocol import Description, Refusal

REAL_DTYPES = ("float16", "bfloat16", "float32", "float64")
WIDE_DTYPES = ("float32", "float64", "complex64", "complex128")
NARROW_DTYPES = ("float16", "bfloat16")
ALL_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
ROUNDED_ONCE = 0.502
"""Ulps of float16 or bfloat16 that a result of float32 costs which is rounded once: PREC-001."""


def case_for_each_row(
    requirement: str, table: Mapping[str, tuple[Any, ...]]
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as one case for each row of a table; a row starts with its dtype."""

    def register(function: CaseFunction) -> CaseFunction:
        for dtype in sorted({row[0] for row in table.values()}):
            rows = {label: row for label, row in table.items() if row[0] == dtype}
            case(requirement, each={"row": rows}, dtypes=(dtype,))(function)
        return function

    return register


def made(run: Run, tree: Any) -> Any:
    """Return the tree with every HostArray made an array of the backend."""
    return mapped(lambda host, _: run.array(host.values, host.dtype, host.shape), tree)


def applied_directly(run: Run, name: str, gradients: Any, weights: Any = None, **options: Any) -> Any:
    """Return what a step gives when it is called as it is, not in the way of the backend."""
    step = run.made_by_the_target(description(name, **options))
    return checked_result(step.apply(gradients, weights, None))


def exacts(tree: Any) -> list[Exact]:
    """Return the leaves of a tree of HostArrays as exact numbers, None left out."""
    return [exact(leaf) for _, leaf in leaves(tree) if leaf is not None]


def like_tree(tree: Any, values: Sequence[Exact]) -> Any:
    """Return exact arrays in the containers of a tree with as many leaves."""
    remaining = iter(values)
    return mapped(lambda _, __: next(remaining), tree)


def near(
    run: Run,
    actual: Any,
    expected: Any,
    wide: float,
    *,
    narrow: float = ROUNDED_ONCE,
    dtype: str | None = None,
) -> None:
    """Require a tree of arrays to lie within some ulps of a tree of exact arrays, shapes included.

    Zero passes for a subnormal expected value where the backend says that it flushes them.

    Args:
        run: the run.
        actual: arrays of the backend.
        expected: exact arrays in the same containers.
        wide: the tolerance in ulps for leaves of float32, float64 and complex dtypes.
        narrow: that for float16 and bfloat16, which are computed in float32 and rounded once.
        dtype: the format whose ulps count; that of each leaf where it is not given.
    """
    read = dict(leaves(run.read(actual)))
    wanted = dict(leaves(expected))
    if read.keys() != wanted.keys():
        raise Mismatch(f"expected leaves at {sorted(wanted)}, got {sorted(read)}")
    for path, got in read.items():
        want = wanted[path]
        if got.shape != want.shape:
            raise Mismatch(f"{path or 'result'}: expected shape {want.shape}, got {got.shape}")
        ulps = narrow if (dtype or got.dtype) in NARROW_DTYPES else wide
        within_ulps(got, accepting_flushed(run.traits, got, want.values), ulps, dtype=dtype, path=path)


def follows(
    run: Run,
    described: Description,
    expected: Steps,
    gradients: Sequence[HostArray],
    weights: Sequence[HostArray] | None = None,
    *,
    wide: float,
    state_ulps: float | None = None,
) -> Any:
    """Require each update of one leaf to be the oracle's, and the last state too; return that state.

    Args:
        run: the run.
        described: the step.
        expected: what the oracle gives for the same gradients and weights.
        gradients: one for each call.
        weights: those of each call, where they are given.
        wide: the tolerance in ulps for real leaves; half as much again for each part of complex ones, and
            float16 and bfloat16 are rounded once.
        state_ulps: the tolerance of the state's parts; not compared where it is not given.
    """
    step = run.make(described)
    state: Any = None
    given: Sequence[HostArray | None] = weights if weights is not None else [None] * len(gradients)
    calls = zip(gradients, given, expected.updates, strict=True)
    for gradient, weight, update in calls:
        result, state = step.apply(made(run, gradient), made(run, weight), state)
        near(run, result, update, 1.5 * wide if gradient.dtype.startswith("complex") else wide)
    if state_ulps is not None and run.shows_state:
        for name, values in expected.states[-1].items():
            near(run, state[name], values, state_ulps)
    return state


def kept(run: Run, actual: Any, original: Any) -> None:
    """Require the bits of a tree of HostArrays; a subnormal may be zero where the backend flushes them."""
    read = run.read(actual)
    found = dict(leaves(read))

    def expected(host: HostArray, path: str) -> HostArray:
        return accepting_flushed_bits(run.traits, found[path], host) if path in found else host

    same_bits(read, mapped(expected, original))


def same_but_for_compilers(run: Run, actual: Any, expected: Any, ulps: float) -> None:
    """Require the same bits of two trees of HostArrays; of two compiled programs floats within some ulps."""
    if "jit" not in run.traits:
        same_bits(actual, expected)
        return
    wanted = dict(leaves(expected))
    found = dict(leaves(actual))
    if found.keys() != wanted.keys():
        raise Mismatch(f"expected leaves at {sorted(wanted)}, got {sorted(found)}")
    for path, got in found.items():
        if got is not None and got.dtype in ALL_DTYPES:
            within_ulps(got, wanted[path], ulps, path=path)
        else:
            same_bits(got, wanted[path], path=path)


def ignores_weights(run: Run, name: str) -> None:
    """Require the same bits with weights that are not finite as with none, over two calls."""
    step, weights = run.step(name), run.array([math.nan, math.inf])
    state: Any = None
    other: Any = None
    for _ in range(2):
        alone, state = step.apply(run.array([1.0, -2.0]), None, state)
        result, other = step.apply(run.array([1.0, -2.0]), weights, other)
        same_bits(run.read(result), run.read(alone))


def refuses_a_name(function: Callable[[], Any], *saying: str) -> None:
    """Require a refusal of an unknown name, as ValueError or KeyError, that says certain texts."""
    refuses_as(("ValueError", "KeyError"), function, *saying)


def refuses_as(kinds: Sequence[str], function: Callable[[], Any], *saying: str) -> None:
    """Require a refusal of one of several kinds that says certain texts."""
    try:
        result = function()
    except Refusal as refusal:
        if refusal.kind not in kinds:
            raise Mismatch(f"must be refused with a {' or '.join(kinds)}, was {refusal}") from None
        missing = [text for text in saying if text not in refusal.message]
        if missing:
            raise Mismatch(f"the refusal must say {missing}, it says: {refusal.message}") from None
        return
    raise Mismatch(f"must be refused, but gave {result!r}")

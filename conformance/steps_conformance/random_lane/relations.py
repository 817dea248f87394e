"""Relations between calls that hold for any implementation: no expected number is needed.

Each takes a vector for its step and its inputs, and raises Mismatch. A relation of clipping is shown on the
joint norm, in finite numbers; `turned` and `reordered` give the other inputs that two of them look at, as
vectors that can be replayed by themselves.
"""

import math
from collections.abc import Sequence
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ..compare import Mismatch, same_bits, same_kind, within_ulps
from ..containers import leaves, mapped
from ..descriptions import chain
from ..exact import components
from ..oracle.exact import exact, norm, number
from ..run import Run
from ..vectors.model import Vector
from .clips import arrays_of, clip_vector

_TWICE = 8
"""Ulps between two results of which each may be off by 4."""

_TURN = 20
"""The power of two by which inputs are scaled."""


def keeps_inputs_and_form(run: Run, vector: Vector) -> None:
    """The inputs stay, the same call gives the same bits, and the result is of the gradients' kind."""
    step, call = run.make(vector.step), vector.calls[0]
    gradients, weights = made(run, call.gradients), made(run, call.weights)
    state = step.init(gradients if weights is None else weights)
    before = run.read([gradients, weights, state])
    first, first_state = step.apply(gradients, weights, state)
    second, second_state = step.apply(gradients, weights, state)
    same_bits(run.read([gradients, weights, state]), before, path="inputs after two calls: ")
    same_bits(run.read([second, second_state]), run.read([first, first_state]), path="the same call again: ")
    same_kind(run.backend, first, gradients, path="result: ")


def passes_none(run: Run, vector: Vector) -> None:
    """None beside the gradients passes, and changes no bit of the others."""
    step, tree = run.make(vector.step), vector.calls[0].gradients
    alone, _ = step.apply(made(run, {"tree": tree}))
    beside, _ = step.apply(made(run, {"none": None, "tree": tree}))
    same_bits(run.read(beside), run.read({"none": None, **alone}), path="beside None: ")


def nests(run: Run, vector: Vector) -> None:
    """The step in a chain, and in a chain of chains, gives the same bits as alone."""
    tree = vector.calls[0].gradients
    alone, _ = run.make(vector.step).apply(made(run, tree))
    twice, _ = run.make(chain(vector.step, vector.step)).apply(made(run, tree))
    nested, _ = run.make(chain(chain(None, vector.step), chain(chain(vector.step)))).apply(made(run, tree))
    single, _ = run.make(chain(chain(vector.step))).apply(made(run, tree))
    same_bits(run.read(single), run.read(alone), path="a chain of one: ")
    same_bits(run.read(nested), run.read(twice), path="nested: ")


def scales_with_its_threshold(run: Run, vector: Vector) -> None:
    """Gradients and threshold times a power of two give the result times that power."""
    (other,) = turned(vector)
    result, turned_result = _result(run, vector), _result(run, other)
    wanted = mapped(lambda host, _: _times(host, 2.0**_TURN), result)
    _near(turned_result, wanted, where="scaled by a power of two: ")


def ignores_the_order_of_leaves(run: Run, vector: Vector) -> None:
    """Another order of the leaves gives the same, each in its place."""
    (other,) = reordered(vector)
    result = [leaf for _, leaf in leaves(_result(run, vector)) if leaf is not None]
    _near(_result(run, other), result[::-1], where="leaves in the opposite order: ")


def clips_once(run: Run, vector: Vector) -> None:
    """What is clipped already stays as it is, but for what rounding to a narrow dtype added to its norm."""
    step = run.make(vector.step)
    once, _ = step.apply(made(run, vector.calls[0].gradients))
    twice, _ = step.apply(once)
    found = run.read(once)
    length = _joint_norm(arrays_of(found))
    share = min(1.0, float(number(_threshold(vector)) / length)) if length else 1.0
    _near(run.read(twice), mapped(lambda host, _: _times(host, share), found), where="clipped again: ")


def ends_within_the_threshold(run: Run, vector: Vector) -> None:
    """The joint norm of the result is at most the threshold, but for rounding."""
    found = arrays_of(_result(run, vector))
    if not found:
        return
    limit = number(float.fromhex(vector.step["options"]["threshold"]["float"]))
    length = _joint_norm(found)
    forms = [format_of(array.dtype) for array in found]
    share = max(_TWICE * 2.0 ** (1 - min(form.precision, 24)) + 2.0**-form.precision for form in forms)
    count = sum(len(array.values) * 2 for array in found)
    floor = max(number(form.smallest_subnormal) for form in forms) * math.sqrt(count)
    if length > limit * (1 + number(share)) + floor:
        raise Mismatch(f"result: its norm must be at most {float(limit)}, it is {float(length)}")


def _joint_norm(arrays: Sequence[HostArray]) -> Any:
    return norm([value for array in arrays for value in exact(array).values])


def turned(vector: Vector) -> list[Vector]:
    """Return the vector with gradients and threshold times a power of two."""
    tree = mapped(lambda host, _: _times(host, 2.0**_TURN), vector.calls[0].gradients)
    return [clip_vector("global", _threshold(vector) * 2.0**_TURN, tree)]


def reordered(vector: Vector) -> list[Vector]:
    """Return the vector with its leaves in the opposite order, in a list."""
    return [clip_vector("global", _threshold(vector), arrays_of(vector.calls[0].gradients)[::-1])]


def may_be_turned(vector: Vector) -> bool:
    """Return whether no number of a vector, nor of its result, leaves the normal range on the way."""
    threshold = _threshold(vector)
    for array in arrays_of(vector.calls[0].gradients):
        form = format_of(array.dtype)
        parts = [abs(float(part)) for value in array.values for part in components(value) if part]
        length = float(norm(exact(array).values))
        share = min(1.0, threshold / length) if length else 1.0
        # the joint norm may be larger than that of this leaf: no result of it may become subnormal
        if any(part > form.largest / 2.0 ** (_TURN + 1) for part in parts):
            return False
        if any(part * share < form.smallest_normal * 2.0**24 for part in parts):
            return False
    return True


def made(run: Run, tree: Any) -> Any:
    """Return the tree in arrays of the backend."""
    return mapped(lambda host, _: run.array(host.values, host.dtype, host.shape), tree)


def _result(run: Run, vector: Vector) -> Any:
    result, _ = run.make(vector.step).apply(made(run, vector.calls[0].gradients))
    return run.read(result)


def _threshold(vector: Vector) -> float:
    return float.fromhex(vector.step["options"]["threshold"]["float"])


def _times(host: HostArray, factor: float) -> HostArray:
    return host_array([value * factor for value in host.values], host.dtype, host.shape)


def _near(actual: Any, wanted: Any, *, where: str) -> None:
    """Compare leaf by leaf, in ulps of the coarsest working precision."""
    pairs = zip(_arrays(actual), _arrays(wanted), strict=True)
    for number_of_leaf, (got, want) in enumerate(pairs):
        path = f"{where}leaf {number_of_leaf}"
        # the result of either may be rounded to a narrow dtype, up or down
        ulps = 1 if format_of(got.dtype).precision < 24 else _TWICE
        within_ulps(got, want, ulps * _coarse(got, actual), path=path)


def _coarse(array: HostArray, tree: Any) -> float:
    precisions = [max(format_of(one.dtype).precision, 24) for one in _arrays(tree)]
    return 2.0 ** (max(format_of(array.dtype).precision, 24) - min(precisions))


def _arrays(tree: Any) -> Sequence[HostArray]:
    return [leaf for _, leaf in leaves(tree) if leaf is not None]

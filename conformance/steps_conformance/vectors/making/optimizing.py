"""Runs of a stateful step over some calls on one leaf, with updates and states from the oracle."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from steps_backends import HostArray, host_array

from ...oracle.exact import Exact, exact
from ...oracle.sequences import Steps
from ..model import Expected, VectorCall
from .sheet import expect, sized, whole

_WIDE = {"float16": "float32", "bfloat16": "float32"}
_REAL = {"complex64": "float32", "complex128": "float64"}
_REAL_ENTRIES = ("second_moment", "second_moment_max")


def steady(count: int, dtype: str, *, seed: int = 0, size: int = 4, scale: float = 1.0) -> list[HostArray]:
    """Return gradients in which each element keeps its sign or phase, so that no sum of them cancels."""
    random = Random(seed)
    units = [_unit(random, dtype.startswith("complex")) for _ in range(size)]
    return [
        host_array([scale * unit * (0.25 + 0.75 * random.random()) for unit in units], dtype)
        for _ in range(count)
    ]


def changing(count: int, dtype: str, *, seed: int = 0, size: int = 4) -> list[HostArray]:
    """Return gradients whose elements change sign from call to call."""
    random = Random(seed)
    return [host_array([random.uniform(-1.0, 1.0) for _ in range(size)], dtype) for _ in range(count)]


def _unit(random: Random, is_complex: bool) -> complex | float:
    if is_complex:
        return complex(random.choice((-0.6, 0.6, 0.8)), random.choice((-0.8, 0.8, 0.6)))
    return random.choice((-1.0, 1.0))


def run_of(
    gradients: Sequence[HostArray],
    weights: Sequence[HostArray] | None,
    steps: Steps,
    *,
    ulps: float,
    counts: bool,
    size: float | None = None,
) -> list[VectorCall]:
    """Return the calls of a run; the state is compared after the first call and the last.

    Args:
        gradients: one for each call.
        weights: one for each call, or None.
        steps: what the oracle gives.
        ulps: the tolerance of updates and moments, for wide dtypes.
        counts: whether the state has a counter.
        size: the magnitude whose ulps count, where results may cancel.
    """
    calls = []
    for number, (gradient, update) in enumerate(zip(gradients, steps.updates, strict=True), start=1):
        of = None if size is None else sized(gradient, size)
        state = None
        if number in (1, len(gradients)):
            count = number if counts else None
            state = expected_state(gradient, steps.states[number - 1], count, ulps, size)
        given = None if weights is None else weights[number - 1]
        calls.append(VectorCall(gradient, given, expect(gradient, update, wide=ulps, of=of), state))
    return calls


def expected_state(
    gradient: HostArray,
    moments: Mapping[str, Exact],
    count: int | None,
    ulps: float,
    size: float | None = None,
) -> Any:
    """Return the expectations for a state of moments and perhaps a counter."""
    state: dict[str, Any] = {} if count is None else {"count": whole(count)}
    for key, values in moments.items():
        dtype = dtype_of_state(gradient.dtype, key)
        of = None if size is None or key in _REAL_ENTRIES else sized(gradient, 1.0).values
        state[key] = Expected(dtype, values.shape, values.values, ulps, of)
    return state


def dtype_of_state(dtype: str, key: str) -> str:
    """Return the dtype of an entry of the state, for gradients of a dtype."""
    wide = _WIDE.get(dtype, dtype)
    return _REAL.get(wide, wide) if key in _REAL_ENTRIES else wide


def exacts_of(arrays: Sequence[HostArray] | None) -> list[Exact] | None:
    """Return arrays as exact numbers."""
    return None if arrays is None else [exact(array) for array in arrays]

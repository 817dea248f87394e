"""What is measured, and how: each measure runs one step on seeded inputs and compares with exact numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from steps_backends import HostArray, format_of

from ..exact import as_fraction, components
from ..run import CaseMistakeError, Run
from ..targets.protocol import Refusal
from ..targets.scope import NotOfferedError, scope_of
from . import inputs
from .results import Row

# A result of many elements is read at its start only: one factor goes for all of them.
_READ = 64


@dataclass(frozen=True)
class Measure:
    """One measurement.

    Attributes:
        requirement: the requirement whose tolerance it backs.
        name: what is measured, in words.
        dtype: of the gradients.
        size: how many elements, or leaves, or calls.
        largest_error: runs it and returns the largest error in ulps.
    """

    requirement: str
    name: str
    dtype: str
    size: int
    largest_error: Callable[[Run], float]


def measure(run: Run, measures: Sequence[Measure]) -> Iterator[Row]:
    """Yield the outcome of each measure on one backend."""
    declaration = run.backend.declaration
    for one in measures:
        parts = (declaration.name, one.requirement, one.name, one.dtype, one.size)
        if one.dtype not in declaration.dtypes:
            yield Row(*parts, None, f"{declaration.name} does not declare {one.dtype}")
            continue
        missing = scope_of(run.target).lacking((one.dtype,), in_process=False)
        if missing:
            yield Row(*parts, None, missing)
            continue
        try:
            yield Row(*parts, one.largest_error(run))
        except (NotOfferedError, CaseMistakeError) as lacking:
            # the mistake of a measure can only be a capability that the target does not claim
            yield Row(*parts, None, str(lacking))
        except Refusal as refusal:
            # a target need not have every step that is measured
            yield Row(*parts, None, f"the target refused: {refusal}")


def largest_error(got: HostArray, wanted: Sequence[Any], of: Any = None) -> float:
    """Return the largest distance of the values from exact ones, in ulps of the dtype.

    Args:
        got: what came back.
        wanted: an exact number for each element.
        of: the magnitude whose ulps count; that of each exact value where it is not given.
    """
    form = format_of(got.dtype)
    errors = [0.0]
    for value, want in zip(got.values, wanted, strict=True):
        pair = isinstance(value, complex)
        sizes = components(want if of is None else of, pair=pair)
        for part, exact, size in zip(components(value), components(want, pair=pair), sizes, strict=True):
            errors.append(_distance(part, exact, size, form.ulp))
    return max(errors)


def _distance(value: float, exact: Any, size: Any, ulp: Callable[[Fraction], Fraction]) -> float:
    here, there, around = as_fraction(value), as_fraction(exact), as_fraction(size)
    if here is None or there is None or around is None:
        return 0.0 if value == exact else float("inf")
    return float(abs(here - there) / ulp(around))


def start_of(run: Run, array: Any) -> HostArray:
    """Return the first elements along the first axis, read."""
    rows = min(inputs.ROWS_READ, array.shape[0])
    # values from another process are read already
    part = array if isinstance(array, HostArray) else array[:rows, ...]
    read: HostArray = run.backend.read(part)
    return HostArray(read.dtype, (min(_READ, len(read.values)),), read.values[:_READ])

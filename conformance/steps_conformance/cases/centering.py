"""Removing the mean of each unit."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import all_nan, same_bits, within_ulps
from ..oracle.centering import centered
from ..oracle.exact import exact
from ..oracle.samples import sample
from ..run import Run
from .judging import ALL_DTYPES, NARROW_DTYPES, REAL_DTYPES, made


def loses_means(run: Run, leaf: HostArray, unit_axis: Any = "auto") -> None:
    """Require what the oracle gives; elements have moduli up to 1, whose ulps count."""
    result, _ = run.step("CenteringStep", unit_axis=unit_axis).apply(made(run, {"a": leaf}))
    got = run.read(result)["a"]
    assert got.shape == leaf.shape, f"expected shape {leaf.shape}, got {got.shape}"
    ulps = 1 if leaf.dtype in NARROW_DTYPES else 4
    largest = max(abs(value) for value in leaf.values)
    # for both parts of a complex value
    scale = [complex(largest, largest) if leaf.dtype.startswith("complex") else largest] * len(leaf.values)
    within_ulps(got, list(centered(exact(leaf), unit_axis).values), ulps, of=scale)


@case("CENTER-001", each={"dtype": ALL_DTYPES})
def matrices(run: Run, dtype: str) -> None:
    """Of the usual form."""
    loses_means(run, sample((16, 3), dtype))


@case("CENTER-001", each={"shape": ((64, 5), (3, 4, 2), (2, 3, 2, 3), (2, 2, 3, 2, 2))})
def every_rank(run: Run, shape: tuple[int, ...]) -> None:
    """Ranks 2 to 5."""
    loses_means(run, sample(shape))


@case("CENTER-001", each={"dtype": REAL_DTYPES})
def whole_means(run: Run, dtype: str) -> None:
    """Columns with means 2 and -1."""
    leaf = host_array([[1.0, -5.0], [3.0, 3.0]], dtype)
    result, _ = run.step("CenteringStep").apply(made(run, leaf))
    same_bits(run.read(result), host_array([[-1.0, -4.0], [1.0, 4.0]], dtype))


@case("CENTER-002", each={"dtype": ALL_DTYPES, "unit_axis": {"auto": "auto", "0": 0, "minus-1": -1}})
def low_ranks(run: Run, dtype: str, unit_axis: Any) -> None:
    """A vector, a scalar and an empty vector."""
    tree = [host_array([1.0, -2.5, -0.0], dtype), host_array(3.5, dtype), HostArray(dtype, (0,), ())]
    result, _ = run.step("CenteringStep", unit_axis=unit_axis).apply(made(run, tree))
    same_bits(run.read(result), tree)


@case("CENTER-003", each={"unit_axis": {"0": 0, "1": 1, "minus-1": -1, "0-and-2": (0, 2), "minus-2": -2}})
def given_axes(run: Run, unit_axis: Any) -> None:
    """Each way to name axes of a leaf of rank 3."""
    loses_means(run, sample((3, 2, 4)), unit_axis)


@case("CENTER-003", each={"unit_axis": {"2": 2, "minus-3": -3}})
def missing_axis(run: Run, unit_axis: int) -> None:
    """With a path."""
    step = run.step("CenteringStep", unit_axis=unit_axis)
    tree = made(run, {"layer1": {"kernel": sample((2, 2))}})
    saying = ("unit_axis", "['layer1']['kernel']")
    run.refuses(lambda: step.apply(tree), kind="ValueError", saying=saying)


@case("CENTER-004", each={"shape": ((1, 4), (4, 1), (1, 1, 4), (1, 4, 1, 1))})
def one_long_axis(run: Run, shape: tuple[int, ...]) -> None:
    """One mean for all."""
    loses_means(run, sample(shape))


@case("CENTER-005", each={"dtype": ALL_DTYPES})
def nan_in_one_unit(run: Run, dtype: str) -> None:
    """The other column and the vector do not see it."""
    tree = [host_array([[1.0, math.nan], [3.0, 1.0]], dtype), host_array([1.0, 2.0], dtype)]
    result, _ = run.step("CenteringStep").apply(made(run, tree))
    matrix, vector = run.read(result)
    all_nan(HostArray(dtype, (2,), matrix.values[1::2]))
    same_bits(HostArray(dtype, (2,), matrix.values[::2]), host_array([-1.0, 1.0], dtype))
    same_bits(vector, tree[1])


REFUSED: dict[str, tuple[str, Any]] = {
    "text": ("ValueError", "last"),
    "float": ("TypeError", 0.0),
    "bool": ("TypeError", False),
    "none": ("TypeError", None),
}


@case("CENTER-006", each={"row": REFUSED})
def bad_unit_axis(run: Run, row: tuple[str, Any]) -> None:
    """Each bad value."""
    kind, value = row
    run.refused(kind, "CenteringStep", saying=("unit_axis",), unit_axis=value)

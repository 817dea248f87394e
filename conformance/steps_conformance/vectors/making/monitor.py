"""Vectors of monitoring: what passes, and the norm of it in the state."""

from collections.abc import Sequence
from typing import Any

from steps_backends import HostArray, host_array

from ...containers import mapped
from ...descriptions import description
from ...oracle.exact import norm
from ...oracle.samples import sample
from ..model import Expected, Vector, VectorCall
from .every_kind import Subject, add_every_kind, same
from .sheet import Sheet, exacts

MONITOR = description("MonitorStep")


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    others = {"empty": "MONITOR-001"}
    add_every_kind(sheet, Subject("monitor", MONITOR, _passing, "MONITOR-001", others, many=True))
    runs = [{"a": sample((3, 2), seed=n, scale=1.0 + n), "b": sample((), seed=n + 60)} for n in range(50)]
    calls = [VectorCall(tree, None, mapped(same, tree), seen(exacts(tree))) for tree in runs]
    shows = "the norm of each of 50 calls, and of that call alone"
    sheet.add("MONITOR-002", "50-calls", shows, MONITOR, calls)
    _edges(sheet)
    return sheet.listed()


def seen(values: Sequence[Any], dtype: str = "float32", ulps: float = 4) -> Any:
    """Return the expected state after finite leaves have passed."""
    length = norm([value for leaf in values for value in leaf.values])
    return {"norm": Expected(dtype, (), (length,), ulps), "finite": Expected("bool", (), (True,))}


def _passing(gradients: Sequence[Any], _: Any) -> list[Any]:
    return [mapped(same, tree) for tree in gradients]


def _edges(sheet: Sheet) -> None:
    for label, dtype, values in (
        ("1e30", "float32", [1e30, -2e30]),
        ("1e-30", "float32", [1e-30, -2e-30]),
        ("float16-300", "float16", [300.0] * 100),
        ("complex-3-4", "complex64", [3 + 4j, 0j]),
        ("float64-1e200", "float64", [1e200, 1e200]),
    ):
        leaf = host_array(values, dtype)
        state = seen([*exacts(leaf)], "float64" if dtype == "float64" else "float32")
        one = VectorCall(leaf, None, same(leaf), state)
        source = "cupy/cupy#780" if dtype == "complex64" else ""
        sheet.add(
            "MONITOR-003", label, "the norm where squares leave the range", MONITOR, [one], source=source
        )
    for label, bad in (("nan", float("nan")), ("inf", float("inf")), ("minus-inf", float("-inf"))):
        leaf = host_array([1.0, bad])
        state = {
            "norm": Expected("float32", (), (abs(bad),)),
            "finite": Expected("bool", (), (False,)),
        }
        one = VectorCall(leaf, None, same(leaf), state)
        sheet.add("MONITOR-004", label, "the state says that not all is finite", MONITOR, [one])
    leaf = host_array([3.0, 4.0])
    before = {"norm": host_array(7.0), "finite": HostArray("bool", (), (False,))}
    one = VectorCall(leaf, None, same(leaf), seen(exacts(leaf)))
    shows = "what was remembered is replaced"
    sheet.add("MONITOR-006", "state-given", shows, MONITOR, [one], state=before)

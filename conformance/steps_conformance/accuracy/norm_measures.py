"""Measures of the norms: how exact a limit is that is set for a share of a known norm."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from steps_backends import LEAF_DTYPES, HostArray, host_array

from ..oracle.exact import mp, number
from ..run import Run
from .inputs import most, norm_of, pattern, repeated, sizes_up_to
from .measuring import Measure, largest_error, start_of
from .pattern_measures import OverPatterns

SHARE = 0.3
"""No power of two, so that results round."""

KINDS = {"mixed": "", "equal": ", equal elements"}
"""Kinds of input, and what they add to the name of a measure."""


def norm_measures(largest: int) -> Iterator[Measure]:
    """Yield the measures of every norm up to a number of elements."""
    for kind, words in KINDS.items():
        for dtype in LEAF_DTYPES:
            for size in sizes_up_to(min(largest, most(kind, dtype))):
                yield Measure(
                    "CLIP-LAYER-004", f"norm of a leaf{words}", dtype, size, LeafNorm(dtype, size, kind)
                )
                yield Measure(
                    "MONITOR-002", f"norm in the state{words}", dtype, size, StateNorm(dtype, size, kind)
                )
            for size in sizes_up_to(min(largest, 1_000_000, most(kind, dtype))):
                name = f"norm of units over axis 0{words}"
                yield Measure("CLIP-REL-016", name, dtype, size, UnitNorm(dtype, size, kind))
        for dtype in ("float32", "bfloat16"):
            for size in sizes_up_to(min(largest, 100_000)):
                name = f"norm over leaves of one element{words}"
                yield Measure("CLIP-GLOBAL-011", name, dtype, size, JointNorm(dtype, size, kind))
    for dtype in ("complex64", "complex128"):
        yield Measure("CLIP-WEIGHT-002", "modulus of each element", dtype, 1000, Modulus(dtype))


@dataclass(frozen=True)
class LeafNorm(OverPatterns):
    """Clip one leaf to a share of its norm."""

    def _error(self, run: Run, values: tuple[Any, ...]) -> float:
        """Return the largest error of the first elements."""
        norm = norm_of(values, self.size)
        threshold = float(norm * SHARE)
        step = run.step("GradientClippingStep", variant="per-layer", threshold=threshold)
        result, _ = step.apply(run.backend.array(repeated(values, self.dtype, self.size)))
        got = start_of(run, result)
        wanted = [number(value) * threshold / norm for value in (values * 64)[: len(got.values)]]
        return largest_error(got, wanted)


@dataclass(frozen=True)
class StateNorm(OverPatterns):
    """Let one leaf pass a monitor, which keeps its norm."""

    def _error(self, run: Run, values: tuple[Any, ...]) -> float:
        """Return the error of the norm in the state, in ulps of its own dtype."""
        _, state = run.step("MonitorStep").apply(run.backend.array(repeated(values, self.dtype, self.size)))
        return largest_error(run.backend.read(state["norm"]), [norm_of(values, self.size)])


@dataclass(frozen=True)
class UnitNorm(OverPatterns):
    """Clip four columns to a share of the norm of weights that are all ones."""

    def _error(self, run: Run, values: tuple[Any, ...]) -> float:
        """Return the largest error of the first rows."""
        norm, weight_norm = norm_of(values, self.size), mp.sqrt(self.size)
        threshold = float(norm / weight_norm * SHARE)
        step = run.step(
            "GradientClippingStep", variant="per-weight-relative", threshold=threshold, unit_axis=1
        )
        gradients = run.backend.array(repeated(values, self.dtype, self.size, columns=4))
        one: Any = 1.0 + 0j if self.dtype.startswith("complex") else 1.0
        weights = run.backend.array(HostArray(self.dtype, (self.size, 4), (one,) * (4 * self.size)))
        result, _ = step.apply(gradients, weights)
        got = start_of(run, result)
        factor = number(threshold) * weight_norm / norm
        wanted = [number(value) * factor for value in values * 16 for _ in range(4)]
        return largest_error(got, wanted[: len(got.values)])


@dataclass(frozen=True)
class JointNorm:
    """Clip many leaves of one element to a share of their joint norm."""

    dtype: str
    size: int
    kind: str

    def __call__(self, run: Run) -> float:
        """Return the largest error over the first leaves."""
        values = pattern(self.dtype, self.kind, seed=self.size)
        norm = norm_of(values, self.size)
        threshold = float(norm * SHARE)
        step = run.step("GradientClippingStep", variant="global", threshold=threshold)
        whole = repeated(values, self.dtype, self.size).values
        result, _ = step.apply([run.backend.array(host_array([value], self.dtype)) for value in whole])
        errors = [
            largest_error(run.backend.read(leaf), [number(value) * threshold / norm])
            for leaf, value in zip(result[:64], whole[:64], strict=True)
        ]
        return max(errors)


@dataclass(frozen=True)
class Modulus:
    """Limit each complex element to a modulus below its own."""

    dtype: str

    def __call__(self, run: Run) -> float:
        """Return the largest error over a thousand elements."""
        values = pattern(self.dtype, "mixed", seed=7)
        threshold = 1e-4
        step = run.step("GradientClippingStep", variant="per-weight", threshold=threshold)
        result, _ = step.apply(run.backend.array(repeated(values, self.dtype, len(values))))
        wanted = [number(value) * number(threshold) / abs(number(value)) for value in values]
        return largest_error(run.backend.read(result), wanted)

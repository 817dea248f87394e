"""The list of measures."""

from collections.abc import Iterator
from typing import Any

from steps_backends import HostArray, host_array

from ..oracle import adam, momentum, rmsprop
from ..oracle.exact import exact, mp, number
from ..run import Run
from ..vectors.making.optimizing import steady
from .inputs import norm_of, pattern, repeated, sizes_up_to
from .measuring import Measure, largest_error, start_of

# The largest size for each dtype: wider ones cost more, and narrow ones hold no more digits to lose.
_LARGEST = {
    "float16": 100_000,
    "bfloat16": 100_000,
    "float32": 10_000_000,
    "float64": 1_000_000,
    "complex64": 1_000_000,
}
_KINDS = ("mixed", "equal")
_SHARE = 0.3  # no power of two, so that results round


def all_measures(largest: int) -> list[Measure]:
    """Return every measure up to a size of inputs."""
    return [*_leaf_norms(largest), *_unit_norms(largest), *_joint_norms(largest), *_optimizers()]


def _leaf_norms(largest: int) -> Iterator[Measure]:
    for dtype, most in _LARGEST.items():
        for size in sizes_up_to(min(largest, most)):
            yield Measure("CLIP-LAYER-004", "norm of a leaf", dtype, size, _LeafNorm(dtype, size))


def _unit_norms(largest: int) -> Iterator[Measure]:
    for size in sizes_up_to(min(largest, 1_000_000)):
        yield Measure("CLIP-REL-016", "norm of units over axis 0", "float32", size, _UnitNorm(size))


def _joint_norms(largest: int) -> Iterator[Measure]:
    for size in sizes_up_to(min(largest, 100_000)):
        yield Measure("CLIP-GLOBAL-011", "norm over leaves of one element", "float32", size, _JointNorm(size))


def _optimizers() -> Iterator[Measure]:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for calls in (1, 10, 100):
            for requirement, rule in (
                ("ADAM-001", adam.adam),
                ("RMSPROP-001", rmsprop.rmsprop),
                ("SGD-002", momentum.sgd),
            ):
                yield Measure(
                    requirement,
                    _NAMES[requirement],
                    dtype,
                    calls,
                    _Optimizer(requirement, rule, dtype, calls),
                )


_NAMES = {"ADAM-001": "Adam, calls", "RMSPROP-001": "RMSProp, calls", "SGD-002": "SGD with momentum, calls"}


class _LeafNorm:
    """Clip one leaf to a share of its norm."""

    def __init__(self, dtype: str, size: int) -> None:
        self.dtype, self.size = dtype, size

    def __call__(self, run: Run) -> float:
        """Return the largest error over the kinds of input."""
        return max(self._error(run, kind) for kind in _KINDS)

    def _error(self, run: Run, kind: str) -> float:
        values = pattern(self.dtype, kind, seed=self.size)
        norm = norm_of(values, self.size)
        threshold = float(norm * _SHARE)
        step = run.step("GradientClippingStep", variant="per-layer", threshold=threshold)
        result, _ = step.apply(run.backend.array(repeated(values, self.dtype, self.size)))
        got = start_of(run, result)
        return largest_error(
            got, [number(value) * threshold / norm for value in (values * 64)[: len(got.values)]]
        )


class _UnitNorm:
    """Clip four columns to a share of the norm of weights that are all ones."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, run: Run) -> float:
        """Return the largest error over the kinds of input."""
        return max(self._error(run, kind) for kind in _KINDS)

    def _error(self, run: Run, kind: str) -> float:
        values = pattern("float32", kind, seed=self.size)
        norm, weight_norm = norm_of(values, self.size), mp.sqrt(self.size)
        threshold = float(norm / weight_norm * _SHARE)
        step = run.step(
            "GradientClippingStep", variant="per-weight-relative", threshold=threshold, unit_axis=1
        )
        gradients = run.backend.array(repeated(values, "float32", self.size, columns=4))
        weights = run.backend.array(HostArray("float32", (self.size, 4), (1.0,) * (4 * self.size)))
        result, _ = step.apply(gradients, weights)
        got = start_of(run, result)
        factor = number(threshold) * weight_norm / norm
        wanted = [number(value) * factor for value in values * 16 for _ in range(4)]
        return largest_error(got, wanted[: len(got.values)])


class _JointNorm:
    """Clip many leaves of one element to a share of their joint norm."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, run: Run) -> float:
        """Return the largest error over the first leaves."""
        values = pattern("float32", "mixed", seed=self.size)
        norm = norm_of(values, self.size)
        threshold = float(norm * _SHARE)
        step = run.step("GradientClippingStep", variant="global", threshold=threshold)
        whole = repeated(values, "float32", self.size).values
        leaves = [run.backend.array(host_array([value])) for value in whole]
        result, _ = step.apply(leaves)
        errors = [
            largest_error(run.backend.read(leaf), [number(value) * threshold / norm])
            for leaf, value in zip(result[:64], whole[:64], strict=True)
        ]
        return max(errors)


class _Optimizer:
    """Run an optimizer on gradients that keep their sign, and compare the last update."""

    def __init__(self, requirement: str, rule: Any, dtype: str, calls: int) -> None:
        self.rule, self.dtype, self.calls = rule, dtype, calls
        self.step, self.options = {
            "ADAM-001": ("AdamStep", {}),
            "RMSPROP-001": ("RMSPropStep", {}),
            "SGD-002": ("SGDStep", {"momentum": 0.9}),
        }[requirement]

    def __call__(self, run: Run) -> float:
        """Return the largest error of the last update."""
        gradients = steady(self.calls, self.dtype, seed=self.calls, size=32)
        wanted = self.rule([exact(g) for g in gradients], **self.options).updates[-1].values
        step = run.step(self.step, **self.options)
        state = step.init(run.backend.array(gradients[0]))
        for gradient in gradients:
            update, state = step.apply(run.backend.array(gradient), None, state)
        got: HostArray = run.backend.read(update)
        return largest_error(got, wanted)

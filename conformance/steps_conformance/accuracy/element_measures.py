"""Measures of the steps whose result at one place depends on that place, or on its unit, alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from steps_backends import LEAF_DTYPES, HostArray, host_array

from ..descriptions import description
from ..oracle import adam, constraint, momentum, rmsprop
from ..oracle.exact import Exact, exact, mp, number
from ..oracle.samples import sample
from ..run import Run
from ..targets.protocol import Description
from ..vectors.making.optimizing import steady
from .inputs import most, pattern, repeated, sizes_up_to
from .measuring import Measure, largest_error, start_of
from .norm_measures import KINDS
from .pattern_measures import OverPatterns

_REAL = tuple(dtype for dtype in LEAF_DTYPES if not dtype.startswith("complex"))


def element_measures(largest: int) -> Iterator[Measure]:
    """Yield the measures of sums, products, moments, means and sets."""
    for dtype in LEAF_DTYPES:
        for calls in (1, 10, 100):
            for requirement, name, step, rule, options in _RUNS:
                run = Training(step, rule, options, dtype, calls)
                yield Measure(requirement, f"{name}, calls", dtype, calls, run)
        for size in sizes_up_to(largest):
            yield Measure("SCALE-001", "scaling by a tenth", dtype, size, Scaling(dtype, size))
        yield Measure("DECAY-001", "weight decay", dtype, 1000, Decay(dtype))
        yield Measure("UPDATE-001", "apply_updates", dtype, 1000, Sum(dtype))
        for kind, words in KINDS.items():
            for size in sizes_up_to(min(largest, 1_000_000, most(kind, dtype))):
                mean = Mean(dtype, size, kind)
                yield Measure("CENTER-001", f"mean over axis 0{words}", dtype, size, mean)
    for dtype in _REAL:
        for label, (requirement, options, bound) in _SETS.items():
            rule = _RULES[label]
            yield Measure(
                requirement, f"weights in a {label}", dtype, 1000, Landing(options, rule, bound, dtype)
            )


_RUNS: tuple[tuple[str, str, str, Callable[..., Any], dict[str, Any]], ...] = (
    ("ADAM-001", "Adam", "AdamStep", adam.adam, {}),
    ("ADAM-005", "Adam with amsgrad", "AdamStep", adam.adam, {"amsgrad": True}),
    ("ADAM-006", "Adam with nesterov", "AdamStep", adam.adam, {"nesterov": True}),
    ("RMSPROP-001", "RMSProp", "RMSPropStep", rmsprop.rmsprop, {}),
    ("RMSPROP-005", "RMSProp with momentum", "RMSPropStep", rmsprop.rmsprop, {"momentum": 0.9}),
    ("SGD-002", "SGD with momentum", "SGDStep", momentum.sgd, {"momentum": 0.9}),
    ("MOMENTUM-001", "momentum", "MomentumStep", momentum.momentum, {}),
)
_SETS: dict[str, tuple[str, dict[str, Any], float]] = {
    "half-space": ("CONSTRAINT-001", {"constraint": "nonnegative"}, 0.0),
    "box": ("CONSTRAINT-002", {"constraint": "box", "lower": -0.3, "upper": 0.7}, 0.7),
    "ball": ("CONSTRAINT-003", {"constraint": "norm-ball", "radius": 0.7}, 0.7),
    "sphere": ("CONSTRAINT-004", {"constraint": "unit-norm"}, 1.0),
}
_RULES: dict[str, Callable[[Exact, Exact], Exact]] = {
    "half-space": constraint.nonnegative,
    "box": lambda u, w: constraint.box(u, w, -0.3, 0.7),
    "ball": lambda u, w: constraint.norm_ball(u, w, 0.7),
    "sphere": constraint.unit_norm,
}


@dataclass(frozen=True)
class Training:
    """Run a step on gradients that keep their sign, and compare the last update."""

    step: str
    rule: Callable[..., Any]
    options: dict[str, Any]
    dtype: str
    calls: int

    def __call__(self, run: Run) -> float:
        """Return the largest error of the last update."""
        gradients = steady(self.calls, self.dtype, seed=self.calls, size=32)
        wanted = self.rule([exact(g) for g in gradients], **self.options).updates[-1].values
        step = run.step(self.step, **self.options)
        state = step.init(run.backend.array(gradients[0]))
        for gradient in gradients:
            update, state = step.apply(run.backend.array(gradient), None, state)
        return largest_error(run.backend.read(update), wanted)


@dataclass(frozen=True)
class Scaling:
    """Multiply by a number that no binary format holds."""

    dtype: str
    size: int

    def __call__(self, run: Run) -> float:
        """Return the largest error of the first elements."""
        values = pattern(self.dtype, "mixed", seed=self.size)
        step = run.step("ScalingStep", scale=0.1)
        result, _ = step.apply(run.backend.array(repeated(values, self.dtype, self.size)))
        got = start_of(run, result)
        return largest_error(got, [number(value) * number(0.1) for value in values[: len(got.values)]])


@dataclass(frozen=True)
class Decay:
    """Add a tenth of weights of the same sign."""

    dtype: str

    def __call__(self, run: Run) -> float:
        """Return the largest error of the sums."""
        gradient = sample((1000,), self.dtype, seed=1)
        weight = HostArray(self.dtype, (1000,), tuple(value / 2 for value in gradient.values))
        step = run.step("WeightDecayStep", weight_decay=0.1)
        result, _ = step.apply(run.backend.array(gradient), run.backend.array(weight))
        wanted = exact(gradient).map(lambda g, w: g + number(0.1) * w, exact(weight))
        return largest_error(run.backend.read(result), wanted.values)


@dataclass(frozen=True)
class Sum:
    """Add updates to weights, both of one dtype."""

    dtype: str

    def __call__(self, run: Run) -> float:
        """Return the largest error of the sums."""
        weight, update = sample((1000,), self.dtype, seed=1), sample((1000,), self.dtype, seed=2, scale=0.1)
        result = run.apply_updates(run.backend.array(weight), run.backend.array(update))
        wanted = exact(weight).map(lambda w, u: w + u, exact(update))
        return largest_error(run.backend.read(result), wanted.values)


@dataclass(frozen=True)
class Mean(OverPatterns):
    """Take the mean of each of four columns away."""

    def _error(self, run: Run, values: tuple[Any, ...]) -> float:
        """Return the largest error of the first rows, in ulps of the largest element."""
        result, _ = run.step("CenteringStep", unit_axis=1).apply(
            run.backend.array(repeated(values, self.dtype, self.size, columns=4))
        )
        got = start_of(run, result)
        whole, rest = divmod(self.size, len(values))
        exacts = [number(value) for value in values]
        mean = (whole * mp.fsum(exacts) + mp.fsum(exacts[:rest])) / self.size
        used = exacts[: self.size]
        largest = max(max(abs(mp.re(value)), abs(mp.im(value))) for value in used)
        wanted = [value - mean for value in exacts * 16 for _ in range(4)]
        size = mp.mpc(largest, largest) if self.dtype.startswith("complex") else largest
        return largest_error(got, wanted[: len(got.values)], of=size)


@dataclass(frozen=True)
class Landing:
    """Change an update so that the weights land in a set."""

    options: dict[str, Any]
    rule: Callable[[Exact, Exact], Exact]
    bound: float
    dtype: str
    shape: tuple[int, ...] = field(default=(250, 4))

    def __call__(self, run: Run) -> float:
        """Return the largest error of weights + updates, in ulps of max(|weight|, |update|, bound)."""
        weight = sample(self.shape, self.dtype, seed=1)
        update = sample(self.shape, self.dtype, seed=2, scale=2.0)
        described: Description = description("ConstraintStep", **self.options)
        result, _ = run.make(described).apply(run.backend.array(update), run.backend.array(weight))
        got: HostArray = run.backend.read(result)
        wanted = self.rule(exact(update), exact(weight)).values
        errors = [
            largest_error(
                host_array([g], self.dtype), [w], of=max(abs(number(old)), abs(w), number(self.bound))
            )
            for g, w, old in zip(got.values, wanted, weight.values, strict=True)
        ]
        return max(errors)

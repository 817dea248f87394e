"""Schedules: learning rates and scales as functions of the step count.

A schedule takes the number of calls before this one, as a 0-d float32 array on the gradients' device
(0 at the first call), and returns a 0-d array. Any such function will do; these can also be described.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

from . import checks
from .deferred import Deferrable
from .descriptions import described, options_beyond_defaults
from .errors import ArgumentError, ArgumentTypeError, StepsError, refusal, shown
from .namespaces import Array, Namespace, astype, namespace_of, recorder_of
from .numerics.formats import FLOAT32, constant

Schedule = Callable[[Array], Array]


@dataclass(frozen=True)
class DescribedSchedule(Deferrable, ABC):
    """A schedule that `describe` can name."""

    described_as = "schedule"

    def __post_init__(self) -> None:
        """Check and normalise the options."""
        self._check_options()

    @abstractmethod
    def _check_options(self) -> None:
        """Refuse bad options and normalise good ones with `_set`."""

    def _set(self, **options: Any) -> None:
        for name, value in options.items():
            object.__setattr__(self, name, value)

    def __call__(self, count: Array) -> Array:
        """Return the value at a count, a 0-d float32 array."""
        xp = namespace_of(count)
        if xp is None:
            raise refusal(ArgumentTypeError, "count", "be a 0-d float32 array", count, "pass an array")
        return self.at(xp, count)

    @abstractmethod
    def at(self, xp: Namespace, count: Array) -> Array:
        """Return the value at a count."""

    def describe(self) -> dict[str, Any]:
        """Return ``{"schedule": name, "options": {...}}``."""
        return {"schedule": type(self).__name__, "options": described(options_beyond_defaults(self))}


def _share(xp: Namespace, count: Array, steps: int) -> Array:
    """Return how much of the steps is over, from 0 to 1."""
    return xp.minimum(count / xp.full_like(count, float(steps)), xp.ones_like(count))


@dataclass(frozen=True)
class ConstantSchedule(DescribedSchedule):
    """The same value at every step.

    value(t) = value

    Args:
        value: finite number.

    Raises:
        ArgumentError, ArgumentTypeError: value is not a finite number.

    Example:
        >>> import numpy as np
        >>> float(ConstantSchedule(0.5)(np.asarray(3, dtype=np.float32)))
        0.5
    """

    value: float

    def _check_options(self) -> None:
        self._set(value=checks.finite("value", self.value))

    def at(self, xp: Namespace, count: Array) -> Array:
        """Return the value."""
        return xp.full_like(count, constant(self.value, FLOAT32))


@dataclass(frozen=True)
class ExponentialSchedule(DescribedSchedule):
    """Decay by a fixed factor every so many steps, without jumps.

    value(t) = initial * decay_rate**(t / decay_steps)

    Args:
        initial: value at step 0, finite.
        decay_rate: factor over decay_steps, above 0.
        decay_steps: whole number of steps of at least 1.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks its rule.

    Example:
        >>> import numpy as np
        >>> float(ExponentialSchedule(1.0, 0.25, 10)(np.asarray(5, dtype=np.float32)))
        0.5
    """

    initial: float
    decay_rate: float
    decay_steps: int

    def _check_options(self) -> None:
        self._set(
            initial=checks.finite("initial", self.initial),
            decay_rate=checks.finite_positive("decay_rate", self.decay_rate),
            decay_steps=checks.whole_number("decay_steps", self.decay_steps, minimum=1),
        )

    def at(self, xp: Namespace, count: Array) -> Array:
        """Return initial * decay_rate**(count / decay_steps)."""
        power = xp.exp(count * (math.log(self.decay_rate) / self.decay_steps))
        return power * constant(self.initial, FLOAT32)


@dataclass(frozen=True)
class LinearSchedule(DescribedSchedule):
    """A straight line, then its end.

    value(t) = initial + (final - initial) * min(t / steps, 1)

    Args:
        initial: value at step 0, finite.
        final: value from step ``steps`` on, finite.
        steps: length, a whole number of at least 1.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks its rule.

    Example:
        >>> import numpy as np
        >>> float(LinearSchedule(1.0, 0.0, 4)(np.asarray(1, dtype=np.float32)))
        0.75
    """

    initial: float
    final: float
    steps: int

    def _check_options(self) -> None:
        self._set(
            initial=checks.finite("initial", self.initial),
            final=checks.finite("final", self.final),
            steps=checks.whole_number("steps", self.steps, minimum=1),
        )

    def at(self, xp: Namespace, count: Array) -> Array:
        """Return the point on the line."""
        share = _share(xp, count, self.steps)
        # Both ends exactly, which initial + (final - initial) * share does not promise.
        return constant(self.initial, FLOAT32) * (1.0 - share) + constant(self.final, FLOAT32) * share


@dataclass(frozen=True)
class CosineSchedule(DescribedSchedule):
    """Half a cosine wave, then its end (Loshchilov and Hutter 2017, without restarts).

    value(t) = final + (initial - final) * (1 + cos(pi * min(t / steps, 1))) / 2

    Args:
        initial: value at step 0, finite.
        steps: length, a whole number of at least 1.
        final: value from step ``steps`` on, finite. Default 0.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks its rule.

    Example:
        >>> import numpy as np
        >>> float(CosineSchedule(1.0, 10)(np.asarray(10, dtype=np.float32)))
        0.0
    """

    initial: float
    steps: int
    final: float = 0.0

    def _check_options(self) -> None:
        self._set(
            initial=checks.finite("initial", self.initial),
            steps=checks.whole_number("steps", self.steps, minimum=1),
            final=checks.finite("final", self.final),
        )

    def at(self, xp: Namespace, count: Array) -> Array:
        """Return the point on the wave."""
        # (1 + cos x) / 2 = cos(x / 2)^2, which keeps its digits near the end.
        half_wave = xp.cos(_share(xp, count, self.steps) * (math.pi / 2))
        share = xp.where(count >= self.steps, 0.0, half_wave * half_wave)
        return constant(self.initial, FLOAT32) * share + constant(self.final, FLOAT32) * (1.0 - share)


@dataclass(frozen=True)
class WarmupSchedule(DescribedSchedule):
    """A straight line up to the start of another schedule, then that schedule from its own step 0.

    value(t) = initial + (then(0) - initial) * t / steps   for t < steps,   then(t - steps) from there on

    Args:
        steps: length of the warm-up, a whole number of at least 1.
        then: the schedule that follows, or a number.
        initial: value at step 0, finite. Default 0.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks its rule.

    Example:
        >>> import numpy as np
        >>> float(WarmupSchedule(4, ConstantSchedule(1.0))(np.asarray(1, dtype=np.float32)))
        0.25
    """

    steps: int
    then: Schedule | float
    initial: float = 0.0

    def _check_options(self) -> None:
        self._set(
            steps=checks.whole_number("steps", self.steps, minimum=1),
            then=checked_rate("then", self.then),
            initial=checks.finite("initial", self.initial),
        )

    def at(self, xp: Namespace, count: Array) -> Array:
        """Return the point on the line, or the value of the schedule that follows."""
        share = _share(xp, count, self.steps)
        target = self._following(count * 0)
        rising = constant(self.initial, FLOAT32) * (1.0 - share) + target * share
        after = xp.maximum(count - self.steps, xp.zeros_like(count))
        return xp.where(count < self.steps, rising, self._following(after))

    def _following(self, count: Array) -> Array:
        then = ConstantSchedule(self.then) if isinstance(self.then, float) else self.then
        return schedule_value("then", then, count)


@dataclass(frozen=True)
class PiecewiseSchedule(DescribedSchedule):
    """Steps down (or up) at given counts.

    value(t) = values[i] with i the number of boundaries that are at most t

    Args:
        boundaries: increasing whole numbers of at least 1.
        values: finite numbers, one more than boundaries.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks its rule.

    Example:
        >>> import numpy as np
        >>> float(PiecewiseSchedule([10], [1.0, 0.5])(np.asarray(10, dtype=np.float32)))
        0.5
    """

    boundaries: Sequence[int]
    values: Sequence[float]

    def _check_options(self) -> None:
        boundaries = tuple(
            checks.whole_number("boundaries", entry, minimum=1)
            for entry in _sequence("boundaries", self.boundaries)
        )
        values = tuple(checks.finite("values", entry) for entry in _sequence("values", self.values))
        if list(boundaries) != sorted(set(boundaries)):
            raise refusal(ArgumentError, "boundaries", "increase", boundaries, "sort them, each once")
        if len(values) != len(boundaries) + 1:
            rule = f"have {len(boundaries) + 1} entries, one more than boundaries"
            raise refusal(ArgumentError, "values", rule, values, "give one value per piece")
        self._set(boundaries=boundaries, values=values)

    def at(self, xp: Namespace, count: Array) -> Array:
        """Return the value of the piece."""
        first, *rest = (xp.full_like(count, constant(value, FLOAT32)) for value in self.values)
        value = first
        for boundary, following in zip(self.boundaries, rest, strict=True):
            value = xp.where(count >= boundary, following, value)
        return value


def _sequence(argument: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise refusal(ArgumentTypeError, argument, "be a list or tuple", value, "pass a list")
    return value


SCHEDULES: dict[str, type[DescribedSchedule]] = {
    schedule.__name__: schedule
    for schedule in (
        ConstantSchedule,
        CosineSchedule,
        ExponentialSchedule,
        LinearSchedule,
        PiecewiseSchedule,
        WarmupSchedule,
    )
}


def checked_rate(argument: str, value: Any) -> float | Schedule:
    """Return a finite number as a float, or a schedule as it is."""
    if callable(value) and not isinstance(value, type):
        return value  # type: ignore[no-any-return]
    rule = "be a finite number or a schedule"
    if isinstance(value, type):
        raise refusal(ArgumentTypeError, argument, rule, value, f"make the schedule: {value.__name__}(...)")
    if isinstance(value, bool) or not isinstance(value, Real):
        way_out = "pass a number such as 1e-3, or a function of the step count"
        raise refusal(ArgumentTypeError, argument, rule, value, way_out)
    return checks.finite(argument, value)


def schedule_value(argument: str, schedule: Schedule, count: Array) -> Array:
    """Return the value of a schedule at a count as a 0-d float32 array on the count's device.

    Raises:
        ArgumentTypeError: the schedule returned something else than a number or a 0-d array.
    """
    xp = namespace_of(count)
    recorder = recorder_of(xp)
    if recorder is not None:
        return recorder.evaluated(partial(schedule_value, argument, schedule), count)
    value = schedule(count)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return xp.full_like(count, constant(checks.finite(argument, value), FLOAT32))
    if namespace_of(value) is not xp or value.shape != ():
        raise bad_schedule_value(argument, schedule, value)
    return astype(xp, value, xp.float32)


def bad_schedule_value(argument: str, schedule: Schedule, value: Any) -> StepsError:
    """Return the error for a schedule that returned no scalar."""
    way_out = "compute the value from the count that the schedule is given"
    return ArgumentTypeError(
        f"{argument} must return a number or a 0-d array of the count's library, got {shown(value)} "
        f"from {shown(schedule)}; {way_out}",
        argument=argument,
        rule="return a number or a 0-d array of the count's library",
        value=value,
        way_out=way_out,
    )

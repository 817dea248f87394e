"""Gradient descent and its options."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import same_bits
from ..descriptions import description, schedule
from ..oracle.exact import exact, number
from ..oracle.momentum import sgd
from ..oracle.samples import sample, steady
from ..run import Run
from .judging import ALL_DTYPES, exacts, follows, ignores_weights, made, near


@case("SGD-001", each={"dtype": ALL_DTYPES})
def default_rate(run: Run, dtype: str) -> None:
    """A hundredth."""
    gradient = sample((40,), dtype)
    result, _ = run.step("SGDStep").apply(made(run, [gradient]))
    near(run, result, [exact(gradient).map(lambda g: -number(0.01) * g)], 1.5, narrow=0.502)


@case("SGD-001", each={"rate": (1.0, 0.3, -2.0)})
def other_rates(run: Run, rate: float) -> None:
    """A negative rate keeps the sign."""
    gradient = sample((40,))
    result, _ = run.step("SGDStep", learning_rate=rate).apply(made(run, gradient))
    near(run, result, exact(gradient).map(lambda g: -number(rate) * g), 1.5)


@case("SGD-002", each={"dtype": ALL_DTYPES, "momentum": (0.3, 0.9, 0.99)})
def momentum(run: Run, dtype: str, momentum: float) -> None:
    """Ten calls."""
    gradients = steady((30,), 10, dtype)
    expected = sgd(exacts(gradients), momentum=momentum)
    follows(run, description("SGDStep", momentum=momentum), expected, gradients, wide=8, state_ulps=8)


@case("SGD-002")
def momentum_by_hand(run: Run) -> None:
    """Buffers 4, 6, 7, updates minus half of that."""
    step, state = run.step("SGDStep", momentum=0.5, learning_rate=0.5), None
    for buffer in (4.0, 6.0, 7.0):
        result, state = step.apply(run.array([4.0]), None, state)
        same_bits(run.read(result), host_array([-buffer / 2]))
        same_bits(run.read(state), {"momentum": host_array([buffer])})


@case("SGD-003", each={"dtype": ALL_DTYPES})
def nesterov(run: Run, dtype: str) -> None:
    """Ten calls."""
    gradients = steady((30,), 10, dtype)
    options: dict[str, Any] = {"momentum": 0.9, "nesterov": True, "learning_rate": 0.3}
    follows(run, description("SGDStep", **options), sgd(exacts(gradients), **options), gradients, wide=8)


@case("SGD-003")
def nesterov_by_hand(run: Run) -> None:
    """Buffers 4 and 6, directions 6 and 7."""
    step, state = run.step("SGDStep", momentum=0.5, learning_rate=0.5, nesterov=True), None
    for direction in (6.0, 7.0):
        result, state = step.apply(run.array([4.0]), None, state)
        same_bits(run.read(result), host_array([-direction / 2]))


@case("SGD-004", each={"dtype": ALL_DTYPES, "momentum": (0.0, 0.9)})
def decoupled_decay(run: Run, dtype: str, momentum: float) -> None:
    """Weights with the sign of the gradients, so that the summands do not cancel."""
    gradients, weights = steady((30,), 5, dtype), steady((30,), 5, dtype)
    options: dict[str, Any] = {"weight_decay": 0.3, "momentum": momentum}
    expected = sgd(exacts(gradients), exacts(weights), **options)
    follows(run, description("SGDStep", **options), expected, gradients, weights, wide=8)


@case("SGD-004")
def decay_stays_out_of_the_buffer(run: Run) -> None:
    """Momentum 1/2, decay 1/4, weights 8: updates -(4 + 2) and -(6 + 2)."""
    step, state = run.step("SGDStep", momentum=0.5, weight_decay=0.25, learning_rate=1.0), None
    for update in (-6.0, -8.0):
        result, state = step.apply(run.array([4.0]), run.array([8.0]), state)
        same_bits(run.read(result), host_array([update]))


CONSTANT = schedule("ConstantSchedule", value=0.1)
FORMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "decay": ({"weight_decay": 0.1}, ()),
    "momentum": ({"momentum": 0.5}, ("momentum",)),
    "scheduled": ({"learning_rate": CONSTANT}, ("count",)),
    "both": ({"momentum": 0.5, "learning_rate": CONSTANT}, ("momentum", "count")),
}


@case("SGD-005", each={"form": FORMS})
def form_of_the_state(run: Run, form: tuple[dict[str, Any], tuple[str, ...]]) -> None:
    """The initial state."""
    options, names = form
    expected: dict[str, Any] = {name: {"a": HostArray("float32", (2,), (0.0, 0.0))} for name in names}
    if "count" in expected:
        expected["count"] = HostArray("int32", (), (0,))
    step = run.step("SGDStep", **options)
    same_bits(run.read(step.init({"a": run.array([1.0, 2.0])})), expected)


REFUSED: dict[str, tuple[str, str, Any]] = {
    "momentum-is-one": ("ValueError", "momentum", 1.0),
    "momentum-negative": ("ValueError", "momentum", -0.5),
    "momentum-nan": ("ValueError", "momentum", math.nan),
    "weight-decay-negative": ("ValueError", "weight_decay", -0.1),
    "rate-nan": ("ValueError", "learning_rate", math.nan),
    "rate-text": ("TypeError", "learning_rate", "0.1"),
    "rate-bool": ("TypeError", "learning_rate", True),
    "momentum-bool": ("TypeError", "momentum", True),
    "nesterov-number": ("TypeError", "nesterov", 1),
}


@case("SGD-006", each={"row": REFUSED})
def bad_option(run: Run, row: tuple[str, str, Any]) -> None:
    """Each bad value."""
    kind, name, value = row
    run.refused(kind, "SGDStep", saying=(name, str(value)), **{name: value})


@case("SGD-007")
def weights_for_decay(run: Run) -> None:
    """With decay and without."""
    gradient = run.array([1.0])
    run.step("SGDStep").apply(gradient)
    step = run.step("SGDStep", weight_decay=0.1)
    run.refuses(lambda: step.apply(gradient), kind="ValueError", saying=("weights",))


@case("SGD-007")
def weights_without_decay(run: Run) -> None:
    """NaN and infinite weights, over two calls."""
    ignores_weights(run, "SGDStep")

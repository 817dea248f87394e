"""Adding a multiple of the weights."""

import math
from typing import Any

from steps_backends import host_array

from ..case import case
from ..compare import same_bits, within_ulps
from ..oracle.exact import exact, number
from ..oracle.samples import sample, steady
from ..run import Run
from .judging import ALL_DTYPES, REAL_DTYPES, made, near


@case("DECAY-001", each={"dtype": ALL_DTYPES, "amount": (1e-4, 0.3, 2.0)})
def of_one_sign(run: Run, dtype: str, amount: float) -> None:
    """Gradients and weights of one sign, so that nothing cancels."""
    gradient, weight = steady((40,), 2, dtype)
    result, _ = run.step("WeightDecayStep", weight_decay=amount).apply(
        made(run, [gradient]), made(run, [weight])
    )
    expected = exact(gradient).map(lambda g, w: g + number(amount) * w, exact(weight))
    near(run, result, [expected], 2, narrow=0.502)


@case("DECAY-001")
def of_both_signs(run: Run) -> None:
    """The tolerance counts from the larger summand."""
    gradient, weight = sample((40,)), sample((40,), seed=1)
    result, _ = run.step("WeightDecayStep", weight_decay=0.7).apply(made(run, gradient), made(run, weight))
    pairs = zip(gradient.values, weight.values, strict=True)
    exacts = [(number(g), number(0.7) * number(w)) for g, w in pairs]
    within_ulps(run.read(result), [g + w for g, w in exacts], 2, of=[max(abs(g), abs(w)) for g, w in exacts])


@case("DECAY-001")
def default_amount(run: Run) -> None:
    """A ten-thousandth."""
    gradient, weight = steady((10,), 2)
    result, _ = run.step("WeightDecayStep").apply(made(run, gradient), made(run, weight))
    near(run, result, exact(gradient).map(lambda g, w: g + number(1e-4) * w, exact(weight)), 2)


@case("DECAY-001", each={"dtype": REAL_DTYPES, "weights_dtype": REAL_DTYPES})
def weights_of_another_dtype(run: Run, dtype: str, weights_dtype: str) -> None:
    """The dtype of the gradient stays, and its working precision counts at the least."""
    gradient = sample((20,), dtype)
    weight = host_array([value * 3 for value in gradient.values], weights_dtype)
    result, _ = run.step("WeightDecayStep", weight_decay=0.3).apply(made(run, gradient), made(run, weight))
    expected = exact(gradient).map(lambda g, w: g + number(0.3) * w, exact(weight))
    near(run, result, expected, 2, narrow=0.502)
    assert run.read(result).dtype == dtype, f"expected {dtype}, got {run.read(result).dtype}"


@case("DECAY-002")
def without_weights(run: Run) -> None:
    """The weights left out."""
    step = run.step("WeightDecayStep")
    run.refuses(lambda: step.apply({"a": run.array([1.0])}), kind="ValueError", saying=("weights",))


REFUSED: dict[str, tuple[str, Any]] = {
    "negative": ("ValueError", -0.1),
    "nan": ("ValueError", math.nan),
    "text": ("TypeError", "0.1"),
    "bool": ("TypeError", True),
}


@case("DECAY-003", each={"row": REFUSED})
def bad_option(run: Run, row: tuple[str, Any]) -> None:
    """Each bad value."""
    kind, value = row
    run.refused(kind, "WeightDecayStep", saying=("weight_decay", str(value)), weight_decay=value)


@case("DECAY-004", each={"dtype": REAL_DTYPES})
def no_decay(run: Run, dtype: str) -> None:
    """Ordinary weights."""
    gradient, weight = sample((10,), dtype), sample((10,), dtype, seed=1)
    result, _ = run.step("WeightDecayStep", weight_decay=0.0).apply(made(run, gradient), made(run, weight))
    same_bits(run.read(result), gradient)

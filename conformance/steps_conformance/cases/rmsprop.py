"""RMSProp and its options."""

import math
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ..case import case
from ..compare import all_finite, all_zero, same_bits, within_ulps
from ..descriptions import description, schedule
from ..oracle.exact import number
from ..oracle.rmsprop import rmsprop
from ..oracle.samples import sample, steady
from ..run import Run
from .judging import ALL_DTYPES, exacts, follows, ignores_weights, made

NAN = math.nan
LARGEST = format_of("float32").largest


def ten_calls(run: Run, dtype: str, **options: Any) -> None:
    """Require the formula in each of ten calls without weights, and in the state after them."""
    gradients = steady((30,), 10, dtype)
    expected = rmsprop(exacts(gradients), **options)
    follows(run, description("RMSPropStep", **options), expected, gradients, wide=8, state_ulps=8)


@case("RMSPROP-001", each={"dtype": ALL_DTYPES})
def defaults(run: Run, dtype: str) -> None:
    """Without options."""
    ten_calls(run, dtype)


@case("RMSPROP-001", each={"dtype": ("float32", "float64"), "decay": (0.0, 0.5, 0.999)})
def other_decays(run: Run, dtype: str, decay: float) -> None:
    """No, short and long memory."""
    ten_calls(run, dtype, decay=decay, learning_rate=0.3)


@case(
    "RMSPROP-002",
    each={"dtype": ("float32", "float64"), "inside": (True, False), "epsilon": (1e-8, 0.25, 1e-20)},
)
def place_of_epsilon(run: Run, dtype: str, inside: bool, epsilon: float) -> None:
    """Large enough to tell, and smaller than any ulp."""
    ten_calls(run, dtype, epsilon=epsilon, epsilon_inside=inside)


@case("RMSPROP-003", each={"dtype": ALL_DTYPES, "inside": (True, False)})
def centred(run: Run, dtype: str, inside: bool) -> None:
    """Gradients of alternating sign, whose mean stays small."""
    base = sample((20,), dtype)
    gradients = [
        host_array([sign * value for value in base.values], dtype)
        for sign in (1, -0.75, 0.5, -1, 0.875, -0.625)
    ]
    options: dict[str, Any] = {"centered": True, "epsilon_inside": inside, "decay": 0.5}
    expected = rmsprop(exacts(gradients), **options)
    follows(run, description("RMSPropStep", **options), expected, gradients, wide=16)


@case("RMSPROP-003")
def centred_by_hand(run: Run) -> None:
    """Gradients 3 and -1 with decay 1/2: v = 11/4, mean = 1/4, and a variance of 43/16."""
    step = run.step("RMSPropStep", centered=True, decay=0.5, epsilon=0.0, learning_rate=1.0)
    _, state = step.apply(run.array([3.0]))
    result, state = step.apply(run.array([-1.0]), None, state)
    same_bits(run.read(state["mean"]), host_array([0.25]))
    same_bits(run.read(state["second_moment"]), host_array([2.75]))
    within_ulps(run.read(result), [1 / number(2.6875) ** number(0.5)], 8)


@case("RMSPROP-004", each={"dtype": ("float16", "float32", "float64"), "decay": (0.1, 0.9)})
def variance_of_a_constant(run: Run, dtype: str, decay: float) -> None:
    """Fifty times the same gradients, in the end without variance."""
    step, state = run.step("RMSPropStep", centered=True, decay=decay, epsilon=1e-3), None
    gradient = made(run, sample((40,), dtype))
    for _ in range(50):
        result, state = step.apply(gradient, None, state)
    all_finite(run.read(result))


@case("RMSPROP-004", each={"dtype": ("float16", "float32", "float64"), "decay": (0.1, 0.9)})
def variance_below_epsilon(run: Run, dtype: str, decay: float) -> None:
    """The same with an epsilon that covers no rounding error, outside of the root."""
    options = {"decay": decay, "epsilon": 1e-6, "epsilon_inside": False}
    step, state = run.step("RMSPropStep", centered=True, **options), None
    gradient = made(run, sample((40,), dtype))
    for _ in range(50):
        result, state = step.apply(gradient, None, state)
        all_finite(run.read(result))


@case("RMSPROP-005", each={"dtype": ALL_DTYPES, "momentum": (0.5, 0.9)})
def momentum(run: Run, dtype: str, momentum: float) -> None:
    """Ten calls."""
    ten_calls(run, dtype, momentum=momentum, learning_rate=0.1)


@case("RMSPROP-005")
def momentum_under_a_schedule(run: Run) -> None:
    """The rate falls to a thousandth in the second call: directions 1 and 1, buffers 1 and 1.5."""
    rate = schedule("PiecewiseSchedule", boundaries=(1,), values=(1.0, 2.0**-10))
    options: dict[str, Any] = {"momentum": 0.5, "decay": 0.0, "epsilon": 0.0, "learning_rate": rate}
    step = run.step("RMSPropStep", **options)
    state: Any = None
    for expected in (-1.0, -1.5 * 2.0**-10):
        result, state = step.apply(run.array([4.0]), None, state)
        same_bits(run.read(result), host_array([expected]))
    same_bits(run.read(state["momentum"]), host_array([1.5]))


@case("RMSPROP-006", each={"dtype": ALL_DTYPES})
def nesterov(run: Run, dtype: str) -> None:
    """Ten calls."""
    ten_calls(run, dtype, momentum=0.9, nesterov=True, learning_rate=0.1)


@case("RMSPROP-007", each={"dtype": ALL_DTYPES, "momentum": (0.0, 0.9)})
def decoupled_decay(run: Run, dtype: str, momentum: float) -> None:
    """Weights with the sign of the gradients, so that the summands do not cancel."""
    gradients, weights = steady((30,), 10, dtype), steady((30,), 10, dtype)
    options: dict[str, Any] = {"weight_decay": 0.3, "learning_rate": 0.01, "momentum": momentum}
    expected = rmsprop(exacts(gradients), exacts(weights), **options)
    described = description("RMSPropStep", **options)
    follows(run, described, expected, gradients, weights, wide=8, state_ulps=8)


@case(
    "RMSPROP-008", each={"dtype": ALL_DTYPES, "centered": (False, True), "inside": (True,), "epsilon": (0.0,)}
)
@case(
    "RMSPROP-008",
    each={"dtype": ALL_DTYPES, "centered": (False,), "inside": (False,), "epsilon": (0.0, 1e-8)},
)
def zero_gradients(run: Run, dtype: str, centered: bool, inside: bool, epsilon: float) -> None:
    """Two calls of nothing but zeros."""
    gradient = made(run, host_array([0.0, -0.0], dtype))
    step = run.step("RMSPropStep", epsilon=epsilon, epsilon_inside=inside, centered=centered)
    state: Any = None
    for _ in range(2):
        result, state = step.apply(gradient, None, state)
        all_zero(run.read(result))


@case("RMSPROP-009")
def saturated_moment(run: Run) -> None:
    """One huge gradient, then ordinary ones."""
    gradients = [host_array([1e30, -3e38]), *[host_array([1.0, 1.0])] * 3]
    expected = rmsprop(exacts(gradients), largest=LARGEST)
    follows(run, description("RMSPropStep"), expected, gradients, wide=8, state_ulps=4)
    _, state = run.step("RMSPropStep").apply(made(run, gradients[0]))
    same_bits(run.read(state["second_moment"]), host_array([LARGEST, LARGEST]))


FORMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "centred": ({"centered": True}, ("mean",)),
    "momentum": ({"momentum": 0.5}, ("momentum",)),
    "scheduled": ({"learning_rate": schedule("ConstantSchedule", value=0.1)}, ("count",)),
    "all": (
        {"centered": True, "momentum": 0.5, "learning_rate": schedule("ConstantSchedule", value=0.1)},
        ("mean", "momentum", "count"),
    ),
}


@case("RMSPROP-010", each={"form": FORMS})
def form_of_the_state(run: Run, form: tuple[dict[str, Any], tuple[str, ...]]) -> None:
    """The initial state."""
    options, names = form
    zeros = {"a": HostArray("float32", (2,), (0.0, 0.0))}
    expected: dict[str, Any] = dict.fromkeys(("second_moment", *names), zeros)
    if "count" in expected:
        expected["count"] = HostArray("int32", (), (0,))
    step = run.step("RMSPropStep", **options)
    same_bits(run.read(step.init({"a": run.array([1.0, 2.0])})), expected)


REFUSED: dict[str, tuple[str, str, Any]] = {
    "decay-is-one": ("ValueError", "decay", 1.0),
    "decay-negative": ("ValueError", "decay", -0.1),
    "decay-nan": ("ValueError", "decay", NAN),
    "momentum-is-one": ("ValueError", "momentum", 1.0),
    "momentum-negative": ("ValueError", "momentum", -0.5),
    "epsilon-negative": ("ValueError", "epsilon", -1e-8),
    "weight-decay-negative": ("ValueError", "weight_decay", -0.1),
    "rate-nan": ("ValueError", "learning_rate", NAN),
    "rate-bool": ("TypeError", "learning_rate", True),
    "decay-text": ("TypeError", "decay", "0.9"),
    "centered-number": ("TypeError", "centered", 1),
    "inside-text": ("TypeError", "epsilon_inside", "yes"),
}


@case("RMSPROP-011", each={"row": REFUSED})
def bad_option(run: Run, row: tuple[str, str, Any]) -> None:
    """Each bad value."""
    kind, name, value = row
    run.refused(kind, "RMSPropStep", saying=(name, str(value)), **{name: value})


@case("RMSPROP-012", each={"dtype": ("complex64", "complex128")})
def modulus_of_a_complex_gradient(run: Run, dtype: str) -> None:
    """3 + 4j goes by its modulus of 5, and so does a purely imaginary gradient."""
    gradients = [host_array([3 + 4j, -2j, 0.5 - 0.25j], dtype)] * 3
    several: tuple[dict[str, Any], ...] = ({"learning_rate": 1.0}, {"momentum": 0.5, "nesterov": True})
    for options in several:
        expected = rmsprop(exacts(gradients), **options)
        described = description("RMSPropStep", **options)
        state = follows(run, described, expected, gradients, wide=8, state_ulps=8)
    real = {"complex64": "float32", "complex128": "float64"}[dtype]
    assert run.read(state["second_moment"]).dtype == real, "the second moment must be real"


@case("RMSPROP-013")
def weights_for_decay(run: Run) -> None:
    """With decay and without."""
    gradient = run.array([1.0])
    run.step("RMSPropStep").apply(gradient)
    step = run.step("RMSPropStep", weight_decay=0.1)
    run.refuses(lambda: step.apply(gradient), kind="ValueError", saying=("weights",))


@case("RMSPROP-013")
def weights_without_decay(run: Run) -> None:
    """NaN and infinite weights, over two calls."""
    ignores_weights(run, "RMSPropStep")

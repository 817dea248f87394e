"""Adam and its options."""

import math
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ..case import case
from ..compare import all_finite, all_nan, all_zero, same_bits, within_ulps
from ..descriptions import description
from ..oracle.adam import adam
from ..oracle.exact import number
from ..oracle.samples import sample, steady
from ..run import Run
from .judging import ALL_DTYPES, WIDE_DTYPES, exacts, follows, ignores_weights, made, near

NAN, INF = math.nan, math.inf
CALLS = 10
LARGEST = format_of("float32").largest


def ten_calls(run: Run, dtype: str, **options: Any) -> None:
    """Require the formula in each of ten calls without weights, and in the state after them."""
    gradients = steady((30,), CALLS, dtype)
    expected = adam(exacts(gradients), **options)
    follows(run, description("AdamStep", **options), expected, gradients, wide=8, state_ulps=8)


@case("ADAM-001", each={"dtype": ALL_DTYPES})
def defaults(run: Run, dtype: str) -> None:
    """Without options."""
    ten_calls(run, dtype)


@case(
    "ADAM-001",
    each={
        "dtype": ("float32", "float64"),
        "betas": {"short": (0.5, 0.75), "long": (0.99, 0.9999), "none": (0.0, 0.9)},
    },
)
def other_betas(run: Run, dtype: str, betas: tuple[float, float]) -> None:
    """Short, long and no memory."""
    ten_calls(run, dtype, beta1=betas[0], beta2=betas[1], learning_rate=0.3)


@case("ADAM-001")
def matrix_and_scalar(run: Run) -> None:
    """Other ranks in one tree, each as if alone."""
    gradients = [{"m": m, "s": s} for m, s in zip(steady((2, 3), 3), steady((), 3, seed=4), strict=True)]
    expected = {name: adam(exacts([each[name] for each in gradients])) for name in ("m", "s")}
    step, state = run.step("AdamStep"), None
    for call, gradient in enumerate(gradients):
        result, state = step.apply(made(run, gradient), None, state)
        near(run, result, {name: steps.updates[call] for name, steps in expected.items()}, 8)


@case("ADAM-002")
def changing_signs(run: Run) -> None:
    """Fresh signs in each call."""
    gradients = [sample((30,), seed=seed) for seed in range(CALLS)]
    expected = adam(exacts(gradients), learning_rate=0.5)
    step, state = run.step("AdamStep", learning_rate=0.5), None
    for gradient, update in zip(gradients, expected.updates, strict=True):
        result, state = step.apply(made(run, gradient), None, state)
        within_ulps(run.read(result), list(update.values), 8, of=[0.75] * 30)


FIRST = [1e-6, -1e-3, 1.0, -37.5, 1e9]


@case("ADAM-003", each={"betas": {"default": (0.9, 0.999), "short": (0.3, 0.5), "long": (0.999, 0.999999)}})
def first_update(run: Run, betas: tuple[float, float]) -> None:
    """Gradients of many sizes."""
    gradients = [host_array(FIRST)]
    options: dict[str, Any] = {"beta1": betas[0], "beta2": betas[1]}
    follows(run, description("AdamStep", **options), adam(exacts(gradients), **options), gradients, wide=8)
    (gradient,) = exacts(gradients)
    plain = gradient.map(lambda g: -number(1e-3) * g / (abs(g) + number(1e-8)))
    near(run, run.step("AdamStep", **options).apply(made(run, gradients[0]))[0], plain, 8)


EPSILONS = {
    "large": (0.5, 0.0),
    "inside": (0.0, 0.25),
    "both": (2.0, 3.0),
    "tiny": (1e-20, 1e-30),
    "none": (0.0, 0.0),
}


@case("ADAM-004", each={"dtype": ("float32", "float64"), "epsilons": EPSILONS})
def epsilons(run: Run, dtype: str, epsilons: tuple[float, float]) -> None:
    """Each alone, and both."""
    ten_calls(run, dtype, epsilon=epsilons[0], epsilon_root=epsilons[1], learning_rate=1.0)


@case("ADAM-005", each={"dtype": ALL_DTYPES})
def amsgrad(run: Run, dtype: str) -> None:
    """Gradients that shrink, so that the largest moment is not the last."""
    sizes = (8.0, 1.0, 0.125, 0.25, 4.0, 0.125)
    gradients = [sample((20,), dtype, scale=size) for size in sizes]
    options: dict[str, Any] = {"amsgrad": True, "beta2": 0.5, "learning_rate": 0.1}
    expected = adam(exacts(gradients), **options)
    follows(run, description("AdamStep", **options), expected, gradients, wide=8, state_ulps=8)


@case("ADAM-005")
def amsgrad_saturates(run: Run) -> None:
    """v_hat leaves the range before v does."""
    step = run.step("AdamStep", amsgrad=True)
    _, state = step.apply(run.array([1e30, 1e20, 1.0]))
    state = run.read(state)
    all_finite(state["second_moment_max"])
    assert state["second_moment_max"].values[:2] == (LARGEST, LARGEST), f"got {state['second_moment_max']}"


@case("ADAM-006", each={"dtype": ALL_DTYPES})
def nesterov(run: Run, dtype: str) -> None:
    """Ten calls."""
    ten_calls(run, dtype, nesterov=True, learning_rate=0.1)


@case("ADAM-006")
def nesterov_with_amsgrad(run: Run) -> None:
    """Both at once."""
    ten_calls(run, "float32", nesterov=True, amsgrad=True, beta1=0.7)


@case("ADAM-007", each={"dtype": ("complex64", "complex128")})
def modulus_of_a_complex_gradient(run: Run, dtype: str) -> None:
    """3 + 4j goes by its modulus of 5, and so does a purely imaginary gradient."""
    gradients = [host_array([3 + 4j, -2j, 0.5 - 0.25j], dtype)] * 3
    options: dict[str, Any] = {"learning_rate": 1.0}
    state = follows(
        run, description("AdamStep", **options), adam(exacts(gradients), **options), gradients, wide=8
    )
    real = {"complex64": "float32", "complex128": "float64"}[dtype]
    assert run.read(state["second_moment"]).dtype == real, "the second moment must be real"


@case("ADAM-008", each={"dtype": ALL_DTYPES})
def decoupled_decay(run: Run, dtype: str) -> None:
    """Weights with the sign of the gradients, so that the summands do not cancel; new ones in each call."""
    gradients = steady((30,), CALLS, dtype)
    weights = steady((30,), CALLS, dtype)
    options: dict[str, Any] = {"weight_decay": 0.3, "learning_rate": 0.01}
    expected = adam(exacts(gradients), exacts(weights), **options)
    described = description("AdamStep", **options)
    follows(run, described, expected, gradients, weights, wide=8, state_ulps=8)


@case("ADAM-008")
def decay_alone(run: Run) -> None:
    """A zero gradient leaves -rate * decay * w."""
    weights = sample((5,))
    step = run.step("AdamStep", learning_rate=0.5, weight_decay=0.25)
    result, _ = step.apply(made(run, host_array([0.0] * 5)), made(run, weights))
    same_bits(run.read(result), host_array([-0.125 * value for value in weights.values]))


@case("ADAM-009", each={"dtype": ALL_DTYPES, "epsilon": (1e-8, 0.0), "amsgrad": (False,)})
@case("ADAM-009", each={"dtype": ("float32",), "epsilon": (1e-8, 0.0), "amsgrad": (True,)})
def zero_gradients(run: Run, dtype: str, epsilon: float, amsgrad: bool) -> None:
    """Two calls of nothing but zeros."""
    step, state = run.step("AdamStep", epsilon=epsilon, amsgrad=amsgrad), None
    gradient = made(run, host_array([0.0, -0.0], dtype))
    for _ in range(2):
        result, state = step.apply(gradient, None, state)
        all_zero(run.read(result))


@case("ADAM-010", each={"options": {"plain": {}, "nesterov": {"nesterov": True}, "short": {"beta2": 0.5}}})
def saturated_moment(run: Run, options: dict[str, Any]) -> None:
    """One huge gradient, then ordinary ones."""
    step = run.step("AdamStep", **options)
    beta2 = options.get("beta2", 0.999)
    result, state = step.apply(run.array([1e30, -3e38]))
    all_finite(run.read(result))
    same_bits(run.read(state["second_moment"]), host_array([LARGEST, LARGEST]))
    for call in (1, 2, 3):
        result, state = step.apply(run.array([1.0, 1.0]), None, state)
        all_finite(run.read(result), path=f"update {call}")
        expected = number(LARGEST) * number(beta2) ** call
        within_ulps(run.read(state["second_moment"]), [expected] * 2, 4)


@case("ADAM-010", dtypes=("float64",))
def saturated_moment_of_doubles(run: Run) -> None:
    """At the largest number of float64, to the last bit."""
    _, state = run.step("AdamStep").apply(run.array([1e200, -1.7e308], "float64"))
    same_bits(run.read(state["second_moment"]), host_array([format_of("float64").largest] * 2, "float64"))


@case("ADAM-011")
def square_beyond_the_range(run: Run) -> None:
    """1e20 squared is 1e40; a thousandth of that is a number of float32."""
    gradients = [host_array([1e20, -3e20, 2e19])]
    expected = adam(exacts(gradients))
    _, state = run.step("AdamStep").apply(made(run, gradients[0]))
    near(run, state["second_moment"], expected.states[0]["second_moment"], 4)


@case("ADAM-012")
def tiny_gradients(run: Run) -> None:
    """Squares that underflow, over three calls."""
    gradients = [host_array([size, -3 * size, 1e-12, 1e-25]) for size in (1e-20, 2e-20, 1e-20)]
    options: dict[str, Any] = {"learning_rate": 0.1}
    follows(run, description("AdamStep", **options), adam(exacts(gradients), **options), gradients, wide=8)


@case("ADAM-013", each={"amsgrad": (False, True)})
def form_of_the_state(run: Run, amsgrad: bool) -> None:
    """The initial state."""
    zeros = {"a": HostArray("float32", (2,), (0.0, 0.0))}
    step = run.step("AdamStep", amsgrad=amsgrad)
    expected = {"count": HostArray("int32", (), (0,)), "first_moment": zeros, "second_moment": zeros}
    expected |= {"second_moment_max": zeros} if amsgrad else {}
    same_bits(run.read(step.init({"a": run.array([1.0, 2.0])})), expected)


@case("ADAM-013")
def count_of_calls(run: Run) -> None:
    """One more a call."""
    step, state = run.step("AdamStep"), None
    for count in (1, 2, 3):
        _, state = step.apply([run.array([1.0])], None, state)
        same_bits(run.read(state["count"]), HostArray("int32", (), (count,)))


@case("ADAM-014")
def weights_for_decay(run: Run) -> None:
    """With decay and without."""
    gradient = run.array([1.0])
    run.step("AdamStep").apply(gradient)
    step = run.step("AdamStep", weight_decay=0.1)
    run.refuses(lambda: step.apply(gradient), kind="ValueError", saying=("weights",))


@case("ADAM-014")
def weights_without_decay(run: Run) -> None:
    """NaN and infinite weights, over two calls."""
    ignores_weights(run, "AdamStep")


REFUSED: dict[str, tuple[str, str, Any]] = {
    "beta1-is-one": ("ValueError", "beta1", 1.0),
    "beta1-negative": ("ValueError", "beta1", -0.1),
    "beta2-is-one": ("ValueError", "beta2", 1.0),
    "beta2-nan": ("ValueError", "beta2", NAN),
    "epsilon-negative": ("ValueError", "epsilon", -1e-8),
    "epsilon-root-negative": ("ValueError", "epsilon_root", -1.0),
    "decay-negative": ("ValueError", "weight_decay", -0.1),
    "decay-nan": ("ValueError", "weight_decay", NAN),
    "rate-nan": ("ValueError", "learning_rate", NAN),
    "rate-text": ("TypeError", "learning_rate", "fast"),
    "rate-bool": ("TypeError", "learning_rate", True),
    "beta1-text": ("TypeError", "beta1", "0.9"),
    "epsilon-list": ("TypeError", "epsilon", [1e-8]),
    "amsgrad-number": ("TypeError", "amsgrad", 1),
    "nesterov-text": ("TypeError", "nesterov", "yes"),
}


@case("ADAM-015", each={"row": REFUSED})
def bad_option(run: Run, row: tuple[str, str, Any]) -> None:
    """Each bad value."""
    kind, name, value = row
    shown = str(value[0] if isinstance(value, list) else value)
    run.refused(kind, "AdamStep", saying=(name, shown), **{name: value})


@case("ADAM-016", each={"dtype": WIDE_DTYPES})
def core_rule(run: Run, dtype: str) -> None:
    """Rates of 1 and -1 over three calls."""
    down, up = run.step("AdamStep", learning_rate=1.0), run.step("AdamStep", learning_rate=-1.0)
    state = other = None
    for gradient in steady((10,), 3, dtype):
        result, state = down.apply(made(run, gradient), None, state)
        opposite, other = up.apply(made(run, gradient), None, other)
        expected = run.read(opposite)
        negated = tuple(-value for value in expected.values)
        same_bits(run.read(result), HostArray(dtype, expected.shape, negated))


@case("ADAM-017", each={"dtype": ALL_DTYPES, "bad": {"nan": NAN, "infinite": INF}})
def bad_element(run: Run, dtype: str, bad: float) -> None:
    """Beside elements that come out as if alone."""
    step = run.step("AdamStep")
    alone, _ = step.apply(made(run, host_array([0.0, 1.0, -2.0], dtype)))
    result, state = step.apply(made(run, host_array([bad, 1.0, -2.0], dtype)))
    got, want = run.read(result), run.read(alone)
    same_bits(HostArray(dtype, (2,), got.values[1:]), HostArray(dtype, (2,), want.values[1:]))
    if math.isnan(bad):
        moments = (run.read(state[name]) for name in ("first_moment", "second_moment"))
        all_nan([HostArray(part.dtype, (1,), part.values[:1]) for part in (got, *moments)])

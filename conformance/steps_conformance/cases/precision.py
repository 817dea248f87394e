"""In which precision a leaf is computed, and what its options pass through."""

from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import same_bits
from ..descriptions import chain, description
from ..oracle import clipping
from ..oracle.adam import adam
from ..oracle.exact import exact, modulus_squared, number
from ..oracle.samples import sample
from ..run import Run
from .battery import STEPS, Entry
from .judging import ALL_DTYPES, NARROW_DTYPES, exacts, like_tree, made, near

ONCE_ROUNDED = 0.502


@case("PREC-001", each={"dtype": NARROW_DTYPES, "scale": (0.1, -1 / 3, 1e-3)})
def scaling_rounds_once(run: Run, dtype: str, scale: float) -> None:
    """A scale that no binary dtype holds."""
    gradient = sample((200,), dtype, scale=8.0)
    result, _ = run.step("ScalingStep", scale=scale).apply(made(run, gradient))
    near(run, result, exact(gradient).map(lambda x: x * number(scale)), 1, narrow=ONCE_ROUNDED)


@case("PREC-001", each={"dtype": NARROW_DTYPES})
def clipping_rounds_once(run: Run, dtype: str) -> None:
    """The norm and the factor are no numbers of the narrow dtype."""
    gradients = [sample((100,), dtype), sample((10, 10), dtype, seed=1, scale=3.0)]
    result, _ = run.step("GradientClippingStep", variant="global", threshold=0.3).apply(made(run, gradients))
    expected = like_tree(gradients, clipping.global_norm(exacts(gradients), 0.3))
    near(run, result, expected, 4, narrow=ONCE_ROUNDED)


@case("PREC-001", each={"dtype": NARROW_DTYPES})
def adam_rounds_once(run: Run, dtype: str) -> None:
    """Each update of three; no moment cancels, since the signs stay."""
    gradients = [sample((50,), dtype, scale=scale) for scale in (1.0, 0.5, 2.0)]
    step, state = run.step("AdamStep", learning_rate=0.1), None
    for gradient, expected in zip(gradients, adam(exacts(gradients), learning_rate=0.1).updates, strict=True):
        result, state = step.apply(made(run, gradient), None, state)
        near(run, result, expected, 8, narrow=ONCE_ROUNDED)


@case("PREC-002", each={"nested": (False, True)}, dtypes=("float16",))
def out_of_range_and_back(run: Run, nested: bool) -> None:
    """60000 * 1e4 * 1e-4, and 1e-5 * 1e-4 * 1e4, both beyond float16 in between."""
    gradient = host_array([60000.0, -512.0, 1e-5, 6e-8], "float16")
    up, down = description("ScalingStep", scale=1e4), description("ScalingStep", scale=1e-4)
    for steps in ((up, down), (down, up)):
        subject = run.make(chain(chain(steps[0]), chain(chain(steps[1]))) if nested else chain(*steps))
        result, _ = subject.apply(made(run, gradient))
        expected = exact(gradient).map(lambda x: x * number(1e4) * number(1e-4))
        near(run, result, expected, 1, narrow=ONCE_ROUNDED)


@case("PREC-002", each={"dtype": NARROW_DTYPES})
def thirds_and_back(run: Run, dtype: str) -> None:
    """A third of a narrow number, rounded, is no third."""
    gradient = sample((200,), dtype)
    factors = (1 / 3, 3.0, 0.7, -1 / 7)
    result, _ = run.make(chain(*(description("ScalingStep", scale=each) for each in factors))).apply(
        made(run, gradient)
    )
    product = number(1)
    for each in factors:
        product *= number(each)
    near(run, result, exact(gradient).map(lambda x: x * product), 4, narrow=ONCE_ROUNDED)


ACCUMULATORS = {"float16": "float32", "bfloat16": "float32", "complex64": "float32", "complex128": "float64"}
TREES_OF_THE_STATE = ("first_moment", "momentum", "mean", "trace")


@case("PREC-003", each={"entry": {k: e for k, e in STEPS.items() if e.remembers}, "dtype": ALL_DTYPES})
def dtypes_of_accumulators(run: Run, entry: Entry, dtype: str) -> None:
    """Of every step that remembers something."""
    weights = [sample((2,), dtype)]
    subject = run.make(entry.described)
    _, state = subject.apply(made(run, weights), made(run, weights), subject.init(made(run, weights)))
    wide = dtype if dtype.startswith("complex") else ACCUMULATORS.get(dtype, dtype)
    check_accumulators(run.read(state), wide, ACCUMULATORS.get(dtype, dtype))


def check_accumulators(state: Any, signed: str, squared: str) -> None:
    """Require the dtypes of moments in a state, and in the states inside of it."""
    for key, part in state.items():
        if isinstance(part, dict):
            check_accumulators(part, signed, squared)
        wanted = signed if key in TREES_OF_THE_STATE else squared if "second_moment" in key else None
        if wanted is not None:
            assert part[0].dtype == wanted, f"{key}: expected {wanted}, got {part[0].dtype}"


@case("PREC-004", each={"dtype": NARROW_DTYPES, "beta2": (0.999, 0.99999)})
def decay_rates_are_doubles(run: Run, dtype: str, beta2: float) -> None:
    """The second moment of a first call is (1 - beta2) |g|^2."""
    gradient = sample((20,), dtype)
    _, state = run.step("AdamStep", beta2=beta2).apply(made(run, gradient))
    expected = exact(gradient).map(lambda x: (1 - number(beta2)) * modulus_squared(x))
    near(run, state["second_moment"], expected, 4)


@case("PREC-004", each={"dtype": NARROW_DTYPES, "step": ("AdamStep", "RMSPropStep")})
def epsilon_is_not_zero(run: Run, dtype: str, step: str) -> None:
    """A zero gradient divided by epsilon is 0, not NaN."""
    result, _ = run.step(step).apply(made(run, host_array([0.0, 1.0], dtype)))
    first = run.read(result).values[0]
    assert first == 0, f"expected 0, got {first}"


@case("PREC-005", each={"name": ("ScalingStep", "SGDStep")}, dtypes=("float64",))
def options_of_float64_leaves(run: Run, name: str) -> None:
    """A tenth as a double."""
    gradient = sample((50,), "float64")
    option = {"ScalingStep": {"scale": 0.1}, "SGDStep": {"learning_rate": -0.1}}[name]
    result, _ = run.step(name, **option).apply(made(run, gradient))
    near(run, result, exact(gradient).map(lambda x: x * number(0.1)), 1)


@case("PREC-005", dtypes=("float64",))
def moments_of_float64_leaves(run: Run) -> None:
    """beta2 as a double, in float64."""
    gradient = sample((20,), "float64")
    _, state = run.step("AdamStep").apply(made(run, gradient))
    expected = exact(gradient).map(lambda x: (1 - number(0.999)) * modulus_squared(x))
    near(run, state["second_moment"], expected, 4)


LARGEST_COUNT = 2**31 - 1
COUNTING = {
    "adam": description("AdamStep"),
    "scaling": STEPS["scaling-scheduled"].described,
    "rmsprop": STEPS["rmsprop-centered"].described,
}


@case(
    "PREC-006",
    each={"described": COUNTING, "before": (0, 1, LARGEST_COUNT - 2, LARGEST_COUNT - 1, LARGEST_COUNT)},
)
def count_saturates(run: Run, described: Any, before: int) -> None:
    """A call with a count near the largest number of int32."""
    weights = [run.array([1.0])]
    subject = run.make(described)
    state = subject.init(weights) | {"count": run.array(before, "int32")}
    result, state = subject.apply(weights, weights, state)
    after = min(before + 1, LARGEST_COUNT)
    same_bits(run.read(state["count"]), HostArray("int32", (), (after,)))
    value = run.read(result)[0].values[0]
    assert abs(value) < 2, f"expected an ordinary result, got {value}"


ELEMENTWISE = ("adam", "rmsprop-momentum", "scaling", "sgd-momentum", "momentum")


@case("PREC-007", each={"entry": {name: STEPS[name] for name in ELEMENTWISE}}, dtypes=("float16",))
def leaves_of_two_dtypes(run: Run, entry: Entry) -> None:
    """float16 and float32 in one tree, over two calls."""
    both = {"narrow": sample((5,), "float16"), "wide": sample((5,), seed=1)}
    together = two_calls(run, entry, both)
    for name, leaf in both.items():
        same_bits(together[name], two_calls(run, entry, {name: leaf})[name], path=name)


def two_calls(run: Run, entry: Entry, tree: Any) -> Any:
    """Return what a step gives for a tree in the second call, with the tree for weights too."""
    subject = run.make(entry.described)
    _, state = subject.apply(made(run, tree), made(run, tree))
    return run.read(subject.apply(made(run, tree), made(run, tree), state)[0])

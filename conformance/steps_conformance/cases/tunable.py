"""Options that the state holds, so that they can be replaced between calls."""

import itertools
import math
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import Mismatch, all_zero, same_bits, within_ulps
from ..containers import leaves, mapped
from ..descriptions import chain, description, schedule, tunable
from ..flushing import accepting_flushed
from ..oracle.samples import sample, steady
from ..run import Run, Subject
from ..targets.protocol import Description
from .judging import ALL_DTYPES, NARROW_DTYPES, kept, made
from .state_files import state_file

NEEDS = ("tunable",)
VARIANTS = ("per-weight", "per-layer", "global", "per-weight-relative")

# step, option, first value, replacement, other options; numbers of float32, so that nothing is rounded
Row = tuple[str, str, float, float, dict[str, Any]]

ADAM = {"learning_rate": 0.5, "amsgrad": True, "nesterov": True}
RMSPROP = {"learning_rate": 0.5, "epsilon_inside": False}
ROWS: dict[str, Row] = {
    "adam-rate": ("AdamStep", "learning_rate", 0.125, 3.0, {}),
    "adam-beta1": ("AdamStep", "beta1", 0.75, 0.0, {}),
    "adam-beta1-nesterov": ("AdamStep", "beta1", 0.75, 0.9375, ADAM),
    "adam-beta2": ("AdamStep", "beta2", 0.875, 0.0, {}),
    "adam-beta2-amsgrad": ("AdamStep", "beta2", 0.875, 0.9990234375, ADAM),
    "adam-epsilon": ("AdamStep", "epsilon", 0.125, 0.0, {}),
    "adam-epsilon-root": ("AdamStep", "epsilon_root", 0.125, 0.0, {}),
    "adam-decay": ("AdamStep", "weight_decay", 0.25, 0.0, {"learning_rate": 0.5}),
    "rmsprop-rate": ("RMSPropStep", "learning_rate", 0.125, 3.0, {}),
    "rmsprop-decay": ("RMSPropStep", "decay", 0.75, 0.0, {}),
    "rmsprop-epsilon": ("RMSPropStep", "epsilon", 0.125, 0.0, RMSPROP),
    "rmsprop-momentum": ("RMSPropStep", "momentum", 0.5, 0.75, {}),
    "rmsprop-weight-decay": ("RMSPropStep", "weight_decay", 0.25, 0.0, {"learning_rate": 0.5}),
    "sgd-rate": ("SGDStep", "learning_rate", 0.125, 3.0, {}),
    "sgd-momentum": ("SGDStep", "momentum", 0.5, 0.75, {"nesterov": True}),
    "sgd-decay": ("SGDStep", "weight_decay", 0.25, 0.0, {"learning_rate": 0.5}),
    "momentum": ("MomentumStep", "decay", 0.5, 0.75, {}),
    "weight-decay": ("WeightDecayStep", "weight_decay", 0.25, 0.0, {}),
    "scale": ("ScalingStep", "scale", 0.125, -3.0, {}),
    "scaling-rate": ("ScalingStep", "learning_rate", 0.125, -3.0, {}),
    **{
        f"threshold-{variant}": ("GradientClippingStep", "threshold", 0.25, 0.375, {"variant": variant})
        for variant in VARIANTS
    },
    "epsilon": ("GradientClippingStep", "epsilon", 0.125, 2.0, {"variant": "per-weight-relative"}),
    "radius": ("ConstraintStep", "radius", 0.5, 0.75, {"constraint": "norm-ball"}),
}
BOUNDS: dict[str, Row] = {
    "lower": ("ConstraintStep", "lower", -0.25, 0.125, {"constraint": "box"}),
    "upper": ("ConstraintStep", "upper", 0.25, -0.125, {"constraint": "box"}),
}


def plain(row: Row, value: Any) -> Description:
    """Return the description of a row's step with a value."""
    name, option, _, _, others = row
    return description(name, **others, **{option: value})


def entry_of(row: Row) -> str:
    """Return the name of the state entry."""
    return "momentum_option" if row[1] == "momentum" else row[1]


def held(run: Run, state: Any, entry: str, value: float) -> None:
    """Require the entry of a tunable option."""
    if not isinstance(state, dict) or entry not in state:
        raise Mismatch(f"expected the entry {entry}, got {state!r}")
    same_bits(run.read(state[entry]), host_array(value), path=entry)


def without(state: Any, entry: str) -> Any:
    """Return the other entries of a state."""
    return {key: value for key, value in state.items() if key != entry}


def close(run: Run, actual: Any, expected: Any, *, wide: float = 4, narrow: float = 1) -> None:
    """Require a tree of arrays to lie within some ulps of another one."""
    read, wanted = dict(leaves(run.read(actual))), dict(leaves(run.read(expected)))
    if read.keys() != wanted.keys():
        raise Mismatch(f"expected leaves at {sorted(wanted)}, got {sorted(read)}")
    for path, got in read.items():
        if got.dtype in ALL_DTYPES:
            within_ulps(got, wanted[path], narrow if got.dtype in NARROW_DTYPES else wide, path=path)
        else:
            same_bits(got, wanted[path], path=path)


def inputs(dtype: str) -> list[HostArray]:
    """Return gradients for three calls; they also serve as weights, so that no sum cancels."""
    return steady((3, 2), 3, dtype)


@case("TUNE-001", each={"row": ROWS | BOUNDS}, needs=NEEDS)
def entry_of_the_state(run: Run, row: Row) -> None:
    """A tenth, from the first state on, beside what the plain step has."""
    gradients = made(run, inputs("float32"))
    step, bare = run.make(plain(row, tunable(0.1))), run.make(plain(row, 0.1))
    state, entry = step.init(gradients[0]), entry_of(row)
    known = bare.init(gradients[0]).keys()
    for gradient in gradients:
        held(run, state, entry, 0.1)
        if without(state, entry).keys() != known:
            raise Mismatch(f"expected {entry} beside {sorted(known)}, got {sorted(state)}")
        _, state = step.apply(gradient, gradient, state)
    held(run, state, entry, 0.1)


@case("TUNE-001", each={"dtype": ALL_DTYPES}, needs=NEEDS)
def float32_whatever_the_leaf_is(run: Run, dtype: str) -> None:
    """One entry for each of six options."""
    options = ("learning_rate", "beta1", "beta2", "epsilon", "epsilon_root", "weight_decay")
    step = run.make(description("AdamStep", **dict.fromkeys(options, tunable(0.1))))
    weights = made(run, [sample((2,), dtype)])
    _, state = step.apply(weights, weights, step.init(weights))
    for option in options:
        held(run, state, option, 0.1)


@case("TUNE-002", each={"name": ("SGDStep", "RMSPropStep"), "value": (0.0, 0.5)}, needs=NEEDS)
def two_entries_for_momentum(run: Run, name: str, value: float) -> None:
    """The buffer and the option."""
    weights = made(run, [sample((3,))])
    step = run.step(name, momentum=tunable(value))
    for state in (step.init(weights), step.apply(weights, weights, None)[1]):
        held(run, state, "momentum_option", value)
        if run.read(state["momentum"])[0].shape != (3,):
            raise Mismatch(f"expected a momentum of shape (3,), got {state['momentum']!r}")


@case("TUNE-003", each={"row": ROWS | BOUNDS}, needs=NEEDS)
def as_the_plain_one(run: Run, row: Row) -> None:
    """Each of three calls, and the state after them."""
    beside(run, row, inputs("float32"), replaced=False)


OF_ALL_DTYPES = ("adam-beta1-nesterov", "rmsprop-momentum", "epsilon")


@case(
    "TUNE-003", each={"row": {name: ROWS[name] for name in OF_ALL_DTYPES}, "dtype": ALL_DTYPES}, needs=NEEDS
)
def in_all_dtypes(run: Run, row: Row, dtype: str) -> None:
    """One option of each kind."""
    beside(run, row, inputs(dtype), replaced=False)


@case("TUNE-004", each={"row": ROWS | BOUNDS}, needs=NEEDS)
def replaced(run: Run, row: Row) -> None:
    """After the first of three calls."""
    beside(run, row, inputs("float32"), replaced=True)


@case("TUNE-004", needs=NEEDS)
def replaced_each_time(run: Run) -> None:
    """Ten rates in ten calls."""
    gradient = run.array([1.0, -2.0])
    step = run.step("SGDStep", learning_rate=tunable(1.0))
    state = step.init(gradient)
    for rate in [2.0**-power for power in range(10)]:
        result, state = step.apply(gradient, None, state | {"learning_rate": run.array(rate)})
        same_bits(run.read(result), host_array([-rate, 2 * rate]))


def beside(run: Run, row: Row, given: list[HostArray], *, replaced: bool) -> None:
    """Require the calls of a tunable step to be those of plain ones with the same state."""
    step, entry, value = run.make(plain(row, tunable(row[2]))), entry_of(row), row[2]
    gradients = made(run, given)
    state = step.init(gradients[0])
    for call, gradient in enumerate(gradients):
        if replaced and call == 1:
            value = row[3]
            state = state | {entry: run.array(value)}
        bare = run.make(plain(row, value))
        wanted, wanted_state = bare.apply(gradient, gradient, without(state, entry))
        result, state = step.apply(gradient, gradient, state)
        close(run, result, wanted)
        close(run, without(state, entry), wanted_state)


REFUSED: dict[str, tuple[str, str, Any]] = {
    "negative-threshold": ("GradientClippingStep", "threshold", -1.0),
    "negative-epsilon": ("GradientClippingStep", "epsilon", -1e-3),
    "infinite-rate": ("AdamStep", "learning_rate", math.inf),
    "beta-of-1": ("AdamStep", "beta1", 1.0),
    "negative-beta": ("AdamStep", "beta2", -0.5),
    "beta-of-1-in-float32": ("AdamStep", "beta1", 1 - 2.0**-40),
    "negative-decay": ("WeightDecayStep", "weight_decay", -0.1),
    "momentum-of-1": ("SGDStep", "momentum", 1.0),
    "infinite-scale": ("ScalingStep", "scale", -math.inf),
}


@case("TUNE-005", each={"row": REFUSED}, needs=NEEDS)
def out_of_range(run: Run, row: tuple[str, str, Any]) -> None:
    """Each rule broken alone."""
    name, option, value = row
    run.refused("ValueError", name, saying=(option,), **{option: tunable(value)})


@case("TUNE-005", needs=NEEDS)
def radius_out_of_range(run: Run) -> None:
    """A ball of radius 0, and a box turned inside out."""
    run.refused(
        "ValueError", "ConstraintStep", saying=("radius",), constraint="norm-ball", radius=tunable(0.0)
    )
    bounds = {"lower": tunable(1.0), "upper": tunable(0.5)}
    run.refused("ValueError", "ConstraintStep", saying=("lower",), constraint="box", **bounds)


@case("TUNE-005", each={"value": {"text": "0.5", "bool": True, "none": None, "list": [0.5]}}, needs=NEEDS)
def no_number(run: Run, value: Any) -> None:
    """In the place of the number."""
    run.refused("TypeError", "AdamStep", beta1={"tunable": value})


@case("TUNE-005", needs=NEEDS)
def not_a_number(run: Run) -> None:
    """NaN."""
    run.refused("ValueError", "AdamStep", epsilon=tunable(math.nan))


@case(
    "TUNE-006",
    each={
        "row": {
            "flag": ("AdamStep", "amsgrad", {}),
            "other-flag": ("SGDStep", "nesterov", {"momentum": 0.5}),
            "breakpoint": ("SGDStep", "set_breakpoint", {}),
            "variant": ("GradientClippingStep", "variant", {}),
            "axis": ("CenteringStep", "unit_axis", {}),
            "constraint": ("ConstraintStep", "constraint", {}),
            "step": ("SkipNonFiniteStep", "inner", {}),
        }
    },
    needs=NEEDS,
)
def options_that_are_no_numbers(run: Run, row: tuple[str, str, dict[str, Any]]) -> None:
    """With the number 1."""
    name, option, others = row
    run.refused("TypeError", name, saying=(option,), **others, **{option: tunable(1.0)})


@case("TUNE-006", each={"part": ("initial", "final")}, needs=NEEDS)
def numbers_of_schedules(run: Run, part: str) -> None:
    """Either end of a line."""
    ends: dict[str, Any] = {"initial": 1.0, "final": 0.0, part: tunable(1.0)}
    line = schedule("LinearSchedule", steps=5, **ends)
    run.refused("TypeError", "SGDStep", saying=(part,), learning_rate=line)


@case("TUNE-007", each={"entry": ("missing", "none", "int32", "vector")}, needs=NEEDS)
def wrong_entry(run: Run, entry: str) -> None:
    """In the second step of a chain."""
    wrong: dict[str, dict[str, Any]] = {
        "missing": {},
        "none": {"learning_rate": None},
        "int32": {"learning_rate": run.array(1, "int32")},
        "vector": {"learning_rate": run.array([0.5])},
    }
    refuses_second_state(run, wrong[entry])


@case("TUNE-007", dtypes=("float64",), needs=NEEDS)
def wide_entry(run: Run) -> None:
    """float64, which NumPy makes of a Python number."""
    refuses_second_state(run, {"learning_rate": run.array(0.5, "float64")})


def refuses_second_state(run: Run, wrong: dict[str, Any]) -> None:
    """Require the second step of a chain to refuse its state."""
    weights = run.array([1.0, 2.0])
    step = run.make(chain(description("MomentumStep"), description("SGDStep", learning_rate=tunable(0.5))))
    state = step.init(weights) | {"step2": wrong}
    path = "state['step2']['learning_rate']"
    run.refuses(lambda: step.apply(weights, weights, state), kind="ValueError", saying=(path,))


SIZES = (-120, -60, -30, 0, 30, 60, 120)


@case("TUNE-008", each={"variant": VARIANTS[:3]}, needs=NEEDS)
def thresholds_of_every_size(run: Run, variant: str) -> None:
    """3-4-5 rows around the threshold, which is 5 * 2^power: below, at and above it."""
    step = clipping(run, variant)
    for power, times in itertools.product(SIZES, (0.5, 1.0, 2.0)):
        threshold, unit = math.ldexp(5.0, power), math.ldexp(times, power)
        values = [threshold * times, 0.0] if variant == "per-weight" else [3 * unit, -4 * unit]
        result = clipped(run, step, threshold, host_array(values), None)
        if times <= 1:
            kept(run, result, host_array(values))
        else:
            within_ulps(run.read(result), [value / times for value in values], 8)


@case("TUNE-008", each={"threshold": SIZES}, needs=NEEDS)
def relative_thresholds_of_every_size(run: Run, threshold: int) -> None:
    """The limit is 5 * 2^(threshold + weight), for weights and gradients of every size."""
    step = clipping(run, "per-weight-relative")
    for weight, size in itertools.product(SIZES, SIZES):
        weights = host_array([math.ldexp(3.0, weight), math.ldexp(4.0, weight)])
        values = [math.ldexp(3.0, size), math.ldexp(-4.0, size)]
        result = clipped(run, step, math.ldexp(1.0, threshold), host_array(values), weights)
        excess = size - threshold - weight
        if excess <= 0:
            kept(run, result, host_array(values))
        else:
            got = run.read(result)
            wanted = accepting_flushed(run.traits, got, [math.ldexp(value, -excess) for value in values])
            within_ulps(got, wanted, 8)


@case("TUNE-008", each={"epsilon": SIZES}, needs=NEEDS)
def floors_of_every_size(run: Run, epsilon: int) -> None:
    """The limit is 5 * 2^epsilon, or 5 * 2^weight where that is larger."""
    step = clipping(run, "per-weight-relative")
    for weight, size in itertools.product(SIZES, SIZES):
        weights = host_array([math.ldexp(3.0, weight), math.ldexp(4.0, weight)])
        values = [math.ldexp(3.0, size), math.ldexp(-4.0, size)]
        result = clipped(run, step, 1.0, host_array(values), weights, math.ldexp(5.0, epsilon))
        excess = size - max(weight, epsilon)
        if excess <= 0:
            kept(run, result, host_array(values))
        else:
            within_ulps(run.read(result), [math.ldexp(value, -excess) for value in values], 8)


@case("TUNE-008", each={"threshold": (-50, -45, -40), "weight": (-50, -45, -40)}, needs=NEEDS)
def limits_far_below_the_gradient(run: Run, threshold: int, weight: int) -> None:
    """The factor between the two is below the smallest normal number, and has all its digits."""
    step, size, third = clipping(run, "per-weight-relative"), 124, 11184811 / 2**23
    weights = host_array([math.ldexp(3.0, weight), math.ldexp(4.0, weight)])
    values = host_array([math.ldexp(3.0, size), math.ldexp(-4.0, size)])
    result = clipped(run, step, math.ldexp(third, threshold), values, weights)
    wanted = [math.ldexp(side * third, threshold + weight) for side in (3.0, -4.0)]
    within_ulps(run.read(result), wanted, 8)


@case("TUNE-008", each={"epsilon": SIZES, "share": (0.75, 1.5)}, needs=NEEDS)
def floors_near_the_weights(run: Run, epsilon: int, share: float) -> None:
    """Weights a little below the floor, and a little above it."""
    step, floor = clipping(run, "per-weight-relative"), math.ldexp(5.0, epsilon)
    weights = host_array([floor * share * 0.6, floor * share * 0.8])
    values = [floor * 3.0, floor * -4.0]
    result = clipped(run, step, 1.0, host_array(values), weights, floor)
    within_ulps(run.read(result), [value / 5 * max(share, 1.0) for value in values], 8)


@case("TUNE-008", each={"values": {"infinite": (math.inf, 1.0), "finite": (3.0, -4.0)}}, needs=NEEDS)
def infinite_weights(run: Run, values: tuple[float, float]) -> None:
    """As under a plain threshold."""
    given, weights = host_array(values), host_array([math.inf, 1.0])
    plain = run.step("GradientClippingStep", variant="per-weight-relative", threshold=2.0, epsilon=0.0)
    expected, _ = plain.apply(made(run, given), made(run, weights))
    result = clipped(run, clipping(run, "per-weight-relative"), 2.0, given, weights)
    same_bits(run.read(result), run.read(expected))


@case("TUNE-008", needs=NEEDS)
def infinities_under_a_limit_beyond_the_range(run: Run) -> None:
    """The limit is finite, although its number is not."""
    step = clipping(run, "per-weight-relative")
    weights, values = host_array([3e38, 3e38]), host_array([math.inf, 1.0])
    result = clipped(run, step, 3e38, values, weights)
    same_bits(run.read(result), host_array([math.nan, 0.0]))


def clipping(run: Run, variant: str) -> Subject:
    """Return a clip whose numbers are tunable."""
    return run.step("GradientClippingStep", variant=variant, threshold=tunable(1.0), epsilon=tunable(0.0))


def clipped(
    run: Run,
    step: Subject,
    threshold: float,
    given: HostArray,
    weights: HostArray | None,
    epsilon: float = 0.0,
) -> Any:
    """Return gradients clipped to a threshold, and with a floor, that are put into the state."""
    gradients, old = made(run, given), made(run, weights)
    numbers = {"threshold": run.array(threshold), "epsilon": run.array(epsilon)}
    result, _ = step.apply(gradients, old, step.init(gradients) | numbers)
    return result


HARD = ([math.nan, 3.0, -0.0], [math.inf, -3.0, 0.0], [3e38, -3e38, 1e-30], [0.0, -0.0, 0.0])


@case("TUNE-009", each={"variant": VARIANTS}, needs=NEEDS)
def thresholds_at_their_ends(run: Run, variant: str) -> None:
    """Put into the state; with weights, and with weights of 0."""
    step = clipping(run, variant)
    for hard, weight in itertools.product(HARD, (1.0, 0.0)):
        given, weights = host_array(hard), host_array([weight] * 3)
        kept(run, clipped(run, step, math.inf, given, weights), given)
        zeros = run.read(clipped(run, step, 0.0, given, weights))
        if any(value != 0 for value in zeros.values):
            raise Mismatch(f"expected zeros for {hard}, got {zeros.values}")


@case("TUNE-009", each={"variant": VARIANTS}, needs=NEEDS)
def none_beside_a_threshold_of_zero(run: Run, variant: str) -> None:
    """None passes."""
    step, some = clipping(run, variant), run.array([3.0, -4.0])
    weights = {"none": run.array([1.0]), "some": run.array([1.0, 1.0])}
    state = step.init(weights) | {"threshold": run.array(0.0)}
    result, _ = step.apply({"none": None, "some": some}, weights, state)
    assert result["none"] is None, f"expected None, got {result['none']}"
    all_zero(run.read(result["some"]))


@case("TUNE-010", each={"name": ("AdamStep", "RMSPropStep", "SGDStep", "WeightDecayStep")}, needs=NEEDS)
def decay_without_weights(run: Run, name: str) -> None:
    """That starts at 0."""
    step, gradients = run.step(name, weight_decay=tunable(0.0)), run.array([1.0])
    state = step.init(gradients)
    run.refuses(lambda: step.apply(gradients, None, state), kind="ValueError", saying=("weights",))
    step.apply(gradients, gradients, state)


@case("TUNE-011", each={"value": (0.5, 0.0, -0.5)}, needs=("tunable", "negates"))
def sign_of_the_first_value(run: Run, value: float) -> None:
    """Of rates and of a scale."""
    for name in ("AdamStep", "RMSPropStep", "SGDStep", "ScalingStep"):
        answer = run.negates(description(name, learning_rate=tunable(value)))
        if answer is not (value >= 0):
            raise Mismatch(f"{name} with the rate {value} must have negates {value >= 0}, got {answer!r}")
    if run.negates(description("ScalingStep", scale=tunable(value))) is not (value < 0):
        raise Mismatch(f"a scale of {value} must have negates {value < 0}")


SGD = description("SGDStep", learning_rate=tunable(0.5))
MASK = {"mask": {"dict": {"a": True, "b": False}}}


@case("TUNE-012", needs=NEEDS)
def steps_inside(run: Run) -> None:
    """A masked step and a skipping one in a chain; a call that is skipped leaves the entry."""
    masked = {"step": "MaskedStep", "options": {"inner": SGD, "mask": MASK}}
    step = run.make(chain(masked, description("SkipNonFiniteStep", inner=SGD)))
    gradients = {"a": run.array([1.0]), "b": run.array([1.0])}
    state = step.init(gradients)
    inner = {"learning_rate": run.array(0.25)}
    state = {
        "step1": state["step1"] | {"inner": inner},
        "step2": state["step2"] | {"inner": {"learning_rate": run.array(2.0)}},
    }
    _, state = step.apply(gradients | {"b": run.array([math.nan])}, None, state)
    held(run, state["step1"]["inner"], "learning_rate", 0.25)
    held(run, state["step2"]["inner"], "learning_rate", 2.0)
    result, _ = step.apply(gradients, None, state)
    same_bits(run.read(result), {"a": host_array([0.5]), "b": host_array([-2.0])})


@case("TUNE-012", each={"described": {"sgd": SGD, "chain": chain(SGD)}}, needs=NEEDS)
def no_array(run: Run, described: Description) -> None:
    """A tree of None."""
    step, tree = run.make(described), {"a": None}
    state = step.init(tree)
    result, after = step.apply(tree, None, state)
    inner = after.get("step1", after)
    if result != tree or inner != {"learning_rate": None}:
        raise Mismatch(f"expected {tree} and learning_rate None, got {result!r} and {after!r}")


@case("TUNE-013", each={"row": ROWS | BOUNDS}, needs=("tunable", "describe"))
def described_as_tunable(run: Run, row: Row) -> None:
    """Whatever the default is."""
    got = run.describe(plain(row, tunable(0.1)))
    if got["options"].get(row[1]) != tunable(0.1):
        raise Mismatch(f"expected {row[1]} to be {tunable(0.1)}, got {got!r}")
    again = run.describe(got)
    if again != got:
        raise Mismatch(f"{got!r} became {again!r}")


@case("TUNE-014", each={"value": {"tuned": 0.3, "infinite": math.inf}}, needs=("tunable", "state_files"))
def files_keep_it(run: Run, value: float) -> None:
    """A threshold inside a chain."""
    step = run.make(chain(description("GradientClippingStep", threshold=tunable(1.0)), SGD))
    weights = made(run, {"a": sample((2,))})
    first = step.init(weights)
    state = first | {"step1": {"threshold": run.array(value)}}
    with state_file() as file:
        run.save_state(state, str(file))
        loaded = run.load_state(str(file), first)
    same_bits(run.read(loaded), run.read(state))
    held(run, loaded["step1"], "threshold", value)
    empty = mapped(lambda *_: None, first)
    with state_file() as file:
        run.save_state(empty, str(file))
        if run.load_state(str(file), empty) != empty:
            raise Mismatch("a state without arrays did not come back")

"""Steps one after another."""

import math
from functools import partial
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import Mismatch, same_bits
from ..containers import leaves
from ..descriptions import chain, description
from ..oracle.samples import sample, whole_numbers
from ..run import Run
from ..targets.protocol import Description
from .battery import STEPS, Entry
from .judging import ALL_DTYPES, NARROW_DTYPES, REAL_DTYPES, made, refuses_a_name

DOUBLE = description("ScalingStep", scale=2.0)
CLIP = description("GradientClippingStep", threshold=1.0)
RELATIVE = description("GradientClippingStep", variant="per-weight-relative")
NONNEGATIVE = description("ConstraintStep", constraint="nonnegative")


def decay(amount: float) -> Description:
    """Return a step that adds so many times the weights."""
    return description("WeightDecayStep", weight_decay=amount)


def shift(digit: int) -> Description:
    """Return a step that takes g to 2 g + digit * w, so that the result tells the order of several."""
    return chain(DOUBLE, decay(float(digit)))


def shifted(digits: list[int]) -> float:
    """Return what steps with these digits make of g = 0 and w = 1."""
    total = 0.0
    for digit in digits:
        total = 2 * total + digit
    return total


def result_of_shifts(run: Run, described: Description) -> Any:
    """Return the result for g = 0 and w = 1."""
    return run.read(run.make(described).apply(run.array([0.0]), run.array([1.0]))[0])


@case("CHAIN-001", each={"dtype": REAL_DTYPES})
def order_of_two(run: Run, dtype: str) -> None:
    """Doubling and limiting to 1, either first."""
    gradient = host_array([0.75, -3.0], dtype)
    doubled, _ = run.make(chain(DOUBLE, CLIP)).apply(made(run, gradient))
    limited, _ = run.make(chain(CLIP, DOUBLE)).apply(made(run, gradient))
    same_bits(run.read(doubled), host_array([1.0, -1.0], dtype))
    same_bits(run.read(limited), host_array([1.5, -2.0], dtype))


SLOTS = ("step1", "step2", "step3", "step4", "step5", "step6", "step7", "step8", "step9", "step0")
DIGITS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 8]


@case("CHAIN-002", each={"order": ("forward", "backward")})
def all_ten_slots(run: Run, order: str) -> None:
    """Digits that tell in which order the slots ran; keys forward or backward."""
    options = {slot: shift(digit) for slot, digit in zip(SLOTS, DIGITS, strict=True)}
    if order == "backward":
        options = {slot: options[slot] for slot in reversed(SLOTS)}
    result = result_of_shifts(run, description("ChainedStep", **options))
    same_bits(result, host_array([shifted(DIGITS)]))


@case("CHAIN-003")
def slots_with_gaps(run: Run) -> None:
    """Slots that are None, slots that are missing, and step0 without step9."""
    described = description("ChainedStep", step0=shift(7), step2=shift(1), step3=None, step8=shift(2))
    same_bits(result_of_shifts(run, described), host_array([shifted([1, 2, 7])]))
    state = run.make(described).init(run.array([1.0]))
    assert set(state) == {"step0", "step2", "step8"}, f"expected three slots, got {sorted(state)}"


@case("CHAIN-004", each={"dtype": ALL_DTYPES, "described": {"empty": chain(), "none": chain(None, None)}})
def nothing_at_all(run: Run, dtype: str, described: Description) -> None:
    """NaN, infinity, zeros and an odd number come back; so they do from an empty chain inside of a chain."""
    gradients = {"a": host_array([math.nan, -math.inf, -0.0, 0.1], dtype)}
    forms: tuple[tuple[Description, Any], ...] = ((described, {}), (chain(described), {"step1": {}}))
    for each, state in forms:
        subject = run.make(each)
        first = subject.init(made(run, gradients))
        result, second = subject.apply(made(run, gradients), None, first)
        same_bits(run.read(result), gradients)
        assert first == second == state, f"expected the state {state}, got {first} and {second}"


@case("CHAIN-005", each={"entry": STEPS, "dtype": ("float32",)})
@case(
    "CHAIN-005",
    each={
        "entry": {name: STEPS[name] for name in ("clip-global", "scaling", "adam")},
        "dtype": NARROW_DTYPES,
    },
)
def one_step(run: Run, entry: Entry, dtype: str) -> None:
    """Over two calls."""
    gradients, weights = (
        [sample((3, 2), dtype), sample((), dtype)],
        [sample((3, 2), dtype, seed=1), sample((), dtype)],
    )
    alone, within = run.make(entry.described), run.make(chain(entry.described))
    state, chained = alone.init(made(run, weights)), within.init(made(run, weights))
    for _ in range(2):
        expected, state = alone.apply(made(run, gradients), made(run, weights), state)
        result, chained = within.apply(made(run, gradients), made(run, weights), chained)
        same_bits(run.read(result), run.read(expected), path="gradients")
        same_bits(run.read(chained), {"step1": run.read(state)}, path="state")


@case("CHAIN-006", each={"dtype": ALL_DTYPES})
def nested_and_flat(run: Run, dtype: str) -> None:
    """Three calls, with steps whose results are no numbers of the narrow dtypes."""
    clip = description("GradientClippingStep", variant="global", threshold=0.3)
    first, second = description("MomentumStep", decay=0.7), description("AdamStep", learning_rate=0.1)
    forms = [
        chain(clip, first, decay(0.1), second),
        chain(chain(chain(clip), first), chain(decay(0.1), second)),
        chain(None, clip, chain(), chain(first, chain(decay(0.1), chain(second, None)))),
    ]
    expected, *others = [results_of_three_calls(run, form, dtype) for form in forms]
    for number, other in enumerate(others, start=1):
        same_bits(other, expected, path=f"form {number}")


def results_of_three_calls(run: Run, described: Description, dtype: str) -> list[Any]:
    """Return the gradients that came back from three calls."""
    subject, state, results = run.make(described), None, []
    weights = made(run, [sample((2, 3), dtype, seed=9), sample((4,), dtype, seed=8)])
    for seed in range(3):
        gradients = made(run, [sample((2, 3), dtype, seed=seed), sample((4,), dtype, seed=seed + 5)])
        result, state = subject.apply(gradients, weights, state)
        results.append(run.read(result))
    return results


@case("CHAIN-007")
def one_step_twice(run: Run) -> None:
    """Momentum of momentum: traces 4 and 6, then 4 and 8."""
    momentum = description("MomentumStep", decay=0.5)
    subject, state = run.make(chain(momentum, momentum)), None
    for expected, first, second in ((4.0, 4.0, 4.0), (8.0, 6.0, 8.0)):
        result, state = subject.apply([run.array([4.0])], None, state)
        same_bits(run.read(result), [host_array([expected])])
        traces = {"step1": {"trace": [host_array([first])]}, "step2": {"trace": [host_array([second])]}}
        same_bits(run.read(state), traces)


@case("CHAIN-008", each={"nested": (False, True)})
def weights_for_every_step(run: Run, nested: bool) -> None:
    """Three decays add up."""
    steps = [decay(1.0), decay(2.0), decay(4.0)]
    described = chain(steps[0], chain(*steps[1:])) if nested else chain(*steps)
    gradient, weight = whole_numbers((4,)), whole_numbers((4,), seed=1)
    result, _ = run.make(described).apply(made(run, gradient), made(run, weight))
    sums = tuple(g + 7 * w for g, w in zip(gradient.values, weight.values, strict=True))
    same_bits(run.read(result), HostArray("float32", (4,), sums))


NOT_LAST = {
    "first": chain(NONNEGATIVE, DOUBLE),
    "in-the-middle": chain(DOUBLE, NONNEGATIVE, DOUBLE),
    "nested": chain(chain(DOUBLE, NONNEGATIVE), DOUBLE),
    "nested-deeply": chain(chain(chain(DOUBLE, NONNEGATIVE)), DOUBLE),
    "before-step0": description("ChainedStep", step0=DOUBLE, step9=NONNEGATIVE),
    "two": chain(NONNEGATIVE, NONNEGATIVE),
}
LAST = {
    "alone": chain(NONNEGATIVE),
    "last": chain(DOUBLE, NONNEGATIVE),
    "nested": chain(DOUBLE, chain(DOUBLE, NONNEGATIVE)),
    "in-step0": description("ChainedStep", step9=DOUBLE, step0=NONNEGATIVE),
    "before-empty-slots": chain(DOUBLE, NONNEGATIVE, None),
}


@case("CHAIN-009", each={"described": NOT_LAST})
def constraint_before_the_end(run: Run, described: Description) -> None:
    """Refused when the chain is made."""
    run.refuses(lambda: run.make(described), kind="ValueError", saying=("last",))


@case("CHAIN-009", each={"described": LAST})
def constraint_at_the_end(run: Run, described: Description) -> None:
    """Made, and it constrains."""
    result, _ = run.make(described).apply(run.array([-8.0]), run.array([1.0]))
    same_bits(run.read(result), host_array([-1.0]))


@case("CHAIN-010")
def missing_weights_inside(run: Run) -> None:
    """The second of two steps needs weights, and so does one in a chain inside."""
    gradients = [run.array([1.0])]
    for described, slots in (
        (chain(DOUBLE, RELATIVE), ("step2",)),
        (chain(DOUBLE, CLIP, chain(RELATIVE)), ("step3", "step1")),
    ):
        subject = run.make(described)
        saying = ("weights", "GradientClippingStep", *slots)
        run.refuses(partial(subject.apply, gradients), kind="ValueError", saying=saying)


@case("CHAIN-010", dtypes=("complex64",))
def refused_leaf_inside(run: Run) -> None:
    """A constraint in the last slot that takes real leaves only."""
    tree = {"a": run.array([1j], "complex64")}
    subject = run.make(chain(DOUBLE, NONNEGATIVE))
    saying = ("step2", "ConstraintStep", "['a']")
    run.refuses(lambda: subject.apply(tree, tree), kind="TypeError", saying=saying)


@case("CHAIN-011", each={"change": ("missing", "extra", "inside", "of-another-slot", "dtype")})
def wrong_state(run: Run, change: str) -> None:
    """One fault at a time in the state of clip, momentum and Adam."""
    weights = {"a": run.array([1.0, 2.0])}
    subject = run.make(chain(CLIP, description("MomentumStep"), description("AdamStep")))
    state = subject.init(weights)
    adam = state["step3"]
    wrong, saying = {
        "missing": ({key: state[key] for key in ("step1", "step2")}, ("step3",)),
        "extra": (state | {"step4": {}}, ("step4",)),
        "inside": (state | {"step3": {k: v for k, v in adam.items() if k != "count"}}, ("step3", "count")),
        "of-another-slot": (state | {"step2": adam, "step3": state["step2"]}, ("step2",)),
        "dtype": (state | {"step2": {"trace": {"a": run.array([1, 2], "int32")}}}, ("step2", "trace", "'a'")),
    }[change]
    run.refuses(lambda: subject.apply(weights, weights, wrong), kind="ValueError", saying=saying)


@case("CHAIN-012")
def entries_by_slot(run: Run) -> None:
    """At the start and after a call, nested chains included."""
    weights = {"a": run.array([1.0, 2.0])}
    subject = run.make(chain(CLIP, chain(description("MomentumStep"), DOUBLE), None, description("SGDStep")))
    first = subject.init(weights)
    _, second = subject.apply(weights, weights, first)
    for state in (first, second):
        if set(state) != {"step1", "step2", "step4"} or set(state["step2"]) != {"step1", "step2"}:
            raise Mismatch(f"expected entries by slot, got {[path for path, _ in leaves(state)]}")
        assert state["step1"] == state["step4"] == state["step2"]["step2"] == {}, (
            f"expected empty states: {state}"
        )


@case("CHAIN-013")
def thirteen_steps(run: Run) -> None:
    """More than there are named slots."""
    digits = [*DIGITS, 7, 9, 3]
    described = chain(*(shift(digit) for digit in digits))
    same_bits(result_of_shifts(run, described), host_array([shifted(digits)]))
    state = run.make(described).init(run.array([1.0]))
    assert set(state) == {f"step{n}" for n in range(1, 14)}, f"expected 13 slots, got {sorted(state)}"


@case("CHAIN-014", each={"slot": ("stepA", "step-1", "first")})
def unknown_slot(run: Run, slot: str) -> None:
    """A step under a name that is no slot."""
    refuses_a_name(lambda: run.step("ChainedStep", **{slot: DOUBLE}), slot)


@case("CHAIN-014")
def tenth_slot_under_two_names(run: Run) -> None:
    """step0 is the tenth of ten slots; beside step10 it is no slot."""
    refuses_a_name(lambda: run.step("ChainedStep", step0=DOUBLE, step10=DOUBLE), "step0")


@case("CHAIN-014", each={"value": {"number": 2.0, "text": "ScalingStep", "bool": True}})
def slot_without_a_step(run: Run, value: Any) -> None:
    """Something else in a slot."""
    run.refused("TypeError", "ChainedStep", step2=value, saying=("step2",))

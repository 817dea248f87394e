"""What holds for every step, whatever it computes."""

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from steps_backends import host_array

from ..case import case
from ..compare import Mismatch, same_bits, same_kind
from ..containers import leaves
from ..descriptions import chain, description
from ..graph_documents import custom, graph, node
from ..oracle.samples import sample
from ..run import Run, Subject
from ..targets.protocol import Description
from .battery import COSINE, STEPS, Entry
from .judging import ALL_DTYPES, made, refuses_a_name, same_but_for_compilers

COMPLEX = ("complex64", "complex128")


def tree(dtype: str = "float32", *, seed: int = 0) -> Any:
    """Return a tree of several ranks and containers."""
    return {
        "kernel": sample((3, 2), dtype, seed=seed),
        "rest": [sample((4,), dtype, seed=seed + 1), (sample((), dtype, seed=seed + 2),)],
    }


def three_calls(step: Subject, gradients: list[Any], weights: Any, state: Any = None) -> tuple[Any, Any]:
    """Return the last result and state of calling a step with each of three gradients."""
    result = None
    for each in gradients:
        result, state = step.apply(each, weights, state)
    return result, state


@case("CONTRACT-001", each={"entry": STEPS})
def first_call_without_a_state(run: Run, entry: Entry) -> None:
    """With weights, and without where the step allows it."""
    gradients, weights = made(run, tree()), made(run, tree(seed=7))
    step = run.make(entry.described)
    for given in [weights] if entry.needs_weights else [weights, None]:
        explicit = step.init(gradients if given is None else given)
        expected = run.read(step.apply(gradients, given, explicit))
        result = run.read(step.apply(gradients, given, None))
        same_but_for_compilers(run, result, expected, 8)


@case("CONTRACT-002", each={"entry": STEPS}, in_process=True)
def inputs_stay_as_they_were(run: Run, entry: Entry) -> None:
    """Gradients, weights and a state that has been used."""
    gradients, weights = made(run, tree()), made(run, tree(seed=7))
    step = run.make(entry.described)
    _, state = step.apply(gradients, weights, step.init(weights))
    before = run.read(state)
    step.apply(gradients, weights, state)
    same_bits(run.read(gradients), tree(), path="gradients")
    same_bits(run.read(weights), tree(seed=7), path="weights")
    same_bits(run.read(state), before, path="state")


@case("CONTRACT-003", each={"entry": STEPS, "dtype": ALL_DTYPES})
def result_is_like_the_gradients(run: Run, entry: Entry, dtype: str) -> None:
    """In the first call and in the second."""
    if dtype in COMPLEX and not entry.takes_complex:
        refuses_complex(run, entry, dtype)
        return
    gradients, weights = made(run, tree(dtype)), made(run, tree(dtype, seed=7))
    step = run.make(entry.described)
    result, state = step.apply(gradients, weights, step.init(weights))
    same_kind(run.backend, result, gradients, path="first result")
    result, _ = step.apply(gradients, weights, state)
    same_kind(run.backend, result, gradients, path="second result")


def refuses_complex(run: Run, entry: Entry, dtype: str) -> None:
    """Require the error of a step that takes real leaves only."""
    gradients, weights = made(run, tree(dtype)), made(run, tree(dtype, seed=7))
    step = run.make(entry.described)
    run.refuses(lambda: step.apply(gradients, weights), kind="TypeError", saying=("['kernel']", dtype))


@case("CONTRACT-003", each={"entry": STEPS}, dtypes=("float16",))
def wide_weights_do_not_widen_the_result(run: Run, entry: Entry) -> None:
    """float16 gradients with float32 weights, where the step allows it."""
    gradients, weights = made(run, tree("float16")), made(run, tree(seed=7))
    step = run.make(entry.described)
    if entry.described["step"] == "ConstraintStep":
        run.refuses(lambda: step.apply(gradients, weights), kind="TypeError", saying=("float16", "float32"))
    else:
        same_kind(run.backend, step.apply(gradients, weights)[0], gradients)


@case("CONTRACT-004", each={"entry": STEPS, "dtype": ("float32", "bfloat16")})
def state_keeps_its_form(run: Run, entry: Entry, dtype: str) -> None:
    """Over three calls, from the initial state on."""
    gradients, weights = made(run, tree(dtype)), made(run, tree(dtype, seed=7))
    step = run.make(entry.described)
    first = step.init(weights)
    state = first
    for number in (1, 2, 3):
        _, state = step.apply(gradients, weights, state)
        same_kind(run.backend, state, first, path=f"state after call {number}")


@case(
    "CONTRACT-004",
    each={
        "entry": STEPS,
        "weight_dtype": ("bfloat16", "float32", "float64"),
        "gradient_dtype": ("float32", "float64"),
    },
)
def state_keeps_its_form_beside_another_dtype(
    run: Run, entry: Entry, weight_dtype: str, gradient_dtype: str
) -> None:
    """Weights and gradients of dtypes that may differ."""
    gradients, weights = made(run, tree(gradient_dtype)), made(run, tree(weight_dtype, seed=7))
    step = run.make(entry.described)
    first = step.init(weights)
    if entry.described["step"] == "ConstraintStep" and (weight_dtype, gradient_dtype) == (
        "float64",
        "float32",
    ):
        run.refuses(lambda: step.apply(gradients, weights, first), kind="TypeError", saying=("float32",))
        return
    _, state = step.apply(gradients, weights, first)
    same_kind(run.backend, state, first, path="state")


@case("CONTRACT-005", each={"entry": STEPS})
def same_input_same_bits(run: Run, entry: Entry) -> None:
    """A second object, and the first once more."""
    gradients = [made(run, tree(seed=seed)) for seed in (0, 10, 20)]
    weights = made(run, tree(seed=7))
    step, twin = run.make(entry.described), run.make(entry.described)
    expected = run.read(three_calls(step, gradients, weights))
    same_bits(run.read(three_calls(twin, gradients, weights)), expected, path="second object")
    same_bits(run.read(three_calls(step, gradients, weights)), expected, path="second time")


@case("CONTRACT-006", each={"entry": STEPS})
def two_models_in_turns(run: Run, entry: Entry) -> None:
    """Models of different trees, called in turns."""
    one, other = made(run, tree()), made(run, [sample((3, 3), seed=4)])
    shared, first, second = (run.make(entry.described) for _ in range(3))
    states: list[Any] = [None, None]
    results: list[Any] = [None, None]
    for _ in range(3):
        for index, model in enumerate((one, other)):
            results[index], states[index] = shared.apply(model, model, states[index])
    same_bits(run.read((results[0], states[0])), run.read(three_calls(first, [one] * 3, one)))
    same_bits(run.read((results[1], states[1])), run.read(three_calls(second, [other] * 3, other)))


HARD: dict[str, list[float]] = {
    "zeros": [0.0, -0.0],
    "subnormal": [1e-40, -1e-45],
    "tiny": [1e-30, -1e-38],
    "largest": [3.4e38, -3.4e38],
    "nan": [math.nan, 1.0],
    "infinite": [math.inf, -math.inf],
}


@case("CONTRACT-007", each={"entry": STEPS}, in_process=True)
def no_warning(run: Run, entry: Entry) -> None:
    """Two calls with hard gradients, on ordinary weights and on weights as hard."""
    step = run.make(entry.described)
    for name, values in HARD.items():
        gradients, plain = [host_array(values), host_array([values, values])], [sample((2,)), sample((2, 2))]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for weights in (plain, gradients):
                hard, old = made(run, gradients), made(run, weights)
                _, state = step.apply(hard, old, step.init(old))
                run.read(step.apply(hard, old, state))
        if caught:
            raise Mismatch(f"{name}: {caught[0].category.__name__}: {caught[0].message}")


@case("CONTRACT-008", each={"entry": STEPS}, in_process=True)
def breakpoint_changes_nothing(run: Run, entry: Entry) -> None:
    """With a hook that only counts."""
    gradients, weights = made(run, tree()), made(run, tree(seed=7))
    expected = run.read(run.make(entry.described).apply(gradients, weights))
    options = entry.described["options"] | {"set_breakpoint": True}
    watched = run.make({"step": entry.described["step"], "options": options})
    with counted_breakpoints() as calls, warnings.catch_warnings():
        # a compiling row may say once that it skips the breakpoint
        warnings.simplefilter("ignore" if "jit" in run.traits else "error")
        result = run.read(watched.apply(gradients, weights))
    same_bits(result, expected)
    if "jit" not in run.traits and not calls:
        raise Mismatch("sys.breakpointhook was not called")


@contextmanager
def counted_breakpoints() -> Iterator[list[None]]:
    """Put a hook in the place of the debugger, and yield a list that grows with each call of it."""
    calls: list[None] = []
    before = sys.breakpointhook
    sys.breakpointhook = lambda *_, **__: calls.append(None)
    try:
        yield calls
    finally:
        sys.breakpointhook = before


@case("CONTRACT-009", each={"entry": STEPS})
def state_is_a_dict(run: Run, entry: Entry) -> None:
    """The initial state, and the one after a call."""
    weights = made(run, tree())
    step = run.make(entry.described)
    first = step.init(weights)
    for state in (first, step.apply(weights, weights, first)[1]):
        if type(state) is not dict or bool(state) != entry.remembers:
            raise Mismatch(f"expected {'a dict' if entry.remembers else '{}'}, got {state!r}")


RATE = {"learning_rate": -1.0}
NEGATES: dict[str, tuple[Description, bool]] = {
    "adam": (description("AdamStep"), True),
    "adam-core": (description("AdamStep", **RATE), False),
    "adam-zero-rate": (description("AdamStep", learning_rate=0.0), True),
    "rmsprop": (description("RMSPropStep", learning_rate=COSINE), True),
    "rmsprop-core": (description("RMSPropStep", **RATE), False),
    "sgd": (description("SGDStep"), True),
    "sgd-core": (description("SGDStep", **RATE), False),
    "by-rate": (description("ScalingStep", learning_rate=0.1), True),
    "by-negative-rate": (description("ScalingStep", **RATE), False),
    "by-scheduled-rate": (description("ScalingStep", learning_rate=COSINE), True),
    "by-scale": (description("ScalingStep", scale=0.1), False),
    "by-negative-scale": (description("ScalingStep", scale=-1.0), True),
    "by-scheduled-scale": (description("ScalingStep", scale=COSINE), False),
    "clipping": (description("GradientClippingStep"), False),
    "momentum": (description("MomentumStep"), False),
    "monitor": (description("MonitorStep"), False),
    "constraint": (description("ConstraintStep", constraint="nonnegative"), False),
    "skip-adam": (description("SkipNonFiniteStep", inner=description("AdamStep")), True),
    "skip-clipping": (description("SkipNonFiniteStep", inner=description("GradientClippingStep")), False),
    "empty-chain": (chain(), False),
    "clip-then-adam": (chain(description("GradientClippingStep"), description("AdamStep")), True),
    "twice": (chain(description("SGDStep"), description("ScalingStep", scale=-1.0)), False),
    "three-times": (chain(*[description("SGDStep")] * 3), True),
    "four-times": (chain(*[description("SGDStep")] * 4), False),
    "nested-three": (
        chain(
            chain(description("SGDStep"), description("AdamStep")),
            None,
            description("ScalingStep", scale=-2.0),
        ),
        True,
    ),
}


@case("CONTRACT-010", each={"row": NEGATES}, needs={"negates"})
def negates(run: Run, row: tuple[Description, bool]) -> None:
    """Without running the step."""
    described, expected = row
    answer = run.negates(described)
    assert answer is expected, f"expected {expected}, got {answer!r}"


@case("CONTRACT-011", each={"row": NEGATES}, needs={"check_end_to_end"})
def end_to_end_check(run: Run, row: tuple[Description, bool]) -> None:
    """Passed in silence, or refused with the way out."""
    described, passes = row
    if passes:
        run.check_end_to_end(described)
    else:
        saying = ("ScalingStep(scale=-1.0)",)
        run.refuses(lambda: run.check_end_to_end(described), kind="ValueError", saying=saying)


@case("CONTRACT-012", each={"name": ("GradientClipping", "adamstep", "Step")})
def unknown_step(run: Run, name: str) -> None:
    """Names that look like steps."""
    refuses_a_name(lambda: run.step(name), name)


PREVIOUS = Entry(custom(graph(node("before", "previous_value", "gradients"))), remembers=True)


@case("CONTRACT-014", each={"entry": STEPS | {"previous-value": PREVIOUS}}, in_process=True)
def what_is_given_out_is_not_kept(run: Run, entry: Entry) -> None:
    """The result of the second call is written over, and so are the inputs; then a third call is made."""
    step, untouched = run.make(entry.described), run.make(entry.described)

    def third_result(subject: Subject, *, overwrite: bool) -> Any:
        state = None
        for _ in range(2):
            gradients, weights = made(run, tree()), made(run, tree(seed=7))
            result, state = subject.apply(gradients, weights, state)
        if overwrite and "mutable" in run.traits:
            for given in (result, gradients, weights):
                overwrite_leaves(given)
        return run.read(subject.apply(made(run, tree()), made(run, tree(seed=7)), state))

    same_bits(third_result(step, overwrite=True), third_result(untouched, overwrite=False))


def overwrite_leaves(given: Any) -> None:
    """Write other numbers into every array of a tree."""
    for _, leaf in leaves(given):
        leaf += 7.0  # noqa: PLW2901 - in place; a DTensor cannot be filled


@case("CONTRACT-015", each={"entry": STEPS})
def state_lies_where_the_weights_are(run: Run, entry: Entry) -> None:
    """All weights are on one device: that of the backend."""
    weights = made(run, tree())
    home = run.backend.device_of(weights["kernel"])
    for path, array in leaves(run.make(entry.described).init(weights)):
        if run.backend.device_of(array) != home:
            raise Mismatch(f"state{path}: expected device {home}, got {run.backend.device_of(array)}")


def edited(state: Any, **changes: Any) -> Any:
    """Return a copy of a state with some entries changed; None removes one."""
    return {key: value for key, value in (state | changes).items() if value is not None}


@case(
    "CONTRACT-013",
    each={
        "change": ("missing", "missing-leaf", "extra", "extra-leaf", "dtype", "shape", "count", "count-shape")
    },
)
def wrong_state(run: Run, change: str) -> None:
    """One fault at a time in a state of Adam."""
    weights = {"a": run.array([1.0, 2.0])}
    step = run.step("AdamStep")
    state = step.init(weights)
    wide = {"a": run.array([0.0, 0.0, 0.0])}
    wrong, path = {
        "missing": (edited(state, second_moment=None), "second_moment"),
        "missing-leaf": (edited(state, second_moment={}), "state['second_moment']"),
        "extra": (edited(state, velocity=weights), "velocity"),
        "extra-leaf": (edited(state, first_moment=weights | {"b": weights["a"]}), "state['first_moment']"),
        "dtype": (
            edited(state, first_moment={"a": run.array([0, 0], "int32")}),
            "state['first_moment']['a']",
        ),
        "shape": (edited(state, second_moment=wide), "state['second_moment']['a']"),
        "count": (edited(state, count=run.array(1.0)), "state['count']"),
        "count-shape": (edited(state, count=run.array([1], "int32")), "state['count']"),
    }[change]
    run.refuses(lambda: step.apply(weights, weights, wrong), kind="ValueError", saying=(path,))


@case("CONTRACT-013", each={"name": ("AdamStep", "GradientClippingStep", "ChainedStep")})
def state_of_another_step(run: Run, name: str) -> None:
    """The state of a momentum step."""
    weights = {"a": run.array([1.0, 2.0])}
    other = run.step("MomentumStep").init(weights)
    step = run.step(name)
    run.refuses(lambda: step.apply(weights, weights, other), kind="ValueError", saying=("trace",))


@case("CONTRACT-013")
def state_that_is_no_dict(run: Run) -> None:
    """A list of what would be the entries."""
    weights = {"a": run.array([1.0, 2.0])}
    step = run.step("MomentumStep")
    run.refuses(lambda: step.apply(weights, weights, [weights]), kind="ValueError", saying=("state", "list"))

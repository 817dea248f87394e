"""Tunable options: every number of every step, held in the state and replaced between calls."""

import copy
import json
import math
import pickle
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_trees, assert_within_ulps, leaves_of, read_tree
from libraries import COMPLEX, Library

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    ChainedStep,
    ConstantSchedule,
    ConstraintStep,
    CosineSchedule,
    GradientClippingStep,
    LinearSchedule,
    MaskedStep,
    MomentumStep,
    RMSPropStep,
    ScalingStep,
    SGDStep,
    SkipNonFiniteStep,
    StateError,
    Step,
    StepsError,
    Tunable,
    WarmupSchedule,
    WeightDecayStep,
    build,
    load_state,
    save_state,
)
from steps_core.steps import STEPS

VARIANTS = ("per-weight", "per-layer", "global", "per-weight-relative")


# ---- Every numeric option of every step


@dataclass(frozen=True)
class Row:
    """One option of one step with two values that are float32 numbers, and the options beside it."""

    kind: type[Step]
    option: str
    values: tuple[float, float]
    beside: tuple[tuple[str, Any], ...] = ()

    def step(self, value: Any) -> Step:
        """Return the step with a value, plain or Tunable."""
        return self.kind(**dict(self.beside), **{self.option: value})

    @property
    def entry(self) -> str:
        """The name of the state entry."""
        return "momentum_option" if self.option == "momentum" else self.option

    def __str__(self) -> str:
        return "-".join([self.kind.__name__, self.option, *(str(value) for _, value in self.beside)])


def beside(**options: Any) -> tuple[tuple[str, Any], ...]:
    """Return options as a row keeps them."""
    return tuple(options.items())


ADAM = beside(learning_rate=0.5, amsgrad=True, nesterov=True)
RMSPROP = beside(learning_rate=0.5, centered=True, epsilon_inside=False)
MOMENTUM = beside(learning_rate=0.5, nesterov=True)
ROWS = [
    Row(AdamStep, "learning_rate", (0.125, 3.0)),
    Row(AdamStep, "beta1", (0.75, 0.0)),
    Row(AdamStep, "beta1", (0.75, 0.998046875), ADAM),
    Row(AdamStep, "beta2", (0.875, 0.0)),
    Row(AdamStep, "beta2", (0.875, 0.9990234375), ADAM),
    Row(AdamStep, "epsilon", (2.0**-7, 0.0)),
    Row(AdamStep, "epsilon", (2.0**-7, 1.0), ADAM),
    Row(AdamStep, "epsilon_root", (2.0**-7, 0.0)),
    Row(AdamStep, "epsilon_root", (2.0**-7, 1.0), ADAM),
    Row(AdamStep, "weight_decay", (0.25, 0.0), beside(learning_rate=0.5)),
    Row(RMSPropStep, "learning_rate", (0.125, 3.0)),
    Row(RMSPropStep, "decay", (0.75, 0.0)),
    Row(RMSPropStep, "decay", (0.75, 0.998046875), RMSPROP),
    Row(RMSPropStep, "epsilon", (2.0**-7, 0.0)),
    Row(RMSPropStep, "epsilon", (2.0**-7, 1.0), RMSPROP),
    Row(RMSPropStep, "momentum", (0.5, 0.75)),
    Row(RMSPropStep, "momentum", (0.5, 0.75), MOMENTUM),
    Row(RMSPropStep, "weight_decay", (0.25, 0.0), beside(learning_rate=0.5)),
    Row(SGDStep, "learning_rate", (0.125, 3.0)),
    Row(SGDStep, "momentum", (0.5, 0.75)),
    Row(SGDStep, "momentum", (0.5, 0.75), MOMENTUM),
    Row(SGDStep, "weight_decay", (0.25, 0.0), beside(learning_rate=0.5)),
    Row(MomentumStep, "decay", (0.5, 0.0)),
    Row(MomentumStep, "decay", (0.5, 0.75), beside(nesterov=True)),
    Row(WeightDecayStep, "weight_decay", (0.25, 0.0)),
    Row(ScalingStep, "scale", (0.125, -3.0)),
    Row(ScalingStep, "learning_rate", (0.125, -3.0)),
    *(
        Row(GradientClippingStep, "threshold", (0.5, second), beside(variant=variant))
        for variant in VARIANTS
        for second in (1.5, 0.0, math.inf)
    ),
    *(Row(GradientClippingStep, "epsilon", (2.0**-7, 3.0), beside(variant=variant)) for variant in VARIANTS),
    Row(GradientClippingStep, "epsilon", (2.0**-7, 0.0), beside(variant="per-weight-relative")),
    Row(ConstraintStep, "lower", (-0.5, 0.25), beside(constraint="box")),
    Row(ConstraintStep, "lower", (-0.5, -math.inf), beside(constraint="box", upper=1.0)),
    Row(ConstraintStep, "upper", (0.5, math.inf), beside(constraint="box")),
    Row(ConstraintStep, "upper", (0.5, -0.25), beside(constraint="box", lower=-1.0)),
    Row(ConstraintStep, "radius", (0.5, 0.75), beside(constraint="norm-ball")),
]


def is_numeric(kind: type[Step], name: str, default: Any) -> bool:
    """Return whether an option is a number: by its default, or by what its annotation allows beside None."""
    return isinstance(default, float) or float in get_args(get_type_hints(kind)[name])


def test_every_number_that_a_step_takes_stands_in_the_table() -> None:
    """A new option must be added, and so must take a Tunable."""
    numeric = {
        (kind, field.name)
        for kind in STEPS.values()
        for field in fields(kind)
        if is_numeric(kind, field.name, field.default)
    }
    assert {(row.kind, row.option) for row in ROWS} == numeric


def leaves_for(library: Library, row: Row, seed: int) -> dict[str, Any]:
    """Return a tree of the dtypes and ranks that arithmetic depends on, with None among the leaves."""
    rng = np.random.default_rng(seed)
    has_order = row.kind is not ConstraintStep or dict(row.beside)["constraint"] == "norm-ball"
    dtypes = [dtype for dtype in library.dtypes if has_order or dtype not in COMPLEX]
    return {
        "dtypes": {dtype: library.array(rng.normal(size=(3, 2)), dtype) for dtype in dtypes},
        "scalar": library.array(rng.normal()),
        "none": None,
    }


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_tunable_option_computes_as_the_plain_one(library: Library, row: Row) -> None:
    """Two calls with the first value, one with the other; each beside the plain step of that value."""
    tunable, weights = row.step(Tunable(row.values[0])), leaves_for(library, row, 31)
    state = tunable.init(weights)
    assert_held(library, state, row, row.values[0])
    for call, value in enumerate((row.values[0], row.values[0], row.values[1])):
        gradients = leaves_for(library, row, 40 + call)
        state = {**state, row.entry: library.array(value)}
        own = {key: entry for key, entry in state.items() if key != row.entry}
        expected, expected_state = row.step(value)(gradients, weights, own)
        updates, state = tunable(gradients, weights, state)
        assert_close(read_tree(library, updates), read_tree(library, expected), ulps_of(library, row))
        own = {key: entry for key, entry in state.items() if key != row.entry}
        assert_close(read_tree(library, own), read_tree(library, expected_state), ulps_of(library, row))
        assert_held(library, state, row, value)


def ulps_of(library: Library, row: Row) -> float:
    """Return how far a result may be from the plain one: bias corrections take another logarithm."""
    return 2 if row.option in ("beta1", "beta2") else 0


def assert_held(library: Library, state: Any, row: Row, value: float) -> None:
    """Fail unless the state holds the value as a 0-d float32 array."""
    held = library.read(state[row.entry])
    assert held.dtype == np.float32 and held.shape == () and held == value


def assert_close(actual: Any, expected: Any, ulps: float) -> None:
    """Fail unless trees of NumPy arrays agree; 0 ulps: in every number, whatever the sign of a zero.

    The ulps are those of the largest element, because updates are sums whose terms may cancel.
    """
    for one, other in zip(leaves_of(actual), leaves_of(expected), strict=True):
        if one is None or other is None:
            assert one is other
        elif ulps:
            assert one.dtype == other.dtype and one.shape == other.shape
            unit = np.spacing(np.max(np.abs(other))).astype(np.float64)
            assert np.max(np.abs(one - other)) <= ulps * unit
        else:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_all_options_at_once(library: Library) -> None:
    """Beside the plain step, over three calls, with what 0.9 and 0.999 become in float32."""
    options = {
        "learning_rate": 2.0**-10,
        "beta1": float(np.float32(0.9)),
        "beta2": float(np.float32(0.999)),
        "epsilon": float(np.float32(1e-8)),
        "epsilon_root": float(np.float32(1e-6)),
    }
    plain, tunable = AdamStep(**options), AdamStep(**{name: Tunable(x) for name, x in options.items()})
    gradients = library.array(np.random.default_rng(3).normal(size=20))
    state, expected_state = tunable.init(gradients), plain.init(gradients)
    for _ in range(3):
        updates, state = tunable(gradients, None, state)
        expected, expected_state = plain(gradients, None, expected_state)
        assert_within_ulps(library.read(updates), library.read(expected), 2)


# ---- The state entry


def test_a_momentum_and_its_option_have_different_names() -> None:
    """In both steps that keep a momentum; nowhere else does a name change."""
    for kind in (SGDStep, RMSPropStep):
        step = kind(momentum=Tunable(0.5), learning_rate=Tunable(0.5))
        state = step.init(np.zeros(3, "float32"))
        assert state["momentum"].shape == (3,) and state["momentum_option"] == 0.5
        assert "learning_rate" in state and "learning_rate_option" not in state


def test_a_momentum_that_starts_at_0_has_its_buffer(library: Library) -> None:
    """It may become anything."""
    step, gradients = SGDStep(momentum=Tunable(0.0), learning_rate=1.0), library.array([2.0])
    updates, state = step(gradients)
    assert library.read(updates) == [-2.0]
    updates, state = step(gradients, state={**state, "momentum_option": library.array(0.5)})
    assert library.read(updates) == [-3.0]


def test_a_tree_without_an_array_holds_none() -> None:
    """There is no library that could hold the number; nothing is computed."""
    for step in (
        AdamStep(beta1=Tunable(0.9), learning_rate=Tunable(0.1)),
        ScalingStep(learning_rate=Tunable(0.5)),
        GradientClippingStep(variant="global", threshold=Tunable(0.5)),
        ConstraintStep("box", lower=Tunable(0.5)),
    ):
        for tree in ({"a": None}, {}, ()):
            state = step.init(tree)
            assert {state[entry] for _, entry in step.tunable_entries} == {None}
            assert step(tree, tree, state) == (tree, state)


def test_a_gradient_of_none_leaves_the_entry(library: Library) -> None:
    """With weights there, and no gradient at all in this call."""
    step = ScalingStep(learning_rate=Tunable(0.5))
    state = step.init([library.array([1.0])])
    updates, after = step([None], [library.array([1.0])], state)
    assert updates == [None] and library.read(after["learning_rate"]) == 0.5


def test_nothing_given_is_written_to(library: Library) -> None:
    """The entry comes back as it was, in a new dict."""
    step, gradients = SGDStep(learning_rate=Tunable(0.5)), library.array([2.0])
    state = step.init(gradients)
    _, after = step(gradients, None, state)
    assert after is not state and after["learning_rate"] is state["learning_rate"]
    assert library.read(state["learning_rate"]) == 0.5


def test_a_numpy_scalar_is_taken_as_an_array() -> None:
    """And given back as one."""
    step = SGDStep(learning_rate=Tunable(0.5))
    updates, state = step(np.ones(1, "float32"), state={"learning_rate": np.float32(0.25)})
    assert updates == [-0.25] and type(state["learning_rate"]) is np.ndarray


BAD_ENTRIES = {
    "a number": (0.5, "got 0.5 (float)"),
    "None": (None, "got None (NoneType)"),
    "float64": (np.asarray(0.5), "dtype float64"),
    "a whole number": (np.asarray(1, "int32"), "dtype int32"),
    "a vector": (np.zeros(1, "float32"), "shape (1,)"),
    "a text": ("0.5", "got '0.5' (str)"),
}


@pytest.mark.parametrize("what", BAD_ENTRIES)
def test_a_bad_entry_is_refused_by_its_path(what: str) -> None:
    """Alone and inside a chain, which names the step too."""
    entry, says = BAD_ENTRIES[what]
    step, gradients = SGDStep(learning_rate=Tunable(0.5)), np.ones(2, "float32")
    with pytest.raises(StateError, match=r"state\['learning_rate'\] must be a 0-d array of") as caught:
        step(gradients, None, {"learning_rate": entry})
    assert says in str(caught.value) and "or step.init(weights)" in str(caught.value)
    assert caught.value.path == "state['learning_rate']"
    with pytest.raises(StateError, match=r"state\['step2'\]\['learning_rate'\] must be") as caught:
        ChainedStep(MomentumStep(), step)(
            gradients, None, {"step1": MomentumStep().init(gradients), "step2": {"learning_rate": entry}}
        )
    assert caught.value.slot == "step2" and caught.value.path == "state['step2']['learning_rate']"


def test_an_entry_of_another_library_is_refused() -> None:
    """It would be moved from device to device unseen."""
    torch = pytest.importorskip("torch")
    step = SGDStep(learning_rate=Tunable(0.5))
    with pytest.raises(StateError, match="must be a 0-d array of the gradients' library, got"):
        step(np.ones(2, "float32"), None, {"learning_rate": torch.asarray(0.5)})


def test_a_missing_or_unknown_entry_is_refused() -> None:
    """The plain step's state for the tunable one, and the other way round."""
    gradients = np.ones(2, "float32")
    with pytest.raises(StateError, match=r"missing: state\['learning_rate'\]"):
        SGDStep(learning_rate=Tunable(0.5))(gradients, None, {})
    with pytest.raises(StateError, match=r"not known: state\['learning_rate'\]"):
        SGDStep()(gradients, None, SGDStep(learning_rate=Tunable(0.5)).init(gradients))


def test_a_saved_state_keeps_what_was_tuned(library: Library, tmp_path: Path) -> None:
    """Also where there was no array to hold it."""
    step = ChainedStep(SGDStep(momentum=Tunable(0.5)), ScalingStep(scale=Tunable(2.0)))
    weights = {"w": library.array([1.0, 2.0])}
    state = step.init(weights)
    state["step1"]["momentum_option"] = library.array(0.25)
    save_state(state, tmp_path / "state")
    loaded = load_state(tmp_path / "state", like=step.init(weights))
    assert_same_trees(read_tree(library, loaded), read_tree(library, state))
    save_state(step.init({}), tmp_path / "empty")
    assert load_state(tmp_path / "empty", like=step.init({})) == step.init({})


# ---- What is settled when the step is made


def test_a_tunable_weight_decay_needs_weights() -> None:
    """Also one that starts at 0."""
    for kind in (AdamStep, RMSPropStep, SGDStep, WeightDecayStep):
        step = kind(weight_decay=Tunable(0.0))
        assert step.needs_weights
        with pytest.raises(ArgumentError, match=f"weights must be given, because {kind.__name__} needs them"):
            step(np.ones(1, "float32"))
    relative = GradientClippingStep(variant="per-weight-relative", threshold=Tunable(math.inf))
    assert relative.needs_weights
    assert not GradientClippingStep(variant="per-weight-relative", threshold=math.inf).needs_weights


@pytest.mark.parametrize(("value", "sign"), [(0.5, True), (0.0, True), (-0.5, False)])
def test_whether_it_negates_follows_from_the_first_value(value: float, sign: bool) -> None:
    """As with the plain number."""
    for kind in (AdamStep, RMSPropStep, SGDStep, ScalingStep):
        assert kind(learning_rate=Tunable(value)).negates is sign is kind(learning_rate=value).negates
    assert ScalingStep(scale=Tunable(value)).negates is ScalingStep(scale=value).negates is (not sign)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_value_is_checked_by_the_rule_of_its_option(row: Row) -> None:
    """Refused with the text of the plain number, or taken as that is."""
    for value in (-1.0, math.inf, -math.inf, 1.0, 2.0**100):
        plain = refused_text(row, value)
        assert refused_text(row, Tunable(value)) == plain
    assert refused_text(row, row.values[0]) is None


def refused_text(row: Row, value: Any) -> str | None:
    """Return the text with which a value is refused; None where it is taken."""
    try:
        row.step(value)
    except StepsError as error:
        return str(error)
    return None


def test_a_value_must_also_hold_its_rule_in_float32() -> None:
    """1 - 1e-12 would become 1, and every bias correction 0."""
    with pytest.raises(ArgumentError, match=r"beta1 must be at least 0 and below 1, got 1\.0") as caught:
        AdamStep(beta1=Tunable(1 - 1e-12))
    assert "rounded to float32" in caught.value.__notes__[0]
    assert AdamStep(beta1=1 - 1e-12).beta1 == 1 - 1e-12


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda x: AdamStep(amsgrad=x), "amsgrad must be True or False, got Tunable(1.0) (Tunable)"),
        (lambda x: SGDStep(nesterov=x), "nesterov must be True or False, got Tunable(1.0) (Tunable)"),
        (lambda x: SGDStep(set_breakpoint=x), "set_breakpoint must be True or False, got Tunable(1.0)"),
        (lambda x: SGDStep(metadata=x), "metadata must be a mapping, got Tunable(1.0) (Tunable)"),
        (lambda x: GradientClippingStep(variant=x), "variant must be a text, got Tunable(1.0) (Tunable)"),
        (lambda x: GradientClippingStep(unit_axis=x), 'unit_axis must be "auto", an int or a tuple of ints'),
        (ConstraintStep, "constraint must be a text, got Tunable(1.0) (Tunable)"),
        (ChainedStep, "step1 must be a step, got Tunable(1.0) (Tunable)"),
        (SkipNonFiniteStep, "inner must be a step, got Tunable(1.0) (Tunable)"),
        (lambda x: MaskedStep(SGDStep(), x), "mask must be a tree of booleans or a function, got Tunable"),
        (ConstantSchedule, "value must be a number, got Tunable(1.0) (Tunable)"),
        (lambda x: LinearSchedule(0.0, x, 5), "final must be a number, got Tunable(1.0) (Tunable)"),
        (lambda x: CosineSchedule(1.0, x), "steps must be a whole number of at least 1, got Tunable(1.0)"),
        (lambda x: WarmupSchedule(3, x), "then must be a finite number or a schedule, got Tunable(1.0)"),
        (Tunable, "value must be a number, got Tunable(1.0) (Tunable)"),
    ],
)
def test_what_is_no_number_is_not_tunable(make: Any, says: str) -> None:
    """Nor are the parts of a schedule; the text shows what was given."""
    with pytest.raises(ArgumentTypeError) as caught:  # noqa: PT011 - the text stands in the table
        make(Tunable(1.0))
    assert says in str(caught.value)


def test_an_option_that_its_step_does_not_use_is_refused() -> None:
    """Also with the value of the default: an entry of the state would do nothing."""
    with pytest.raises(ArgumentError, match="radius must be left out with 'box'"):
        ConstraintStep("box", lower=0.0, radius=Tunable(1.0))
    with pytest.raises(ArgumentError, match="lower must be left out with 'unit-norm'"):
        ConstraintStep("unit-norm", lower=Tunable(1.0))
    with pytest.raises(ArgumentError, match=r"lower must be at most upper=0\.5"):
        ConstraintStep("box", lower=Tunable(1.0), upper=Tunable(0.5))
    with pytest.raises(ArgumentError, match=r"momentum must be above 0 with nesterov=True, got 0\.0"):
        SGDStep(momentum=Tunable(0.0), nesterov=True)
    with pytest.raises(ArgumentError, match="exactly one of scale and learning_rate must be given"):
        ScalingStep(scale=Tunable(1.0), learning_rate=Tunable(1.0))


# ---- Tunable itself


@pytest.mark.parametrize("value", [True, "1", None, 1j, [1.0], np.ones(1), np.asarray(1.0)])
def test_tunable_holds_a_number(value: Any) -> None:
    """Nothing else."""
    with pytest.raises(ArgumentTypeError, match="value must be a number, got"):
        Tunable(value)


@pytest.mark.parametrize("value", [math.nan, 1e39, -1e300, 3.5e38, 1e-46, -1e-300])
def test_tunable_holds_a_number_that_float32_holds(value: float) -> None:
    """Not NaN, and nothing that would become infinite or 0 unseen."""
    with pytest.raises(ArgumentError, match="value must be"):
        Tunable(value)


def test_tunable_keeps_its_digits_and_normalises_its_type() -> None:
    """A whole number and NumPy's numbers become floats; infinity is a number."""
    assert Tunable(1) == Tunable(1.0) == Tunable(np.float32(1)) and type(Tunable(1).value) is float
    assert Tunable(0.1).value == 0.1 != float(np.float32(0.1))
    assert Tunable(math.inf).value == math.inf and Tunable(-math.inf).value == -math.inf
    assert Tunable(3.4028234663852886e38).value == np.finfo("float32").max
    assert Tunable(1e-45).value == 1e-45 and Tunable(0).value == 0.0
    assert repr(Tunable(0.1)) == "Tunable(0.1)"
    assert {Tunable(0.5): 1}[Tunable(0.5)] == 1
    assert Tunable(0.5) != 0.5 and Tunable(0.5) != Tunable(0.25)
    with pytest.raises(AttributeError, match="cannot assign to field 'value'"):
        Tunable(0.5).value = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_step_with_a_tunable_option_is_a_step_like_others(row: Row) -> None:
    """Equality, hash, copies, pickles, replaced options, its description and what it shows."""
    step, plain = row.step(Tunable(row.values[0])), row.step(row.values[0])
    assert step != plain and step != row.step(Tunable(1e-3 if row.option != "upper" else 0.75))
    others = [
        row.step(Tunable(row.values[0])),
        copy.copy(step),
        copy.deepcopy(step),
        pickle.loads(pickle.dumps(step)),
        replace(step),
        build(json.loads(json.dumps(step.describe()))),
    ]
    for other in others:
        assert other == step and hash(other) == hash(step) and repr(other) == repr(step)
        assert other.tunable_entries == step.tunable_entries == ((row.option, row.entry),)
        assert other.state_keys == step.state_keys == (*plain.state_keys, row.entry)
    assert f"{row.option}=Tunable({row.values[0]!r})" in repr(step)
    described = step.describe()["options"][row.option]
    assert described == {"tunable": {"float": row.values[0].hex()}}
    again = replace(step, **{row.option: row.values[0]})
    assert again == plain and again.tunable_entries == () and again.state_keys == plain.state_keys


@pytest.mark.parametrize(
    ("entry", "kind", "says"),
    [
        ({"tunable": "0.5"}, ArgumentTypeError, "['beta1']['tunable'] must be a number, got '0.5' (str)"),
        ({"tunable": True}, ArgumentTypeError, "['beta1']['tunable'] must be a number, got True (bool)"),
        ({"tunable": {"float": "abc"}}, ArgumentError, "['tunable'] must hold a hexadecimal float"),
        ({"tunable": {"float": "nan"}}, ArgumentError, "['tunable'] must be a number other than NaN"),
        ({"tunable": {"tunable": 0.5}}, ArgumentTypeError, "['tunable'] must be a number, got Tunable(0.5)"),
        ({"tunable": {"float": "0x1p+0"}}, ArgumentError, "beta1 must be at least 0 and below 1"),
        ({"tunable": 0.5, "more": 1}, ArgumentError, "['beta1'] must be"),
        ([{"tunable": 0.5}], ArgumentTypeError, "beta1 must be a number, got (Tunable(0.5),) (tuple)"),
    ],
)
def test_a_description_of_another_form_is_refused(entry: Any, kind: type[StepsError], says: str) -> None:
    """By its place."""
    with pytest.raises(kind) as caught:
        build({"step": "AdamStep", "options": {"beta1": entry}})
    assert says in str(caught.value)


# ---- Steps around, and devices


def test_wrappers_and_chains_hold_the_entries_inside(library: Library) -> None:
    """A skipped call, a masked leaf and a chain leave them; a replaced one counts."""
    step = ChainedStep(
        MaskedStep(ScalingStep(scale=Tunable(2.0)), {"a": True, "b": False}),
        SkipNonFiniteStep(SGDStep(learning_rate=Tunable(0.5))),
    )
    gradients = {"a": library.array([1.0]), "b": library.array([1.0])}
    state = step.init(gradients)
    updates, state = step(gradients, None, state)
    assert {key: library.read(leaf) for key, leaf in updates.items()} == {"a": [-1.0], "b": [-0.5]}
    state["step1"]["inner"]["scale"] = library.array(4.0)
    state["step2"]["inner"]["learning_rate"] = library.array(0.25)
    updates, state = step({**gradients, "b": library.array([np.nan])}, None, state)
    assert {key: library.read(leaf) for key, leaf in updates.items()} == {"a": [0.0], "b": [0.0]}
    updates, state = step(gradients, None, state)
    assert {key: library.read(leaf) for key, leaf in updates.items()} == {"a": [-1.0], "b": [-0.25]}
    assert library.read(state["step2"]["skipped"]) == 1


def test_a_masked_tree_without_a_chosen_leaf_holds_none(library: Library) -> None:
    """As its counters do."""
    step, leaf = MaskedStep(AdamStep(beta1=Tunable(0.5)), False), library.array([1.0])
    state = step.init(leaf)
    assert state["inner"]["beta1"] is None
    assert library.read(step(leaf, None, state).gradients) == [1.0]


def test_a_schedule_stands_beside_it(library: Library) -> None:
    """The rate follows its count, the momentum its entry."""
    step = SGDStep(learning_rate=LinearSchedule(1.0, 0.0, 4), momentum=Tunable(0.5))
    gradients = library.array([1.0])
    updates, state = step(gradients)
    assert library.read(updates) == [-1.0] and sorted(state) == ["count", "momentum", "momentum_option"]
    assert library.read(step(gradients, None, state).gradients) == [-1.125]


@pytest.mark.parametrize("variant", VARIANTS)
def test_leaves_on_two_devices_share_the_entry(variant: str) -> None:
    """It stands on the first leaf's device; its value goes to each."""
    xp = pytest.importorskip("array_api_strict")
    devices = [xp.Device("CPU_DEVICE"), xp.Device("device1")]
    library = Library("array_api_strict")
    gradients = [library.array([3.0, 4.0], device=device) for device in devices]
    step = GradientClippingStep(variant=variant, threshold=Tunable(0.5), epsilon=Tunable(0.25))
    plain = GradientClippingStep(variant=variant, threshold=0.5, epsilon=0.25)
    updates, state = step(gradients, gradients)
    assert state["threshold"].device == devices[0]
    assert [leaf.device for leaf in updates] == devices
    assert_same_trees(read_tree(library, updates), read_tree(library, plain(gradients, gradients).gradients))
    assert step(gradients[1:], gradients[1:], state).gradients[0].device == devices[1]


# ---- Thresholds of every size

EXPONENTS = {"float16": (-14, 15), "float32": (-126, 127), "float64": (-1022, 1023)}


def sized(rng: Any, around: int, dtype: str) -> Any:
    """Return six numbers whose exponents lie around one that the dtype may not have."""
    lowest, highest = EXPONENTS[dtype]
    exponents = np.clip(around + rng.integers(-3, 4, size=6), lowest, highest)
    return np.ldexp(rng.choice([-1, 1], 6) * rng.uniform(1, 1.99, 6), exponents).reshape(3, 2)


@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_threshold_of_any_size_clips_as_the_plain_one(library: Library, variant: str, dtype: str) -> None:
    """Gradients, weights, threshold and epsilon anywhere in the format; often near the limit."""
    if dtype not in library.dtypes:
        pytest.skip(f"{library.name} has no {dtype} here")
    rng = np.random.default_rng([VARIANTS.index(variant), *dtype.encode()])
    cut = kept = 0
    for _ in range(40 if library.name == "jax" else 150):
        lowest, highest = EXPONENTS[dtype]
        weight_size, size = rng.integers(lowest, highest, size=2)
        near = size - weight_size if variant == "per-weight-relative" else size
        power = near + rng.integers(-3, 6) if rng.random() < 0.8 else rng.integers(-126, 127)
        threshold = float(np.ldexp(np.float32(rng.uniform(1, 1.99)), np.clip(power, -126, 127)))
        epsilon = float(rng.choice([0.0, 2.0**-126, 2.0**-10, 2.0**120]))
        gradients = library.array(sized(rng, size, dtype), dtype)
        weights = library.array(sized(rng, weight_size, dtype), dtype)
        options = {"threshold": threshold, "epsilon": epsilon}
        expected = GradientClippingStep(variant=variant, **options)(gradients, weights).gradients
        tunable = GradientClippingStep(variant=variant, **{k: Tunable(v) for k, v in options.items()})
        result = library.read(tunable(gradients, weights).gradients)
        assert_same_bits(result, library.read(expected))
        is_kept = np.array_equal(result, library.read(gradients))
        cut, kept = cut + (not is_kept), kept + is_kept
    assert cut > 5 < kept


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("threshold", [0.0, math.inf])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30, 0.0])
def test_a_tunable_threshold_at_its_ends(
    library: Library, variant: str, threshold: float, bad: float
) -> None:
    """0 gives zeros, whatever came; infinity the bits that came; in gradients and in weights."""
    gradients = library.array([bad, -3.0, 0.0, -0.0])
    for other in (1.0, bad):
        weights = library.array([other, 1.0, 1.0, 1.0])
        step = GradientClippingStep(variant=variant, threshold=Tunable(0.5), epsilon=Tunable(0.0))
        state = {**step.init(weights), "threshold": library.array(threshold)}
        result = library.read(step(gradients, weights, state).gradients)
        plain = GradientClippingStep(variant=variant, threshold=threshold, epsilon=0.0)
        assert_same_bits(result, library.read(plain(gradients, weights).gradients))
        assert_same_bits(result, library.read(gradients) if threshold else result * 0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_norm_equal_to_a_tunable_threshold_is_kept(kind: tuple[Library, str], variant: str) -> None:
    """3-4-5 in every dtype, bit for bit."""
    library, dtype = kind
    values = [5.0, -5.0] if variant == "per-weight" else [3.0, -4.0]
    gradients, weights = library.array(values, dtype), library.array([1.0, 0.0], dtype)
    step = GradientClippingStep(variant=variant, threshold=Tunable(5.0), epsilon=Tunable(0.5))
    assert_same_bits(library.read(step(gradients, weights).gradients), library.read(gradients))


@pytest.mark.parametrize("variant", VARIANTS)
def test_nan_under_a_tunable_threshold_spreads_as_ever(library: Library, variant: str) -> None:
    """Over what its norm covers; infinity makes finite elements 0 where a norm covers it."""
    for values in ([np.nan, 1.0], [np.inf, 1.0], [1e30, np.inf]):
        gradients, weights = library.array(values), library.array([1.0, 1e38])
        step = GradientClippingStep(variant=variant, threshold=Tunable(2.0**127))
        plain = GradientClippingStep(variant=variant, threshold=2.0**127)
        expected = library.read(plain(gradients, weights).gradients)
        assert_same_bits(library.read(step(gradients, weights).gradients), expected)


# ---- Tracing

T = Tunable
STEPS_TO_TRACE: dict[str, Step] = {
    "clipping": ChainedStep(
        *(GradientClippingStep(variant=variant, threshold=T(8.0), epsilon=T(0.125)) for variant in VARIANTS),
        MomentumStep(decay=T(0.5)),
        WeightDecayStep(weight_decay=T(0.5)),
        ScalingStep(scale=T(0.5)),
    ),
    "adam": AdamStep(
        learning_rate=T(0.5),
        beta1=T(0.75),
        beta2=T(0.875),
        epsilon=T(0.125),
        epsilon_root=T(0.125),
        weight_decay=T(0.5),
        amsgrad=True,
        nesterov=True,
    ),
    "rmsprop": ChainedStep(
        SkipNonFiniteStep(
            RMSPropStep(
                learning_rate=T(0.5),
                decay=T(0.75),
                epsilon=T(0.125),
                momentum=T(0.5),
                weight_decay=T(0.5),
                centered=True,
                nesterov=True,
            )
        ),
        ConstraintStep("box", lower=T(-0.5), upper=T(4.0)),
    ),
    "sgd": ChainedStep(
        SGDStep(learning_rate=T(0.5), momentum=T(0.5), weight_decay=T(0.5)),
        MaskedStep(ConstraintStep("norm-ball", radius=T(0.5)), lambda path, leaf: leaf.ndim > 0),
    ),
}


def test_every_number_is_traced() -> None:
    """The steps of these tests hold every row of the table as a Tunable."""
    found = json.dumps([step_described(step) for step in STEPS_TO_TRACE.values()])
    assert {f"{row.kind.__name__}.{row.option}" for row in ROWS} - {"ScalingStep.learning_rate"} == {
        f"{entry['step']}.{name}"
        for entry in _steps_in(json.loads(found))
        for name, value in entry["options"].items()
        if isinstance(value, dict) and "tunable" in value
    }


def step_described(step: Step) -> Any:
    """Return a description in which a function is a mask of all leaves."""
    if isinstance(step, ChainedStep):
        return {"step": "ChainedStep", "options": {slot: step_described(inner) for slot, inner in step.slots}}
    if isinstance(step, MaskedStep):
        return step_described(step.inner)  # type: ignore[arg-type]
    return step.describe()


def _steps_in(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [entry for part in value for entry in _steps_in(part)]
    if not isinstance(value, dict):
        return []
    return [value] * ("step" in value) + [entry for part in value.values() for entry in _steps_in(part)]


def tree(array: Any) -> dict[str, Any]:
    """Return gradients that are clipped."""
    return {"kernel": array([[3.0, -1.0], [0.5, 2.0]]), "scale": [array(1.0)]}


def halved(step: Any, state: Any) -> Any:
    """Return a state in which each tunable entry, at any depth, is half of what it was."""
    if isinstance(step, ChainedStep):
        return {slot: halved(inner, state[slot]) for slot, inner in step.slots}
    if hasattr(step, "inner"):
        return {**state, "inner": halved(step.inner, state["inner"])}
    return {**state, **{entry: state[entry] * 0.5 for _, entry in step.tunable_entries}}


@pytest.mark.parametrize("name", STEPS_TO_TRACE)
def test_jit_compiles_once_while_values_change(name: str) -> None:
    """Beside the plain calls on NumPy, within 8 ulps."""
    jax = pytest.importorskip("jax")
    step, compiles = STEPS_TO_TRACE[name], []

    def traced(*args: Any) -> Any:
        compiles.append(1)
        return step(*args)

    gradients, arrays, jitted = tree(Library("jax").array), tree(Library("numpy").array), jax.jit(traced)
    state, plain = step.init(gradients), step.init(arrays)
    for _ in range(3):
        updates, state = jitted(gradients, gradients, state)
        expected, plain = step(arrays, arrays, plain)
        for one, other in zip(leaves_of(updates), leaves_of(expected), strict=True):
            assert_within_ulps(np.asarray(one), other, 8)
        state, plain = halved(step, state), halved(step, as_arrays(plain))
    assert len(compiles) == 1


def as_arrays(state: Any) -> Any:
    """Return a state whose scalars NumPy keeps as arrays when they are halved."""
    return {
        key: as_arrays(entry)
        if isinstance(entry, dict)
        else entry.astype("float32")[()]
        if isinstance(entry, np.ndarray) and entry.shape == () and entry.dtype == np.float32
        else entry
        for key, entry in state.items()
    }


@pytest.mark.parametrize("name", STEPS_TO_TRACE)
def test_torch_compiles_once_while_values_change(name: str) -> None:
    """As one graph, with the numbers of the plain calls."""
    torch = pytest.importorskip("torch")
    torch.compiler.reset()
    step, graphs = STEPS_TO_TRACE[name], []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    gradients = tree(Library("torch").array)
    state = plain = step.init(gradients)
    step(gradients, gradients, state)  # A new process learns its dtypes here.
    compiled = torch.compile(step, backend=backend, fullgraph=True)
    for _ in range(3):
        updates, state = compiled(gradients, gradients, state)
        expected, plain = step(gradients, gradients, plain)
        assert_same_trees(read_tree(Library("torch"), updates), read_tree(Library("torch"), expected))
        state, plain = halved(step, state), halved(step, plain)
    assert len(graphs) == 1


@pytest.mark.parametrize("name", STEPS_TO_TRACE)
def test_fake_tensors_have_no_value_to_ask_for(name: str) -> None:
    """On a device that is not there: the step is made of shapes alone."""
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    step = STEPS_TO_TRACE[name]
    with FakeTensorMode(allow_non_fake_inputs=False):
        weights = {"w": torch.empty(300, 4, device="cuda"), "b": torch.empty(4, device="cuda")}
        updates, state = step(weights, weights, step.init(weights))
    assert updates["w"].shape == (300, 4)
    assert {str(entry.device) for entry in leaves_of([updates, state]) if entry is not None} == {"cuda:0"}


def test_values_go_through_vmap() -> None:
    """One call for a batch of thresholds."""
    jax = pytest.importorskip("jax")
    library, step = Library("jax"), GradientClippingStep(variant="global", threshold=Tunable(1.0))
    gradients, state = library.array([3.0, 4.0]), step.init(library.array([0.0]))

    def clipped(threshold: Any) -> Any:
        return step(gradients, state={**state, "threshold": threshold}).gradients

    result = np.asarray(jax.vmap(clipped)(library.array([0.0, 1.0, 2.5, 5.0, math.inf])))
    expected = [[0.0, 0.0], [0.6, 0.8], [1.5, 2.0], [3.0, 4.0], [3.0, 4.0]]
    assert_within_ulps(result, expected, 2)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_extreme_thresholds_survive_jit(variant: str, size: float) -> None:
    """A compiler that reorders products would bring overflow back."""
    jax = pytest.importorskip("jax")
    library = Library("jax")
    step = GradientClippingStep(variant=variant, threshold=Tunable(1.0), epsilon=Tunable(0.0))
    gradients, weights = library.array([3 * size, 4 * size]), library.array([0.6, 0.8])
    state = {**step.init(weights), "threshold": library.array(size / 10)}
    result = np.asarray(jax.jit(step)(gradients, weights, state).gradients)
    expected = [size / 10] * 2 if variant == "per-weight" else [0.06 * size, 0.08 * size]
    assert_within_ulps(result, expected, 4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_derivatives_are_finite(variant: str) -> None:
    """At 0, inside and outside a tunable threshold; within it, the derivative is 1."""
    torch = pytest.importorskip("torch")
    step = GradientClippingStep(variant=variant, threshold=Tunable(0.5), epsilon=Tunable(0.125))
    for values in ([0.0, 0.0], [3.0, 0.0], [0.1, 0.1], [0.0, 0.1]):
        gradients = torch.asarray(values, requires_grad=True)
        updates, state = step(gradients, torch.ones(2))
        updates.sum().backward()
        assert torch.isfinite(gradients.grad).all()
        assert max(values) > 1 or gradients.grad.tolist() == [1.0, 1.0]
        assert not any(entry.requires_grad for entry in state.values())

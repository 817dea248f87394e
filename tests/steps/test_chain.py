"""ChainedStep: order, slots, one widening, and steps of other makers."""

from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_trees, assert_within_ulps, read_tree
from libraries import Library

from steps_core import (
    AdamStep,
    ArgumentError,
    ChainedStep,
    ConstraintStep,
    GradientClippingStep,
    MomentumStep,
    ScalingStep,
    SGDStep,
    SkipNonFiniteStep,
    Step,
    StepResult,
    TreeMismatchError,
    WeightDecayStep,
)

CLIP = GradientClippingStep(threshold=1.0)
DOUBLE = ScalingStep(scale=2.0)


class Foreign:
    """A step of another maker: it has the ports of a step, and no base class of ours."""

    negates = True

    def init(self, weights: Any) -> Any:
        """Return a state of its own form."""
        return ["any", 0]

    def __call__(self, gradients: Any, weights: Any = None, state: Any = None) -> Any:
        """Return minus the gradients."""
        return StepResult({key: -leaf for key, leaf in gradients.items()}, [state[0], state[1] + 1])


class Broken(Foreign):
    """A step of another maker that raises its own error, or returns another tree."""

    def __call__(self, gradients: Any, weights: Any = None, state: Any = None) -> Any:
        """Raise what the state says, or drop a leaf."""
        if isinstance(gradients, dict):
            return {}, state
        raise ZeroDivisionError("of its own")


def test_steps_run_in_order(library: Library) -> None:
    """Clipping before doubling gives 2, after it 1."""
    for steps, expected in (((CLIP, DOUBLE), 2.0), ((DOUBLE, CLIP), 1.0)):
        assert library.read(ChainedStep(*steps)(library.array([5.0])).gradients) == [expected]


def test_the_named_slots_run_by_number_and_step0_is_the_tenth() -> None:
    """Whatever the order they are written in."""
    chain = ChainedStep(step0=DOUBLE, step9=CLIP, step2=DOUBLE)
    assert list(chain.state_keys) == ["step2", "step9", "step0"]
    assert chain(np.asarray([5.0])).gradients == [2.0]


def test_none_slots_are_skipped() -> None:
    """They leave a gap in the numbers."""
    assert ChainedStep(None, CLIP, None, DOUBLE) == ChainedStep(step2=CLIP, step4=DOUBLE)
    assert ChainedStep(step1=None) == ChainedStep(None) == ChainedStep()


def test_more_than_ten_steps_go_by_position() -> None:
    """step0 is a name for the tenth slot only among the named ones."""
    chain = ChainedStep(*[DOUBLE] * 12)
    assert chain.state_keys == tuple(f"step{number}" for number in range(1, 13))
    assert chain(np.asarray([1.0])).gradients == [4096.0]


def test_the_empty_chain_is_the_identity(kind: tuple[Library, str]) -> None:
    """With the state {}, NaN included."""
    library, dtype = kind
    leaf = library.array([1.5, np.nan], dtype)
    result, state = ChainedStep()(leaf)
    assert_same_bits(library.read(result), library.read(leaf))
    assert state == {} == ChainedStep().init(leaf)


def test_a_chain_of_one_has_the_bits_of_its_step(kind: tuple[Library, str]) -> None:
    """And its state, under the slot."""
    library, dtype = kind
    leaf = library.array([0.3, -1.7, 11.0], dtype)
    alone, state = AdamStep()(leaf)
    chained, chained_state = ChainedStep(AdamStep())(leaf)
    assert_same_bits(library.read(chained), library.read(alone))
    assert_same_trees(read_tree(library, chained_state), {"step1": read_tree(library, state)})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_nested_and_flat_chains_give_the_same_bits(library: Library, dtype: str) -> None:
    """However the brackets stand: the leaves are widened once and cast once."""
    if dtype not in library.dtypes:
        pytest.skip(f"{library.name} has no {dtype}")
    a, b, c = GradientClippingStep(variant="global", threshold=0.77), MomentumStep(), AdamStep()
    leaf = library.array([0.3, -1.7, 11.0], dtype)
    flat = library.read(ChainedStep(a, b, c)(leaf).gradients)
    for nested in (ChainedStep(ChainedStep(a, b), c), ChainedStep(a, ChainedStep(b, ChainedStep(c)))):
        assert_same_bits(library.read(nested(leaf).gradients), flat)


def test_what_passes_between_steps_is_wide() -> None:
    """2^-20 is below float16's range, and times 2^20 it is 1 again."""
    chain = ChainedStep(ScalingStep(scale=2.0**-30), ScalingStep(scale=2.0**30))
    assert chain(np.asarray([1.25], "float16")).gradients == np.asarray([1.25], "float16")


def test_the_same_object_twice_has_two_states() -> None:
    """1, then its running sum 1 + 0.5 and the sum of those."""
    step = MomentumStep(decay=0.5)
    chain, gradients = ChainedStep(step, step), np.asarray([1.0])
    _, state = chain(gradients)
    result, state = chain(gradients, state=state)
    assert (state["step1"]["trace"], state["step2"]["trace"]) == ([1.5], [2.0])
    assert result == [2.0]


def test_every_step_gets_the_weights() -> None:
    """Both decays add 0.5 * 4."""
    step = WeightDecayStep(weight_decay=0.5)
    assert ChainedStep(step, ChainedStep(step))(np.asarray([1.0]), np.asarray([4.0])).gradients == [5.0]


def test_the_order_of_the_state_means_nothing() -> None:
    """Libraries sort keys: step10 before step2."""
    chain = ChainedStep(*[MomentumStep(decay=0.5)] * 11)
    _, state = chain(np.asarray([1.0]))
    expected, _ = chain(np.asarray([1.0]), state=state)
    resorted = {key: state[key] for key in sorted(state)}
    assert list(resorted) != list(state)
    assert chain(np.asarray([1.0]), state=resorted).gradients == expected


def test_an_odd_number_of_negating_steps_negates() -> None:
    """And an empty chain does not."""
    minus = ScalingStep(scale=-1.0)
    assert not ChainedStep().negates
    assert ChainedStep(CLIP, AdamStep()).negates
    assert not ChainedStep(AdamStep(), minus).negates
    assert ChainedStep(ChainedStep(minus, minus), minus).negates


@pytest.mark.parametrize(
    "inside",
    [
        ConstraintStep("nonnegative"),
        ChainedStep(AdamStep(), ConstraintStep("nonnegative")),
        SkipNonFiniteStep(ChainedStep(ConstraintStep("nonnegative"))),
    ],
    ids=["itself", "in a chain", "in a wrapper"],
)
def test_a_constraint_may_only_stand_last(inside: Step) -> None:
    """Also at the end of what stands before another step; refused when the chain is built."""
    ChainedStep(AdamStep(), inside)
    with pytest.raises(
        ArgumentError, match="step1 must be the last step, because step2 would undo"
    ) as caught:
        ChainedStep(inside, ScalingStep(scale=0.5))
    assert caught.value.slot == "step1"


def test_a_step_by_protocol_may_stand_in_a_chain() -> None:
    """Anywhere, as it constrains nothing, and its state may have any form."""
    chain = ChainedStep(DOUBLE, Foreign(), DOUBLE)
    gradients = {"a": np.asarray([1.0])}
    assert chain.negates and not chain.constrains
    result, state = chain(gradients, gradients)
    assert result["a"] == [-4.0]
    assert chain(gradients, gradients, state).state["step2"] == ["any", 2]


def test_an_error_inside_keeps_its_class_and_names_the_step() -> None:
    """Also through a nested chain; our own errors carry the slot."""
    chain = ChainedStep(CLIP, ChainedStep(step3=WeightDecayStep()))
    with pytest.raises(ArgumentError, match=r"in step2 \(ChainedStep\)") as caught:
        chain(np.asarray([1.0]))
    assert caught.value.__notes__ == ["in step3 (WeightDecayStep)", "in step2 (ChainedStep)"]
    assert caught.value.slot == "step2.step3"


def test_an_error_of_another_maker_keeps_its_class_too() -> None:
    """It gets the note alone."""
    with pytest.raises(ZeroDivisionError, match=r"of its own\nin step1 \(Broken\)"):
        ChainedStep(Broken())(np.asarray([1.0]))


def test_a_step_that_returns_another_tree_is_refused() -> None:
    """The text names the step and the place."""
    text = r"gradients and the result of Broken must have the same tree structure.*\['a'\]"
    with pytest.raises(TreeMismatchError, match=text):
        ChainedStep(Broken())({"a": np.asarray([1.0])})


def test_a_chain_shows_how_it_was_written() -> None:
    """Its repr makes an equal chain."""
    for chain in (ChainedStep(CLIP, DOUBLE), ChainedStep(step2=CLIP, step0=DOUBLE), ChainedStep()):
        assert eval(repr(chain)) == chain  # noqa: S307
    assert repr(ChainedStep(step2=DOUBLE)).startswith("ChainedStep(step2=ScalingStep(scale=2.0")


def test_clip_then_adam_by_hand(library: Library) -> None:
    """[3, 4] clipped to norm 1 is [0.6, 0.8]; Adam's moments hold that."""
    chain = ChainedStep(GradientClippingStep(variant="global"), AdamStep())
    _, state = chain(library.array([3.0, 4.0]))
    moments = read_tree(library, state["step2"])
    assert_within_ulps(moments["first_moment"], [0.06, 0.08], 2)
    assert_within_ulps(moments["second_moment"], [0.00036, 0.00064], 4)


def test_by_hand_rounds_twice_and_a_chain_once() -> None:
    """Two calls by hand lose what lies below float16; the docstring says so."""
    down, up = ScalingStep(scale=2.0**-30), SGDStep(learning_rate=-(2.0**30))
    leaf = np.asarray([1.0], "float16")
    assert up(down(leaf).gradients).gradients == [0.0]
    assert ChainedStep(down, up)(leaf).gradients == [1.0]

"""MaskedStep: another step runs on the leaves that a mask chooses."""

from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, read_tree
from libraries import Library

from steps_core import (
    AdamStep,
    ArgumentTypeError,
    ChainedStep,
    ConstraintStep,
    CosineSchedule,
    GradientClippingStep,
    MaskedStep,
    MomentumStep,
    MonitorStep,
    SGDStep,
    TreeMismatchError,
    WeightDecayStep,
    build,
)

CLIP = GradientClippingStep(variant="global", threshold=1.0)


def tree(library: Library) -> dict[str, Any]:
    """Return a tree with two layers."""
    return {
        "first": {"kernel": library.array([[3.0]]), "bias": library.array([4.0])},
        "last": {"kernel": library.array([[100.0]]), "bias": library.array([7.0])},
    }


def test_unmasked_leaves_pass_and_do_not_count_in_norms(library: Library) -> None:
    """The norm over the first layer is 5; the last passes bit for bit."""
    result = MaskedStep(CLIP, {"first": True, "last": False})(tree(library)).gradients
    read = read_tree(library, result)
    np.testing.assert_allclose(read["first"]["kernel"], [[0.6]], rtol=1e-6)
    np.testing.assert_allclose(read["first"]["bias"], [0.8], rtol=1e-6)
    assert_same_bits(read["last"]["kernel"], np.asarray([[100.0]], "float32"))
    assert_same_bits(read["last"]["bias"], np.asarray([7.0], "float32"))


def test_a_boolean_stands_for_everything_below_it(library: Library) -> None:
    """One for the whole tree, one for a layer, one for a leaf."""
    double = SGDStep(learning_rate=-2.0)
    masks = {
        True: [6.0, 8.0, 200.0, 14.0],
        False: [3.0, 4.0, 100.0, 7.0],
    }
    for mask, expected in masks.items():
        result = MaskedStep(double, mask)(tree(library)).gradients
        assert _flat(library, result) == expected
    mixed = {"first": {"kernel": True, "bias": False}, "last": True}
    assert _flat(library, MaskedStep(double, mixed)(tree(library)).gradients) == [6.0, 4.0, 200.0, 14.0]


def _flat(library: Library, result: Any) -> list[float]:
    layers = [result["first"], result["last"]]
    return [float(library.read(layer[key]).item()) for layer in layers for key in ("kernel", "bias")]


def test_a_function_of_path_and_leaf_chooses(library: Library) -> None:
    """The path is a tuple of keys; None leaves are not asked about."""
    seen = []

    def is_kernel(path: tuple, leaf: Any) -> bool:
        seen.append(path)
        return path[-1] == "kernel" and leaf.ndim == 2

    gradients = tree(library)
    gradients["last"]["bias"] = None
    result = MaskedStep(SGDStep(learning_rate=-2.0), is_kernel)(gradients, tree(library)).gradients
    read = read_tree(library, result)
    assert (read["first"]["kernel"], read["first"]["bias"]) == ([[6.0]], [4.0])
    assert (read["last"]["kernel"], read["last"]["bias"]) == ([[200.0]], None)
    assert ("first", "bias") in seen


def test_the_inner_state_is_none_outside_the_mask(library: Library) -> None:
    """Weights and calls give it one form."""
    step = MaskedStep(MomentumStep(), {"first": False, "last": True})
    state = step.init(tree(library))
    _, after = step(tree(library), tree(library), state)
    for trace in (state["inner"]["trace"], after["inner"]["trace"]):
        assert trace["first"] == {"kernel": None, "bias": None}
        assert library.holds(trace["last"]["kernel"])


def test_it_is_what_it_wraps() -> None:
    """In sign, in its need of weights, and as a constraint."""
    assert MaskedStep(AdamStep(), True).negates
    assert not MaskedStep(CLIP, True).negates
    assert MaskedStep(WeightDecayStep(), True).needs_weights
    assert MaskedStep(ConstraintStep("nonnegative"), True).constrains


def test_masked_steps_in_a_chain_split_the_tree(library: Library) -> None:
    """Two optimizers, each on its own part."""
    chain = ChainedStep(
        MaskedStep(SGDStep(learning_rate=1.0), {"first": True, "last": False}),
        MaskedStep(SGDStep(learning_rate=10.0), {"first": False, "last": True}),
    )
    assert _flat(library, chain(tree(library)).gradients) == [-3.0, -4.0, -1000.0, -70.0]


@pytest.mark.parametrize("mask", [{"a": True, "b": (False, [True])}, True, {"a": False, "b": False}])
def test_a_mask_of_booleans_can_be_described(mask: Any) -> None:
    """Its containers are named; the step that is built is equal."""
    step = MaskedStep(CLIP, mask)
    assert build(step.describe()) == step
    assert hash(build(step.describe())) == hash(step)
    assert MaskedStep(CLIP, mask) != MaskedStep(CLIP, {"other": True})


def test_a_function_cannot_be_described() -> None:
    """It has no name elsewhere."""

    def by_rank(path: Any, leaf: Any) -> bool:
        return leaf.ndim > 1

    with pytest.raises(ArgumentTypeError, match="by_rank is not known by name"):
        MaskedStep(CLIP, by_rank).describe()


def test_a_mask_that_is_no_prefix_is_refused(library: Library) -> None:
    """The text says which tree it must fit."""
    with pytest.raises(TreeMismatchError, match="mask must be a prefix of the tree of gradients") as caught:
        MaskedStep(CLIP, {"first": True})(tree(library))
    assert caught.value.argument == "mask"


def test_a_mask_function_must_return_a_bool(library: Library) -> None:
    """A number is no answer; the text names the leaf."""
    text = r"mask at gradients\['first'\]\['bias'\] must return True or False, got 1 \(int\)"
    with pytest.raises(ArgumentTypeError, match=text):
        MaskedStep(CLIP, lambda path, leaf: 1)(tree(library))


def test_a_mask_that_chooses_nothing_leaves_everything_alone(library: Library) -> None:
    """Counters and norms of the step inside have no array to live on, and are None."""
    scheduled = SGDStep(learning_rate=CosineSchedule(1.0, 3))
    for inner in (AdamStep(), MonitorStep(), ChainedStep(CLIP, scheduled)):
        step = MaskedStep(inner, mask=False)
        given = tree(library)
        state = step.init(given)
        for _ in range(2):
            result, state = step(given, given, state)
        assert _flat(library, result) == _flat(library, given)

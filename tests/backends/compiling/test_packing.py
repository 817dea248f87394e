"""Packed states: the same numbers in a few arrays, for the compiled step alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_trees, leaves_of
from libraries import Library
from steps_backends import compile as compiled

from steps_core import (
    AdamStep,
    CenteringStep,
    ChainedStep,
    GradientClippingStep,
    MaskedStep,
    MomentumStep,
    MonitorStep,
    RMSPropStep,
    SGDStep,
    SkipNonFiniteStep,
    Step,
    StepsError,
    Tunable,
    load_state,
    save_state,
)

CHAIN = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep())
STEPS: dict[str, Step] = {
    "chain": CHAIN,
    "tunable": AdamStep(learning_rate=Tunable(1e-2), weight_decay=0.1),
    "schedule": SGDStep(learning_rate=lambda count: 1.0 / (count + 1.0), momentum=0.9),
    "centered": RMSPropStep(centered=True, momentum=0.9),
    "amsgrad": AdamStep(amsgrad=True),
    "skipping": SkipNonFiniteStep(ChainedStep(MonitorStep(), AdamStep())),
    # Those that look at places or shapes.
    "per layer": ChainedStep(GradientClippingStep(variant="per-layer", threshold=0.1), MomentumStep()),
    "units": ChainedStep(CenteringStep(), MomentumStep()),
    "masked by a tree": MaskedStep(AdamStep(), {"kernel": True, "rest": False}),
    "masked by paths": MaskedStep(AdamStep(), lambda path, leaf: path[0] == "kernel"),
    "masked by ranks": MaskedStep(AdamStep(), lambda path, leaf: leaf.ndim > 0),
}


def tree(dtype: str = "float32", seed: int = 0) -> Any:
    """Return a tree of arrays of JAX, one of them large."""
    pytest.importorskip("jax")
    random, library = np.random.default_rng(seed), Library("jax")

    def array(*shape: int) -> Any:
        return library.array(random.normal(size=shape), dtype)

    return {"kernel": array(6, 4), "rest": [array(3), array(), array(300, 250), array(0)]}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", STEPS)
def test_unpacking_gives_back_every_bit(name: str, dtype: str) -> None:
    """In the same tree."""
    step, weights = compiled(STEPS[name]), tree(dtype)
    _, state = step(weights, weights, step.init(weights))
    assert_same_trees(step.unpack(step.pack(state)), state)


@pytest.mark.parametrize("name", STEPS)
def test_calls_on_packed_states_agree_with_those_on_trees(name: str) -> None:
    """Call after call."""
    step, weights = compiled(STEPS[name]), tree()
    state = step.init(weights)
    packed = step.pack(state)
    for seed in range(3):
        gradients = tree(seed=seed + 1)
        updates, state = step(gradients, weights, state)
        others, packed = step(gradients, weights, packed)
        for one, other in zip(
            leaves_of([updates, state]), leaves_of([others, step.unpack(packed)]), strict=True
        ):
            assert (one is None) == (other is None)
            if one is not None:
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                difference = np.abs(np.asarray(one, "float64") - np.asarray(other, "float64"))
                # Fused otherwise, sums that nearly cancel differ more than their size would tell.
                assert np.all(difference <= 1e-5 * np.max(np.abs(np.asarray(other)), initial=0.0))


def test_gradients_of_several_dtypes_and_none_go_with_a_packed_state() -> None:
    """They are processed leaf by leaf."""
    step, weights = compiled(CHAIN), tree()
    gradients = tree(seed=1)
    gradients["kernel"], gradients["rest"][0] = None, gradients["rest"][0].astype("bfloat16")
    updates, packed = step(gradients, weights, step.pack(step.init(weights)))
    expected, state = step(gradients, weights, step.init(weights))
    assert_same_trees(updates, expected)
    assert_same_trees(step.unpack(packed), state)


def test_many_small_leaves_lie_in_one_array_for_each_moment() -> None:
    """And the large ones by themselves."""
    jnp = pytest.importorskip("jax").numpy
    step = compiled(CHAIN, donate=("state",))
    weights = [jnp.ones(5) for _ in range(50)]
    packed = step.pack(step.init(weights))
    assert [array.shape for array in packed.arrays] == [(), (250,), (250,)]
    step(weights, weights, packed)
    assert packed.arrays[1].is_deleted()
    weights.append(jnp.ones((300, 300)))
    assert len(step.pack(step.init(weights)).arrays) == 5


def test_a_packed_state_is_a_tree_to_jax() -> None:
    """It may be carried through its transformations."""
    jax = pytest.importorskip("jax")
    step = compiled(AdamStep())
    packed = step.pack(step.init(tree()))
    same = jax.jit(lambda state: jax.tree.map(lambda array: array + 0, state))(packed)
    assert_same_trees(step.unpack(same), step.unpack(packed))
    updates, carried = jax.jit(step)(tree(), None, packed)
    expected, after = step(tree(), None, packed)
    assert len(leaves_of(updates)) == len(leaves_of(expected))
    assert int(step.unpack(carried)["count"]) == int(step.unpack(after)["count"]) == 1


def test_states_are_saved_unpacked(tmp_path: Path) -> None:
    """A packed one is refused."""
    step, weights = compiled(CHAIN), tree()
    _, packed = step(weights, None, step.pack(step.init(weights)))
    save_state(step.unpack(packed), tmp_path / "state")
    assert_same_trees(load_state(tmp_path / "state", like=step.init(weights)), step.unpack(packed))
    with pytest.raises(StepsError, match="state must be a state, which is a dict, got PackedState"):
        save_state(packed, tmp_path / "state")
    with pytest.raises(StepsError, match=r"state must be a dict with the entries .* got PackedState"):
        CHAIN(weights, None, packed)


def test_wrong_states_are_refused() -> None:
    """With the argument, the rule, the value and the way out."""
    step, other, weights = compiled(CHAIN), compiled(RMSPropStep()), tree()
    packed, state = step.pack(step.init(weights)), step.init(weights)
    with pytest.raises(StepsError, match=r"state must be .* not packed yet, got PackedState.*; leave this"):
        step.pack(packed)
    with pytest.raises(
        StepsError, match=r"(?s)state must be a state of this step, got .*dict.*; pass step.init"
    ):
        step.pack(other.init(weights))
    with pytest.raises(StepsError, match=r"(?s)packed must be a packed state, got .*dict.*; pass what pack"):
        step.unpack(state)
    other.pack(other.init(weights))
    with pytest.raises(
        StepsError, match=r"packed must be a packed state of this step, got .*; unpack it with"
    ):
        other.unpack(packed)
    with pytest.raises(StepsError, match=r"state must have|state must be"):
        other(weights, None, packed)
    with pytest.raises(StepsError, match="gradients"):
        step({"kernel": weights["kernel"]}, None, packed)


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_elsewhere_a_state_is_its_own_packed_form(name: str) -> None:
    """There compiled steps give views of packed arrays anyway."""
    library = pytest.importorskip(name)
    step, weights = compiled(CHAIN), [library.ones(3), library.ones(2)]
    state = step.pack(step.init(weights))
    updates, state = step(weights, None, state)
    assert isinstance(state, dict)
    assert step.pack(state) is step.unpack(state) is state
    assert len(updates) == 2

"""Who owns the memory of results: what is donated is written to, and nothing else that somebody refers to."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_trees
from steps_backends import compile as compiled
from steps_backends.compiling.buffers import Pool

from steps_core import (
    AdamStep,
    ChainedStep,
    CustomStep,
    GradientClippingStep,
    SGDStep,
    WeightDecayStep,
    graph,
    graphs,
)

CHAIN = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep())
LARGE = 70_000


def leaf(size: int = LARGE, seed: int = 0) -> Any:
    """Return a leaf, large ones of which are not packed."""
    return np.random.default_rng(seed).normal(size=size).astype("float32")


@pytest.mark.parametrize("size", [5, LARGE])
def test_without_donation_nothing_given_is_written_to(size: int) -> None:
    """Neither gradients nor weights nor state."""
    step = compiled(CHAIN)
    gradients = [leaf(size, 1), leaf(size, 2)]
    state = step(gradients).state
    before = [array.copy() for array in (*gradients, *state["step2"]["first_moment"])]
    step(gradients, gradients, state)
    assert_same_trees([*gradients, *state["step2"]["first_moment"]], before)


def test_a_donated_gradient_becomes_the_update() -> None:
    """In its own memory, with the numbers of the plain step."""
    gradients, step = leaf(), compiled(SGDStep(), donate=("gradients",))
    expected = SGDStep()(gradients.copy()).gradients
    assert step(gradients).gradients is gradients
    assert_same_trees(gradients, expected)


def test_a_donated_state_stays_where_it_is() -> None:
    """Large leaves and packed ones; the count is new."""
    step = compiled(CHAIN, donate=("state",))
    gradients = [leaf(), leaf(5), leaf(7)]
    _, state = step(gradients)
    _, following = step(gradients, None, state)
    for one, other in zip(state["step2"]["first_moment"], following["step2"]["first_moment"], strict=True):
        assert one is other
    assert int(following["step2"]["count"]) == 2


def test_memory_that_two_arguments_share_is_not_written_to() -> None:
    """The update of the one would be the weights of the other."""
    gradients, step = leaf(), compiled(WeightDecayStep(weight_decay=0.5), donate=("gradients",))
    expected = WeightDecayStep(weight_decay=0.5)(gradients.copy(), gradients.copy()).gradients
    kept = gradients.copy()
    updates, _ = step(gradients, gradients)
    assert_same_trees([updates, gradients], [expected, kept])
    halves = leaf(2 * LARGE)
    both = [halves[:LARGE], halves[LARGE - 10 : 2 * LARGE - 10]]
    expected = SGDStep()([part.copy() for part in both]).gradients
    assert_same_trees(compiled(SGDStep(), donate=("gradients",))(both).gradients, expected)


def test_what_another_part_of_the_pass_reads_is_not_overwritten() -> None:
    """The value of the call before goes where the gradient lies, which is to be kept for the next."""
    step = CustomStep(graph(lambda gradients: -graphs.previous_value(gradients)))
    fast, state, other = compiled(step, donate=("gradients", "state")), step.init(leaf()), step.init(leaf())
    for seed in range(3):
        expected, state = step(leaf(seed=seed), None, state)
        updates, other = fast(leaf(seed=seed), None, other)
        assert_same_trees([updates, other], [expected, state])


def test_a_donated_array_that_forbids_writing_is_left_alone() -> None:
    """As is one whose elements do not lie in order."""
    fixed, strided = leaf(), leaf(2 * LARGE)[::2]
    fixed.flags.writeable = False
    kept = [fixed.copy(), strided.copy()]
    updates, _ = compiled(SGDStep(learning_rate=1.0), donate=("gradients",))([fixed, strided])
    assert_same_trees([fixed, strided], kept)
    assert_same_trees(updates, [-kept[0], -kept[1]])


@pytest.mark.parametrize("size", [5, LARGE])
def test_a_result_that_somebody_keeps_is_never_overwritten(size: int) -> None:
    """Not even one of its views."""
    step, gradients = compiled(SGDStep()), [leaf(size, 1), leaf(size, 2)]
    kept = [step(gradients).gradients[0][1:] for _ in range(2)]
    before = [part.copy() for part in kept]
    for seed in range(6):
        step([leaf(size, seed), leaf(size, seed)])
    assert_same_trees(kept, before)


def test_a_pool_gives_an_array_again_once_it_is_dropped() -> None:
    """It counts who refers to it."""
    pool = Pool()
    first = pool.take("updates", 4, "float32")
    place, view = first.ctypes.data, first[1:]
    del first
    assert pool.take("updates", 4, "float32").ctypes.data != place
    del view
    assert pool.take("updates", 4, "float32").ctypes.data == place


def copied(tree: Any) -> Any:
    """Return a state in new arrays, as it comes from a file."""
    if isinstance(tree, dict):
        return {key: copied(entry) for key, entry in tree.items()}
    return [copied(entry) for entry in tree] if isinstance(tree, list) else np.array(tree)


@pytest.mark.parametrize("donate", [(), ("gradients", "state")])
def test_a_state_may_come_back_from_elsewhere_at_any_call(donate: tuple[str, ...]) -> None:
    """Of the last call, of one before, from a file, or in part: the numbers are those of the plain step."""
    step = AdamStep()
    fast, gradients = compiled(step, donate), [leaf(5, 1), leaf(7, 2), leaf(LARGE, 3)]
    state, other = step.init(gradients), fast.init(gradients)
    for seed, takes_copy in enumerate((False, False, True, False, True, True, False)):
        given = [leaf(size, 10 * seed + number) for number, size in enumerate((5, 7, LARGE))]
        expected, state = step(given, None, state)
        if takes_copy:
            other = copied(other)
        else:
            # One array of many has changed.
            other["first_moment"][1] = other["first_moment"][1].copy()
        updates, other = fast([array.copy() for array in given], None, other)
        assert_same_trees([updates, other], [expected, state])


@pytest.mark.parametrize("donate", [(), ("state",)])
def test_a_schedule_may_call_the_step_again(donate: tuple[str, ...]) -> None:
    """With a state of its own, in the middle of a call whose state lies where the last one has left it."""
    inner: dict[str, Any] = {"state": None, "calls": 0}

    def rate(count: Any) -> Any:
        inner["calls"] += 1
        if inner["calls"] % 2:
            _, inner["state"] = fast([leaf(5, 8), leaf(7, 9)], None, inner["state"])
        return 0.1

    fast, plain = compiled(AdamStep(learning_rate=rate), donate), AdamStep(learning_rate=0.1)
    gradients = [leaf(5, 1), leaf(7, 2)]
    state, other = plain.init(gradients), fast.init(gradients)
    for _ in range(4):
        expected, state = plain(gradients, None, state)
        updates, other = fast(gradients, None, other)
        assert_same_trees([updates, other], [expected, state])


def test_a_state_from_elsewhere_is_gathered_where_the_new_one_will_lie() -> None:
    """No memory is kept for what only the first call has to gather."""
    step, gradients = compiled(AdamStep(), donate=("state",)), [leaf(60_000, seed) for seed in range(8)]
    state, size = AdamStep().init(gradients), 4 * 60_000 * len(gradients)
    tracemalloc.start()
    for _ in range(3):
        updates, state = step(gradients, None, state)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len({id(leaf.base) for name in ("first_moment", "second_moment") for leaf in state[name]}) == 2
    # The gradients behind one another, updates of this call and the last, and two moments.
    assert 5 * size <= held < 5.5 * size, updates

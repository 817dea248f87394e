"""What tests/test_shards.py runs in two gloo processes; every function called `shows_...` is a test."""

import tempfile
from typing import Any

import optree
import pytest
import torch
import torch.distributed as dist
from catalogue import SAMPLES
from ranks import assert_close, assert_only_all_reduces, model, numbers, placements, run, trained, whole
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

from steps_core import (
    AdamStep,
    ChainedStep,
    GradientClippingStep,
    LeafTypeError,
    MonitorStep,
    load_state,
    save_state,
)

GLOBAL = GradientClippingStep(variant="global", threshold=0.75)


def sharded(meshes: dict[str, Any], *, seed: int = 0) -> tuple[Any, Any]:
    """Return one tree whole, and placed in every way: split, one part empty, copied, not at all."""
    line = meshes["line"]
    plain = {
        "rows": numbers(5, 3, seed=seed),
        "columns": [numbers(4, 6, seed=seed + 1)],
        "copied": numbers(3, seed=seed + 2),
        "empty there": numbers(1, 3, seed=seed + 3),
        "scalar": numbers(seed=seed + 4),
        "plain": numbers(2, 2, seed=seed + 5),
    }
    placed = {
        "rows": distribute_tensor(plain["rows"], line, [Shard(0)]),
        "columns": [distribute_tensor(plain["columns"][0], line, [Shard(1)])],
        "copied": distribute_tensor(plain["copied"], line, [Replicate()]),
        "empty there": distribute_tensor(plain["empty there"], line, [Shard(0)]),
        "scalar": distribute_tensor(plain["scalar"], line, [Replicate()]),
        "plain": plain["plain"],
    }
    return plain, placed


def shows_every_step_gives_the_numbers_of_one_process_and_keeps_placements(meshes: dict[str, Any]) -> None:
    """Over two calls; moments are placed like their weights, from the start."""
    plain_weights, weights = sharded(meshes, seed=7)
    plain, gradients = sharded(meshes)
    for name, step in SAMPLES.items():
        state, plain_state = step.init(weights), step.init(plain_weights)
        before = placements(state)
        for _ in range(2):
            with CommDebugMode() as seen:
                updates, state = step(gradients, weights, state)
            expected, plain_state = step(plain, plain_weights, plain_state)
            assert_only_all_reduces(seen)
            assert placements(updates) == placements(gradients), name
            assert placements(state) == before, name
            assert_close(updates, expected)
        assert_close(state, plain_state)
    assert placements(AdamStep().init(weights)["first_moment"]) == placements(weights)


def shows_a_norm_of_a_whole_model_is_one_all_reduce_for_each_axis_of_a_mesh(meshes: dict[str, Any]) -> None:
    """However many leaves there are, and however they are placed."""
    ways = {"line": [[Shard(0)], [Shard(1)], [Replicate()]]}
    ways["grid"] = [[a, b] for a in (Shard(0), Replicate()) for b in (Shard(0), Shard(1), Replicate())]
    for name, axes in (("line", 1), ("grid", 2)):
        kinds = [
            distribute_tensor(numbers(4, 6, seed=n), meshes[name], way) for n, way in enumerate(ways[name])
        ]
        for leaves in (kinds, kinds * 20):
            with CommDebugMode() as seen:
                result = GLOBAL(leaves).gradients
            assert 1 <= assert_only_all_reduces(seen) <= axes, name
            assert placements(result) == placements(leaves)
            assert_close(result, GLOBAL([whole(leaf) for leaf in leaves]).gradients)


def shows_leaves_on_two_meshes_have_one_norm(meshes: dict[str, Any]) -> None:
    """One all-reduce for each axis along which something is split, and each leaf stays on its mesh."""
    plain = [numbers(4, 6, seed=n) for n in range(4)]
    leaves = [
        distribute_tensor(plain[0], meshes["line"], [Shard(0)]),
        distribute_tensor(plain[1], meshes["grid"], [Replicate(), Shard(1)]),
        distribute_tensor(plain[2], meshes["grid"], [Shard(1), Replicate()]),
        plain[3],
    ]
    step = ChainedStep(MonitorStep(), GLOBAL, AdamStep())
    with CommDebugMode() as seen:
        updates, state = step(leaves, leaves)
    expected, plain_state = step(plain, plain)
    assert assert_only_all_reduces(seen) in (2, 3)  # the monitor and the clip share them
    assert [leaf.device_mesh for leaf in updates[:3]] == [leaf.device_mesh for leaf in leaves[:3]]
    assert_close([updates, state], [expected, plain_state])


def shows_a_copied_leaf_counts_once(meshes: dict[str, Any]) -> None:
    """3 and 4 have the norm 5, in however many processes they are."""
    leaf = distribute_tensor(torch.tensor([3.0, 4.0]), meshes["line"], [Replicate()])
    assert MonitorStep()([leaf]).state["norm"].item() == 5.0
    assert MonitorStep()([leaf, torch.tensor([12.0])]).state["norm"].item() == 13.0


def shows_sums_that_are_not_added_yet_are_refused(meshes: dict[str, Any]) -> None:
    """They are no gradient; the text says what to do."""
    leaf = DTensor.from_local(torch.ones(2), meshes["line"], [Partial()])
    with pytest.raises(LeafTypeError, match=r"gradients\['a'\] must .* redistribute"):
        GLOBAL({"a": leaf})


def shows_derivatives_go_through_a_norm_over_processes(meshes: dict[str, Any]) -> None:
    """Of the sum of a global and a relative clip, against one process."""
    for step in (GLOBAL, GradientClippingStep(variant="per-weight-relative", threshold=0.5)):
        plain, placed = sharded(meshes)
        found = []
        for tree in (plain, placed):
            leaves, structure = optree.tree_flatten(tree)
            leaves = [leaf.detach().requires_grad_() for leaf in leaves]
            results = step(optree.tree_unflatten(structure, leaves), tree).gradients
            sum(whole(leaf).sum() for leaf in optree.tree_leaves(results)).backward()
            found.append([leaf.grad for leaf in leaves])
        assert placements(found[1]) == placements(placed)
        for one, other in zip(found[1], found[0], strict=True):
            torch.testing.assert_close(whole(one), other, rtol=1e-5, atol=1e-7)


def shows_a_state_is_saved_and_loaded_with_its_placements(meshes: dict[str, Any]) -> None:
    """Each process writes the whole state, and takes its part of it."""
    _, weights = sharded(meshes)
    step = AdamStep()
    state = step(weights, weights).state
    with tempfile.TemporaryDirectory() as folder:
        save_state(state, f"{folder}/state.safetensors")
        loaded = load_state(f"{folder}/state.safetensors", like=step.init(weights))
    assert placements(loaded) == placements(state)
    assert_close(loaded, optree.tree_map(whole, state))


def shows_fsdp_trains_as_one_process_does(meshes: dict[str, Any]) -> None:
    """Each of two processes has half of the examples; 20 steps end in the same weights."""
    inputs, targets = numbers(8, 6, seed=1), numbers(8, 1, seed=2)
    alone, spread = model(), model()
    for layer in (spread[0], spread[2], spread):
        fully_shard(layer, mesh=meshes["line"])
    half = slice(4 * dist.get_rank(), 4 * dist.get_rank() + 4)
    ours, plain = trained(spread, inputs[half], targets[half]), trained(alone, inputs, targets)
    both = torch.tensor(ours)
    dist.all_reduce(both)
    torch.testing.assert_close(both / 2, torch.tensor(plain), rtol=1e-4, atol=0.0)
    assert plain[-1] < 0.8 * plain[0], plain
    for (name, one), other in zip(spread.named_parameters(), alone.parameters(), strict=True):
        assert placements(one) == [(Shard(0),)], name
        torch.testing.assert_close(one.full_tensor(), other, rtol=1e-4, atol=1e-6)


def meshes() -> dict[str, Any]:
    grid = init_device_mesh("cpu", (2, 1), mesh_dim_names=("copies", "parts"))
    return {"line": init_device_mesh("cpu", (2,)), "grid": grid}


if __name__ == "__main__":
    run(globals(), meshes)

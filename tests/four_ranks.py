"""What tests/test_shards.py runs in four gloo processes on a mesh of two by two."""

from itertools import product
from typing import Any

import torch
import torch.distributed as dist
from ranks import assert_close, assert_only_all_reduces, model, numbers, placements, run, trained, whole
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

from steps_core import AdamStep, ChainedStep, GradientClippingStep, MonitorStep

GLOBAL = GradientClippingStep(variant="global", threshold=0.75)
CHAIN = ChainedStep(MonitorStep(), GLOBAL, AdamStep())
SHAPES = ((5, 3), (1, 6))
"""Divided unevenly, and with parts that are empty."""


def leaves_of_every_way(mesh: Any) -> list[Any]:
    """Return a leaf for each shape and each way to split or copy it along the two axes of the mesh."""
    ways = list(product((Shard(0), Shard(1), Replicate()), repeat=2))
    return [
        distribute_tensor(numbers(*shape, seed=seed), mesh, list(way))
        for seed, (shape, way) in enumerate(product(SHAPES, ways))
    ]


def shows_a_norm_over_two_axes_is_two_all_reduces_however_many_leaves_there_are(mesh: Any) -> None:
    """Of a chain whose monitor and clip share them; two calls, against whole leaves."""
    leaves = leaves_of_every_way(mesh)
    plain = [whole(leaf) for leaf in leaves]
    state, plain_state = CHAIN.init(leaves), CHAIN.init(plain)
    for _ in range(2):
        with CommDebugMode() as seen:
            updates, state = CHAIN(leaves, leaves, state)
        expected, plain_state = CHAIN(plain, plain, plain_state)
        assert assert_only_all_reduces(seen) == 2
        assert placements(updates) == placements(leaves)
        assert_close([updates, state], [expected, plain_state])
    with CommDebugMode() as seen:
        GLOBAL(leaves * 5)
    assert assert_only_all_reduces(seen) == 2


def shows_leaves_that_are_split_along_one_axis_take_one_all_reduce(mesh: Any) -> None:
    """As where a model is copied along the other axis."""
    for way in ([Replicate(), Shard(0)], [Shard(1), Replicate()]):
        leaves = [distribute_tensor(numbers(5, 3, seed=seed), mesh, way) for seed in range(9)]
        with CommDebugMode() as seen:
            result = GLOBAL(leaves).gradients
        assert assert_only_all_reduces(seen) == 1
        assert_close(result, GLOBAL([whole(leaf) for leaf in leaves]).gradients)


def shows_units_are_limited_by_their_norms_over_two_axes(mesh: Any) -> None:
    """A clip relative to the weights."""
    step = GradientClippingStep(variant="per-weight-relative", threshold=0.5)
    leaves = leaves_of_every_way(mesh)
    plain = [whole(leaf) for leaf in leaves]
    result = step(leaves, leaves).gradients
    assert placements(result) == placements(leaves)
    assert_close(result, step(plain, plain).gradients)


def shows_fsdp_with_copies_trains_as_one_process_does(mesh: Any) -> None:
    """Weights are copied along one axis and split along the other; each process has two of eight examples."""
    inputs, targets = numbers(8, 6, seed=1), numbers(8, 1, seed=2)
    alone, spread = model(), model()
    for layer in (spread[0], spread[2], spread):
        fully_shard(layer, mesh=mesh)
    share = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
    losses = torch.tensor(trained(spread, inputs[share], targets[share]))
    plain = trained(alone, inputs, targets)
    dist.all_reduce(losses)
    torch.testing.assert_close(losses / 4, torch.tensor(plain), rtol=1e-4, atol=0.0)
    for (name, one), other in zip(spread.named_parameters(), alone.parameters(), strict=True):
        assert placements(one) == [(Replicate(), Shard(0))], name
        torch.testing.assert_close(one.full_tensor(), other, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    run(globals(), lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts")))

"""What the programs share that tests/test_shards.py runs in several gloo processes."""

import datetime
import json
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optree
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode

from steps_core import AdamStep, ChainedStep, GradientClippingStep, apply_updates

SECONDS = datetime.timedelta(seconds=30)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def whole(leaf: Any) -> Any:
    return leaf.full_tensor() if isinstance(leaf, DTensor) else leaf


def placements(tree: Any) -> list[Any]:
    return [getattr(leaf, "placements", None) for leaf in optree.tree_leaves(tree)]


def assert_close(actual: Any, expected: Any) -> None:
    for one, other in zip(optree.tree_leaves(actual), optree.tree_leaves(expected), strict=True):
        torch.testing.assert_close(whole(one), other, rtol=4e-6, atol=1e-30)


def assert_only_all_reduces(seen: CommDebugMode) -> int:
    counts = {str(op): count for op, count in seen.get_comm_counts().items() if count}
    others = {op: count for op, count in counts.items() if "all_reduce" not in op}
    assert not others, others
    return sum(counts.values())


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))


def trained(network: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> list[float]:
    """Return the loss of each of 20 steps with a global clip and Adam."""
    step = ChainedStep(GradientClippingStep(variant="global", threshold=0.1), AdamStep(learning_rate=0.02))
    weights = dict(network.named_parameters())
    state, losses = step.init(weights), []
    for _ in range(20):
        loss = (network(inputs) - targets).square().mean()
        loss.backward()
        gradients = {name: weight.grad for name, weight in weights.items()}
        with torch.no_grad():
            updates, state = step(gradients, weights, state)
            for name, new in apply_updates(weights, updates).items():
                weights[name].copy_(new)
                weights[name].grad = None
        losses.append(loss.item())
    return losses


def run(program: dict[str, Any], make_meshes: Callable[[], Any]) -> None:
    """Run the functions of a program that are called `shows_...`, each with its meshes.

    All processes run them in the same order, since a sum over the processes waits for each; each writes what
    went wrong, by name, to a file of its own. Arguments: RANK PROCESSES FOLDER.
    """
    rank, processes, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), processes)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=processes, timeout=SECONDS)
    meshes, problems = make_meshes(), dict[str, str]()
    for name, check in list(program.items()):
        if name.startswith("shows_"):
            problems[name] = ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    check(meshes)
            except Exception:  # noqa: BLE001 - the other processes must not wait for ever
                problems[name] = traceback.format_exc()
    (folder / f"problems{rank}.json").write_text(json.dumps(problems))
    dist.destroy_process_group()

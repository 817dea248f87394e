"""Counts what steps send between processes and devices: `python tools/count_collectives.py [--write PAGE]`.

PyTorch's 64 processes and JAX's 8 devices are pretended ones of this process, which needs neither a GPU nor a
network; what is sent is the same as between real ones. Without --write the table is printed.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import steps_backends
from steps_backends import jax_sharding

from steps_core import AdamStep, ChainedStep, GradientClippingStep, MonitorStep

ROOT = Path(__file__).parents[1]
PROCESSES = 64
DEVICES = 8
SHAPE = (384, 768)

TIMES = 5
"""How many times as many leaves are counted too."""

CLIP = GradientClippingStep(variant="global", threshold=0.75)
CHAIN = ChainedStep(MonitorStep(), CLIP, AdamStep())

PAGE = """\
# Collectives

What a call sends between processes or devices, counted with {versions}. This page is made by
`python tools/count_collectives.py --write docs/collectives.md`, which needs no GPU; a test makes the rows of
few leaves again. PyTorch's collectives are counted as they are called (`CommDebugMode`), JAX's in what is
compiled.

Leaves are float32 of {shape}. In a row of "every way" there is a leaf for each way to split or copy it
along the axes of the mesh. The clip is global; the chain is a monitor, that clip, and Adam.

{table}

The partial sums of all leaves travel together, so their number does not count, and no leaf is gathered.
PyTorch adds up along one axis of a mesh after the other: one all-reduce for each axis along which any leaf is
split, so at most two on a mesh of two axes. In JAX the compiler chooses: one for each *set* of axes of the
mesh along which an axis of a leaf is split, and one more where one leaf is split crosswise to another. Where
all leaves are split alike it is one or two.
"""


@dataclass(frozen=True)
class Row:
    """One line of the table: where leaves lie, how many there are, and what a clip and a chain send."""

    library: str
    mesh: tuple[int, ...]
    split: str
    leaves: int
    sent: tuple[Counter[str], Counter[str]]

    def __str__(self) -> str:
        mesh = " x ".join(map(str, self.mesh))
        clip, chain = (sent["all-reduce"] for sent in self.sent)
        gathers = sum(n for sent in self.sent for name, n in sent.items() if "gather" in name)
        others = sum(sent.total() for sent in self.sent) - clip - chain - gathers
        where = f"{self.library} | {mesh} | {self.split} | {self.leaves}"
        return f"| {where} | {clip} | {chain} | {gathers} | {others} |"


def counted_of_torch(repeats: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of DTensor."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=PROCESSES)
    rows, columns, copied = Shard(0), Shard(1), Replicate()
    ways: list[tuple[tuple[int, ...], str, list[list[Any]]]] = [
        ((64,), "by rows, as FSDP", [[rows]]),
        ((8, 8), "by rows along one axis, as HSDP", [[copied, rows]]),
        ((8, 8), "by rows and columns, as FSDP with tensor parallelism", [[rows, columns], [rows, rows]]),
        ((64,), "every way", [[rows], [columns], [copied]]),
        ((8, 8), "every way", [list(way) for way in product((rows, columns, copied), repeat=2)]),
        (
            (4, 4, 4),
            "by rows along each of the axes",
            [[rows, copied, copied], [copied, rows, copied], [copied, copied, rows]],
        ),
    ]
    backend: Any = steps_backends.get("torch-dtensor")
    for shape, split, placements in ways:
        mesh = init_device_mesh("cpu", shape)
        leaves = [distribute_tensor(torch.ones(SHAPE), mesh, way, src_data_rank=None) for way in placements]
        for times in repeats:
            yield _counted("PyTorch", shape, split, leaves * times, backend.collectives)
    dist.destroy_process_group()


def counted_of_jax(repeats: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of JAX's sharded arrays."""
    import jax
    import numpy as np

    jax.config.update("jax_num_cpu_devices", DEVICES)
    both = ("a", "b")
    alike = [(), ("a",), ("b",), (None, "a"), (None, "b"), ("a", "b"), (both,), (None, both)]
    ways: list[tuple[tuple[int, ...], str, list[tuple[Any, ...]]]] = [
        ((8,), "by rows, as FSDP", [("a",)]),
        ((4, 2), "by rows along both axes, as FSDP", [(both,)]),
        ((4, 2), "by rows along one axis, as HSDP", [("b",)]),
        ((4, 2), "by rows and columns, as FSDP with tensor parallelism", [("a", "b"), ("a",)]),
        ((8,), "every way", [(), ("a",), (None, "a")]),
        ((4, 2), "every way but crosswise", alike),
        ((4, 2), "every way", [*alike, ("b", "a")]),
    ]
    for shape, split, specs in ways:
        devices = np.asarray(jax.local_devices(backend="cpu")).reshape(shape)
        mesh = jax.sharding.Mesh(devices, both[: len(shape)])
        leaves = [
            jax.device_put(
                np.ones(SHAPE, np.float32),
                jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)),
            )
            for spec in specs
        ]
        for times in repeats:
            yield _counted("JAX", shape, split, leaves * times, jax_sharding.collectives)


def _counted(library: str, mesh: tuple[int, ...], split: str, tree: list[Any], collectives: Any) -> Row:
    clip, chain = (collectives(step, tree, tree, step.init(tree)) for step in (CLIP, CHAIN))
    return Row(library, mesh, split, len(tree), (clip, chain))


def page(repeats: Sequence[int]) -> str:
    """Return the page, with so many times the leaves of each row."""
    import jax
    import torch

    lines = [
        "| library | mesh | leaves split | leaves | all-reduces of clip | of chain | gathers | others |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *map(str, counted_of_torch(repeats)),
        *map(str, counted_of_jax(repeats)),
    ]
    versions = f"PyTorch {torch.__version__.partition('+')[0]} and JAX {jax.__version__}"
    shape = " x ".join(map(str, SHAPE))
    return PAGE.format(versions=versions, shape=shape, table="\n".join(lines))


def main(arguments: Sequence[str]) -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a file to write to")
    parser.add_argument("--few", action="store_true", help="only the rows of few leaves, which are quick")
    options = parser.parse_args(arguments)
    text = page((1,) if options.few else (1, TIMES))
    if options.write is None:
        print(text, end="")
    else:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

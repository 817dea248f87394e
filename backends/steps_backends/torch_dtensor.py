"""PyTorch's DTensor in two gloo processes on this machine: Shard, Replicate, two meshes, plain leaves."""

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .probing import probe
from .protocol import Backend, Probe
from .torch import TorchBackend

PROCESSES = 2
WAYS = 6
"""In how many ways arrays lie over the processes: split, copied, plain, on either mesh."""
_WAIT = datetime.timedelta(seconds=10)
"""For an answer of the other process in the middle of a case."""
_WAIT_FOR_CASE = datetime.timedelta(seconds=100)
"""For the other process to end a case; more than it may wait in it a few times over."""

_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@dataclass
class Meeting:
    """Where this process meets the other one.

    Attributes:
        folder: a folder that both see; None until they have met.
        rank: 0 or 1.
        times: how often they have met.
        store: holds what they tell each other.
        told: how often they have exchanged something since then.
        meshes: a line of both processes, and a grid of two by one.
    """

    folder: Path | None = None
    rank: int = 0
    times: int = 0
    store: Any = None
    told: int = 0
    meshes: tuple[Any, ...] = ()


@dataclass(frozen=True)
class DTensorBackend:
    """PyTorch's DTensor, each case run in both processes at once.

    Both make the same arrays in the same order, and each holds its part. How an array lies depends on its
    shape alone, so that gradients, weights and moments of one place lie alike.
    """

    declaration: Declaration
    meeting: Meeting = field(default_factory=Meeting, compare=False)
    plain: TorchBackend = field(
        default_factory=lambda: TorchBackend(
            Declaration("torch", "torch", "torch", "cpu", _DTYPES, frozenset({"eager", "mutable"}))
        )
    )

    def can_meet(self) -> bool:
        """Return whether PyTorch is there, with gloo."""
        try:
            return _has_gloo()
        except Exception:  # noqa: BLE001 - whatever keeps PyTorch from being imported, the probe meets it too
            return False

    def join(self, folder: str, rank: int) -> None:
        """Meet the other process, which is told the same folder."""
        self.meeting.folder, self.meeting.rank = Path(folder), rank
        self.meet_again()

    def meet_again(self) -> None:
        """Start the talk of the two processes afresh: a failure of one may leave the other behind."""
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh

        meeting = self.meeting
        assert meeting.folder is not None
        torch.set_num_threads(1)
        if dist.is_initialized():
            dist.destroy_process_group()
        meeting.times += 1
        meeting.told = 0
        file = str(meeting.folder / f"store{meeting.times}")
        meeting.store = dist.FileStore(file, PROCESSES)
        dist.init_process_group(
            "gloo",
            store=dist.PrefixStore("group", meeting.store),
            rank=meeting.rank,
            world_size=PROCESSES,
            timeout=_WAIT,
        )
        grid = init_device_mesh("cpu", (PROCESSES, 1), mesh_dim_names=("copies", "parts"))
        meeting.meshes = (init_device_mesh("cpu", (PROCESSES,)), grid)

    def exchange(self, text: str) -> list[str]:
        """Return what both processes say, that of rank 0 first; wait for the other.

        Raises:
            RuntimeError: it did not answer.
        """
        meeting = self.meeting
        meeting.told += 1
        keys = [f"told/{meeting.told}/{rank}" for rank in range(PROCESSES)]
        meeting.store.set(keys[meeting.rank], text)
        meeting.store.wait(keys, _WAIT_FOR_CASE)
        return [meeting.store.get(key).decode() for key in keys]

    def probe(self) -> Probe:
        """Use DTensors, and compare with the declaration."""
        return probe(self, device_problem=self._device_problem)

    def _device_problem(self) -> str | None:
        if not _has_gloo():
            return "this build of torch has no gloo"
        if self.meeting.folder is None:
            return "it needs two processes, which only 'steps-conformance run' starts"
        return None

    def array(self, host: HostArray) -> Any:
        """Return a tensor that lies over the processes as its shape says; one of integers is plain."""
        from torch.distributed.tensor import distribute_tensor

        tensor = self.plain.array(host)
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
        placed = self._placement(host.shape)
        return tensor if placed is None else distribute_tensor(tensor, *placed, src_data_rank=None)

    def _placement(self, shape: tuple[int, ...]) -> tuple[Any, Any] | None:
        """Return mesh and placements for a shape; None for a plain tensor, which each process has."""
        from torch.distributed.tensor import Replicate, Shard

        line, grid = self.meeting.meshes
        if not shape:
            return line, [Replicate()]
        last = Shard(len(shape) - 1)
        return (
            (line, [Shard(0)]),
            (line, [last]),
            (line, [Replicate()]),
            None,
            (grid, [last, Replicate()]),
            (grid, [Replicate(), Shard(0)]),
        )[way_of(shape)]

    def read(self, array: Any) -> HostArray:
        """Return the values of the whole tensor; both processes ask at once."""
        return self.plain.read(self.unsharded(array))

    def holds(self, value: Any) -> bool:
        """Return whether value is a tensor, distributed or plain."""
        return self.plain.holds(value)

    def device_of(self, array: Any) -> str:
        """Return the device on which each process has its part."""
        return self.plain.device_of(array)

    def parts_of(self, array: Any) -> str:
        """Return the device, and the mesh and placements of a DTensor."""
        device = self.device_of(array)
        if not hasattr(array, "placements"):
            return device
        return f"{device} {tuple(array.device_mesh.shape)} {array.placements}"

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Do nothing: the CPU has finished when it returns."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args)."""
        return function(*args)

    def unsharded(self, array: Any) -> Any:
        """Return the whole tensor, a plain one in each process."""
        return array.full_tensor() if hasattr(array, "placements") else array

    def collectives(self, function: Callable[..., Any], *args: Any) -> Counter[str]:
        """Return how many collectives function(*args) starts, by name."""
        from torch.distributed.tensor.debug import CommDebugMode

        with CommDebugMode() as seen:
            function(*args)
        names = {str(op).rsplit(".", 1)[-1].strip("')>"): n for op, n in seen.get_comm_counts().items() if n}
        return Counter({name.replace("_", "-"): number for name, number in names.items()})


def way_of(shape: Sequence[int]) -> int:
    """Return in which of the ways an array lies that has this shape and an axis."""
    return (sum(shape) + len(shape)) % WAYS


def _has_gloo() -> bool:
    import torch

    # A build without it has none of the other names either.
    return bool(torch.distributed.is_available() and torch.distributed.is_gloo_available())


ROWS: tuple[Backend, ...] = (
    DTensorBackend(
        Declaration(
            "torch-dtensor",
            "torch",
            "torch",
            "cpu",
            _DTYPES,
            frozenset({"eager", "mutable", "sharded", "two_processes"}),
        )
    ),
)

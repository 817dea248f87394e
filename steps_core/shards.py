"""The only door to arrays that lie in parts in several processes: PyTorch's DTensor.

Elementwise arithmetic works on them as on any array. What adds elements up is done on the local part, and
the partial sums of all processes are then added: a leaf is never gathered. JAX sees to that by itself.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Array = Any
Mesh = Any

_IS_SHARDED: dict[type, bool] = {}


def is_sharded(array: Array) -> bool:
    """Return whether other processes hold parts of this array, or copies of it."""
    kind = type(array)
    if kind not in _IS_SHARDED:
        tensors = sys.modules.get("torch.distributed.tensor")
        _IS_SHARDED[kind] = tensors is not None and issubclass(kind, tensors.DTensor)
    return _IS_SHARDED[kind]


def mesh_of(array: Array) -> Mesh | None:
    """Return the mesh of processes that hold this array; None where this process holds it alone."""
    return array.device_mesh if is_sharded(array) else None


def local_part(array: Array) -> Array:
    """Return the part, or the copy, that this process holds."""
    return array.to_local() if is_sharded(array) else array


def is_partial(array: Array) -> bool:
    """Return whether the elements themselves are sums that the processes have not added yet."""
    return is_sharded(array) and any(placement.is_partial() for placement in array.placements)


def splitting_axes(array: Array, axes: Iterable[int] | None = None) -> frozenset[int]:
    """Return the axes of the mesh along which an array is split, along any or these of its own axes."""
    return frozenset(
        number
        for number, placement in enumerate(array.placements)
        if not placement.is_replicate() and (axes is None or placement.dim in axes)
    )


def added_up(partial: Array, mesh: Mesh, axis: int, how: str = "sum") -> Array:
    """Return the sum, or "max", of what all processes along one axis of a mesh hold: one all-reduce."""
    tensors = sys.modules["torch.distributed.tensor"]
    everywhere = [tensors.Replicate()] * mesh.ndim
    parts = [tensors.Partial(how) if number == axis else same for number, same in enumerate(everywhere)]
    # Along the other axes the copies may differ; they are not looked at.
    return (
        tensors.DTensor.from_local(partial, mesh, parts, run_check=False)
        .redistribute(mesh, everywhere)
        .to_local()
    )


def replicated(array: Array, mesh: Mesh) -> Array:
    """Return an array that is the same in all processes of a mesh as an array of that mesh."""
    tensors = sys.modules["torch.distributed.tensor"]
    everywhere = [tensors.Replicate()] * mesh.ndim
    return tensors.DTensor.from_local(array, mesh, everywhere, run_check=False)


def only_element(array: Array) -> Array:
    """Return the one element of an array as a 0-d array of its mesh, whichever process has it."""
    mesh, number = array.device_mesh, local_part(array).sum()
    for axis in sorted(splitting_axes(array)):
        number = added_up(number, mesh, axis)
    return replicated(number, mesh)


def whole(array: Array) -> Array:
    """Return all of an array in this process; the others must ask too. No step does."""
    return array.full_tensor() if is_sharded(array) else array


def distributed_like(array: Array, like: Array) -> Array:
    """Return an array that is the same in all processes, placed as another one is."""
    tensors = sys.modules["torch.distributed.tensor"]
    return tensors.distribute_tensor(array, like.device_mesh, like.placements, src_data_rank=None)


def along_first_axis(array: Array) -> Iterator[Array]:
    """Yield what stands along the first axis of a local array."""
    return (array.select(0, number) for number in range(array.shape[0]))


def summed_axes(
    array: Array,
    axes: tuple[int, ...],
    sums_of: Callable[[Array, tuple[int, ...]], Sequence[Array]],
    how: str = "sum",
) -> list[Array]:
    """Return sums over axes, which stay with length 1: of the local part, added up and placed like the array.

    Args:
        array: what they are sums of.
        axes: the axes.
        sums_of: takes the local part and axes; returns sums of one dtype, which travel together.
        how: "sum", or "max" where they are maxima.
    """
    torch = sys.modules["torch"]
    tensors = sys.modules["torch.distributed.tensor"]
    # An axis of length 1 has nothing to add up, and stays with the one process that has it.
    axes = tuple(axis for axis in axes if array.shape[axis] != 1)
    mesh, split = array.device_mesh, splitting_axes(array, axes)
    sums = sums_of(local_part(array), axes)
    if split:
        joined = torch.stack(list(sums))
        for axis in sorted(split):
            joined = added_up(joined, mesh, axis, how)
        sums = list(along_first_axis(joined))
    placements = [
        tensors.Replicate() if number in split else placement
        for number, placement in enumerate(array.placements)
    ]
    shape = torch.Size([1 if axis in axes else length for axis, length in enumerate(array.shape)])
    # Given in full, since the parts may be of unequal sizes.
    stride = torch.empty(shape, device="meta").stride()
    return [
        tensors.DTensor.from_local(part, mesh, placements, run_check=False, shape=shape, stride=stride)
        for part in sums
    ]


def on_local_part(array: Array, function: Callable[[Array], Sequence[Array]]) -> list[Array]:
    """Return what an elementwise function gives, placed like the array: some do not exist for DTensors."""
    return summed_axes(array, (), lambda part, _: function(part))

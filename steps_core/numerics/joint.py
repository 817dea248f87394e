"""One norm over many leaves, of any formats and on any devices; only scalars travel between devices."""

from collections.abc import Sequence
from typing import Any

from ..namespaces import Array, Namespace, astype, computed_once, dtype_name
from ..placing import placed, scalar_kind, scalar_place
from ..shards import added_up, along_first_axis, is_sharded, local_part, splitting_axes
from .formats import FLOAT64, format_of, is_complex_name
from .norms import ScaledNorm, SquareSums, add_square_sums, joint_square_sums, scaled_norm


def joint_norm(xp: Namespace, leaves: Sequence[Array]) -> ScaledNorm:
    """Return the L2 norm of all elements of all leaves together, on the first leaf's device.

    Beside float64 leaves, the others are summed in float64 too, so that the norm is as exact as those ask.

    Args:
        leaves: at least one widened array.
    """
    needs_float64 = any(format_of(leaf) is FLOAT64 for leaf in leaves)
    by_kind: dict[Any, dict[frozenset[int], list[Array]]] = {}
    for leaf in leaves:
        split = splitting_axes(leaf) if is_sharded(leaf) else frozenset()
        part = local_part(leaf)
        wide = _in_float64(xp, part) if needs_float64 else part
        by_kind.setdefault(scalar_kind(leaf), {}).setdefault(split, []).append(wide)
    home = scalar_place(leaves[0])
    totals = []
    for (_, mesh), by_split in by_kind.items():
        sums = {split: joint_square_sums(xp, parts) for split, parts in by_split.items()}
        totals.append(SquareSums(*(placed(part, home) for part in _over_mesh(xp, sums, mesh))))
    norm: ScaledNorm = computed_once(scaled_norm(xp, add_square_sums(xp, totals)))
    return norm


def _in_float64(xp: Namespace, leaf: Array) -> Array:
    name = "complex128" if is_complex_name(dtype_name(leaf.dtype)) else "float64"
    return astype(xp, leaf, getattr(xp, name))


def _over_mesh(xp: Namespace, sums: dict[frozenset[int], SquareSums], mesh: Any) -> SquareSums:
    """Return the total of the sums of all processes: one all-reduce for each axis of a mesh.

    Args:
        xp: the namespace.
        sums: of leaves, by the axes of the mesh along which the leaves are split; along the others they are
            copied, and count once. It is used up.
        mesh: the mesh; None where there is one process.
    """
    for axis in range(0 if mesh is None else mesh.ndim):
        partial = [split for split in sums if axis in split]
        if not partial:
            continue
        vector = xp.stack([part for split in partial for part in sums.pop(split)])
        parts = iter(along_first_axis(added_up(vector, mesh, axis)))
        for split in partial:
            whole = SquareSums(next(parts), next(parts), next(parts))
            rest = split - {axis}
            sums[rest] = add_square_sums(xp, [sums[rest], whole]) if rest in sums else whole
    (total_sums,) = sums.values()
    return total_sums

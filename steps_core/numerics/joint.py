"""One norm over many leaves, of any formats and on any devices; only scalars travel between devices."""

from collections.abc import Sequence
from typing import Any

from ..namespaces import Array, Namespace, device_of, dtype_name, to_device
from .norms import ScaledNorm, SquareSums, add_square_sums, in_float64, leaf_square_sums, scaled_norm


def joint_norm(xp: Namespace, leaves: Sequence[Array]) -> ScaledNorm:
    """Return the L2 norm of all elements of all leaves together, on the first leaf's device.

    Args:
        leaves: at least one widened array.
    """
    by_kind: dict[tuple[Any, str], list[SquareSums]] = {}
    for leaf in leaves:
        sums = leaf_square_sums(xp, leaf)
        kind = (device_of(leaf), dtype_name(sums.big.dtype))
        by_kind.setdefault(kind, []).append(sums)
    needs_float64 = any(name == "float64" for _, name in by_kind)
    home = device_of(leaves[0])
    totals = []
    for (device, _), sums_of_kind in by_kind.items():
        total = add_square_sums(xp, sums_of_kind)
        if needs_float64:
            total = in_float64(xp, total)
        totals.append(total if device == home else moved(total, home))
    return scaled_norm(xp, add_square_sums(xp, totals))


def moved(parts: Any, device: Any) -> Any:
    """Return a named tuple of scalars with each part on a device."""
    return type(parts)(*(to_device(part, device) for part in parts))

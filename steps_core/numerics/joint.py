"""One norm over many leaves, of any formats and on any devices; only scalars travel between devices."""

from collections.abc import Sequence
from typing import Any

from ..namespaces import Array, Namespace, astype, computed_once, device_of, dtype_name, to_device
from .formats import FLOAT64, format_of, is_complex_name
from .norms import ScaledNorm, add_square_sums, joint_square_sums, scaled_norm


def joint_norm(xp: Namespace, leaves: Sequence[Array]) -> ScaledNorm:
    """Return the L2 norm of all elements of all leaves together, on the first leaf's device.

    Beside float64 leaves, the others are summed in float64 too, so that the norm is as exact as those ask.

    Args:
        leaves: at least one widened array.
    """
    needs_float64 = any(format_of(leaf) is FLOAT64 for leaf in leaves)
    by_device: dict[Any, list[Array]] = {}
    for leaf in leaves:
        by_device.setdefault(device_of(leaf), []).append(leaf)
    home = device_of(leaves[0])
    totals = []
    for device, leaves_on_device in by_device.items():
        wide = (_in_float64(xp, leaf) if needs_float64 else leaf for leaf in leaves_on_device)
        total = joint_square_sums(xp, wide)
        totals.append(total if device == home else moved(total, home))
    norm: ScaledNorm = computed_once(scaled_norm(xp, add_square_sums(xp, totals)))
    return norm


def _in_float64(xp: Namespace, leaf: Array) -> Array:
    name = "complex128" if is_complex_name(dtype_name(leaf.dtype)) else "float64"
    return astype(xp, leaf, getattr(xp, name))


def moved(parts: Any, device: Any) -> Any:
    """Return a named tuple of scalars with each part on a device."""
    return type(parts)(*(to_device(part, device) for part in parts))

"""Where the 0-d arrays that go with a leaf lie, and how they get there: nothing larger travels."""

from typing import Any

from .namespaces import Array, device_of, replicated_sharding, to_device
from .shards import local_part, mesh_of, replicated


def scalar_place(leaf: Array) -> Any:
    """Return where the 0-d arrays that belong to a tree with this leaf lie.

    A device; of an array that JAX has sharded a copy on each of its devices; None while JAX traces.
    """
    device = device_of(leaf)
    return replicated_sharding(device) if hasattr(device, "device_set") else device


def scalar_kind(leaf: Array) -> tuple[Any, Any]:
    """Return what leaves have in common that take the same 0-d arrays."""
    return scalar_place(leaf), mesh_of(leaf)


def placed(value: Array, place: Any) -> Array:
    """Return a 0-d array at a place, as an array of this process."""
    value = local_part(value)
    return value if place is None or place == device_of(value) else to_device(value, place)


def on_device_of(leaf: Array, value: Array) -> Array:
    """Return a 0-d array as the arithmetic of a leaf takes it: on its device, and on its mesh."""
    mesh = mesh_of(leaf)
    if mesh is not None and mesh == mesh_of(value):
        return value
    value = placed(value, scalar_place(leaf))
    return value if mesh is None else replicated(value, mesh)


def moved(parts: Any, leaf: Array) -> Any:
    """Return a named tuple of 0-d arrays with each part as the arithmetic of a leaf takes it."""
    return type(parts)(*(on_device_of(leaf, part) for part in parts))

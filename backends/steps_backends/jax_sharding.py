"""JAX arrays in parts on four devices of the CPU, and what a compiled function sends between them."""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

DEVICES = 4
THREADS = 32

_COLLECTIVE = re.compile(r" (all-(?:reduce|gather|to-all)|reduce-scatter|collective-permute)(?:-start)?\(")
"""An instruction of compiled code."""


def ask_for_devices() -> None:
    """Have JAX make four devices of the CPU before it starts, as xla_force_host_platform_device_count.

    In a sum over devices each of them holds a thread until all are there. With a thread for each device, and
    sums that start before the last one is done, some wait for a thread that others hold: JAX then ends the
    process after 40 seconds. So one sum is waited for before the next, and there are threads to spare.
    """
    import jax

    # What JAX takes for the number of processors.
    os.environ.setdefault("NPROC", str(THREADS))
    try:
        jax.config.update("jax_num_cpu_devices", DEVICES)
    except RuntimeError:
        return  # it has started: how many there are is found by `problem`
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def problem() -> str | None:
    """Return why arrays cannot be sharded in this process, or None."""
    import jax

    found = len(jax.local_devices(backend="cpu"))
    if found >= DEVICES:
        return None
    return f"JAX has started with {found} device of the CPU, not {DEVICES}; give this row its own process"


def sharding_for(shape: Sequence[int]) -> Any:
    """Return the sharding of arrays of a shape over a mesh of 2 x 2 devices.

    The first axis that four divides lies over all devices, else the first that two divides over two, with a
    copy on the other two; else there is a copy on each.
    """
    import jax
    import numpy as np

    cpus = jax.local_devices(backend="cpu")[:DEVICES]
    mesh = jax.sharding.Mesh(np.asarray(cpus).reshape(2, 2), ("rows", "columns"))
    for parts, names in ((4, ("rows", "columns")), (2, "rows")):
        for axis, length in enumerate(shape):
            if length and length % parts == 0:
                spec = jax.sharding.PartitionSpec(*[None] * axis, names)
                return jax.sharding.NamedSharding(mesh, spec)
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())


def parts(array: Any) -> str:
    """Return what of an array lies on each device."""
    has = {
        device.id: " x ".join(
            str(one.indices(length)[:2]) for one, length in zip(index, array.shape, strict=True)
        )
        for device, index in array.sharding.devices_indices_map(array.shape).items()
    }
    return "; ".join(sorted(f"{device} has {index}" for device, index in has.items()))


def collectives(function: Callable[..., Any], *args: Any) -> Counter[str]:
    """Return how many collectives the compiled function(*args) has, by name, such as ``all-reduce``."""
    import jax

    return Counter(_COLLECTIVE.findall(jax.jit(function).lower(*args).compile().as_text()))

"""Measures a global clip and Adam on one row of the backends: `python chain_speed.py ROW SCALE`, JSON out.

An update reads the gradient twice, for the norm and for the step, reads and writes both moments, and writes
the update: seven passes. Their time at the bandwidth of a copy, measured in the same process, is the bound.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import steps_backends

from steps_core import AdamStep, ChainedStep, GradientClippingStep

CHAIN = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep())
SIZES = ((1, 10**8), (1000, 10**4))
"""Leaves and elements of each."""

PASSES = 7
BYTES = 4
REPEATS = 5


@dataclass(frozen=True)
class Library:
    """How one library makes ones, copies, waits, and runs the chain and what is compared with it.

    Attributes:
        ones: takes a length; returns a vector of ones on the device.
        copy: takes a vector; returns a copy.
        wait: takes a tree; returns when it is computed.
        compared: by name, functions that take gradients and return a call to be timed.
        device: what the device is called.
        most_leaves: with more of them it is not measured.
    """

    ones: Callable[[int], Any]
    copy: Callable[[Any], Any]
    wait: Callable[[Any], None]
    compared: Mapping[str, Callable[[list[Any]], Callable[[], Any]]]
    device: str
    most_leaves: int = 10**6


def plain(gradients: list[Any]) -> Callable[[], Any]:
    """Return the chain, called as it is."""
    state = CHAIN.init(gradients)
    return lambda: CHAIN(gradients, gradients, state)


def compiled(gradients: list[Any]) -> Callable[[], Any]:
    """Return the chain as `steps_backends.compile` runs it, its state donated."""
    from steps_backends import compile as compile_step

    fast, box = compile_step(CHAIN, donate=("state",)), [CHAIN.init(gradients)]

    def step() -> Any:
        updates, box[0] = fast(gradients, gradients, box[0])
        return updates

    return step


def _torch(device: str) -> Library:
    import torch

    def fused_adam(gradients: list[Any]) -> Callable[[], Any]:
        weights = [torch.nn.Parameter(gradient.clone()) for gradient in gradients]
        optimizer = torch.optim.Adam(weights, fused=True)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.clone()

        def step() -> Any:
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            return weights

        return step

    def wait(_: Any) -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    compared = {
        "steps_core": plain,
        "steps_core compiled": compiled,
        "fused Adam with clip_grad_norm_": fused_adam,
    }
    return Library(lambda n: torch.ones(n, device=device), torch.clone, wait, compared, name)


def _cupy(device: str) -> Library:
    import cupy

    def wait(_: Any) -> None:
        cupy.cuda.Device().synchronize()

    compared = {"steps_core": plain, "steps_core compiled": compiled}
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return Library(lambda n: cupy.ones(n, cupy.float32), cupy.copy, wait, compared, name)


def _numpy(device: str) -> Library:
    import numpy

    return Library(
        lambda n: numpy.ones(n, numpy.float32), numpy.copy, lambda _: None, {"steps_core": plain}, "CPU"
    )


def _jax(device: str) -> Library:
    import jax

    place = jax.devices(device)[0]

    def jitted(gradients: list[Any]) -> Callable[[], Any]:
        compiled, state = jax.jit(CHAIN), CHAIN.init(gradients)
        return lambda: compiled(gradients, gradients, state)

    def ones(length: int) -> Any:
        return jax.device_put(jax.numpy.ones(length, jax.numpy.float32), place)

    compared = {"steps_core under jax.jit": jitted}
    return Library(ones, jax.jit(jax.numpy.copy), jax.block_until_ready, compared, place.device_kind, 100)


_MAKERS = {"torch": _torch, "cupy": _cupy, "numpy": _numpy, "jax": _jax}


def seconds(library: Library, call: Callable[[], Any]) -> float:
    """Return the median time of a call, after one that does not count."""
    library.wait(call())
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        library.wait(call())
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def _scaled(number: int, scale: float) -> int:
    return max(1, round(number * scale))


def _bandwidth(library: Library, length: int) -> float:
    source = library.ones(length)
    return 2 * BYTES * length / seconds(library, lambda: library.copy(source))


def measured(row: str, scale: float) -> dict[str, Any]:
    """Return the bandwidth of a copy in bytes a second, and for each size the times and their bound.

    Where the row cannot run, return the reason alone.
    """
    backend = steps_backends.get(row)
    probe = backend.probe()
    if not probe.runs:
        return {"not_run": probe.reason}
    name = backend.declaration.library
    library = _MAKERS[name](backend.declaration.device)
    bandwidth = _bandwidth(library, _scaled(10**8, scale))
    sizes: dict[str, Any] = {}
    for full_leaves, full_length in SIZES:
        # A try-out has fewer of both, where there are many leaves.
        each = scale if full_leaves == 1 else scale**0.5
        leaves, length = _scaled(full_leaves, each), _scaled(full_length, each)
        label = f"{leaves:,} x {length:,}"
        if leaves > library.most_leaves:
            sizes[label] = {"not_run": f"{leaves} leaves take {name} minutes to compile"}
            continue
        gradients = [library.ones(length) for _ in range(leaves)]
        bound = PASSES * BYTES * leaves * length / bandwidth
        times = {what: seconds(library, make(gradients)) for what, make in library.compared.items()}
        sizes[label] = {"bound": bound, "seconds": times}
    return {"device": library.device, "bandwidth": bandwidth, "sizes": sizes}


def table(results: Mapping[str, Any]) -> str:
    """Return the results of several rows as Markdown."""
    lines = [
        f"Times in ms of a global clip and Adam, float32. Bound: {PASSES} passes at the bandwidth of a copy.",
        "",
        "| row | device | copy GB/s | leaves x elements | what | ms | bound ms | times the bound |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, result in results.items():
        if "not_run" in result:
            lines.append(f"| {row} | | | | not run: {result['not_run']} | | | |")
            continue
        start = f"| {row} | {result['device']} | {result['bandwidth'] / 1e9:.1f}"
        for label, found in result["sizes"].items():
            if "not_run" in found:
                lines.append(f"{start} | {label} | not run: {found['not_run']} | | | |")
                continue
            bound = found["bound"]
            for what, taken in found["seconds"].items():
                numbers = f"{taken * 1e3:.3f} | {bound * 1e3:.3f} | {taken / bound:.2f}"
                lines.append(f"{start} | {label} | {what} | {numbers} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], float(sys.argv[2]))))

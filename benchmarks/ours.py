"""Our own candidates: steps plain, compiled, and compiled with donation, on each library."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from libraries import arrays_of, filled
from measuring import Candidate
from steps_backends import compile as compiled
from steps_backends.compiling import numba_source
from works import STEPS

HAS_NUMBA = numba_source.has_numba()
DONATIONS = {"": (), ", state donated": ("state",), ", all donated": ("gradients", "state")}


def candidates(
    step: str, gradients: list[Any], dtype: str, libraries: list[str]
) -> Iterator[tuple[str, Callable[[], Candidate]]]:
    """Yield the name of each candidate and what makes it."""
    if "numpy" in libraries and dtype == "float32":
        yield "ours, numpy plain", partial(_numpy_plain, step, gradients)
        for text, donate in DONATIONS.items():
            yield f"ours, numpy blocks{text}", partial(_numpy, step, gradients, donate, fused=False)
            if HAS_NUMBA:
                yield f"ours, numpy + numba{text}", partial(_numpy, step, gradients, donate, fused=True)
    if "torch" in libraries:
        yield "ours, torch plain", partial(_torch_plain, step, gradients, dtype)
        for text, donate in DONATIONS.items():
            yield f"ours, torch compiled{text}", partial(_torch, step, gradients, dtype, donate)
        if step == "chain":
            yield (
                "ours, torch compiled, all donated, weights updated",
                partial(_torch, step, gradients, dtype, DONATIONS[", all donated"], adds=True),
            )
    if "jax" in libraries:
        for text, donate in DONATIONS.items():
            yield f"ours, jax compiled{text}", partial(_jax, step, gradients, dtype, donate)
        if step in ("chain", "adam", "rmsprop"):
            yield (
                "ours, jax compiled, all donated, state packed",
                partial(_jax, step, gradients, dtype, DONATIONS[", all donated"], packs=True),
            )


def _loop(
    step: Any,
    library: str,
    gradients: list[Any],
    *,
    after: Callable[[Any], Any] = lambda updates: None,
    packs: bool = False,
) -> Candidate:
    """Return a call of a training loop: the state goes from call to call, donated gradients are new ones."""
    donated = "gradients" in getattr(step, "donate", ())
    state = step.init(gradients)
    held = {"gradients": gradients, "state": step.pack(state) if packs else state}
    weights = [leaf + 0 for leaf in gradients] if step.needs_weights else None
    originals = [leaf + 0 for leaf in gradients] if donated else []

    def call() -> None:
        updates, held["state"] = step(held["gradients"], weights, held["state"])
        after((updates, held["state"]))
        if donated:
            held["gradients"] = updates

    def prepare() -> None:
        held["gradients"] = filled(library, held["gradients"], originals)

    return Candidate(call, prepare) if donated else Candidate(call)


def _numpy_plain(step: str, gradients: list[Any]) -> Candidate:
    return _loop(STEPS[step], "numpy", gradients)


def _torch_plain(step: str, gradients: list[Any], dtype: str) -> Candidate:
    return _loop(STEPS[step], "torch", arrays_of("torch", gradients, dtype))


def _numpy(step: str, gradients: list[Any], donate: tuple[str, ...], *, fused: bool) -> Candidate:
    arrays = [leaf.copy() for leaf in gradients]
    return _choosing(fused, _loop(compiled(STEPS[step], donate), "numpy", arrays))


def _torch(
    step: str, gradients: list[Any], dtype: str, donate: tuple[str, ...], *, adds: bool = False
) -> Candidate:
    import torch

    tensors = arrays_of("torch", gradients, dtype)
    weights = [torch.zeros_like(leaf) for leaf in tensors]

    def after(result: Any) -> None:
        if adds:
            torch._foreach_add_(weights, result[0])  # As PyTorch's own optimizers do.

    return _choosing(HAS_NUMBA, _loop(compiled(STEPS[step], donate), "torch", tensors, after=after))


def _choosing(fused: bool, candidate: Candidate) -> Candidate:
    """Return a call with numba or without it. Passes ask whether it is there once, when they first run."""

    def choosing() -> None:
        numba_source.has_numba = lambda: fused  # type: ignore[assignment]
        candidate.call()

    return Candidate(choosing, candidate.prepare)


def _jax(
    step: str, gradients: list[Any], dtype: str, donate: tuple[str, ...], *, packs: bool = False
) -> Candidate:
    import jax

    arrays = arrays_of("jax", gradients, dtype)
    return _loop(compiled(STEPS[step], donate), "jax", arrays, after=jax.block_until_ready, packs=packs)

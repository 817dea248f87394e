"""Our own candidates: steps plain, compiled, and compiled with donation, on each library."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from measuring import Candidate
from steps_backends import compile as compiled
from steps_backends.compiling import numba_source
from works import STEPS

HAS_NUMBA = numba_source.has_numba()
DONATIONS = {"": (), ", state donated": ("state",), ", all donated": ("gradients", "state")}


def candidates(step: str, gradients: list[Any], libraries: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each candidate and what makes it."""
    if "numpy" in libraries:
        yield "ours, numpy plain", partial(_plain, step, gradients)
        for text, donate in DONATIONS.items():
            yield f"ours, numpy blocks{text}", partial(_numpy, step, gradients, donate, fused=False)
            if HAS_NUMBA:
                yield f"ours, numpy + numba{text}", partial(_numpy, step, gradients, donate, fused=True)
    if "torch" in libraries:
        for text, donate in DONATIONS.items():
            yield f"ours, torch compiled{text}", partial(_torch, step, gradients, donate)
    if "jax" in libraries:
        for text, donate in DONATIONS.items():
            yield f"ours, jax compiled{text}", partial(_jax, step, gradients, donate)
            if STEPS[step].init(gradients):
                packed = partial(_jax, step, gradients, donate, is_packed=True)
                yield f"ours, jax compiled, packed{text}", packed


def _loop(
    step: Any,
    gradients: list[Any],
    wait: Callable[[Any], Any] = lambda result: result,
    *,
    is_packed: bool = False,
) -> Candidate:
    """Return a call of a training loop: the state goes from call to call, and donated gradients come back."""
    donated = "gradients" in getattr(step, "donate", ())
    held = {"gradients": gradients, "state": step.init(gradients)}
    if is_packed:
        held["state"] = step.pack(held["state"])

    def call() -> None:
        updates, held["state"] = wait(step(held["gradients"], _weights(step, held), held["state"]))
        if donated:
            held["gradients"] = updates

    return call


def _weights(step: Any, held: dict[str, Any]) -> Any:
    """Return weights for the steps that need some: what they hold does not matter to the time."""
    if not step.needs_weights:
        return None
    if "weights" not in held:
        held["weights"] = [leaf + 0 for leaf in held["gradients"]]
    return held["weights"]


def _plain(step: str, gradients: list[Any]) -> Candidate:
    return _loop(STEPS[step], gradients)


def _numpy(step: str, gradients: list[Any], donate: tuple[str, ...], *, fused: bool) -> Candidate:
    return _choosing(fused, _loop(compiled(STEPS[step], donate), [leaf.copy() for leaf in gradients]))


def _torch(step: str, gradients: list[Any], donate: tuple[str, ...]) -> Candidate:
    import torch

    tensors = [torch.from_numpy(leaf.copy()) for leaf in gradients]
    return _choosing(HAS_NUMBA, _loop(compiled(STEPS[step], donate), tensors))


def _choosing(fused: bool, call: Candidate) -> Candidate:
    """Return a call with numba or without it. Passes ask whether it is there once, when they first run."""

    def choosing() -> None:
        numba_source.has_numba = lambda: fused  # type: ignore[assignment]
        call()

    return choosing


def _jax(step: str, gradients: list[Any], donate: tuple[str, ...], *, is_packed: bool = False) -> Candidate:
    import jax

    arrays = [jax.numpy.array(leaf) for leaf in gradients]
    return _loop(compiled(STEPS[step], donate), arrays, jax.block_until_ready, is_packed=is_packed)

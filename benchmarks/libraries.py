"""Gradients as arrays of each library, and what keeps a clip at work."""

from collections.abc import Callable
from typing import Any


def arrays_of(library: str, gradients: list[Any], dtype: str) -> list[Any]:
    """Return copies of NumPy arrays as arrays of PyTorch or JAX, in a dtype."""
    if library == "torch":
        import torch

        return [torch.from_numpy(leaf.copy()).to(getattr(torch, dtype)) for leaf in gradients]
    import jax

    return [jax.numpy.array(leaf, dtype=dtype) for leaf in gradients]


def in_bounds(step: str, donate: tuple[str, ...]) -> Callable[[Any], None]:
    """Return what is done after each call, so that gradients that come back are clipped again.

    Those that were clipped in place have a norm of 1, and a clip that has nothing to do may leave them alone.
    """
    if step != "clip" or "gradients" not in donate:
        return lambda result: None

    def raise_norm(result: Any) -> None:
        leaf = result[0][0]
        leaf[(0,) * leaf.ndim] = 1.0

    return raise_norm

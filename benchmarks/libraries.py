"""Gradients as arrays of each library, and how they come back after a call that has written to them."""

from typing import Any


def arrays_of(library: str, gradients: list[Any], dtype: str) -> list[Any]:
    """Return copies of NumPy arrays as arrays of PyTorch or JAX, in a dtype."""
    if library == "torch":
        import torch

        return [torch.from_numpy(leaf.copy()).to(getattr(torch, dtype)) for leaf in gradients]
    import jax

    return [jax.numpy.array(leaf, dtype=dtype) for leaf in gradients]


def filled(library: str, leaves: list[Any], originals: list[Any]) -> list[Any]:
    """Return arrays with the values of originals: in the memory of leaves, but on JAX in new memory.

    Gradients that a step has written to would else be smaller from call to call, until squares of them are
    subnormal and take long; and a clip has nothing to do where the norm is within its bounds.
    """
    if library == "jax":
        import jax

        return jax.block_until_ready([leaf + 0 for leaf in originals])  # type: ignore[no-any-return]
    for leaf, original in zip(leaves, originals, strict=True):
        # By NumPy: PyTorch's threads would go on waiting busily, and take a processor from what is timed.
        _in_numpy(library, leaf)[...] = _in_numpy(library, original)
    return leaves


def _in_numpy(library: str, leaf: Any) -> Any:
    if library == "numpy":
        return leaf
    import torch

    return (leaf.view(torch.int16) if leaf.dtype is torch.bfloat16 else leaf).numpy()

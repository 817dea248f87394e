"""Memory for PyTorch's results: used again on the CPU, where fresh memory costs more than computing."""

from collections.abc import Hashable, Iterable
from typing import Any

from .buffers import Pool, crossing


class Buffers:
    """Flat tensors by purpose. Whoever gets one refers to it, or to views of it, as long as it is in use."""

    def __init__(self) -> None:
        self._pool = Pool()

    def take(self, purpose: Hashable, size: int, dtype: Any, device: Any) -> Any:
        """Return a tensor of one axis with any values.

        Args:
            purpose: who takes it.
            size: its elements.
            dtype: NumPy's.
            device: PyTorch's.
        """
        import torch

        kind = getattr(torch, dtype.name)
        if device.type != "cpu":
            return torch.empty(size, dtype=kind, device=device)
        # PyTorch keeps the array for as long as a tensor lies in it, and the pool counts that.
        words = self._pool.take(purpose, size * kind.itemsize, "uint8")
        return torch.from_numpy(words).view(kind) if size else torch.empty(0, dtype=kind)


def overlapping(tensors: Iterable[Any]) -> set[int]:
    """Return the ids of the tensors that share memory with another entry."""
    return crossing((*_span(tensor), id(tensor)) for tensor in tensors if tensor.numel())


def _span(tensor: Any) -> tuple[int, int]:
    """Return where the memory of a tensor begins and ends; PyTorch has no negative strides."""
    reach = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (reach + 1) * tensor.element_size()

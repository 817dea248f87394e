"""Memory for PyTorch's results: used again on the CPU, where fresh memory costs more than computing."""

from collections.abc import Hashable, Iterable
from typing import Any

from .buffers import Pool, crossing
from .shared_memory import is_transformed

# From so many bytes on, NumPy asks the system for large pages, and PyTorch does not.
_LARGE = 1 << 22


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


def in_large_pages(tensors: Iterable[Any]) -> list[Any]:
    """Return tensors with copies in the place of large ones on the CPU, in memory of fewer and larger pages.

    Passing over them then takes a third less: the processor seldom has to look up where a page lies.
    """
    return [_copied(tensor) if _is_large(tensor) else tensor for tensor in tensors]


def _is_large(tensor: Any) -> bool:
    import torch

    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu" or tensor.requires_grad:
        return False
    return tensor.nbytes >= _LARGE and not is_transformed(tensor) and bool(tensor.is_contiguous())


def _copied(tensor: Any) -> Any:
    import numpy as np
    import torch

    words = torch.from_numpy(np.empty(tensor.nbytes, "uint8"))
    return words.view(tensor.dtype).view(tensor.shape).copy_(tensor)


def overlapping(tensors: Iterable[Any]) -> set[int]:
    """Return the ids of the tensors that share memory with another entry."""
    return crossing((*_span(tensor), id(tensor)) for tensor in tensors if tensor.numel())


def _span(tensor: Any) -> tuple[int, int]:
    """Return where the memory of a tensor begins and ends; PyTorch has no negative strides."""
    reach = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (reach + 1) * tensor.element_size()

"""Leaves as PyTorch's tensors: what plans that PyTorch compiles take and give."""

from collections.abc import Callable
from typing import Any

from .shared_memory import bfloat16, is_transformed
from .tracing import TracingError, TransformedError

Function = Callable[[Any], Any]


class TensorSharing:
    """Tensors of one device, detached; its methods are those of `Sharing`."""

    wraps = True

    def opened(self, tree: str, leaves: list[Any]) -> list[Any]:
        """Return the leaves of a tree of that name, detached; None stays.

        Raises:
            TracingError: a leaf is more than a dense tensor, or PyTorch watches it.
        """
        import torch

        is_watched = tree == "gradients" and torch.is_grad_enabled()
        is_plain = True
        for leaf in leaves:
            if leaf is None:
                continue
            if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
                raise TracingError(f"a leaf is a {type(leaf).__name__}")
            if is_transformed(leaf):
                raise TransformedError("a leaf belongs to a transformation of torch.func")
            if leaf.layout is not torch.strided:
                raise TracingError(f"a leaf has the layout {leaf.layout}")
            is_plain = is_plain and not leaf.requires_grad
        if is_plain:
            return leaves
        if is_watched:
            raise TransformedError("PyTorch is to differentiate through it: a gradient requires grad")
        return [None if leaf is None else leaf.detach() for leaf in leaves]

    def closed(self, arrays: list[Any], given: dict[int, Any]) -> list[Any]:
        """Return the tensors, those that were given as the leaves that they came from."""
        return [given.get(id(array), array) for array in arrays] if given else arrays

    def addresses(self, leaves: list[Any]) -> Any:
        """Return None: the tensors themselves are what comes back."""

    def calling(self, function: Function) -> Function:
        """Return the function."""
        return function

    def seen(self, leaf: Any) -> Any:
        """Return a tensor without values."""
        return leaf.detach().to("meta")

    def dtype_of(self, array: Any) -> Any:
        """Return the dtype as NumPy's."""
        import numpy as np

        name = str(array.dtype).rsplit(".", 1)[-1]
        return np.dtype(bfloat16() if name == "bfloat16" else name)

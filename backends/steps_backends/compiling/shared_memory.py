"""Leaves as NumPy arrays in the same memory: what the executor on NumPy takes and gives."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .tracing import TracingError, TransformedError

Function = Callable[[Any], Any]


class Sharing(Protocol):
    """How the arrays of a library lie in memory that NumPy can use too."""

    def opened(self, tree: str, leaves: list[Any]) -> list[Any]:
        """Return the leaves of a tree of that name as NumPy arrays; None stays.

        Raises:
            TracingError: a leaf cannot be shared.
        """
        ...

    def closed(self, arrays: list[Any], given: dict[int, Any]) -> list[Any]:
        """Return arrays as the library's own, those that were given as the leaves that they came from."""
        ...

    def keep(self, leaves: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Remember what was handed out as the state of a call."""
        ...

    def calling(self, function: Function) -> Function:
        """Return a function of NumPy's arrays that calls one of the library's."""
        ...

    def seen(self, leaf: Any) -> Any:
        """Return what a function of the user sees of a leaf while a step is traced; None: a traced array."""
        ...

    def dtype_of(self, array: Any) -> Any:
        """Return the dtype of an opened array as NumPy's."""
        ...


class OwnArrays:
    """What sharing is where the executor takes the library's own arrays."""

    def closed(self, arrays: list[Any], given: dict[int, Any]) -> list[Any]:
        """Return the arrays."""
        return arrays

    def keep(self, leaves: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Do nothing: the arrays themselves come back."""

    def calling(self, function: Function) -> Function:
        """Return the function."""
        return function

    def seen(self, leaf: Any) -> Any:
        """Return None: a traced array looks like one of them."""
        return None

    def dtype_of(self, array: Any) -> Any:
        """Return the dtype."""
        return array.dtype


class NumpySharing(OwnArrays):
    """NumPy's own arrays."""

    def __init__(self, namespaces: Any) -> None:
        self._namespaces = namespaces

    def opened(self, tree: str, leaves: list[Any]) -> list[Any]:
        """Return the leaves; scalars become 0-d arrays."""
        import numpy as np

        if {*map(type, leaves)} <= {np.ndarray, type(None)}:
            return leaves
        return [None if leaf is None else self._array(leaf) for leaf in leaves]

    def _array(self, leaf: Any) -> Any:
        import numpy as np

        if not isinstance(leaf, (np.ndarray, np.generic)) or self._namespaces.namespace_of(leaf) is None:
            raise TracingError(f"a leaf is a {type(leaf).__name__}")
        return np.asarray(leaf)


class TorchSharing:
    """PyTorch's tensors on the CPU."""

    def __init__(self) -> None:
        # What was handed out last, so that a state is known when it comes back.
        self._known: dict[int, tuple[Any, Any]] = {}

    def opened(self, tree: str, leaves: list[Any]) -> list[Any]:
        """Return the memory of the tensors."""
        import torch

        is_watched = tree == "gradients" and torch.is_grad_enabled()
        if is_watched and any(leaf is not None and leaf.requires_grad for leaf in leaves):
            raise TransformedError("PyTorch is to differentiate through it: a gradient requires grad")
        return [None if leaf is None else self._array(leaf) for leaf in leaves]

    def _array(self, leaf: Any) -> Any:
        import torch

        known = self._known.get(id(leaf))
        if known is not None and known[0] is leaf:
            return known[1]
        if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
            raise TracingError(f"a leaf is a {type(leaf).__name__}")
        if is_transformed(leaf):
            raise TransformedError("a leaf belongs to a transformation of torch.func")
        if leaf.device.type != "cpu":
            raise TracingError(f"a leaf is on the device {leaf.device}")
        if str(leaf.layout) != "torch.strided":
            raise TracingError(f"a leaf has the layout {leaf.layout}")
        plain = leaf.detach().resolve_conj().resolve_neg()
        if leaf.dtype is torch.bfloat16:
            return plain.view(torch.int16).numpy().view(bfloat16())
        return plain.numpy()

    def closed(self, arrays: list[Any], given: dict[int, Any]) -> list[Any]:
        """Return tensors in the memory of the arrays."""
        return [None if array is None else self._tensor(array, given) for array in arrays]

    def _tensor(self, array: Any, given: dict[int, Any]) -> Any:
        import torch

        if id(array) in given:
            return given[id(array)]
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
        return torch.from_numpy(array)

    def keep(self, tensors: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Remember what was handed out as the state of a call."""
        self._known = {id(tensor): (tensor, array) for tensor, array in zip(tensors, arrays, strict=True)}

    def calling(self, function: Function) -> Function:
        """Return a function of arrays that calls one of tensors."""
        import torch

        return lambda array: function(torch.from_numpy(array.copy())).detach().numpy()

    def seen(self, leaf: Any) -> Any:
        """Return a tensor without values."""
        return leaf.detach().to("meta")

    def dtype_of(self, array: Any) -> Any:
        """Return the dtype."""
        return array.dtype


def is_transformed(tensor: Any) -> bool:
    """Return whether this is what torch.func puts in the place of a tensor, which has no memory."""
    import torch

    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))  # noqa: SLF001  # It has no public name.


def bfloat16() -> Any:
    """Return NumPy's dtype."""
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        raise TracingError("bfloat16 on NumPy needs ml_dtypes; pip install ml_dtypes") from None
    return ml_dtypes.bfloat16

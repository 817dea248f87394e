"""Leaves as NumPy arrays in the same memory: what the executor on NumPy takes and gives."""

from collections.abc import Callable
from typing import Any, Protocol

from .tracing import TracingError, TransformedError

Function = Callable[[Any], Any]


class Sharing(Protocol):
    """How the arrays of a library lie in memory that NumPy can use too.

    Attributes:
        wraps: whether an array that was opened must be closed as the leaf that it came from.
    """

    wraps: bool

    def opened(self, tree: str, leaves: list[Any]) -> list[Any]:
        """Return the leaves of a tree of that name as NumPy arrays; None stays.

        Raises:
            TracingError: a leaf cannot be shared.
        """
        ...

    def closed(self, arrays: list[Any], given: dict[int, Any]) -> list[Any]:
        """Return arrays as the library's own, those that were given as the leaves that they came from."""
        ...

    def addresses(self, leaves: list[Any]) -> Any:
        """Return where leaves lie, if a leaf may be given other memory than it was handed out with."""
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

    wraps = False

    def closed(self, arrays: list[Any], given: dict[int, Any]) -> list[Any]:
        """Return the arrays."""
        return arrays

    def addresses(self, leaves: list[Any]) -> Any:
        """Return None: the arrays themselves are what comes back."""

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

    wraps = True

    def opened(self, tree: str, leaves: list[Any]) -> list[Any]:
        """Return the memory of the tensors."""
        import torch

        is_watched = tree == "gradients" and torch.is_grad_enabled()
        if is_watched and any(leaf is not None and leaf.requires_grad for leaf in leaves):
            raise TransformedError("PyTorch is to differentiate through it: a gradient requires grad")
        kinds, bfloat = (torch.Tensor, torch.nn.Parameter), torch.bfloat16
        arrays: list[Any] = []
        for leaf in leaves:
            if leaf is None:
                arrays.append(None)
                continue
            if type(leaf) not in kinds:
                raise TracingError(f"a leaf is a {type(leaf).__name__}")
            if is_transformed(leaf):
                raise TransformedError("a leaf belongs to a transformation of torch.func")
            if not leaf.is_cpu:
                raise TracingError(f"a leaf is on the device {leaf.device}")
            if leaf.layout is not torch.strided:
                raise TracingError(f"a leaf has the layout {leaf.layout}")
            plain = leaf.detach() if leaf.requires_grad else leaf
            if leaf.is_conj() or leaf.is_neg():
                plain = plain.resolve_conj().resolve_neg()
            if leaf.dtype is bfloat:
                arrays.append(plain.view(torch.int16).numpy().view(bfloat16()))
            else:
                arrays.append(plain.numpy())
        return arrays

    def closed(self, arrays: list[Any], given: dict[int, Any]) -> list[Any]:
        """Return tensors in the memory of the arrays."""
        return [
            None if array is None else given[id(array)] if id(array) in given else _tensor(array)
            for array in arrays
        ]

    def addresses(self, leaves: list[Any]) -> list[int | None]:
        """Return where the memory of the tensors begins: who sets ``data`` gives a tensor other memory."""
        return [None if leaf is None else leaf.data_ptr() for leaf in leaves]

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


def _tensor(array: Any) -> Any:
    import torch

    if array.dtype.kind == "V":  # bfloat16
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


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

"""PyTorch code that must not wait for values: run on tensors that have none, or where waiting is an error."""

from collections.abc import Callable
from typing import Any

from .protocol import HostReadError


def run_on_fake_tensors(function: Callable[..., Any], *args: Any) -> None:
    """Run function on fake CUDA tensors like those in args; a build without CUDA has them too.

    Raises:
        HostReadError: it reads a value, or copies one to the CPU.
    """
    try:
        _run_on_fakes("cuda", function, args)
    except RuntimeError as error:
        if "not linked with support for cuda" not in str(error):
            raise
        # A build without CUDA asks the missing driver where a value is read, and also where a fake CUDA
        # tensor is indexed; fakes on the CPU tell the two apart.
        _run_on_fakes("cpu", function, args)
        raise


def _run_on_fakes(device: str, function: Callable[..., Any], args: Any) -> None:
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
    from torch.utils._pytree import tree_map_only

    def fake(tensor: Any) -> Any:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)

    with FakeTensorMode(allow_non_fake_inputs=False):
        given = tree_map_only(torch.Tensor, fake, args)
        try:
            with _copies_to_the_host_refused():
                function(*given)
        except DataDependentOutputException as error:
            raise HostReadError(f"the value of a tensor without values was asked for: {error}") from error


def run_without_waiting(function: Callable[..., Any], *args: Any) -> None:
    """Run function on real CUDA tensors while PyTorch raises at each wait for the device.

    Raises:
        HostReadError: it waits.
    """
    import torch

    function(*args)  # what is loaded in the first call may wait
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        function(*args)
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        raise HostReadError(str(error).splitlines()[0]) from error
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _copies_to_the_host_refused() -> Any:
    """Return the mode in which a copy from CUDA to the CPU raises; fake tensors alone allow it."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    # the place of the source among the arguments
    sources = {torch.ops.aten._to_copy.default: 0, torch.ops.aten.copy_.default: 1}  # noqa: SLF001 - its name

    class Refusing(TorchDispatchMode):  # type: ignore[misc] # PyTorch is not looked at for types
        def __torch_dispatch__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = called(*args, **(kwargs or {}))
            if called in sources:
                source = args[sources[called]]
                if (source.device.type, result.device.type) == ("cuda", "cpu"):
                    raise HostReadError(
                        f"{called} copied a tensor of shape {tuple(source.shape)} to the host"
                    )
            return result

    return Refusing()

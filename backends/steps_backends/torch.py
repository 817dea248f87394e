"""PyTorch, on the CPU and on CUDA."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .declaration import Declaration
from .host import HostArray
from .probing import probe
from .protocol import Backend, Probe

_TRAITS = frozenset({"eager", "mutable", "sees_reads", "compiles", "batches", "differentiates"})
_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@dataclass(frozen=True)
class TorchBackend:
    """PyTorch on one device."""

    declaration: Declaration

    def probe(self) -> Probe:
        """Use PyTorch on the device, and compare with the declaration."""
        return probe(self, device_problem=self._device_problem)

    def _device_problem(self) -> str | None:
        import torch

        if self.declaration.device == "cpu" or torch.cuda.is_available():
            return None
        if torch.version.cuda is None:
            return f"no CUDA device: torch {torch.__version__} is built without CUDA"
        return f"no CUDA device: torch {torch.__version__} finds {torch.cuda.device_count()} of them"

    def array(self, host: HostArray) -> Any:
        """Return a tensor that does not require grad."""
        import torch

        dtype = getattr(torch, host.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(
                f"torch has no dtype {host.dtype}; take one of {', '.join(self.declaration.dtypes)}"
            )
        return torch.tensor(host.values, dtype=dtype, device=self.declaration.device).reshape(host.shape)

    def read(self, array: Any) -> HostArray:
        """Return the values of a tensor."""
        dtype = str(array.dtype).rsplit(".", maxsplit=1)[-1]
        flat = array.detach().cpu().reshape(-1)
        return HostArray(dtype, tuple(array.shape), tuple(flat.tolist()))

    def holds(self, value: Any) -> bool:
        """Return whether value is a tensor."""
        import torch

        return isinstance(value, torch.Tensor)

    def device_of(self, array: Any) -> str:
        """Return the device, such as ``cuda:0``."""
        return str(array.device)

    def synchronize(self, tree_leaves: Iterable[Any]) -> None:
        """Wait for the CUDA device; the CPU has finished when it returns."""
        import torch

        if self.declaration.device == "cuda":
            torch.cuda.synchronize()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(*args)."""
        return function(*args)

    def unread(self, function: Callable[..., Any], *args: Any) -> None:
        """Run function on fake CUDA tensors, which have no values; on CUDA also where waiting raises."""
        from .torch_watching import run_on_fake_tensors, run_without_waiting

        run_on_fake_tensors(function, *args)
        if self.declaration.device == "cuda":
            run_without_waiting(function, *args)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function recorded as one graph, which is then run as it was recorded.

        What Dynamo cannot record is found so; a compiler behind it would show the compiler's own errors.
        """
        import torch

        torch.compiler.reset()
        compiled: Callable[..., Any] = torch.compile(function, fullgraph=True, backend="eager")
        return compiled

    def batched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return torch.func.vmap(function)."""
        import torch

        batched: Callable[..., Any] = torch.func.vmap(function)
        return batched

    def derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return torch.func.grad(function)."""
        import torch

        derivative: Callable[..., Any] = torch.func.grad(function)
        return derivative


def _row(name: str, device: str) -> TorchBackend:
    return TorchBackend(Declaration(name, "torch", "torch", device, _DTYPES, _TRAITS))


ROWS: tuple[Backend, ...] = (_row("torch", "cpu"), _row("torch-cuda", "cuda"))

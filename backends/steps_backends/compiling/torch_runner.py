"""A step on PyTorch's tensors: compiled by PyTorch on CUDA, and on the CPU where it has a compiler of C++.

On the CPU numba comes first: it takes a second, not half a minute, to compile.
"""

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from .numpy_layout import Result
from .numpy_runner import numpy_runner
from .packages import module_of
from .shared_memory import TorchSharing
from .torch_leaves import TensorSharing
from .torch_plan import Function, TorchPlan
from .traced_runner import TracedRunner
from .tracing import TracingError

EXECUTOR = "STEPS_TORCH_EXECUTOR"
"""The environment variable that chooses what runs tensors on the CPU: "compiler" or "blocks"."""

# With fewer elements than this on the CPU, compiling takes longer than it saves in thousands of calls.
WORTH_COMPILING = 1 << 18


class TorchRunner:
    """Runs one step on tensors: from plans that PyTorch compiles, or on the CPU through NumPy.

    Args:
        step: of the package.
        package: the name of its package of steps.
        donated: the trees whose memory may be written to.
        tell: is told why a step cannot be traced or compiled, and how it runs instead.
    """

    def __init__(self, step: Any, package: str, donated: frozenset[str], tell: Callable[..., None]) -> None:
        self._step = step
        norms = module_of(package, "numerics.norms")

        def plan(results: Sequence[Result], counts: dict[str, int], xp: Any) -> TorchPlan:
            return TorchPlan(results, counts, norms, xp, donated, compiled_by_torch)

        def tell_of_blocks(reason: str) -> None:
            tell(reason, "through NumPy, not compiled by PyTorch")

        self._shared = numpy_runner(step, package, donated, TorchSharing(), tell)
        self._on_device = TracedRunner(step, package, TensorSharing(), plan, tell)
        self._on_cpu = TracedRunner(step, package, TensorSharing(), plan, tell_of_blocks, self._shared)

    def __call__(self, gradients: Any, opened_gradients: Any, weights: Any, state: Any) -> Any:
        """Return what the step returns."""
        leaves = opened_gradients[0]
        first = next(leaf for leaf in leaves if leaf is not None)
        if is_fake(first):
            # Somebody records what is done, and sees the step itself.
            return self._step(gradients, weights, state)
        if first.is_cpu:
            runner = self._on_cpu if is_for_compiler(leaves) else self._shared
        else:
            runner = self._on_device
        return runner(gradients, opened_gradients, weights, state)


def is_fake(tensor: Any) -> bool:
    """Return whether this is a tensor without values."""
    return bool(tensor.is_meta) or type(tensor).__name__ == "FakeTensor"


def is_for_compiler(leaves: Sequence[Any]) -> bool:
    """Return whether PyTorch compiles the update of such gradients on the CPU."""
    chosen = os.environ.get(EXECUTOR)
    if chosen == "blocks":
        return False
    if chosen != "compiler":
        elements: int = sum([leaf.numel() for leaf in leaves if leaf is not None])
        if elements < WORTH_COMPILING or is_numba_installed() or not has_compiler():
            return False
    # PyTorch's compiler makes no kernels of complex numbers.
    return not any(leaf is not None and leaf.is_complex() for leaf in leaves)


@cache
def is_numba_installed() -> bool:
    """Return whether numba is there; whether it can be imported is not tried before it is needed."""
    return find_spec("numba") is not None


@cache
def has_compiler() -> bool:
    """Return whether there is the compiler of C++ that PyTorch would take."""
    named = os.environ.get("CXX")
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    return shutil.which(named or usual) is not None


def compiled_by_torch(function: Function) -> Function:
    """Return a function of tensors compiled as one graph.

    Raises, at its first call:
        TracingError: PyTorch cannot compile it.
    """
    import torch

    compiled = torch.compile(function, fullgraph=True, dynamic=False)
    failures = torch._dynamo.exc.TorchDynamoException  # noqa: SLF001  # It has no public name.
    is_ready = False

    def run(given: list[Any]) -> list[Any]:
        nonlocal is_ready
        with torch.no_grad():
            if is_ready:
                result: list[Any] = compiled(given)
                return result
            try:
                with warnings.catch_warnings():
                    # PyTorch warns of parts of its own when its compiler is loaded.
                    warnings.simplefilter("ignore")
                    result = compiled(given)
            except failures as error:
                said = " ".join(str(error).split("\n")[:2])
                raise TracingError(f"PyTorch could not compile it ({said})") from error
        is_ready = True
        return result

    return run
